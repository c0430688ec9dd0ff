//! Detects the text to complete at the caret.

/// A completion query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionQuery {
    pub(crate) kind: CompletionKind,
    /// The text after the `@` or `/`, without quotes and line range.
    pub(crate) query: String,
    /// The number of bytes before the caret that are replaced: the mark and the text after it.
    pub(crate) replaces: usize,
    /// A line range after a path (`:10-20`), which is kept.
    pub(crate) lines: String,
    /// Whether the path begins with a quote.
    pub(crate) is_quoted: bool,
}

/// The kind of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompletionKind {
    File,
    Command,
}

/// Returns the query for the text before the caret, or `None` if there is nothing to complete.
pub(crate) fn completion_query(text: &str, caret: usize) -> Option<CompletionQuery> {
    let before = text.get(..caret)?;
    command(before).or_else(|| file(before))
}

/// Detects a command: a `/` at the start of the text, with the caret in the name after it.
fn command(before: &str) -> Option<CompletionQuery> {
    let name = before.strip_prefix('/')?;
    // With a second slash it is a path.
    let is_name = !name.contains(|letter: char| letter.is_whitespace() || letter == '/');
    is_name.then(|| CompletionQuery {
        kind: CompletionKind::Command,
        query: name.to_owned(),
        replaces: before.len(),
        lines: String::new(),
        is_quoted: false,
    })
}

/// Detects a path: an `@` at the start or after whitespace, with the caret in the path after it.
fn file(before: &str) -> Option<CompletionQuery> {
    let mut marks = before.match_indices('@').filter(|(at, _)| {
        let letter = before[..*at].chars().next_back();
        letter.is_none_or(char::is_whitespace)
    });
    let (at, _) = marks.next_back()?;
    let typed = &before[at + 1..];
    let (path, lines, is_quoted) = match typed.strip_prefix('"') {
        // After the closing quote there is nothing to complete.
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

/// Splits a line range off a path: `a.rs:10-20` becomes `a.rs` and `:10-20`.
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
