//! Helpers of benchmarks: a table of promises, and statistics.

#![expect(clippy::print_stdout, reason = "a benchmark reports on stdout")]

use std::{fs, path::PathBuf, time::Duration};

/// Returns whether `cargo test` runs the benchmark, which has nothing to test.
pub fn is_test_run() -> bool {
    std::env::args().any(|argument| argument == "--test")
}

/// Returns the binary to measure: the one built with the benchmark, or the one that
/// `HAFT_BENCH_BINARY` names, for example a release or a build before a change.
pub fn binary(own: &str) -> PathBuf {
    std::env::var_os("HAFT_BENCH_BINARY").map_or_else(|| own.into(), PathBuf::from)
}

/// Prints the header of the table.
pub fn table() {
    println!("| promise | measured | bound | |");
    println!("|---|---|---|---|");
}

/// Prints a row of the table.
pub fn row(promise: &str, measured: &str, bound: &str, kept: bool) {
    let verdict = if kept { "kept" } else { "BROKEN" };
    println!("| {promise} | {measured} | {bound} | {verdict} |");
}

/// Returns the median.
pub fn median(samples: Vec<Duration>) -> Duration {
    percentile(samples, 50)
}

/// Returns the percentile `percent` of the samples, which is one of them.
///
/// # Panics
/// If `samples` is empty.
pub fn percentile(mut samples: Vec<Duration>, percent: usize) -> Duration {
    samples.sort();
    samples[(samples.len() * percent / 100).min(samples.len() - 1)]
}

/// Converts a duration to milliseconds.
pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns a field of a process's status in KB, such as `VmRSS`.
///
/// # Panics
/// If the process or the field does not exist.
pub fn memory(process: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with(what));
    let figure = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    figure.expect("a figure from the kernel")
}
