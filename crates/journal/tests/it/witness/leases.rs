//! The limits of what the commands of one session store.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_journal::{Journal, StoredBytes, UndoLimits, UndoMode, UndoSelection, WitnessUnit};

use super::guard::{Kill, TestGuard};
use crate::ticket;

const MIB: u64 = 1 << 20;

struct Session {
    base: tempfile::TempDir,
    journal: Journal,
}

impl Session {
    fn new(limits: UndoLimits) -> Self {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("p")).unwrap();
        let journal = Journal::new(None)
            .with_undo(base.path().join("undo"))
            .with_undo_limits(limits);
        Self { base, journal }
    }

    fn put(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self
            .base
            .path()
            .canonicalize()
            .unwrap()
            .join("p")
            .join(name);
        let bytes = usize::try_from(bytes).unwrap();
        fs::write(&path, name.repeat(bytes / name.len())).unwrap();
        path
    }

    fn begin(&self) -> WitnessUnit {
        let roots = [self.base.path().canonicalize().unwrap().join("p")];
        let unit = self.journal.begin_witness("call", "Bash", "test", &roots);
        unit.unwrap()
    }

    /// Runs a command that overwrites a file, and returns the id of its unit.
    fn overwrite(&self, path: &Path) -> String {
        let unit = self.begin();
        let mut guard = TestGuard::new(&unit, Kill::Never);
        guard.put(path, b"new").unwrap();
        guard.end().unwrap();
        drop(guard);
        let changes = self.journal.finish_witness(unit, &ticket(), &|_| false);
        changes.unit.unwrap()
    }

    fn lease(&self, unit: &WitnessUnit, copied: u64, pinned: u64) -> Option<StoredBytes> {
        let needed = StoredBytes { copied, pinned };
        self.journal.extend_storage_lease(&unit.name(), needed)
    }

    /// Returns whether the disk has room for the copies of a test.
    fn has_space(&self) -> bool {
        let unit = self.begin();
        let has_space = self.lease(&unit, MIB, MIB).is_some();
        if !has_space {
            haft_testkit::skip("leases of stored bytes: the disk is almost full");
        }
        has_space
    }
}

fn limits(copied: u64, pinned: u64, min_age: Duration) -> UndoLimits {
    UndoLimits {
        bytes: copied,
        pinned,
        min_age,
        ..UndoLimits::default()
    }
}

#[test]
fn commands_share_the_limits_of_their_session() {
    let session = Session::new(limits(100 * MIB, 100 * MIB, Duration::ZERO));
    if !session.has_space() {
        return;
    }
    let (one, other) = (session.begin(), session.begin());
    // A lease is larger than what is needed now, so that a command rarely asks.
    let lease = session.lease(&one, MIB, 0).unwrap();
    assert_eq!((lease.copied, lease.pinned), (64 * MIB, 0));
    assert_eq!(session.lease(&other, 37 * MIB, 0), None);
    let lease = session.lease(&other, 20 * MIB, 0).unwrap();
    assert_eq!(lease.copied, 36 * MIB);
    assert_eq!(session.lease(&one, 1, 0), None);
    // Removed files have their own limit.
    assert_eq!(session.lease(&one, 0, 100 * MIB).unwrap().pinned, 100 * MIB);
    assert_eq!(session.lease(&other, 0, 1), None);
    // What a command did not use is free when it has ended.
    drop(one);
    assert_eq!(session.lease(&other, 0, MIB).unwrap().pinned, 100 * MIB);
    assert_eq!(session.lease(&other, 64 * MIB, 0).unwrap().copied, 64 * MIB);
}

#[test]
fn the_oldest_units_are_dropped_before_a_limit_refuses() {
    let session = Session::new(limits(5 * MIB, MIB, Duration::ZERO));
    if !session.has_space() {
        return;
    }
    let files: Vec<PathBuf> = (0..3)
        .map(|number| session.put(&format!("f{number}"), MIB))
        .collect();
    let units: Vec<String> = files.iter().map(|path| session.overwrite(path)).collect();
    let running = session.begin();
    assert!(session.lease(&running, 2 * MIB, 0).is_some());
    let history = session.journal.history().unwrap();
    assert_eq!(history.list(10).unwrap().len(), 4);
    drop(running);
    let running = session.begin();
    assert!(session.lease(&running, 3 * MIB, 0).is_some());
    let listed = history.list(10).unwrap();
    let listed: Vec<&str> = listed.iter().map(|unit| unit.id.as_str()).collect();
    assert!(listed.contains(&units[2].as_str()), "{listed:?}");
    assert!(!listed.contains(&units[0].as_str()), "{listed:?}");
    // The newest unit always stays.
    assert_eq!(session.lease(&running, 5 * MIB, 0), None);
    let last = UndoSelection::Unit(units[2].clone());
    history.undo(&ticket(), &last, UndoMode::Apply).unwrap();
    assert_eq!(fs::metadata(&files[2]).unwrap().len(), MIB);
}

#[test]
fn young_units_are_never_dropped_for_room() {
    let session = Session::new(limits(3 * MIB, MIB, Duration::from_secs(3600)));
    if !session.has_space() {
        return;
    }
    let files: Vec<PathBuf> = (0..3)
        .map(|number| session.put(&format!("f{number}"), MIB))
        .collect();
    let units: Vec<String> = files.iter().map(|path| session.overwrite(path)).collect();
    let running = session.begin();
    assert_eq!(session.lease(&running, MIB, 0), None);
    let history = session.journal.history().unwrap();
    for unit in units.iter().rev() {
        let one = UndoSelection::Unit(unit.clone());
        history.undo(&ticket(), &one, UndoMode::Apply).unwrap();
    }
}
