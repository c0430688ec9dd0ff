//! `/export`: exports the conversation as Markdown or as an HTML page.

use super::{BuiltInCommand, CommandAction, CommandAnswer, blocking};
use crate::{
    ExistingFile, ExportFormat, SessionInput,
    export::{prices, render, write},
};

pub(super) static EXPORT: BuiltInCommand = BuiltInCommand {
    name: "export",
    hint: "[FILE]",
    description: "Write the conversation to a file: Markdown, or a page if its name ends in .html",
    acts: CommandAction::Anytime(|input, file| {
        let (input, file) = (input.clone(), file.trim().to_owned());
        Box::pin(blocking(move || export(&input, &file)))
    }),
};

fn export(input: &SessionInput, file: &str) -> CommandAnswer {
    let transcript = input.transcript_path();
    let transcript = transcript.filter(|path| path.exists());
    let transcript = transcript.ok_or(
        "there is nothing to export: no message was sent yet, or the session is not saved",
    )?;
    let config = &input.0.config;
    let prices = prices(config);
    if file.is_empty() {
        let text = render(&transcript, ExportFormat::Markdown, &prices);
        return text.map_err(|error| error.to_string());
    }
    let path = config.cwd.join(file);
    let format = ExportFormat::from_file_name(&path);
    // An existing file is not overwritten, in case of a typing error.
    let written = write(&transcript, format, &prices, &path, ExistingFile::Keep);
    written.map_err(|error| error.to_string())?;
    Ok(format!("Written to {}.", path.display()))
}
