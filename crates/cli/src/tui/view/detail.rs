//! Formats changes, times and messages for views.

use std::time::SystemTime;

use haft::{Card, CardSection};
use haft_host::{ChangedFile, utc_time};
use haft_terminal::{TextLine, Theme};

/// The maximum number of lines shown of a change.
const MAX_LINES: usize = 2_000;

/// Returns a card as lines: its heading and its body. Diffs have line numbers.
pub(super) fn card_lines(card: &Card, theme: &Theme) -> Vec<TextLine> {
    let mut heading = TextLine::styled(&card.subject.replace('\n', " "), theme.heading);
    if !card.summary.is_empty() {
        heading.push(&format!("  {}", card.summary), theme.faint);
    }
    let mut lines = vec![heading];
    for piece in &card.body {
        match piece {
            CardSection::Text(text) => {
                lines.extend(TextLine::lines(text, haft_terminal::TextStyle::default()));
            }
            CardSection::Muted(text) => lines.extend(TextLine::lines(text, theme.faint)),
            CardSection::Alarm(text) => lines.extend(TextLine::lines(text, theme.failure)),
            CardSection::Diff(hunks) => {
                for hunk in hunks {
                    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
                    for line in &hunk.lines {
                        let (mark, rest) =
                            line.split_at(line.chars().next().map_or(0, char::len_utf8));
                        let (number, style) = match mark {
                            "-" => (&mut old, theme.removed),
                            "+" => (&mut new, theme.added),
                            _ => {
                                old += 1;
                                (&mut new, haft_terminal::TextStyle::default())
                            }
                        };
                        let mut shown = TextLine::styled(&format!("{number:>4} "), theme.faint);
                        shown.push(&format!("{mark}{rest}"), style);
                        lines.push(shown);
                        *number += 1;
                    }
                }
            }
        }
    }
    let more = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    if more > 0 {
        lines.push(TextLine::styled(&format!("{more} more lines"), theme.faint));
    }
    lines
}

/// Formats a time: `14:02` for today, `01-31 14:02` for another day. The time zone is UTC.
pub(super) fn short_time(time: SystemTime, now: SystemTime) -> String {
    let (shown, today) = (utc_time::show(time), utc_time::show(now));
    let clock = shown.get(11..16).unwrap_or(&shown);
    match shown.get(..10) == today.get(..10) {
        true => clock.to_owned(),
        false => format!("{} {clock}", shown.get(5..10).unwrap_or_default()),
    }
}

/// Returns a message on one line, in quotes.
pub(super) fn quoted(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.join(" ");
    match words.chars().count() > most {
        true => format!("\"{}...\"", words.chars().take(most).collect::<String>()),
        false => format!("\"{words}\""),
    }
}

/// Describes the changed files: the name if it is one, otherwise their number.
pub(super) fn changed_files_text(files: &[ChangedFile]) -> String {
    let added: u64 = files.iter().map(|file| file.added).sum();
    let removed: u64 = files.iter().map(|file| file.removed).sum();
    // Changes by commands have no line counts, so zero means unknown.
    let lines = match (added, removed) {
        (0, 0) => String::new(),
        _ => format!(" +{added} -{removed}"),
    };
    match files {
        [] => String::new(),
        [file] => {
            let name = file.path.file_name().unwrap_or_default();
            format!("{}{lines}", name.display())
        }
        files => format!("{} files{lines}", files.len()),
    }
}

#[cfg(test)]
mod tests {
    use haft_host::FileChangeKind;

    use super::*;

    #[test]
    fn lines_that_were_not_counted_are_not_called_none() {
        let file = |path: &str, added, removed| ChangedFile {
            path: path.into(),
            change: FileChangeKind::Changed,
            added,
            removed,
        };
        let (edited, by_command) = (file("src/a.rs", 2, 1), file("b.txt", 0, 0));
        assert_eq!(
            changed_files_text(std::slice::from_ref(&edited)),
            "a.rs +2 -1"
        );
        assert_eq!(
            changed_files_text(std::slice::from_ref(&by_command)),
            "b.txt"
        );
        assert_eq!(
            changed_files_text(&[by_command.clone(), by_command.clone()]),
            "2 files"
        );
        assert_eq!(changed_files_text(&[edited, by_command]), "2 files +2 -1");
    }
}
