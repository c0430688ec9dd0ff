//! `/undo`: undoes the changes of calls.

use super::{BuiltInCommand, CommandAction, CommandAnswer, blocking, short, table};
use crate::{ChangedFile, SessionInput, UndoReport, UndoWhich, utc_time};

/// The maximum number of listed changes.
const LISTED: usize = 30;

pub(super) static UNDO: BuiltInCommand = BuiltInCommand {
    name: "undo",
    hint: "[number | id | list]",
    description: "Undo the last change of this session, the last few, or one",
    acts: CommandAction::AnytimeIf(
        |arguments| arguments.trim() == "list",
        |input, arguments| {
            let (input, arguments) = (input.clone(), arguments.trim().to_owned());
            Box::pin(blocking(move || undo(&input, &arguments)))
        },
    ),
};

fn undo(input: &SessionInput, arguments: &str) -> CommandAnswer {
    if arguments == "list" {
        return list(input);
    }
    let which = match arguments {
        "" => UndoWhich::Newest(1),
        number if number.len() < 4 && number.parse::<usize>().is_ok() => {
            UndoWhich::Newest(number.parse().unwrap_or(1))
        }
        id => UndoWhich::Entry(id.to_owned()),
    };
    let report = input.undo(&which, false)?;
    undo_text(&report)
}

/// Describes the result of an undo.
pub(super) fn undo_text(report: &UndoReport) -> CommandAnswer {
    if let Some(conflict) = &report.conflict {
        return Err(format!("nothing was undone: {conflict}"));
    }
    let mut lines: Vec<String> = report
        .cards
        .iter()
        .map(|card| format!("{} {}", card.subject, card.summary))
        .collect();
    let left = report.left.iter();
    lines.extend(left.map(|(path, why)| format!("not restored: {}: {why}", path.display())));
    if let Some(redo) = &report.redo {
        lines.push(format!("To undo this: /undo {redo}"));
    }
    Ok(lines.join("\n"))
}

fn list(input: &SessionInput) -> CommandAnswer {
    let entries = input.undo_list()?;
    if entries.is_empty() {
        return Ok("Nothing was changed in this session.".to_owned());
    }
    let rows = entries.into_iter().take(LISTED).map(|entry| {
        let state = match (&entry.undoable, entry.is_undo) {
            (Ok(()), false) => "can be undone".to_owned(),
            (Ok(()), true) => "an undo; can be undone".to_owned(),
            (Err(why), _) => short(why, 60),
        };
        let what = match entry.about.is_empty() {
            true => files(&entry.files),
            false => format!("{}: {}", files(&entry.files), short(&entry.about, 40)),
        };
        vec![
            entry.id,
            utc_time::show(entry.time),
            entry.tool,
            what,
            state,
        ]
    });
    Ok(table(&rows.collect::<Vec<_>>()))
}

/// Describes changed files briefly.
pub(super) fn files(files: &[ChangedFile]) -> String {
    let added: u64 = files.iter().map(|file| file.added).sum();
    let removed: u64 = files.iter().map(|file| file.removed).sum();
    // Lines are not counted for changes by commands.
    let lines = match (added, removed) {
        (0, 0) => String::new(),
        _ => format!(" +{added} -{removed}"),
    };
    match files {
        [] => "no files".to_owned(),
        [file] => {
            let name = file.path.file_name().unwrap_or(file.path.as_os_str());
            format!("{}{lines}", name.to_string_lossy())
        }
        files => format!("{} files{lines}", files.len()),
    }
}
