//! Waiting with a timeout.

use std::{
    env,
    ffi::OsStr,
    io::{self, Write},
    process::{self, Command},
    sync::Once,
    thread,
    time::{Duration, Instant},
};

/// The timeout of a single wait, far longer than needed on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The default time limit of a test program in minutes.
const MAX_RUN: u64 = 30;

/// Waits until the condition holds.
///
/// # Panics
/// If it does not hold within the timeout.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < TIMEOUT, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Like [`until`], but for tests without an async runtime.
///
/// # Panics
/// If it does not hold within the timeout.
pub fn until_blocking(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < TIMEOUT, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns a command for which a test may wait. Limits the run time of this process.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    bound_this_process();
    Command::new(program)
}

/// Ends this test program after a time limit, in case a test waits indefinitely, for example for
/// another process. Test helpers call it when they start; only the first call has an effect.
/// `HAFT_TESTS_MINUTES` sets another limit.
pub fn bound_this_process() {
    static BOUND: Once = Once::new();
    BOUND.call_once(|| {
        let minutes = env::var("HAFT_TESTS_MINUTES").ok();
        let minutes = minutes.and_then(|minutes| minutes.parse().ok());
        let minutes: u64 = minutes.unwrap_or(MAX_RUN);
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
