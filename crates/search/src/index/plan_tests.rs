use grep_matcher::Matcher;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::grep::{GrepQuery, TextMatcher};
use crate::index::trigram::TrigramCollector;

/// As text: `abc` for a trigram, `&` and `|` between parts.
fn shown(query: &TrigramQuery) -> String {
    let list = |parts: &[TrigramQuery], between: &str| {
        let parts: Vec<String> = parts.iter().map(shown).collect();
        format!("({})", parts.join(between))
    };
    match query {
        TrigramQuery::Any => "any".to_owned(),
        TrigramQuery::One(trigram) => {
            let bytes = &trigram.to_be_bytes()[1..];
            bytes.escape_ascii().to_string()
        }
        TrigramQuery::And(parts) => list(parts, "&"),
        TrigramQuery::Or(parts) => list(parts, "|"),
    }
}

fn has(query: &TrigramQuery, trigrams: &[Trigram]) -> bool {
    match query {
        TrigramQuery::Any => true,
        TrigramQuery::One(trigram) => trigrams.contains(trigram),
        TrigramQuery::And(parts) => parts.iter().all(|part| has(part, trigrams)),
        TrigramQuery::Or(parts) => parts.iter().any(|part| has(part, trigrams)),
    }
}

#[test]
fn patterns_and_what_they_need() {
    let cases = [
        // (pattern, case-insensitive, plan)
        ("ab", false, "any"),
        ("Needle", false, "(dle&edl&eed&nee)"),
        ("abc|abd", false, "(abc|abd)"),
        ("abc|x", false, "any"),
        ("abc.*def", false, "(abc&def)"),
        (r"\w+abc", false, "abc"),
        (r"\babc\b", false, "abc"),
        ("ab?c", false, "any"),
        ("xab?c", false, "(xac|(abc&xab))"),
        ("(abc)+", false, "abc"),
        ("(ab){2}", false, "(aba&bab)"),
        ("(abc)*", false, "any"),
        ("a[bc]d", false, "(abd|acd)"),
        ("a.c", false, "any"),
        ("fn main", true, r"( ma&ain&fn &mai&n m)"),
        (
            "ask",
            true,
            r"(ask|(as\xe2&s\xe2\x84&\xe2\x84\xaa)|(a\xc5\xbf&\xbf\xe2\x84&\xc5\xbf\xe2&\xe2\x84\xaa)|(a\xc5\xbf&\xc5\xbfk))",
        ),
        ("é!", false, r"\xc3\xa9!"),
        (r"abc\nd", false, r"(abc&bc\n&c\nd)"),
        ("", false, "any"),
        ("^$", false, "any"),
        ("(", false, "any"),
    ];
    for (pattern, case_insensitive, expected) in cases {
        assert_eq!(
            shown(&plan(pattern, case_insensitive, true)),
            expected,
            "{pattern}"
        );
    }
}

#[test]
fn large_patterns_are_planned_in_little_time_and_space() {
    let many = (0..2000)
        .map(|n| format!("word{n}"))
        .collect::<Vec<_>>()
        .join("|");
    for pattern in [
        many.as_str(),
        &"a".repeat(5000),
        "(a|b|c|d|e|f)(a|b|c|d|e|f)(a|b|c|d|e|f)(a|b|c|d|e|f)(a|b|c|d|e|f)x",
        "((((a{9}){9}){9}){9})",
        r"\p{Greek}{30}abc",
    ] {
        fn size(query: &TrigramQuery) -> usize {
            match query {
                TrigramQuery::And(parts) | TrigramQuery::Or(parts) => parts.iter().map(size).sum(),
                _ => 1,
            }
        }
        for case_insensitive in [false, true] {
            assert!(
                size(&plan(pattern, case_insensitive, false)) < 20_000,
                "{pattern}"
            );
        }
    }
}

fn patterns() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => "[abkKsS]{1,4}",
        1 => "[é\u{212a}ſß]{1,2}",
        1 => Just(".".to_owned()),
        1 => Just("[ab]".to_owned()),
        1 => Just("[^a]".to_owned()),
        1 => Just(r"\w".to_owned()),
        1 => Just(r"\s".to_owned()),
        1 => Just(r"\b".to_owned()),
        1 => Just("^".to_owned()),
        1 => Just("$".to_owned()),
        1 => Just(r"(?-u:\xff)".to_owned()),
        1 => Just(r"(?i:Ks)".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            1 => vec(inner.clone(), 1..4).prop_map(|parts| format!("({})", parts.join("|"))),
            1 => (inner, prop_oneof![
                Just("?"), Just("*"), Just("+"), Just("{2}"), Just("{0,2}"), Just("{2,}"), Just("+?"), Just("{6}"), Just("{1,3}")
            ])
                .prop_map(|(part, times)| format!("(?:{part}){times}")),
        ]
    })
}

/// Short texts of what the patterns are made of, so that they match often.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => "[abkKsS]{1,5}".prop_map(String::into_bytes),
        1 => "[é\u{212a}ſßAB \n]{1,2}".prop_map(String::into_bytes),
        1 => Just(vec![0xff]),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_matches_has_what_the_plan_asks_for(
        pattern in patterns(), texts in vec(texts(), 1..8),
        case_insensitive in any::<bool>(), multiline in any::<bool>(),
    ) {
        let query = GrepQuery { case_insensitive, multiline, ..GrepQuery::new(&pattern, "/") };
        let Ok(matcher) = crate::grep::matcher_of(&query) else { return Ok(()) };
        let planned = plan(&pattern, case_insensitive, multiline);
        let mut collector = TrigramCollector::new();
        for text in texts {
            if matcher.is_match(&text).unwrap() {
                let trigrams = collector.collect(&text, usize::MAX).unwrap();
                prop_assert!(has(&planned, trigrams), "{pattern:?} in {:?} needs {}", text.escape_ascii().to_string(), shown(&planned));
            }
        }
    }

    #[test]
    fn any_pattern_can_be_planned(pattern in ".{0,40}", multiline in any::<bool>()) {
        let _ = plan(&pattern, false, multiline);
        if TextMatcher::new(&pattern, multiline).is_err() {
            return Ok(());
        }
    }
}
