//! What was changed since a moment, for those who keep a picture of the files.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::SystemTime;

use super::perform::millis;
use super::record::{Ending, RecordState};
use super::store::LogMark;
use super::units::Units;
use super::{UndoHistory, now};
use crate::error::JournalError;

/// A moment in the record of changes.
#[derive(Debug)]
pub struct HistoryMark(LogMark);

impl HistoryMark {
    /// What was recorded later than this.
    pub fn at(time: SystemTime) -> Self {
        Self(LogMark::at(millis(time)))
    }
}

/// A file that was changed, by a call or a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    /// After all links.
    pub path: PathBuf,
    /// It was there before the first of the changes.
    pub was_there: bool,
    /// It was there after the last.
    pub is_there: bool,
    /// What it held before: [`UndoHistory::content`] has it, if it is kept.
    pub before: Option<String>,
}

impl UndoHistory {
    /// The files that were changed since a mark, each once, and a mark of now. It costs what was recorded since,
    /// however long the session is.
    pub fn recorded_since(
        &self,
        mark: &HistoryMark,
    ) -> Result<(Vec<RecordedChange>, HistoryMark), JournalError> {
        // Before the look: what comes meanwhile is rather seen twice than never.
        let next = HistoryMark(self.store.mark(now()));
        let units = Units::of(self.store.records_behind(&mark.0)?);
        let mut found: Vec<RecordedChange> = Vec::new();
        let mut index: HashMap<PathBuf, usize> = HashMap::new();
        // Of one that runs still, what is on disk decides.
        let made = units.all.iter();
        let made = made.filter(|unit| unit.ending != Some(Ending::NotMade));
        for (one, _) in made.flat_map(|unit| unit.all_paths()) {
            let is_file = |state: &RecordState| matches!(state, RecordState::Regular { .. });
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
                        before: one.before.hash().map(str::to_owned),
                        path: one.path,
                    });
                }
            }
        }
        Ok((found, next))
    }

    /// A content that was kept, by its hash.
    pub fn content(&self, hash: &str) -> Option<Vec<u8>> {
        self.store.get(hash).ok().flatten()
    }
}
