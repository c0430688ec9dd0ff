//! The memory that evaluation takes, in bytes for each byte of a line.
//!
//! Its own program with one test, because the peak of a process is measured.

#![cfg(target_os = "linux")]

use std::{
    env, fs,
    io::{self, Write},
    process::Command,
};

use haft_shell::{LineLocation, MAX_LINE, analyze};

/// The maximum number of bytes for each byte of the line.
const MAX_FACTOR: usize = 600;

/// The peak of the resident memory, in bytes.
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("the status");
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    let kilobytes: usize = kilobytes
        .and_then(|text| text.parse().ok())
        .expect("a size");
    kilobytes * 1024
}

/// The variable that names the line of a child.
const SHAPE: &str = "HAFT_TEST_LINE_SHAPE";

/// Lines, each a piece that is repeated up to the limit.
const SHAPES: &[(&str, &str)] = &[
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

/// Each line is evaluated by its own process: memory that a process frees stays with it.
#[test]
fn evaluation_takes_memory_in_proportion_to_the_line() {
    haft_testkit::bound_this_process();
    if let Ok(shape) = env::var(SHAPE) {
        return evaluate(&shape);
    }
    for (shape, _) in SHAPES.iter().chain(&[("too long", "")]) {
        let mut child = Command::new(env::current_exe().unwrap());
        let output = child
            .args(["--nocapture"])
            .env(SHAPE, shape)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{shape}: {text} {errors}");
        let factor = text
            .lines()
            .find(|line| line.contains("bytes for each byte"));
        assert!(factor.is_some(), "{shape}: {text}");
    }
}

fn evaluate(shape: &str) {
    let place = LineLocation {
        cwd: "/work/demo".into(),
        home: Some("/home/ada".into()),
    };
    let line = match SHAPES.iter().find(|(name, _)| *name == shape) {
        Some((_, piece)) => format!("echo {}a", piece.repeat((MAX_LINE - 16) / piece.len())),
        None => "echo a;".repeat(MAX_LINE),
    };
    let before = peak();
    let analysis = analyze(&line, &place);
    let factor = (peak() - before) / line.len();
    // For the process that started this one.
    let report = format!("{shape}: {factor} bytes for each byte");
    writeln!(io::stdout(), "{report}").expect("a reader");
    assert_eq!(analysis.unreadable.is_some(), line.len() > MAX_LINE);
    let max = if line.len() > MAX_LINE { 0 } else { MAX_FACTOR };
    assert!(factor <= max, "{shape}: {factor} bytes for each byte");
}
