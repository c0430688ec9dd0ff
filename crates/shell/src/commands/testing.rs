//! Helpers for tests: parse and evaluate simple lines.

use super::{
    evaluate_command,
    spec::{CommandSpec, OptionStyle},
};
use crate::{
    arg::{Arg, ArgValue},
    ast::Span,
    effect::{CommandFinding, Effect, EffectVerdict, StartedProgram},
};

/// Returns the arguments of a simple line: spaces separate them, `'…'` quotes, `$x` is an
/// expansion, `"$x"` an expansion that is always one argument, and `*` a glob.
pub(super) fn argv(line: &str) -> Vec<Arg> {
    let mut words = Vec::new();
    let mut letters = line.char_indices().peekable();
    while let Some(&(start, letter)) = letters.peek() {
        if letter == ' ' {
            letters.next();
            continue;
        }
        let (mut text, mut quoted, mut end) = (String::new(), false, start);
        let (mut glob, mut prefix, mut one) = (false, None, false);
        while let Some(&(at, letter)) = letters.peek() {
            match letter {
                ' ' if !quoted => break,
                '\'' => quoted = !quoted,
                '"' if !quoted => one = true,
                '$' if !quoted => {
                    prefix.get_or_insert_with(|| text.clone());
                }
                letter => {
                    glob |= !quoted && matches!(letter, '*' | '?');
                    text.push(letter);
                }
            }
            end = at + letter.len_utf8();
            letters.next();
        }
        let value = match prefix {
            Some(prefix) => ArgValue::Unknown { prefix, one },
            None if glob => ArgValue::Glob(text),
            None => ArgValue::Literal(text),
        };
        let span = Span { start, end };
        words.push(Arg { span, value });
    }
    words
}

/// Lines separated by `;`.
pub(super) fn each(lines: &str) -> Vec<&str> {
    lines.split(';').map(str::trim).collect()
}

/// Returns the finding for a simple line.
pub(super) fn find(line: &str) -> CommandFinding {
    let argv = argv(line);
    let name = argv.first().and_then(Arg::text).unwrap_or_default();
    evaluate_command(name, &argv)
}

/// Asserts that each line is read-only.
pub(super) fn assert_read_only(lines: &[&str]) {
    let wrong: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            let finding = find(line);
            (finding.verdict != EffectVerdict::ReadOnly)
                .then(|| format!("{line}: {} {}", finding.verdict.name(), finding.reason))
        })
        .collect();
    assert!(wrong.is_empty(), "not read-only:\n{}", wrong.join("\n"));
}

/// Asserts that each line only reads, possibly from one of the user's own services.
pub(super) fn assert_only_reads(lines: &[&str]) {
    for line in lines {
        let finding = find(line);
        assert!(
            finding.verdict <= EffectVerdict::ReadsNetwork,
            "{line}: {}",
            finding.reason
        );
    }
}

/// Asserts that no line is read-only or only reads the network.
pub(super) fn assert_not_read_only(lines: &[&str]) {
    let wrong: Vec<&&str> = lines
        .iter()
        .filter(|line| find(line).verdict < EffectVerdict::Unknown)
        .collect();
    assert!(wrong.is_empty(), "read-only: {wrong:?}");
}

/// Verdict and reason, as a line.
pub(super) fn verdict(line: &str) -> String {
    let finding = find(line);
    format!("{}: {}", finding.verdict.name(), finding.reason)
}

/// Returns the effects as short texts.
pub(super) fn effects(line: &str) -> Vec<String> {
    let finding = find(line);
    // The tests of the table check these, line by line.
    let others = finding.effects.iter();
    let others = others.filter(|effect| !matches!(effect, Effect::Irreversible(_)));
    others.map(effect).collect()
}

/// Returns the started programs as lines; `…` means that more arguments follow.
pub(super) fn starts(line: &str) -> Vec<String> {
    let start = |start: &StartedProgram| match start {
        StartedProgram::Script(text) => format!("script {}", path(text)),
        StartedProgram::Command { argv, more } => {
            let words: Vec<String> = argv.iter().map(path).collect();
            format!("{}{}", words.join(" "), if *more { " …" } else { "" })
        }
    };
    find(line).starts.iter().map(start).collect()
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Read(read) => {
            let what = match (read.content, read.is_recursive) {
                (false, false) => "names",
                (false, true) => "names below",
                (true, false) => "read",
                (true, true) => "tree",
            };
            format!("{what} {}", path(&read.path))
        }
        Effect::Write(write) => format!("{:?} {}", write.kind, path(&write.path)),
        Effect::Net(host) => format!("net {}", host.as_deref().unwrap_or("?")),
        Effect::Service(service) => format!("service {service:?}"),
        Effect::Env(name) => format!("env {name}"),
        Effect::Irreversible(why) => format!("irreversible {why}"),
        Effect::Opaque(why) => format!("opaque {why}"),
    }
}

fn path(arg: &Arg) -> String {
    match &arg.value {
        ArgValue::Literal(text) | ArgValue::Braced(text) => text.clone(),
        ArgValue::Glob(text) => format!("glob({text})"),
        ArgValue::Unknown { prefix, .. } => format!("{prefix}$"),
    }
}

/// Asserts that the parser reads a table as intended: `-ab:` would be neither `-a` nor `-b:`, and an
/// option that is also listed as safe would never be refused.
pub(super) fn assert_well_formed(specs: &[CommandSpec]) {
    for spec in specs {
        let harmless = spec.options.split_ascii_whitespace();
        let refused = spec.refused.iter();
        let refused = refused.flat_map(|refused| refused.options.split_ascii_whitespace());
        for word in harmless.clone().chain(refused.clone()) {
            let name = word.trim_end_matches(['?', ':', '=', '<', '>']);
            let short = !name.starts_with("--") && spec.style != OptionStyle::Words;
            let valued = name.len() != word.len();
            assert!(name.starts_with('-'), "{}: {word}", spec.names);
            assert!(
                !(short && valued && name.len() != 2),
                "{}: {word}",
                spec.names
            );
            assert!(!short || !word.ends_with('='), "{}: {word}", spec.names);
            let colon = word.ends_with(':') && spec.style != OptionStyle::Words;
            assert!(short || !colon, "{}: {word}", spec.names);
        }
        let harmless: Vec<String> = harmless.flat_map(|word| names(word, spec.style)).collect();
        for name in refused.flat_map(|word| names(word, spec.style)) {
            assert!(!harmless.contains(&name), "{}: {name}", spec.names);
        }
    }
}

fn names(word: &str, style: OptionStyle) -> Vec<String> {
    let name = word.trim_end_matches(['?', ':', '=', '<', '>']);
    if name.starts_with("--") || style == OptionStyle::Words || name == "-#" {
        return vec![name.to_owned()];
    }
    name[1..]
        .chars()
        .map(|letter| format!("-{letter}"))
        .collect()
}
