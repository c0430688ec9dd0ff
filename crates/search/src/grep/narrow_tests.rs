use grep_searcher::SearcherBuilder;
use grep_searcher::sinks::Bytes;
use proptest::prelude::*;

use super::*;
use crate::grep::{matcher, relaxed};

fn query(pattern: &str, case_insensitive: bool, multiline: bool) -> GrepQuery {
    GrepQuery {
        case_insensitive,
        multiline,
        ..GrepQuery::new(pattern, "/")
    }
}

#[test]
fn runs_are_found_where_they_are() {
    let cases = [
        // (pattern, text, where its run is)
        (r"\b[a-z]{2}\d{3}\b", "ab1 x123 yab123", Some(10)),
        (r"\b[a-z]{2}\d{3}\b", "ab12 cd-345 e", None),
        (r"\d{4}-\d\d", "12-34 2024-11", Some(6)),
        (r"x(\d\d|ab)+\d{3}", "x12345", Some(1)),
        (r"[A-Z]{3,}!", "aXYZ!", Some(1)),
        (r"[A-Z]{3,}!", "XY Z!", None),
        (r"\w+_\w+\(", "a_b c(\n_( a(_\n x_(", Some(4)),
        (r"\w+_\w+\(", "a_b c\n_( a(\nx_ (", None),
        (r"\w+_\w+\(", "a_b c\nx_é é(", Some(12)),
    ];
    for (pattern, text, expected) in cases {
        for before in [0, 1, 62, 63, 64, 65, 300] {
            let filter = LineFilter::build(&query(pattern, false, false)).expect(pattern);
            let text = [&" ".repeat(before), text].concat();
            let expected = expected.map(|at| at + before);
            assert_eq!(
                filter.next(text.as_bytes()),
                expected,
                "{pattern} in {text:?}"
            );
        }
    }
}

#[test]
fn only_patterns_with_something_rare_have_a_filter() {
    for pattern in [
        "",
        "a",
        "zq",
        "Q",
        "zq|Q",
        r"\w+",
        r"\d*",
        r"(?:ab)?",
        ".{5}",
        r"\A\d{3}",
        r"\d{3}\z",
        r"(?-m)^\d{5}",
        r"(?R)\d{5}$",
        r"[^a]{8}",
        r"\d{5}|a",
    ] {
        let filter = LineFilter::build(&query(pattern, false, false));
        assert!(filter.is_none(), "{pattern:?}: {filter:?}");
    }
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
    r"(?:b\b)+",
    r"\<",
    r"\>",
    "{2}",
    "{2,3}",
    r"\d{3}",
    "[0-9]",
    "(1|K2)",
    r"(?-u:\xc3)",
    "_",
    r"\(",
    "[A-Z]+",
    r"(?:\d\d)+",
    r"\d{2,}",
    "(?:1é|K)",
    r"\p{Nd}",
];

const WORDS: &[&str] = &[
    "a",
    "b",
    "é",
    "É",
    "K",
    "k",
    " ",
    "1",
    "12",
    "123",
    "\n",
    "\n",
    "ab",
    "x",
    "\u{212a}",
    "_",
    "(",
    "١٢",
    "AB",
    "\r\n",
    "          ",
];

fn patterns() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(ATOMS), 1..7).prop_map(|it| it.concat())
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let words = proptest::collection::vec(proptest::sample::select(WORDS), 0..60);
    (words, any::<bool>()).prop_map(|(words, is_odd)| {
        let mut text = words.concat().into_bytes();
        if is_odd && !text.is_empty() {
            // Half a character.
            let middle = text.len() / 2;
            text.insert(middle, 0xc3);
        }
        text
    })
}

/// The lines that a searcher finds, with their numbers.
fn lines(matcher: impl Matcher, text: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    let sink = Bytes(|number, line| {
        found.push((number, line.to_vec()));
        Ok(true)
    });
    let mut searcher = SearcherBuilder::new().build();
    searcher.search_slice(matcher, text, sink).unwrap();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_same_lines_are_found(
        pattern in patterns(), text in texts(), case_insensitive in any::<bool>(),
    ) {
        let query = query(&pattern, case_insensitive, false);
        if let Ok(exact) = matcher::build(&query) {
            let expected = lines(&exact, &text);
            let filter = LineFilter::build(&query);
            let relaxed = relaxed::build(&query);
            for (filter, relaxed) in [
                (filter.as_ref(), None),
                (None, relaxed.as_ref()),
                (filter.as_ref(), relaxed.as_ref()),
            ] {
                if filter.is_some() || relaxed.is_some() {
                    let narrowed = PrefilteredMatcher::new(&exact, filter, relaxed);
                    prop_assert_eq!(&lines(narrowed, &text), &expected);
                }
            }
        }
    }

    #[test]
    fn a_text_without_the_run_does_not_match(
        pattern in patterns(), text in texts(), case_insensitive in any::<bool>(),
    ) {
        let query = query(&pattern, case_insensitive, true);
        if let (Ok(exact), Some(filter)) = (matcher::build(&query), LineFilter::build(&query)) {
            let matches = exact.is_match(&text).unwrap();
            prop_assert!(!matches || filter.next(&text).is_some());
        }
    }
}
