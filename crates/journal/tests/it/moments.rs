//! Waiting for a clock to move on, so that two moments can be told apart.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Returns in another millisecond than it was called in.
pub(crate) fn next_millisecond() {
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_millis()
    };
    let then = now();
    while now() <= then {
        thread::yield_now();
    }
}

/// Returns when the file system gives later times than it gave when this was called.
pub(crate) fn next_file_time(directory: &Path) {
    until_file_time(directory, Duration::from_nanos(1));
}

/// The same, later by so much.
pub(crate) fn until_file_time(directory: &Path, later: Duration) {
    // Beside what is looked at.
    let probe = tempfile::NamedTempFile::new_in(directory.parent().unwrap()).unwrap();
    let touched = || {
        fs::write(probe.path(), "x").unwrap();
        fs::metadata(probe.path()).unwrap().modified().unwrap()
    };
    let then = touched();
    while touched() < then + later {
        thread::yield_now();
    }
}
