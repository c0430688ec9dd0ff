//! Random text: no panic, honest spans, linear time, and bash accepts what we accept.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use rustix::time::{ClockId, clock_gettime};

use crate::executed::line;
use crate::lines::{BAD, GOOD, REFUSED};
use crate::write::write;
use crate::{bash, spans, trees};
use haft_shell::syntax::parse;

/// Reads a text; whatever it is, nothing breaks.
fn read(text: &str) -> bool {
    match parse(text) {
        Ok(script) => {
            spans::check(text, &script);
            true
        }
        Err(error) => {
            assert!(error.span.start <= error.span.end && error.span.end <= text.len());
            assert!(
                text.is_char_boundary(error.span.start) && text.is_char_boundary(error.span.end)
            );
            false
        }
    }
}

/// Pieces that mean something to bash.
const TOKENS: [&str; 60] = [
    "a",
    "b",
    " ",
    " ",
    "\n",
    ";",
    ";;",
    "&",
    "&&",
    "|",
    "||",
    "(",
    ")",
    "((",
    "))",
    "{",
    "}",
    "[[",
    "]]",
    "[",
    "]",
    "<",
    ">",
    "<<E\n",
    "\nE\n",
    ">>",
    ">&",
    "2>&1",
    "<(",
    "$(",
    "${",
    "$((",
    "`",
    "'",
    "\"",
    "\\",
    "$",
    "$a",
    "#",
    "!",
    "=",
    "a=",
    "+=",
    "*",
    "?",
    "~",
    ",",
    "..",
    "if ",
    "then ",
    "fi",
    "for a in ",
    "do ",
    "done",
    "case a in ",
    "esac",
    "f() ",
    "time ",
    "$'",
    "é",
];

/// A line of the table with a few changes.
pub(crate) fn mutated() -> impl Strategy<Value = String> {
    let all: Vec<&str> = [GOOD, REFUSED, BAD].concat();
    let change = (
        any::<prop::sample::Index>(),
        0..3_u8,
        prop::sample::select(&TOKENS[..]),
    );
    (
        prop::sample::select(all),
        prop::collection::vec(change, 1..4),
    )
        .prop_map(|(line, changes)| {
            let mut line = line.to_owned();
            for (place, kind, token) in changes {
                let places: Vec<usize> = line
                    .char_indices()
                    .map(|(at, _)| at)
                    .chain([line.len()])
                    .collect();
                let at = *place.get(&places);
                match kind {
                    0 => line.insert_str(at, token),
                    1 if at < line.len() => {
                        line.remove(at);
                    }
                    _ => line.truncate(at),
                }
            }
            line
        })
}

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&TOKENS[..]), 0..14)
        .prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: u32::try_from(cases(3_000)).unwrap_or(u32::MAX), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        read(&text);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_tokens_are_read_or_refused(text in soup()) {
        read(&text);
    }

    #[test]
    fn changed_lines_are_read_or_refused(text in mutated()) {
        read(&text);
    }
}

#[test]
fn generated_lines_have_honest_spans() {
    let read = (1..6_000).filter(|&seed| read(&line(seed))).count();
    assert!(read > 3_000, "{read}");
}

/// Bash accepts all of these texts.
fn bash_accepts(texts: &[String]) {
    let Some(bash) = bash::path() else { return };
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let accepted = bash::accepts(bash, &texts);
    let wrong: Vec<_> = texts
        .iter()
        .zip(accepted)
        .filter(|(_, accepted)| !accepted)
        .collect();
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}

/// As many texts of this kind as we accept, of so many.
pub(crate) fn accepted(texts: &impl Strategy<Value = String>, count: usize) -> Vec<String> {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut sample = || texts.new_tree(&mut runner).unwrap().current();
    let mut seen = HashSet::new();
    let mut accepted: Vec<String> = Vec::new();
    for _ in 0..count * 400 {
        if accepted.len() == count {
            break;
        }
        let text = sample();
        if parse(&text).is_ok() && seen.insert(text.clone()) {
            accepted.push(text);
        }
    }
    accepted
}

pub(crate) fn cases(few: usize) -> usize {
    let factor = std::env::var("HAFT_FACTOR")
        .ok()
        .and_then(|value| value.parse::<usize>().ok());
    few * factor.unwrap_or(1)
}

#[test]
fn bash_accepts_the_soup_that_we_accept() {
    bash_accepts(&accepted(&soup(), cases(400)));
}

#[test]
fn bash_accepts_the_changed_lines_that_we_accept() {
    bash_accepts(&accepted(&mutated(), cases(400)));
}

#[test]
fn bash_accepts_the_trees_that_we_write() {
    let texts = trees::script().prop_map(|script| write(&script));
    bash_accepts(&accepted(&texts, cases(200)));
}

/// What the processor has spent on this thread.
fn processor_time() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        spent.tv_sec.try_into().unwrap(),
        spent.tv_nsec.try_into().unwrap(),
    )
}

/// Texts that invite reading again and again: twice the text may not take four times as long.
#[test]
fn time_is_linear() {
    let repeated = [
        "{",
        "{a,",
        "{a,b}",
        "[",
        "[[:a:]",
        "[]",
        "~:",
        "a=~:",
        "$(",
        "`",
        "\\",
        "\\\n",
        "((a) ",
        "((1)) ",
        "( (",
        "\"",
        "\"${a:-",
        "${a:-\"",
        "<<E ",
        "<<E\n",
        "$'",
        "<(",
        "a[",
        "a=(",
        "=(",
        "*",
        "! ",
        "time ",
        "a && ",
        "a | ",
        "if a; then ",
        "case a in b) ",
        "[[ a ",
        "[[ ( ",
        "{a..b}",
        "{1..1000}",
        "2>&1 ",
        "\"`a\"{",
        "$((",
        "${a[",
        "${a:",
        "${a/",
        "\\`",
        "é",
        "a\n",
        "#\n",
        "E\n",
        "\t",
        "$a{b} ",
        "a{b",
    ];
    for unit in repeated {
        for (before, after) in [
            ("", ""),
            ("echo ", ""),
            ("x <<E\n", "\nE"),
            ("[[ a =~ ", " ]]"),
            ("`", "`"),
            ("echo \"", "\""),
        ] {
            let time = |count: usize| {
                let text = format!("{before}{}{after}", unit.repeat(count));
                let start = processor_time();
                let _ = parse(&text);
                processor_time() - start
            };
            // Eight times the text would take 64 times as long in a quadratic reading. What the processor
            // spends on this thread does not depend on what else runs, but for cold caches.
            let linear =
                (0..8).any(|_| time(4_000) < time(500).max(Duration::from_micros(200)) * 40);
            assert!(linear, "{before}{unit}");
        }
    }
}
