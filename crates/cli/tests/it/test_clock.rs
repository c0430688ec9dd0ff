//! The one clock that tests own, for the whole binary: a file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::{TempDir, tempdir};

/// Monday, 16 November 2026, 10:00:10 UTC.
const MONDAY: u64 = 1_794_823_210;

/// A clock that stands still until it is set.
pub(crate) struct TestClock {
    folder: TempDir,
}

impl TestClock {
    pub(crate) fn new() -> Self {
        let clock = Self {
            folder: tempdir().unwrap(),
        };
        clock.set_minutes(0);
        clock
    }

    /// What `HAFT_TEST_CLOCK` is to be.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("now")
    }

    /// So many minutes after Monday, or before it; a reader finds the old time or the new one.
    pub(crate) fn set_minutes(&self, minutes: i64) {
        let next: &Path = &self.folder.path().join("next");
        let seconds = MONDAY.checked_add_signed(minutes * 60).unwrap();
        fs::write(next, seconds.to_string()).unwrap();
        fs::rename(next, self.file()).unwrap();
    }
}
