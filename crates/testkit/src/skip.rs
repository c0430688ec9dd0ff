//! Tests that cannot run on this machine.
//!
//! Each skipped test is reported on stderr immediately, and again in the line that
//! `crates/tools/tests/skips.rs` prints at the end of `cargo test --workspace`. With
//! `HAFT_TESTS_REQUIRE=all` a skipped test fails.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, Write},
    os::unix::process::parent_id,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    thread,
};

/// Reports that a test is skipped. `what` names the test and the missing requirement.
///
/// # Panics
/// If all tests are required (`HAFT_TESTS_REQUIRE=all`).
pub fn skip(what: &str) {
    static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    assert!(
        env::var_os("HAFT_TESTS_REQUIRE").is_none_or(|required| required != "all"),
        "everything is required here (HAFT_TESTS_REQUIRE=all), and this would be skipped: {what}"
    );
    let mut said = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.insert(what.to_owned()) {
        return;
    }
    // Not `eprintln!`, because the test harness captures the output of passing tests.
    let _ = writeln!(io::stderr().lock(), "SKIPPED: {what}");
    let log = fs::OpenOptions::new().create(true).append(true).open(log());
    if let Ok(mut log) = log {
        let _ = writeln!(log, "{what}");
    }
}

/// Returns whether a program is not in `PATH`. If so, reports the calling test as skipped; the test
/// must then return.
///
/// # Panics
/// If all tests are required (`HAFT_TESTS_REQUIRE=all`).
pub fn lacks(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).any(|directory| directory.join(program).is_file());
    if !found {
        let test = thread::current();
        let test = test.name().unwrap_or("a test");
        skip(&format!("{test}: {program} is not installed"));
    }
    !found
}

/// Returns the tests that this run of `cargo test` has skipped so far, and clears the list.
pub fn take_skipped() -> BTreeSet<String> {
    let text = fs::read_to_string(log()).unwrap_or_default();
    let _ = fs::remove_file(log());
    text.lines().map(str::to_owned).collect()
}

/// Returns the path of the list. Its name contains the parent's PID, because one process starts all
/// test programs of a run.
fn log() -> PathBuf {
    env::temp_dir().join(format!("haft-skipped-{}", parent_id()))
}
