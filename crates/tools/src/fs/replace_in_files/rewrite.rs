//! What becomes of one file's bytes.

use haft_journal::edit::{self, Change, EditError, Tier};
use regex::bytes::{Regex, RegexBuilder};

/// A pattern and what takes the place of its matches.
#[derive(Debug, Clone)]
pub(super) struct Rewrite {
    pattern: Pattern,
    replacement: String,
}

#[derive(Debug, Clone)]
enum Pattern {
    Literal(String),
    Regex(Box<Regex>),
}

/// A file's new bytes, and in how many places they differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rewritten {
    pub(super) bytes: Vec<u8>,
    pub(super) places: usize,
}

impl Rewrite {
    /// A literal text, taken as Edit takes it: line breaks follow the file.
    pub(super) fn literal(pattern: &str, replacement: &str) -> Self {
        Self {
            pattern: Pattern::Literal(pattern.to_owned()),
            replacement: replacement.to_owned(),
        }
    }

    /// A regular expression; `$1` and `${name}` stand for its groups, `$$` for a dollar.
    pub(super) fn regex(
        pattern: &str,
        replacement: &str,
        multiline: bool,
    ) -> Result<Self, regex::Error> {
        let regex = RegexBuilder::new(pattern)
            // `^` and `$` mean lines, and a line may end in CRLF; only `multiline` lets `.` go on.
            .multi_line(true)
            .crlf(true)
            .dot_matches_new_line(multiline)
            .build()?;
        Ok(Self {
            pattern: Pattern::Regex(Box::new(regex)),
            replacement: replacement.to_owned(),
        })
    }

    /// A pattern for the search engine that finds at least the files this would change.
    pub(super) fn search_pattern(&self) -> String {
        match &self.pattern {
            Pattern::Literal(text) => regex::escape(text)
                .replace("\r\n", "\n")
                .replace('\n', "\\r?\\n"),
            Pattern::Regex(regex) => format!("(?R){}", regex.as_str()),
        }
    }

    /// Can a match go beyond a line?
    pub(super) fn spans_lines(&self) -> bool {
        match &self.pattern {
            Pattern::Literal(text) => text.contains('\n'),
            Pattern::Regex(_) => true,
        }
    }

    /// The file rewritten, `None` where nothing changes, or why it cannot be.
    pub(super) fn apply(&self, bytes: &[u8]) -> Result<Option<Rewritten>, String> {
        match &self.pattern {
            Pattern::Literal(old) => self.apply_literal(bytes, old),
            Pattern::Regex(regex) => self.apply_regex(bytes, regex),
        }
    }

    fn apply_literal(&self, bytes: &[u8], old: &str) -> Result<Option<Rewritten>, String> {
        let change = Change {
            old,
            new: &self.replacement,
            replace_all: true,
        };
        match edit::plan(bytes, &change) {
            // Many files at once are no place for leniency: only the very text counts.
            Ok(plan) if plan.tier == Tier::Exact => Ok(Some(Rewritten {
                bytes: edit::apply(bytes, &plan),
                places: plan.places.len(),
            })),
            Ok(_) | Err(EditError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn apply_regex(&self, bytes: &[u8], regex: &Regex) -> Result<Option<Rewritten>, String> {
        if std::str::from_utf8(bytes).is_err() {
            return Err("not UTF-8: a regular expression could split a character".to_owned());
        }
        let mut places = 0;
        let mut rewritten = Vec::with_capacity(bytes.len());
        let mut copied = 0;
        // New lines follow a file that has CRLF everywhere; a mixed one gets what is written.
        let crlf = is_crlf(bytes);
        for found in regex.captures_iter(bytes) {
            let whole = found.get_match();
            let mut new = Vec::new();
            found.expand(self.replacement.as_bytes(), &mut new);
            if crlf {
                new = with_crlf(&new);
            }
            if new == whole.as_bytes() {
                continue;
            }
            places += 1;
            rewritten.extend_from_slice(&bytes[copied..whole.start()]);
            rewritten.extend_from_slice(&new);
            copied = whole.end();
        }
        rewritten.extend_from_slice(&bytes[copied..]);
        let changed = places > 0;
        Ok(changed.then_some(Rewritten {
            bytes: rewritten,
            places,
        }))
    }
}

fn is_crlf(bytes: &[u8]) -> bool {
    let breaks = bytes.iter().filter(|byte| **byte == b'\n').count();
    breaks > 0 && bytes.windows(2).filter(|pair| *pair == b"\r\n").count() == breaks
}

fn with_crlf(text: &[u8]) -> Vec<u8> {
    let mut converted = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        if *byte == b'\n' && (at == 0 || text[at - 1] != b'\r') {
            converted.push(b'\r');
        }
        converted.push(*byte);
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_rewritten_as_asked_and_nowhere_else() {
        let literal = |old, new| Rewrite::literal(old, new);
        let regex = |old, new, multiline| Rewrite::regex(old, new, multiline).unwrap();
        let cases = [
            // (what it shows, rewrite, before, after and places, or nothing)
            (
                "every place",
                literal("a", "b"),
                "a xa\n",
                Some(("b xb\n", 2)),
            ),
            ("no place", literal("z", "b"), "a\n", None),
            (
                "a dollar is a dollar",
                literal("a", "$1$$"),
                "a\n",
                Some(("$1$$\n", 1)),
            ),
            (
                "literal over CRLF",
                literal("a\nb", "c\nd"),
                "a\r\nb\r\n",
                Some(("c\r\nd\r\n", 1)),
            ),
            (
                "groups",
                regex(r"(\w+)=(\w+)", "$2=$1", false),
                "k=v\n",
                Some(("v=k\n", 1)),
            ),
            (
                "named groups",
                regex(r"(?<x>\d)", "<${x}>", false),
                "1 2\n",
                Some(("<1> <2>\n", 2)),
            ),
            (
                "a dollar written twice",
                regex("a", "$$", false),
                "a\n",
                Some(("$\n", 1)),
            ),
            (
                "the end of a CRLF line",
                regex("a$", "b", false),
                "a\r\na\r\n",
                Some(("b\r\nb\r\n", 2)),
            ),
            (
                "a dot stays on its line",
                regex("a.*", "x", false),
                "ab\r\nc\r\n",
                Some(("x\r\nc\r\n", 1)),
            ),
            (
                "unless told otherwise",
                regex("a.*c", "x", true),
                "ab\nc\n",
                Some(("x\n", 1)),
            ),
            (
                "no width",
                regex("x*", "-", false),
                "ab",
                Some(("-a-b-", 3)),
            ),
            (
                "new lines follow the file",
                regex("b", "1\n2", false),
                "a\r\nb\r\n",
                Some(("a\r\n1\r\n2\r\n", 1)),
            ),
            (
                "the same again is no change",
                regex("a", "a", false),
                "aaa\n",
                None,
            ),
        ];
        for (what, rewrite, before, expected) in cases {
            let found = rewrite.apply(before.as_bytes()).unwrap();
            let found = found.map(|new| (String::from_utf8(new.bytes).unwrap(), new.places));
            let expected = expected.map(|(text, places)| (text.to_owned(), places));
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn a_regular_expression_never_touches_what_is_not_text() {
        let rewrite = Rewrite::regex("a", "b", false).unwrap();
        assert!(rewrite.apply(b"a \xe9\n").is_err());
    }
}
