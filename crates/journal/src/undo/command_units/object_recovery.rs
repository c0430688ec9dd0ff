//! Recovery of an undo by identities after an error or a crash: each entry is found by its
//! identity, at its old path, its new path, staged or stored.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use haft_witness::FileId;

use super::plan::observe_path;
use crate::commit::{self, TargetDirectory};
use crate::error::JournalError;
use crate::undo::UndoHistory;
use crate::undo::object_restoration::{object_name, temporary_file};
use crate::undo::observed_path::ObservedPath;
use crate::undo::record::{PathChangeRecord, RecordState};
use crate::undo::recover::{FileState, RecoveryVerdict, decide, is_torn};
use crate::undo::restore::RestoreTask;
use crate::witness::identity;

/// The size limit of contents that are compared byte by byte.
const COMPARED: u64 = 256 << 20;

impl UndoHistory {
    /// Restores the state before; returns the paths for which that failed.
    pub(super) fn roll_back_objects(
        &self,
        swept: &[PathChangeRecord],
        temporary: &str,
    ) -> Vec<PathBuf> {
        let mut failed = Vec::new();
        let mut tasks = Vec::new();
        for one in swept {
            let Ok(looked) = ObservedPath::from_path(&one.path) else {
                failed.push(one.path.clone());
                continue;
            };
            match self.present_task(one, looked) {
                Some(task) => tasks.push(task),
                None => failed.push(one.path.clone()),
            }
        }
        if failed.is_empty()
            && let Err(_) = self.run_tasks(&tasks, temporary, staged_entries(swept, temporary))
        {
            failed.extend(tasks.into_iter().map(|task| task.path));
        }
        if failed.is_empty() {
            remove_staging(swept, temporary);
        }
        failed
    }

    /// Returns the task that restores the state before; `None` if another process changed the path.
    fn present_task(&self, one: &PathChangeRecord, looked: ObservedPath) -> Option<RestoreTask> {
        let id = identity(&one.path);
        let (now, now_id) = match self.object_state(one, &looked, id) {
            FileState::Other => return None,
            _ if looked.entry.is_none() => (RecordState::Absent, None),
            FileState::Before if one.before == RecordState::Carried => (RecordState::Carried, None),
            FileState::Before => (looked.state(&one.before), one.before_id),
            // A file that was replaced with its content stays at its path.
            _ if one.before_id.is_some() && one.before_id == one.after_id => {
                (looked.state(&one.after), one.before_id)
            }
            _ => (looked.state(&one.after), id),
        };
        Some(RestoreTask {
            path: one.path.clone(),
            now,
            seen: looked.entry.map(|entry| entry.stamp),
            to: one.before.clone(),
            mtime: one.before.mtime(),
            now_id,
            to_id: one.before_id,
        })
    }

    fn object_state(
        &self,
        one: &PathChangeRecord,
        looked: &ObservedPath,
        id: Option<FileId>,
    ) -> FileState {
        let has = |state: &RecordState, recorded: Option<FileId>| match state {
            RecordState::Absent => looked.entry.is_none(),
            RecordState::Carried => true,
            _ => id.is_some() && id == recorded && is_like(looked, state),
        };
        let is_in_place = one.before_id.is_some() && one.before_id == one.after_id;
        let is_after = one.after.is_present() && looked.is(&one.after);
        match () {
            () if is_in_place && looked.is(&one.after) => FileState::After,
            () if is_in_place && looked.is(&one.before) => FileState::Before,
            () if is_in_place && looked.entry.is_none() => FileState::Torn,
            () if is_in_place => match self.is_half_written(one, looked, id) {
                true => FileState::Torn,
                false => FileState::Other,
            },
            () if one.after.is_present() && (has(&one.after, one.after_id) || is_after) => {
                FileState::After
            }
            () if one.before.is_present() && has(&one.before, one.before_id) => FileState::Before,
            () if one.before.is_present() && looked.is(&one.before) => FileState::Before,
            () if one.after.is_present() && one.before.is_present() => {
                match looked.entry.is_none() {
                    true => FileState::Torn,
                    false => FileState::Other,
                }
            }
            // Only one of the states has an entry.
            () if looked.entry.is_none() => match one.before.is_present() {
                true => FileState::After,
                false => FileState::Before,
            },
            () if one.before == RecordState::Carried => FileState::Before,
            () if one.after == RecordState::Carried => FileState::After,
            () => FileState::Other,
        }
    }

    /// Returns whether an interrupted write in place can explain the content.
    fn is_half_written(
        &self,
        one: &PathChangeRecord,
        looked: &ObservedPath,
        id: Option<FileId>,
    ) -> bool {
        let (Some(before), Some(after)) = (one.before.hash(), one.after.hash()) else {
            return false;
        };
        let is_small = looked
            .entry
            .as_ref()
            .is_some_and(|entry| entry.stamp.size <= COMPARED);
        if id != one.before_id || !is_small {
            return false;
        }
        let get = |hash: &str| self.store().get(hash).ok().flatten();
        match (fs::read(&one.path), get(before), get(after)) {
            (Ok(now), Some(before), Some(after)) => {
                now.is_empty() || is_torn(&now, &before, &after) || after.starts_with(&now)
            }
            _ => false,
        }
    }

    /// Recovers a unit after a crash.
    pub(super) fn settle_objects(
        &self,
        swept: &[PathChangeRecord],
        temporary: &str,
    ) -> Result<RecoveryVerdict, JournalError> {
        remove_temporary_files(swept, temporary)?;
        let mut all = Vec::new();
        for one in swept {
            let looked = observe_path(&one.path)?;
            // If only modes or times change, the path does not show whether the task was done.
            if one.before_id == one.after_id && looked.is(&one.after) && looked.is(&one.before) {
                continue;
            }
            all.push(self.object_state(one, &looked, identity(&one.path)));
        }
        let is_staged = !staged_entries(swept, temporary).is_empty();
        let verdict = match decide(&all) {
            RecoveryVerdict::Unclear => return Ok(RecoveryVerdict::Unclear),
            RecoveryVerdict::Completed if is_staged || all.is_empty() => RecoveryVerdict::Reverted,
            RecoveryVerdict::NeverHappened if is_staged || all.is_empty() => {
                RecoveryVerdict::Reverted
            }
            verdict => verdict,
        };
        match verdict {
            RecoveryVerdict::Completed => {
                remove_staging(swept, temporary);
                self.finish_objects(swept, temporary)?;
            }
            _ => {
                if !self.roll_back_objects(swept, temporary).is_empty() {
                    return Ok(RecoveryVerdict::Unclear);
                }
            }
        }
        Ok(verdict)
    }

    /// Sets attributes and times. They are set last, so a unit that looks complete may lack them.
    fn finish_objects(
        &self,
        swept: &[PathChangeRecord],
        temporary: &str,
    ) -> Result<(), JournalError> {
        let mut tasks = Vec::new();
        for one in swept.iter().filter(|one| one.after.is_present()) {
            let looked = observe_path(&one.path)?;
            let id = identity(&one.path);
            tasks.push(RestoreTask {
                path: one.path.clone(),
                now: looked.state(&one.after),
                seen: looked.entry.map(|entry| entry.stamp),
                to: one.after.clone(),
                mtime: one.after.mtime(),
                now_id: id,
                to_id: id,
            });
        }
        self.run_tasks(&tasks, temporary, HashMap::new()).map(drop)
    }
}

/// Returns whether the entry is of the recorded kind. Its content may be half written.
fn is_like(looked: &ObservedPath, state: &RecordState) -> bool {
    match state {
        RecordState::Regular { .. } | RecordState::Moved { .. } => looked.entry.is_some(),
        _ => looked.is(state),
    }
}

fn staging_directories<'s>(
    swept: &'s [PathChangeRecord],
    temporary: &'s str,
) -> impl Iterator<Item = PathBuf> + 's {
    let parents: HashSet<&Path> = swept.iter().filter_map(|one| one.path.parent()).collect();
    parents
        .into_iter()
        .map(move |parent| parent.join(temporary))
}

/// Returns the entries that an interrupted restoration staged.
fn staged_entries(swept: &[PathChangeRecord], temporary: &str) -> HashMap<FileId, PathBuf> {
    let ids = swept.iter().filter_map(|one| one.before_id);
    let names: HashMap<String, FileId> = ids.map(|id| (object_name(id), id)).collect();
    let mut found = HashMap::new();
    for directory in staging_directories(swept, temporary) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let id = entry.file_name().to_str().and_then(|name| names.get(name));
            if let Some(id) = id {
                found.insert(*id, entry.path());
            }
        }
    }
    found
}

fn remove_staging(swept: &[PathChangeRecord], temporary: &str) {
    for directory in staging_directories(swept, temporary) {
        let _ = fs::remove_dir(directory); // only if it is empty
    }
}

fn remove_temporary_files(swept: &[PathChangeRecord], temporary: &str) -> Result<(), JournalError> {
    let name = temporary_file(temporary);
    let parents: HashSet<&Path> = swept.iter().filter_map(|one| one.path.parent()).collect();
    for parent in parents {
        let Ok(directory) = TargetDirectory::open(&parent.join(&name)) else {
            continue; // it was not created yet, or was removed
        };
        directory
            .remove_leftover(name.as_ref())
            .map_err(|error| commit::open_failed("clean up", parent, error))?;
    }
    Ok(())
}
