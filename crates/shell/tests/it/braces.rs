//! Words as bash expands them: braces, quotes and escapes.

use proptest::prelude::*;

use crate::bash;
use crate::names::commands;
use crate::random::{accepted, cases};
use haft_shell::syntax::parse;

/// A word without expansions of values; there is no file for a pattern to find.
fn word() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "{",
        "}",
        "}",
        ",",
        ",",
        "..",
        "a",
        "b",
        "z",
        "1",
        "3",
        "-2",
        "07",
        "\\{",
        "\\,",
        "\\}",
        "'{'",
        "','",
        "'a b'",
        "\"}\"",
        "\"\"",
        "\"x,\"",
        "\\\n",
        "$'\\t'",
        "{a,b}",
        "{1..3}",
        "{a..c}",
        "{5..1..2}",
        "{}",
        ".",
        "+",
        "é",
    ]);
    prop::collection::vec(token, 1..9).prop_map(|tokens| format!("w {}", tokens.concat()))
}

#[test]
fn words_become_what_bash_makes_of_them() {
    let Some(bash) = bash::path() else { return };
    let lines = accepted(&word(), cases(3_000));
    assert_eq!(lines.len(), cases(3_000));
    let known: Vec<(&str, Vec<String>)> = lines
        .iter()
        .filter_map(|line| {
            let mut commands = commands(&parse(line).ok()?);
            let words: Option<Vec<String>> = commands.words.pop()?.into_iter().collect();
            Some((line.as_str(), words?))
        })
        .collect();
    assert!(known.len() > 1_500, "{}", known.len());
    let texts: Vec<&str> = known.iter().map(|(line, _)| *line).collect();
    let expanded = bash::words(bash, &texts);
    let wrong: Vec<_> = known
        .iter()
        .zip(&expanded)
        .filter(|((_, ours), theirs)| ours != *theirs)
        .collect();
    assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
}
