//! What benchmarks share: a table of promises, and figures.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]

use std::{fs, path::PathBuf, time::Duration};

/// Is this only `cargo test`? It builds benchmarks too, and there is nothing to test in them.
pub fn is_test_run() -> bool {
    std::env::args().any(|argument| argument == "--test")
}

/// The binary that is measured: the one that was built with the benchmark, or the one that `HAFT_BENCH_BINARY` names, a
/// release, say, or one from before a change.
pub fn binary(own: &str) -> PathBuf {
    std::env::var_os("HAFT_BENCH_BINARY").map_or_else(|| own.into(), PathBuf::from)
}

/// The head of the table.
pub fn table() {
    println!("| promise | measured | bound | |");
    println!("|---|---|---|---|");
}

/// One line of it.
pub fn row(promise: &str, measured: &str, bound: &str, kept: bool) {
    let verdict = if kept { "kept" } else { "BROKEN" };
    println!("| {promise} | {measured} | {bound} | {verdict} |");
}

/// The one in the middle.
pub fn median(samples: Vec<Duration>) -> Duration {
    percentile(samples, 50)
}

/// The one that this many in a hundred are not above.
///
/// # Panics
/// If there are none.
pub fn percentile(mut samples: Vec<Duration>, percent: usize) -> Duration {
    samples.sort();
    samples[(samples.len() * percent / 100).min(samples.len() - 1)]
}

/// In milliseconds.
pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A figure of a process in KB, as the kernel counts it, such as `VmRSS`.
///
/// # Panics
/// If there is no such process or figure.
pub fn memory(process: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with(what));
    let figure = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    figure.expect("a figure of the kernel's")
}
