//! Tests that cannot be run on this machine.
//!
//! Each says so at once on stderr, and once more in the line that `crates/tools/tests/skips.rs` prints at the
//! end of `cargo test --workspace`. `HAFT_TESTS_REQUIRE=all` makes each of them a failure.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, Write},
    os::unix::process::parent_id,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// Says that something is not tried here: what, and what is missing for it.
///
/// # Panics
/// Where everything is required (`HAFT_TESTS_REQUIRE=all`).
pub fn skip(what: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    assert!(
        env::var_os("HAFT_TESTS_REQUIRE").is_none_or(|required| required != "all"),
        "everything is required here (HAFT_TESTS_REQUIRE=all), and this would be skipped: {what}"
    );
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.insert(what.to_owned()) {
        return;
    }
    // Not `eprintln!`: the harness keeps what a passing test prints.
    let _ = writeln!(io::stderr().lock(), "SKIPPED: {what}");
    let log = fs::OpenOptions::new().create(true).append(true).open(log());
    if let Ok(mut log) = log {
        let _ = writeln!(log, "{what}");
    }
}

/// What was skipped by this run of `cargo test` so far. It is forgotten with that.
pub fn take_skipped() -> BTreeSet<String> {
    let text = fs::read_to_string(log()).unwrap_or_default();
    let _ = fs::remove_file(log());
    text.lines().map(str::to_owned).collect()
}

/// All test programs of a run are started by the same process.
fn log() -> PathBuf {
    env::temp_dir().join(format!("haft-skipped-{}", parent_id()))
}
