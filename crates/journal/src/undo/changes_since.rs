//! The changes since a mark, for components that cache the state of files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::mutation::millis;
use super::record::{RecordState, UnitEnding};
use super::store::LogMark;
use super::units::UndoUnits;
use super::{UndoHistory, now};
use crate::error::JournalError;
use crate::open::FileSnapshot;

/// The size limit of a kept file that is read.
const MAX_KEPT: u64 = 64 << 20;

/// A position in the record of changes.
#[derive(Debug)]
pub struct HistoryMark(LogMark);

impl HistoryMark {
    /// Creates a mark for everything recorded after this time.
    pub fn from_time(time: SystemTime) -> Self {
        Self(LogMark::from_time(millis(time)))
    }
}

/// A file that was changed by a call or a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    /// The path with all links resolved.
    pub path: PathBuf,
    /// It existed before the first of the changes.
    pub was_there: bool,
    /// It exists after the last one.
    pub is_there: bool,
    /// The key of the content before; [`UndoHistory::content`] returns the content, if it is
    /// stored.
    pub before: Option<String>,
}

impl UndoHistory {
    /// Returns the files that were changed since a mark, each once, and a new mark. The cost
    /// depends on what was recorded since, not on the length of the session.
    pub fn recorded_since(
        &self,
        mark: &HistoryMark,
    ) -> Result<(Vec<RecordedChange>, HistoryMark), JournalError> {
        // Taken before reading: changes that are recorded concurrently are reported twice rather
        // than never.
        let next = HistoryMark(self.store.mark(now()));
        let units = UndoUnits::from_records(self.store.records_after(&mark.0)?);
        let mut found: Vec<RecordedChange> = Vec::new();
        let mut index: HashMap<PathBuf, usize> = HashMap::new();
        // The effect of a unit that is still running can only be seen on disk.
        let made = units.all.iter();
        let made = made.filter(|unit| unit.ending != Some(UnitEnding::NotMade));
        for (one, _) in made.flat_map(|unit| unit.all_paths()) {
            let is_file = |state: &RecordState| {
                matches!(
                    state,
                    RecordState::Regular { .. } | RecordState::Moved { .. }
                )
            };
            if one.is_unchanged() || one.path.starts_with(self.store.kept_folder()) {
                continue;
            }
            if !is_file(&one.before) && !is_file(&one.after) {
                continue;
            }
            match index.get(&one.path) {
                Some(at) => found[*at].is_there = is_file(&one.after),
                None => {
                    index.insert(one.path.clone(), found.len());
                    found.push(RecordedChange {
                        was_there: is_file(&one.before),
                        is_there: is_file(&one.after),
                        before: self.content_key(&one.before),
                        path: one.path,
                    });
                }
            }
        }
        Ok((found, next))
    }

    /// Returns a stored content by its key: its hash, or the path of a file that the journal keeps.
    pub fn content(&self, key: &str) -> Option<Vec<u8>> {
        if Path::new(key).starts_with(self.store.kept_folder()) {
            let found = FileSnapshot::take(Path::new(key), MAX_KEPT).ok().flatten();
            return found.map(|found| found.bytes);
        }
        self.store.get(key).ok().flatten()
    }

    fn content_key(&self, state: &RecordState) -> Option<String> {
        let kept = state.kept_below(self.store.kept_folder());
        let kept = kept.and_then(Path::to_str).map(str::to_owned);
        state.hash().map(str::to_owned).or(kept)
    }
}
