//! `/export`: the conversation as a text, as Markdown, or as a page.

use std::{io, path::Path};

use super::{Acts, BuiltIn, CommandAnswer, blocking};
use crate::{ExchangePart, ExistingFile, ExportFormat, SessionInput, exchanges, export};

pub(super) static EXPORT: BuiltIn = BuiltIn {
    name: "export",
    hint: "[FILE]",
    description: "Write the conversation to a file: Markdown, or a page if its name ends in .html",
    acts: Acts::Anytime(|input, file| {
        let (input, file) = (input.clone(), file.trim().to_owned());
        Box::pin(blocking(move || run(&input, &file)))
    }),
};

fn run(input: &SessionInput, file: &str) -> CommandAnswer {
    let transcript = input.transcript_path();
    let transcript = transcript.ok_or("nothing was said yet, or the session is not kept")?;
    let failed = |error: io::Error| error.to_string();
    if file.is_empty() {
        return export_text(&transcript).map_err(failed);
    }
    let config = &input.0.config;
    let path = config.cwd.join(file);
    let (format, prices) = (ExportFormat::of_file(&path), export::prices(config));
    // What is there stays: a slip must not cost a file.
    let written = export::write(&transcript, format, &prices, &path, ExistingFile::Keep);
    written.map_err(|error| error.to_string())?;
    Ok(format!("Written to {}.", path.display()))
}

/// A conversation as a text that people read.
pub fn export_text(transcript: &Path) -> io::Result<String> {
    let mut text = String::new();
    for exchange in exchanges(transcript, usize::MAX)?.shown {
        text += &format!("> {}\n\n", exchange.prompt.trim().replace('\n', "\n> "));
        for part in exchange.parts {
            match part {
                ExchangePart::Text(said) => text += &format!("{}\n\n", said.trim()),
                ExchangePart::Call {
                    name,
                    input,
                    is_error,
                } => {
                    let about = input.as_object().and_then(|input| input.values().next());
                    let about = about
                        .and_then(serde_json::Value::as_str)
                        .unwrap_or_default();
                    let state = match is_error {
                        Some(true) => " (failed)",
                        Some(false) => "",
                        None => " (no answer)",
                    };
                    let about = about.lines().next().unwrap_or_default();
                    text += &format!("* {name} {about}{state}\n\n");
                }
            }
        }
    }
    Ok(format!("{}\n", text.trim_end()))
}
