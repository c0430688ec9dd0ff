//! The memory that evaluation takes, in bytes for each byte of a line.
//!
//! Its own program with one test, because the peak of a process is measured.

#![cfg(target_os = "linux")]

use std::fs;

use haft_shell::{LinePlace, MAX_LINE, analyze};

/// The maximum number of bytes for each byte of the line. Measured: 290 to 470, for a line of commands
/// with one letter each.
const MAX_FACTOR: usize = 700;

/// The peak of the resident memory since the last reset, in bytes.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

#[test]
fn evaluation_takes_memory_in_proportion_to_the_line() {
    let place = LinePlace {
        cwd: "/work/demo".into(),
        home: Some("/home/ada".into()),
    };
    let shapes = [
        ("commands", "a;"),
        ("echo", "echo a;"),
        ("words", "a "),
        ("assignments", "x=1;"),
        ("substitutions", "$(a)"),
        ("pipes", "a|"),
        ("redirections", ">a "),
        ("expansions", "\"$x\""),
        ("braces", "{a,b} "),
        ("secrets", "$KEY "),
        ("launchers", "npx a;"),
        ("operands", "/a/b "),
    ];
    for (shape, piece) in shapes {
        let length = MAX_LINE - 16;
        let line = format!("echo {}a", piece.repeat(length / piece.len()));
        // The kernel sets the peak to the current size.
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = peak();
        let analysis = analyze(&line, &place);
        let taken = peak().saturating_sub(before);
        assert!(analysis.reason.len() < 1_000, "{shape}");
        let factor = taken / line.len();
        println!("{shape}: {factor} bytes for each byte");
        assert!(
            factor <= MAX_FACTOR,
            "{shape}: {factor} bytes for each byte"
        );
    }
    let huge = "echo a;".repeat(MAX_LINE);
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak();
    let analysis = analyze(&huge, &place);
    let taken = peak().saturating_sub(before);
    assert!(
        analysis.unreadable.is_some(),
        "a line over the limit is not read"
    );
    assert!(
        taken < huge.len(),
        "{taken} bytes for a line over the limit"
    );
}
