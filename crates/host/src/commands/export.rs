//! `/export`: the conversation as a text, or as a page.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{Acts, BuiltIn, CommandAnswer, blocking};
use crate::{ExchangePart, SessionInput, exchanges};

pub(super) static EXPORT: BuiltIn = BuiltIn {
    name: "export",
    hint: "[FILE]",
    description: "Write the conversation to a file: a text, or a page if its name ends in .html",
    acts: Acts::Anytime(|input, file| {
        let (input, file) = (input.clone(), file.trim().to_owned());
        Box::pin(blocking(move || export(&input, &file)))
    }),
};

fn export(input: &SessionInput, file: &str) -> CommandAnswer {
    let transcript = input.transcript_path();
    let transcript = transcript.ok_or("nothing was said yet, or the session is not kept")?;
    let failed = |error: io::Error| error.to_string();
    if file.is_empty() {
        return export_text(&transcript).map_err(failed);
    }
    let path: PathBuf = input.0.config.cwd.join(file);
    let is_page = path.extension().is_some_and(|end| end == "html");
    let text = match is_page {
        true => export_html(&transcript),
        false => export_text(&transcript),
    };
    let text = text.map_err(failed)?;
    let mut options = fs::OpenOptions::new();
    // What is there stays: a slip must not cost a file.
    let opened = options.write(true).create_new(true).open(&path);
    let mut opened = opened.map_err(|error| format!("{}: {error}", path.display()))?;
    io::Write::write_all(&mut opened, text.as_bytes()).map_err(failed)?;
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

/// A conversation as a page.
pub fn export_html(transcript: &Path) -> io::Result<String> {
    let _ = transcript;
    Err(io::Error::other("this build writes no pages"))
}
