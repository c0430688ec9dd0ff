//! The rewriting of one file's bytes.

use haft_journal::edit::{self, EditError, EditRequest, MatchTier};
use haft_search::SearchError;

use super::regex_pattern::RegexPattern;

/// A pattern and the replacement for its matches.
#[derive(Debug, Clone)]
pub(super) struct FileRewrite {
    pattern: RewritePattern,
    replacement: String,
}

#[derive(Debug, Clone)]
enum RewritePattern {
    Literal(String),
    Regex(RegexPattern),
}

/// The new bytes of a file, and the number of changed places.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReplacedFile {
    pub(super) bytes: Vec<u8>,
    pub(super) places: usize,
}

impl FileRewrite {
    /// Creates a rewrite of literal text with the rules of Edit: line breaks follow the file.
    pub(super) fn literal(pattern: &str, replacement: &str) -> Self {
        Self {
            pattern: RewritePattern::Literal(pattern.to_owned()),
            replacement: replacement.to_owned(),
        }
    }

    /// Creates a rewrite of a regular expression; `$1` and `${name}` in the replacement are its
    /// groups, `$$` is a dollar sign.
    pub(super) fn regex(
        pattern: &str,
        replacement: &str,
        multiline: bool,
    ) -> Result<Self, SearchError> {
        Ok(Self {
            pattern: RewritePattern::Regex(RegexPattern::new(pattern, multiline)?),
            replacement: replacement.to_owned(),
        })
    }

    /// Returns the search engine's pattern for finding the files that would change.
    pub(super) fn search_pattern(&self) -> String {
        match &self.pattern {
            RewritePattern::Literal(text) => regex::escape(text)
                .replace("\r\n", "\n")
                .replace('\n', "\\r?\\n"),
            RewritePattern::Regex(pattern) => pattern.source.clone(),
        }
    }

    /// Returns whether a match can span several lines.
    pub(super) fn spans_lines(&self) -> bool {
        match &self.pattern {
            RewritePattern::Literal(text) => text.contains('\n'),
            RewritePattern::Regex(pattern) => pattern.multiline,
        }
    }

    /// Rewrites a file: `None` if nothing changes; the error is the reason why it cannot be
    /// rewritten.
    pub(super) fn apply(&self, bytes: &[u8]) -> Result<Option<ReplacedFile>, String> {
        match &self.pattern {
            RewritePattern::Literal(old) => self.apply_literal(bytes, old),
            RewritePattern::Regex(pattern) => pattern.apply(bytes, &self.replacement),
        }
    }

    fn apply_literal(&self, bytes: &[u8], old: &str) -> Result<Option<ReplacedFile>, String> {
        let change = EditRequest {
            old,
            new: &self.replacement,
            replace_all: true,
        };
        match edit::plan(bytes, &change) {
            // Tolerant matching is too risky for many files: only exact matches are changed.
            Ok(plan) if plan.tier == MatchTier::Exact => Ok(Some(ReplacedFile {
                bytes: edit::apply(bytes, &plan),
                places: plan.places.len(),
            })),
            Ok(_) | Err(EditError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_rewritten_as_asked_and_nowhere_else() {
        let literal = |old, new| FileRewrite::literal(old, new);
        let regex = |old, new, multiline| FileRewrite::regex(old, new, multiline).unwrap();
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
                "the end of a CRLF line is behind its CR, as for Grep",
                regex("a$", "b", false),
                "a\r\na\r\n",
                None,
            ),
            (
                "what is added there comes before the break",
                regex("$", ";", false),
                "a\r\nb\r\n",
                Some(("a;\r\nb;\r\n", 2)),
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
        let rewrite = FileRewrite::regex("a", "b", false).unwrap();
        for bytes in [
            &b"a \xe9\n"[..],
            b"a\0",
            b"\xff\xfea\0\0\xd8",
            b"\xff\xfe\0\0a\0\0\0",
        ] {
            assert!(rewrite.apply(bytes).is_err(), "{}", bytes.escape_ascii());
        }
    }
}
