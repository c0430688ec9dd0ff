//! A card on the terminal.

use std::path::Path;

use haft::{Card, Hunk, Piece};

use super::{Style, clean};

/// Draws a card: a heading line, then its body, indented. Paths below `cwd` are shown from there.
pub(crate) fn card(card: &Card, is_error: bool, cwd: &Path, style: Style) -> String {
    let mark = if is_error {
        style.red("✗")
    } else {
        style.green("●")
    };
    let mut text = format!("{mark} {}", style.bold(&clean(&card.title)));
    if !card.subject.is_empty() {
        text += &format!(" {}", one_line(&from_here(&card.subject, cwd)));
    }
    if !card.summary.is_empty() {
        text += &format!("  {}", style.dim(&one_line(&card.summary)));
    }
    text.push('\n');
    for piece in &card.body {
        match piece {
            Piece::Text(plain) => indented(&mut text, plain, |line| line.to_owned()),
            // Our own words may be wrapped; lines of files and results are left as they are.
            Piece::Muted(plain) => {
                indented(&mut text, &own_words(plain, cwd, style), |line| {
                    style.dim(line)
                });
            }
            Piece::Alarm(plain) => {
                indented(&mut text, &own_words(plain, cwd, style), |line| {
                    style.red(line)
                });
            }
            Piece::Diff(hunks) => diff(&mut text, hunks, style),
        }
    }
    text
}

fn own_words(text: &str, cwd: &Path, style: Style) -> String {
    style.wrap_to(&from_here(text, cwd), style.width().saturating_sub(3))
}

/// `/home/me/project/src/a.rs` is `src/a.rs` to somebody in the project.
fn from_here(subject: &str, cwd: &Path) -> String {
    let here = cwd.display().to_string();
    let at_the_end = format!(" in {here}");
    let subject = subject.strip_suffix(&at_the_end).unwrap_or(subject);
    if subject == here {
        ".".to_owned()
    } else {
        subject.replace(&format!("{here}/"), "")
    }
}

fn one_line(text: &str) -> String {
    clean(text).replace('\n', " ")
}

fn indented(text: &mut String, piece: &str, paint: impl Fn(&str) -> String) {
    for line in clean(piece).lines() {
        *text += format!("  {}", paint(line)).trim_end();
        text.push('\n');
    }
}

/// Changed lines with their numbers: of the old file for what goes, of the new one for the rest.
fn diff(text: &mut String, hunks: &[Hunk], style: Style) {
    let last = hunks
        .iter()
        .map(|hunk| (hunk.old_start + hunk.old_lines).max(hunk.new_start + hunk.new_lines))
        .max()
        .unwrap_or_default();
    let width = last.to_string().len();
    for (index, hunk) in hunks.iter().enumerate() {
        if index > 0 {
            *text += &style.dim(&format!("  {:>width$}", "⋮"));
            text.push('\n');
        }
        let (mut old, mut new) = (hunk.old_start, hunk.new_start);
        for line in &hunk.lines {
            let line = clean(line);
            let (number, painted) = match line.chars().next() {
                Some('-') => (&mut old, style.red(&line)),
                Some('+') => (&mut new, style.green(&line)),
                // Not a line of either file: a remark such as a missing final line end.
                Some('\\') => {
                    *text += &format!("  {:>width$} {}\n", "", style.dim(&line));
                    continue;
                }
                _ => {
                    old += 1;
                    (&mut new, line.clone())
                }
            };
            *text += format!("  {} {painted}", style.dim(&format!("{number:>width$}"))).trim_end();
            text.push('\n');
            *number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_with_everything() {
        let hunks = vec![
            Hunk {
                old_start: 9,
                old_lines: 3,
                new_start: 9,
                new_lines: 3,
                lines: [
                    " let a = 1;",
                    "-let b = 2;",
                    "+let b = 3;",
                    " let c = \u{1b}[31m;",
                ]
                .map(str::to_owned)
                .into(),
            },
            Hunk {
                old_start: 40,
                old_lines: 0,
                new_start: 41,
                new_lines: 1,
                lines: vec!["+new".to_owned()],
            },
        ];
        let here = Path::new("/home/me/project");
        let drawn = Card::new("Edit", "/home/me/project/src/lib.rs")
            .with_summary("1 place (+2 −1)")
            .with(Piece::Diff(hunks))
            .with(Piece::Muted("a note".into()))
            .with(Piece::Alarm(
                "two lines,\n  one of which is longer than forty columns".into(),
            ));
        let plain = card(&drawn, false, here, Style::fixed(false, 40));
        let coloured = card(&drawn, true, here, Style::fixed(true, 40)).replace('\u{1b}', "ESC");
        insta::assert_snapshot!(format!("{plain}\n{coloured}"));
    }
}
