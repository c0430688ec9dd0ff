//! The undo journal: every mutation can be taken back, also after a crash.
//!
//! Before a file is touched its content is on the disk under its hash, and a
//! record says what is about to happen; afterwards another says how it ended.
//! From that alone follow undo (also of an undo), recovery, and the list of
//! what was done.
//!
//! - `record`, `store`, `units`: lines, files, and what they mean together
//! - `perform`: one mutation, step by step
//! - `take_back`, `preview`: undo, and what it would do
//! - `swept`, `looked`, `restore`: undo of what commands did, to paths of any kind
//! - `recover`, `crashed`, `limits`, `list`, `since`: crashes, room, what people and others see

mod crashed;
mod error;
mod limits;
mod list;
mod looked;
mod perform;
mod preview;
mod record;
mod recover;
mod restore;
mod since;
mod store;
mod swept;
mod take_back;
mod units;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use crashed::settle_crashed;
pub use error::UndoError;
pub use limits::UndoLimits;
pub use list::{ChangeKind, FileSummary, UnitState, UnitSummary};
pub(crate) use perform::{Step, look, now, perform};
pub use recover::{Recovered, RecoveryVerdict};
pub use since::{HistoryMark, RecordedChange};
pub use take_back::{Mode, Undone, UndoneFile, Which};

use crate::error::JournalError;
use limits::Tally;
pub(crate) use looked::{Content, digest, read_content, regular, unread};
use record::{FileRecord, Record};
pub(crate) use record::{Left, RecordState, Seal, Swept};
pub(crate) use store::LogMark;
use store::Store;
use units::Units;

/// Longer contents are not compared with what an editor has.
const LONGEST_COMPARED: u64 = 2 * crate::buffers::BUFFER_LIMIT;

/// The undo journal of one session, in a folder of its own. Opening it creates nothing.
#[derive(Debug)]
pub struct UndoHistory {
    store: Store,
    limits: UndoLimits,
    /// Filled at the first mutation.
    tally: Mutex<Option<Tally>>,
    /// Outcomes that could not be written. They come before the next intent: what a unit did is
    /// known from its files only as long as no later unit changes them.
    unsaid: Mutex<Vec<Record>>,
}

impl UndoHistory {
    /// The journal in this folder (`SESSION/undo`), which need not exist.
    pub fn open(folder: impl Into<PathBuf>) -> Self {
        Self {
            store: Store::new(folder.into()),
            limits: UndoLimits::default(),
            tally: Mutex::new(None),
            unsaid: Mutex::default(),
        }
    }

    /// The same, with other bounds on what is kept.
    #[must_use]
    pub fn with_limits(mut self, limits: UndoLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        self.store.folder()
    }

    /// A file without a name, beside what is kept.
    pub(crate) fn nameless(&self) -> io::Result<File> {
        self.store.nameless()
    }

    /// The end of what is recorded now.
    pub(crate) fn mark(&self) -> LogMark {
        self.store.mark(now())
    }

    /// What units behind a mark made of paths. It costs what was recorded since, however long the session is.
    pub(crate) fn changed_since(
        &self,
        mark: &LogMark,
    ) -> Result<HashMap<PathBuf, RecordState>, JournalError> {
        let units = Units::of(self.store.records_behind(mark)?);
        let paths = units.all.iter().flat_map(|unit| unit.all_paths());
        Ok(paths.map(|(one, _)| (one.path, one.after)).collect())
    }

    /// Was there a content of this file, before or after a change of this session, for which this says yes?
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
                    if *size > LONGEST_COMPARED || !tried.insert(hash.clone()) {
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

    fn store(&self) -> &Store {
        &self.store
    }

    fn tally(&self) -> MutexGuard<'_, Option<Tally>> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsaid(&self) -> MutexGuard<'_, Vec<Record>> {
        self.unsaid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn units(&self) -> Result<Units, JournalError> {
        Ok(Units::of(self.store.records()?))
    }

    /// An id no one else has: the call's own, or that with a number if the call has several units.
    fn new_unit(&self, call: &str) -> Result<String, JournalError> {
        let mut tally = self.tally();
        if tally.is_none() {
            *tally = Some(Tally::of(&self.units()?));
        }
        let ids = &mut tally.get_or_insert_default().ids;
        let mut id = call.to_owned();
        let mut number = 1;
        while !ids.insert(id.clone()) {
            number += 1;
            id = format!("{call}#{number}");
        }
        Ok(id)
    }

    fn count_swept(&self, swept: &[Swept]) {
        if let Some(tally) = self.tally().as_mut() {
            tally.add_swept(swept);
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
