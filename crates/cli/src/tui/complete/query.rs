//! What is being completed at the caret.

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionQuery {
    pub(crate) kind: CompletionKind,
    /// What was typed behind the `@` or `/`, without quotes and line range.
    pub(crate) query: String,
    /// So many bytes before the caret are replaced: the mark, and what is behind it.
    pub(crate) replaces: usize,
    /// `:10-20` behind a path: it stays where it is.
    pub(crate) lines: String,
    /// It was begun with a quote.
    pub(crate) is_quoted: bool,
}

/// Of which kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompletionKind {
    File,
    Command,
}

/// What the text before the caret begins to name; `None`: nothing that could be completed.
pub(crate) fn completion_query(text: &str, caret: usize) -> Option<CompletionQuery> {
    let before = text.get(..caret)?;
    command(before).or_else(|| file(before))
}

/// A `/` at the very start, and the caret still in the name behind it.
fn command(before: &str) -> Option<CompletionQuery> {
    let name = before.strip_prefix('/')?;
    // A second slash makes it a path.
    let is_name = !name.contains(|letter: char| letter.is_whitespace() || letter == '/');
    is_name.then(|| CompletionQuery {
        kind: CompletionKind::Command,
        query: name.to_owned(),
        replaces: before.len(),
        lines: String::new(),
        is_quoted: false,
    })
}

/// An `@` at the start or behind a blank, and the caret in the path behind it.
fn file(before: &str) -> Option<CompletionQuery> {
    let mut marks = before.match_indices('@').filter(|(at, _)| {
        let letter = before[..*at].chars().next_back();
        letter.is_none_or(char::is_whitespace)
    });
    let (at, _) = marks.next_back()?;
    let typed = &before[at + 1..];
    let (path, lines, is_quoted) = match typed.strip_prefix('"') {
        // Behind the closing quote nothing is left to complete.
        Some(rest) if rest.contains(['"', '\n']) => return None,
        Some(rest) => (rest, "", true),
        None if typed.contains(char::is_whitespace) => return None,
        None => {
            let (path, lines) = split_lines(typed);
            (path, lines, false)
        }
    };
    Some(CompletionQuery {
        kind: CompletionKind::File,
        query: path.to_owned(),
        replaces: before.len() - at,
        lines: lines.to_owned(),
        is_quoted,
    })
}

/// The path, and the lines behind it: `a.rs:10-20` is `a.rs` and `:10-20`.
fn split_lines(typed: &str) -> (&str, &str) {
    let Some(at) = typed.rfind(':') else {
        return (typed, "");
    };
    let is_range = typed[at + 1..]
        .chars()
        .all(|letter| letter.is_ascii_digit() || letter == '-');
    match is_range {
        true => typed.split_at(at),
        false => (typed, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Option<(CompletionKind, String, usize, String)> {
        let query = completion_query(text, text.len())?;
        Some((query.kind, query.query, query.replaces, query.lines))
    }

    #[test]
    fn what_stands_at_the_caret_is_completed() {
        use CompletionKind::{Command, File};
        let cases = [
            ("@pri", Some((File, "pri", 4, ""))),
            ("see @", Some((File, "", 1, ""))),
            ("see\n@src/p", Some((File, "src/p", 6, ""))),
            ("@a.rs:10-20", Some((File, "a.rs", 11, ":10-20"))),
            ("@a.rs:", Some((File, "a.rs", 6, ":"))),
            ("@C:x", Some((File, "C:x", 4, ""))),
            ("@\"my no", Some((File, "my no", 7, ""))),
            ("@\"my notes\"", None),
            ("mail a@b.c", None),
            ("@a done", None),
            ("/co", Some((Command, "co", 3, ""))),
            ("/", Some((Command, "", 1, ""))),
            ("/compact what", None),
            ("/usr/bin", None),
            (" /co", None),
            ("say /co", None),
            ("", None),
            ("/x @pri", Some((File, "pri", 4, ""))),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|(kind, query, replaces, lines)| {
                (kind, query.to_owned(), replaces, lines.to_owned())
            });
            assert_eq!(asked(text), expected, "{text:?}");
        }
    }

    #[test]
    fn only_what_is_before_the_caret_counts() {
        let query = completion_query("@pri and more", 4).unwrap();
        assert_eq!((query.query.as_str(), query.replaces), ("pri", 4));
        assert_eq!(completion_query("é", 1), None, "inside of a character");
    }
}
