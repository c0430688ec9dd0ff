//! The undo journal: every change can be undone, even after a crash.
//!
//! Before a file is changed, its content is stored on disk under its hash, and a record of the
//! intended change is written; afterwards another record says how the change ended. These records
//! are sufficient for undo (also of an undo), for recovery, and for the list of changes.
//!
//! - `record`, `store`, `units`: log records, files on disk, and the changes that records describe
//! - `mutation`: a change, step by step
//! - `revert`, `preview`: undo, and the preview of an undo
//! - `command_units`, `observed_path`, `restore`: undo of commands, for paths of any kind
//! - `recover`, `crash_recovery`: recovery after crashes; `limits`: the size of the journal;
//!   `leases`:
//!   what running commands may store; `list`, `changes_since`: the list of changes for users and for other parts of the program

mod changes_since;
mod command_units;
mod crash_recovery;
mod error;
mod git_index;
mod keep;
mod leases;
mod limits;
mod list;
mod mutation;
mod object_restoration;
mod observed_path;
mod preview;
mod record;
mod recover;
mod restore;
mod revert;
mod store;
mod units;
mod witnessed;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use changes_since::{HistoryMark, RecordedChange};
pub use crash_recovery::settle_crashed;
pub use error::UndoError;
pub(crate) use leases::LeaseGuard;
pub use leases::StoredBytes;
pub use limits::UndoLimits;
pub use list::{ChangeKind, FileSummary, UnitState, UnitSummary};
pub(crate) use mutation::{MutationStep, now, perform, read_snapshot};
pub use recover::{RecoveredUnit, RecoveryVerdict};
pub use revert::{UndoMode, UndoOutcome, UndoSelection, UndoneFile};

use crate::error::JournalError;
pub(crate) use command_units::is_same_but_twin;
pub(crate) use git_index::{MAX_INDEX, is_index};
pub(crate) use keep::unique_name;
use leases::StorageLeases;
use limits::UndoTotals;
pub(crate) use observed_path::{
    ObservedContent, described, digest, digest_below, read_attributes, read_content, regular,
    unread,
};
use record::{FileRecord, UndoRecord};
pub(crate) use record::{
    PathChangeRecord, RecordState, UnreadFileStamp, UnrestorablePath, XattrRecord, extended,
    nanoseconds,
};
pub(crate) use store::LogMark;
use store::UndoStore;
use units::UndoUnits;
pub(crate) use witnessed::WitnessedCall;

/// The maximum size of contents that are compared with an editor's text.
const MAX_COMPARED: u64 = 2 * crate::editor_buffers::BUFFER_LIMIT;

/// The undo journal of one session, in its own folder. Opening it creates nothing.
#[derive(Debug)]
pub struct UndoHistory {
    store: UndoStore,
    limits: UndoLimits,
    /// Filled at the first change.
    tally: Mutex<Option<UndoTotals>>,
    /// The leases of the running commands.
    leases: StorageLeases,
    /// Held while a command is recorded: the next one compares itself with it.
    recording: Mutex<()>,
    /// Outcomes that could not be written. They must be written before the next intent: the outcome
    /// of a unit can be derived from its files only until a later unit changes them.
    unwritten_records: Mutex<Vec<UndoRecord>>,
}

impl UndoHistory {
    /// Opens the journal in this folder (`SESSION/undo`), which need not exist.
    pub fn open(folder: impl Into<PathBuf>) -> Self {
        Self {
            store: UndoStore::new(folder.into()),
            limits: UndoLimits::default(),
            tally: Mutex::new(None),
            leases: StorageLeases::default(),
            recording: Mutex::default(),
            unwritten_records: Mutex::default(),
        }
    }

    /// Sets other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: UndoLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the folder of the journal.
    pub fn folder(&self) -> &Path {
        self.store.folder()
    }

    /// Creates an unnamed file on the file system of the journal.
    pub(crate) fn nameless(&self) -> io::Result<File> {
        self.store.nameless()
    }

    /// Returns a mark for the present end of the log.
    pub(crate) fn mark(&self) -> LogMark {
        self.store.mark(now())
    }

    /// Returns the state that units recorded after a mark gave to each path. The cost depends on
    /// what was recorded since, not on the length of the session.
    pub(crate) fn changed_since(
        &self,
        mark: &LogMark,
    ) -> Result<HashMap<PathBuf, RecordState>, JournalError> {
        let units = UndoUnits::from_records(self.store.records_after(mark)?);
        let paths = units.all.iter().flat_map(|unit| unit.all_paths());
        Ok(paths.map(|(one, _)| (one.path, one.after)).collect())
    }

    /// Returns whether `is_meant` accepts any stored content of this file, from before or after a
    /// change of this session.
    pub(crate) fn had(&self, real: &Path, is_meant: impl Fn(&[u8]) -> bool) -> bool {
        let units = self.units().unwrap_or_default();
        let mut tried = HashSet::new();
        for unit in units.all.iter().rev() {
            for (one, _) in unit.all_paths() {
                if one.path != real {
                    continue;
                }
                for state in [&one.after, &one.before] {
                    let RecordState::Regular { hash, size, .. } = state else {
                        continue;
                    };
                    if *size > MAX_COMPARED || !tried.insert(hash.clone()) {
                        continue;
                    }
                    let content = self.store.get(hash).ok().flatten();
                    if content.is_some_and(|content| is_meant(&content)) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Waits until no other command is being recorded.
    pub(crate) fn lock_recording(&self) -> MutexGuard<'_, ()> {
        self.recording
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> &UndoStore {
        &self.store
    }

    fn tally(&self) -> MutexGuard<'_, Option<UndoTotals>> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_unwritten_records(&self) -> MutexGuard<'_, Vec<UndoRecord>> {
        self.unwritten_records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn units(&self) -> Result<UndoUnits, JournalError> {
        Ok(UndoUnits::from_records(self.store.records()?))
    }

    /// Returns a unique id: the id of the call, with a number appended if the call has several
    /// units.
    fn new_unit(&self, call: &str) -> Result<String, JournalError> {
        let mut tally = self.tally();
        if tally.is_none() {
            *tally = Some(UndoTotals::from_units(&self.units()?, &self.store));
        }
        let tally = tally.get_or_insert_default();
        tally.add_unit_time(now());
        let ids = &mut tally.ids;
        let mut id = call.to_owned();
        let mut number = 1;
        while !ids.insert(id.clone()) {
            number += 1;
            id = format!("{call}#{number}");
        }
        Ok(id)
    }

    fn count_swept(&self, swept: &[PathChangeRecord]) {
        if let Some(tally) = self.tally().as_mut() {
            tally.add_swept(swept, &self.store);
        }
    }

    fn count(&self, files: &[FileRecord]) {
        if let Some(tally) = self.tally().as_mut() {
            tally.add(files);
        }
    }
}

#[cfg(test)]
#[path = "undo_tests.rs"]
mod undo_tests;
