//! Commands that changed the same files while both ran.
//!
//! At the end of a command, its log is compared with the logs of the commands that still run. If both
//! contain a file or name, undo of one without the other would mix their states. So their units refer
//! to each other, and undo restores both together. The record of a shared path begins with the first
//! state that one of them stored.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use haft_witness::{FileId, OsBytes, UnitFolder, WitnessLog, WitnessedChange};

use super::fold::FoldedUnit;
use super::unit::folder_name;
use crate::error::JournalError;
use crate::undo::{PathChangeRecord, UndoHistory};

/// The changes that a command shares with commands that still run.
#[derive(Debug, Default)]
pub(super) struct SharedChanges {
    /// The names of the folders of those commands.
    pub(super) folders: Vec<String>,
    /// The places that another command changed first, so that the record of that command has the first state.
    others_first: HashSet<ChangedPlace>,
}

/// A file or a name that a command changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ChangedPlace {
    Object(FileId),
    Name(PathBuf),
}

impl SharedChanges {
    /// Compares the log of the command in `folder` with those of the other commands in `live`.
    pub(super) fn find(live: &Path, folder: &UnitFolder, log: &WitnessLog) -> Self {
        let mut shared = Self::default();
        let own_name = folder_name(folder);
        let mut own = None;
        for entry in fs::read_dir(live).into_iter().flatten().flatten() {
            let other = UnitFolder::open(entry.path());
            if folder_name(&other) == own_name {
                continue;
            }
            let Ok(other_log) = other.read() else {
                continue;
            };
            let own = own.get_or_insert_with(|| first_times(log));
            let others = first_times(&other_log);
            let mut is_shared = false;
            for (place, time) in &others {
                let Some(own_time) = own.get(place) else {
                    continue;
                };
                is_shared = true;
                if time < own_time {
                    shared.others_first.insert(place.clone());
                }
            }
            if is_shared {
                shared.folders.push(folder_name(&other));
            }
        }
        shared
    }

    /// Removes the records whose first state another command has.
    pub(super) fn remove_from(&self, folded: &mut FoldedUnit) {
        let is_others = |one: &PathChangeRecord| {
            let ids = [one.before_id, one.after_id].into_iter().flatten();
            ids.map(ChangedPlace::Object)
                .chain([ChangedPlace::Name(one.path.clone())])
                .any(|place| self.others_first.contains(&place))
        };
        if !self.others_first.is_empty() {
            folded.records.retain(|one| !is_others(one));
        }
    }
}

/// Returns what a command changed, each with the time of the first line about it.
fn first_times(log: &WitnessLog) -> HashMap<ChangedPlace, u64> {
    let mut first = HashMap::new();
    let mut add = |place, time| {
        first.entry(place).or_insert(time);
    };
    let name = |path: &OsBytes| ChangedPlace::Name(path.as_path().to_path_buf());
    for (change, time) in log.changes.iter().zip(&log.times) {
        match change {
            WitnessedChange::Name { path, .. } => add(name(path), *time),
            WitnessedChange::Object { path, entry, .. } => {
                add(ChangedPlace::Object(entry.id), *time);
                add(name(path), *time);
            }
            WitnessedChange::Moved { from, to, id, .. } => {
                add(ChangedPlace::Object(*id), *time);
                add(name(from), *time);
                add(name(to), *time);
            }
            WitnessedChange::Failed { .. } | WitnessedChange::End => {}
        }
    }
    first
}

impl UndoHistory {
    /// Connects the records of a command with those of the commands that ended before it and shared
    /// paths with it: each of its records begins where theirs ended. Returns these paths.
    pub(super) fn continue_shared(
        &self,
        folder: &UnitFolder,
        folded: &mut FoldedUnit,
    ) -> Result<Vec<PathBuf>, JournalError> {
        let earlier = self.records_shared_with(&folder_name(folder))?;
        folded.records.retain_mut(|one| {
            let Some(known) = earlier.get(&one.path) else {
                return true;
            };
            one.before.clone_from(&known.after);
            one.before_id = known.after_id;
            !one.is_unchanged()
        });
        Ok(earlier.into_keys().collect())
    }
}
