//! Waiting that ends.

use std::{
    env,
    ffi::OsStr,
    io::{self, Write},
    process::{self, Command},
    sync::Once,
    thread,
    time::{Duration, Instant},
};

/// As long as anything is waited for. Far more than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// As long as the tests of one program may take all together, in minutes.
const LONGEST_RUN: u64 = 30;

/// Waits until this is so.
///
/// # Panics
/// If it does not come to be so.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The same where there is no runtime.
///
/// # Panics
/// If it does not come to be so.
pub fn until_blocking(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A command whose end a test may wait for: this process is bounded from now on.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    bound_this_process();
    Command::new(program)
}

/// Ends this test program where a test waits for ever, say for the end of another process. Called by
/// whatever tests begin with; the first call counts. `HAFT_TESTS_MINUTES` gives another limit.
pub fn bound_this_process() {
    static BOUND: Once = Once::new();
    BOUND.call_once(|| {
        let minutes = env::var("HAFT_TESTS_MINUTES").ok();
        let minutes = minutes.and_then(|minutes| minutes.parse().ok());
        let minutes: u64 = minutes.unwrap_or(LONGEST_RUN);
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(60 * minutes));
            let _ = writeln!(
                io::stderr().lock(),
                "the tests of this program have not ended within {minutes} minutes (HAFT_TESTS_MINUTES)"
            );
            process::exit(101);
        });
    });
}
