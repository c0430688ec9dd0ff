//! The bars: nothing that is not read-only passes for it, and nearly all that is gets recognised.

use std::{collections::BTreeMap, fmt::Write as _};

use haft_shell::EffectVerdict;

use crate::corpus::{Truth, judge, lines};

/// Of a hundred read-only lines so many must be recognised.
pub(crate) const RECOGNISED_PERCENT: usize = 95;

/// Have `hits` of `all` cleared the bar?
pub(crate) fn is_enough(hits: usize, all: usize) -> bool {
    hits * 100 >= all * RECOGNISED_PERCENT
}

#[test]
fn nothing_else_passes_for_read_only() {
    let wrong: Vec<_> = lines()
        .into_iter()
        .filter(|line| matches!(line.truth, Truth::Mutating | Truth::Unknown))
        .filter(|line| judge(&line.text) < EffectVerdict::Unknown)
        .map(|line| format!("{:?}, {}: {}", line.truth, line.class, line.shown()))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} lines were judged read-only and are not:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn read_only_lines_are_recognised() {
    let mut classes: BTreeMap<String, (usize, Vec<String>)> = BTreeMap::new();
    for line in lines() {
        if line.truth != Truth::ReadOnly {
            continue;
        }
        let missed = judge(&line.text) != EffectVerdict::ReadOnly;
        let shown = line.shown();
        let (all, misses) = classes.entry(line.class).or_default();
        *all += 1;
        if missed {
            misses.push(shown);
        }
    }
    let all: usize = classes.values().map(|(all, _)| all).sum();
    let missed: usize = classes.values().map(|(_, misses)| misses.len()).sum();
    let hits = all - missed;
    let mut report = format!("{hits} of {all} read-only lines are recognised; missed:\n");
    for (class, (all, misses)) in &classes {
        if !misses.is_empty() {
            let _ = writeln!(report, "{class}: {} of {all}", misses.len());
        }
        for miss in misses {
            let _ = writeln!(report, "    {miss}");
        }
    }
    assert!(is_enough(hits, all), "{report}");
    eprintln!("{report}");
}

#[test]
fn lines_that_need_a_service_read_the_network_and_are_not_harmless() {
    let lines = lines().into_iter();
    let network = lines.filter(|line| line.truth == Truth::Network);
    let (mut all, mut wrong) = (0, Vec::new());
    for line in network {
        let verdict = judge(&line.text);
        all += 1;
        if verdict != EffectVerdict::ReadsNetwork {
            wrong.push(format!("{}: {}", verdict.name(), line.shown()));
        }
    }
    assert!(
        all > 80 && wrong.is_empty(),
        "{all}, wrong:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn open_lines_get_some_verdict() {
    let mut judged = 0;
    for line in lines().iter().filter(|line| line.truth == Truth::Open) {
        judge(&line.text);
        judged += 1;
    }
    assert!(judged > 100);
}

#[test]
fn a_line_that_costs_too_much_to_read_is_unknown() {
    let long = format!("echo {}", "a ".repeat(haft_shell::MAX_LINE));
    let analysis = haft_shell::analyze(
        &long,
        &haft_shell::LineLocation {
            cwd: "/work/demo".into(),
            home: None,
        },
    );
    assert_eq!(analysis.verdict, EffectVerdict::Unknown);
    assert!(analysis.parts.is_empty() && analysis.unreadable.is_some());
    let short = format!("echo {}", "a".repeat(1_000));
    assert_eq!(judge(&short), EffectVerdict::ReadOnly);
    // Each word is small enough, all of them together are not.
    let braces = format!("echo {}", "{1..9999} ".repeat(20));
    assert_eq!(judge(&braces), EffectVerdict::Unknown);
}
