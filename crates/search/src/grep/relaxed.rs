//! A pattern without its word boundaries, which matches everything that the pattern matches.
//!
//! The fast regex engine cannot evaluate Unicode word boundaries in a text with non-ASCII letters;
//! the slow engine takes ten times as long. A text that the relaxed pattern does not match needs no
//! slow search, and most of the lines it does match contain no such letter.

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Look, print::Printer};

use super::GrepQuery;
use super::prefilter::stays_in_line;

/// Patterns nested deeper than this are not relaxed.
const MAX_DEPTH: usize = 200;

/// Builds the relaxed pattern of a query. Returns `None` if the pattern has no Unicode word
/// boundary, if it depends on the text beyond its line, or if it could match the empty string
/// without its boundaries.
pub(super) fn build(query: &GrepQuery) -> Option<RegexMatcher> {
    let parsed = ParserBuilder::new()
        .utf8(false)
        .unicode(true)
        .octal(false)
        .multi_line(true)
        .dot_matches_new_line(query.multiline)
        .case_insensitive(query.case_insensitive)
        .build()
        .parse(&query.pattern)
        .ok()?;
    if !parsed.properties().look_set().contains_word_unicode() || !stays_in_line(&parsed) {
        return None;
    }
    let relaxed = relax(&parsed, 0)?;
    if relaxed
        .properties()
        .minimum_len()
        .is_none_or(|length| length == 0)
    {
        return None;
    }
    let mut pattern = String::new();
    Printer::new().print(&relaxed, &mut pattern).ok()?;
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).unicode(true).octal(false);
    if query.multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build_many(&[&pattern]).ok()
}

/// Removes every assertion about the surrounding text except the starts and ends of lines.
fn relax(hir: &Hir, depth: usize) -> Option<Hir> {
    if depth > MAX_DEPTH {
        return None;
    }
    let all = |parts: &[Hir]| -> Option<Vec<Hir>> {
        parts.iter().map(|part| relax(part, depth + 1)).collect()
    };
    Some(match hir.kind() {
        HirKind::Look(Look::StartLF | Look::EndLF) => hir.clone(),
        HirKind::Look(_) => Hir::empty(),
        HirKind::Capture(capture) => relax(&capture.sub, depth + 1)?,
        HirKind::Repetition(repeated) => {
            let sub = Box::new(relax(&repeated.sub, depth + 1)?);
            let mut repeated = repeated.clone();
            repeated.sub = sub;
            Hir::repetition(repeated)
        }
        HirKind::Concat(parts) => Hir::concat(all(parts)?),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)?),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
    })
}

#[cfg(test)]
mod tests {
    use grep_matcher::Matcher;
    use proptest::prelude::*;

    use super::*;
    use crate::grep::matcher;

    fn query(pattern: &str, case_insensitive: bool, multiline: bool) -> GrepQuery {
        GrepQuery {
            case_insensitive,
            multiline,
            ..GrepQuery::new(pattern, "/")
        }
    }

    #[test]
    fn only_patterns_with_boundaries_and_something_else_are_relaxed() {
        let relaxed = |pattern| build(&query(pattern, false, false));
        for pattern in ["abc", r"^a", r"\b", r"\b\w*\b", r"(?-u:\b)a", r"\d+"] {
            assert!(relaxed(pattern).is_none(), "{pattern}");
        }
        let matcher = relaxed(r"\b[a-z]{2}\d{3}\b").unwrap();
        assert!(matcher.is_match("é xab123y".as_bytes()).unwrap());
        assert!(!matcher.is_match("é ab12 c345".as_bytes()).unwrap());
    }

    const ATOMS: &[&str] = &[
        "a",
        "É",
        r"\b",
        r"\B",
        r"\w",
        r"\d",
        ".",
        "^",
        "$",
        "[^a]",
        "(?i:k)",
        r"\s",
        "x?",
        "(ab|é)",
        "(?:b\\b)+",
        r"\A",
        r"\z",
        r"\<",
        r"\>",
        "{2}",
    ];

    fn patterns() -> impl Strategy<Value = String> {
        proptest::collection::vec(proptest::sample::select(ATOMS), 1..6)
            .prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn whatever_matches_matches_relaxed(
            pattern in patterns(),
            words in proptest::collection::vec(
                proptest::sample::select(&["a", "b", "é", "É", "K", " ", "1", "\n", "ab", "x", "\u{212a}"][..]),
                0..12,
            ),
            case_insensitive in any::<bool>(),
            multiline in any::<bool>(),
        ) {
            let query = query(&pattern, case_insensitive, multiline);
            if let (Ok(exact), Some(relaxed)) = (matcher::build(&query), build(&query)) {
                let text = words.concat();
                let lines: Vec<&str> = match multiline {
                    true => vec![&text],
                    false => text.lines().collect(),
                };
                let matches = lines.iter().any(|line| exact.is_match(line.as_bytes()).unwrap());
                prop_assert!(!matches || relaxed.is_match(text.as_bytes()).unwrap());
            }
        }
    }
}
