//! Draws cards on the terminal.

use std::path::Path;

use haft::{Card, CardSection, DiffHunk};

use super::{ConsoleStyle, clean, distinct, distinct_line};

/// Draws a card: a heading line, then its indented body. Paths below `cwd` are shown relative to
/// it.
pub(crate) fn card(card: &Card, is_error: bool, cwd: &Path, style: ConsoleStyle) -> String {
    let mark = if is_error {
        style.red("✗")
    } else {
        style.green("●")
    };
    let heading = CardHeading {
        title: clean(&card.title),
        subject: one_line(&from_here(&card.subject, cwd)),
        summary: one_line(&card.summary),
    };
    let mut text = heading.drawn(&mark, style);
    for piece in &card.body {
        match piece {
            CardSection::Text(plain) => indented(&mut text, &clean(plain), |line| line.to_owned()),
            // Our own text is wrapped; lines of files and results are not.
            CardSection::Muted(plain) => {
                let words = own_words(&clean(&from_here(plain, cwd)), style);
                indented(&mut text, &words, |line| style.dim(line));
            }
            CardSection::Alarm(plain) => {
                let words = own_words(&clean(&from_here(plain, cwd)), style);
                indented(&mut text, &words, |line| style.red(line));
            }
            CardSection::Diff(hunks) => diff(&mut text, hunks, style),
        }
    }
    text
}

/// Draws a card for a permission question. The text is complete and every word with look-alike
/// characters is marked. Paths are not shortened: the meaning of a short one depends on the rest of
/// the command.
pub(crate) fn question(card: &Card, style: ConsoleStyle) -> String {
    let heading = CardHeading {
        title: distinct_line(&card.title),
        subject: distinct_line(&card.subject),
        // Prose: our own, or the model's description of the command.
        summary: one_line(&card.summary),
    };
    let mut text = heading.drawn(&style.green("●"), style);
    for piece in &card.body {
        match piece {
            // A plan is prose and may contain typographic dashes and quotes.
            CardSection::Text(plain) if card.title == "Plan" => {
                indented(&mut text, &clean(plain), |line| line.to_owned());
            }
            CardSection::Text(plain) => {
                indented(&mut text, &distinct(plain), |line| line.to_owned())
            }
            CardSection::Muted(plain) => {
                let words = own_words(&distinct(plain), style);
                indented(&mut text, &words, |line| style.dim(line));
            }
            CardSection::Alarm(plain) => {
                let words = own_words(&distinct(plain), style);
                indented(&mut text, &words, |line| style.red(line));
            }
            CardSection::Diff(hunks) => diff(&mut text, hunks, style),
        }
    }
    text
}

/// The first line of a card, already cleaned.
struct CardHeading {
    title: String,
    subject: String,
    summary: String,
}

impl CardHeading {
    fn drawn(&self, mark: &str, style: ConsoleStyle) -> String {
        let mut text = format!("{mark} {}", style.bold(&self.title));
        if !self.subject.is_empty() {
            text += &format!(" {}", self.subject);
        }
        if !self.summary.is_empty() {
            text += &format!("  {}", style.dim(&self.summary));
        }
        text.push('\n');
        text
    }
}

fn own_words(text: &str, style: ConsoleStyle) -> String {
    style.wrap_to(text, style.width().saturating_sub(3))
}

/// Shortens paths below `cwd`: `/home/me/project/src/a.rs` becomes `src/a.rs`, but
/// `/mnt/home/me/project/x` is kept, since it is a different path.
pub(crate) fn from_here(subject: &str, cwd: &Path) -> String {
    let here = cwd.display().to_string();
    let at_the_end = format!(" in {here}");
    let subject = subject.strip_suffix(&at_the_end).unwrap_or(subject);
    if subject == here {
        return ".".to_owned();
    }
    let inside = format!("{here}/");
    let mut shown = String::with_capacity(subject.len());
    let mut from = 0;
    for (at, _) in subject.match_indices(&inside) {
        let begins = subject[..at]
            .chars()
            .next_back()
            .is_none_or(|before| before.is_whitespace() || "\"'`(=:,".contains(before));
        if begins {
            shown += &subject[from..at];
            from = at + inside.len();
        }
    }
    shown += &subject[from..];
    shown
}

fn one_line(text: &str) -> String {
    clean(text).replace('\n', " ")
}

fn indented(text: &mut String, piece: &str, paint: impl Fn(&str) -> String) {
    for line in piece.lines() {
        *text += format!("  {}", paint(line)).trim_end();
        text.push('\n');
    }
}

/// Draws changed lines with their line numbers: in the old file for removed lines, in the new one
/// for all others.
fn diff(text: &mut String, hunks: &[DiffHunk], style: ConsoleStyle) {
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
                // A remark such as "No newline at end of file", not a line of either file.
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
    fn only_what_begins_with_the_directory_is_shown_from_there() {
        let here = Path::new("/p");
        for (subject, shown) in [
            ("/p/a.rs", "a.rs"),
            ("/p", "."),
            ("x in /p", "x"),
            ("cat /p/a '/p/b'", "cat a 'b'"),
            ("/etc/p/a", "/etc/p/a"),
            ("/pp/a", "/pp/a"),
        ] {
            assert_eq!(from_here(subject, here), shown);
        }
    }

    #[test]
    fn a_question_shows_what_it_is_about_whole_and_tells_names_apart() {
        let asked = Card::new(
            "Bash",
            "cd /q && rm -rf /p/x \u{2010}v caf\u{65}\u{301}\nrm y",
        )
        .with_summary("\u{202e}harmless")
        .with(CardSection::Text("echo \u{200b}\nrm p\u{430}th".into()))
        .with(CardSection::Alarm("without the sandbox".into()));
        insta::assert_snapshot!(question(&asked, ConsoleStyle::fixed(false, 80)));
    }

    #[test]
    fn a_card_with_everything() {
        let hunks = vec![
            DiffHunk {
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
            DiffHunk {
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
            .with(CardSection::Diff(hunks))
            .with(CardSection::Muted("a note".into()))
            .with(CardSection::Alarm(
                "two lines,\n  one of which is longer than forty columns".into(),
            ));
        let plain = card(&drawn, false, here, ConsoleStyle::fixed(false, 40));
        let coloured =
            card(&drawn, true, here, ConsoleStyle::fixed(true, 40)).replace('\u{1b}', "ESC");
        insta::assert_snapshot!(format!("{plain}\n{coloured}"));
    }
}
