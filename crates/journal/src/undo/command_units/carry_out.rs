//! Applying an undo plan: preimages → intent → all tasks → outcome; and recovery of it after a
//! crash.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use haft_witness::FileId;

use super::plan::{UndoPlan, observe_path};
use crate::commit::{self, TargetDirectory, temporary_name};
use crate::error::JournalError;
use crate::undo::UndoHistory;
use crate::undo::mutation::{now, write_pending_records};
use crate::undo::object_restoration::ObjectRestoration;
use crate::undo::observed_path::ObservedPath;
use crate::undo::record::{
    PathChangeRecord, RecordState, UndoIntent, UndoRecord, UnitEnding, UnreadFileStamp,
};
use crate::undo::recover::{FileState, RecoveryVerdict, decide};
use crate::undo::restore::{Restoration, RestoreTask, SYNCED_SINGLY};
use crate::undo::store::Durability;
use crate::undo::units::UndoUnit;
use crate::write_grant::WriteGrant;

/// The size limit of a single content that an undo stores before it removes or overwrites it;
/// `KEPT_ALL` is the limit of all.
const KEPT_FILE: u64 = 64 << 20;
const KEPT_ALL: u64 = 256 << 20;

impl UndoHistory {
    /// Applies a plan: preimages → intent → all tasks → outcome.
    pub(super) fn perform_swept(
        &self,
        ticket: &WriteGrant,
        intent: UndoIntent,
        plan: &mut UndoPlan,
    ) -> Result<String, JournalError> {
        let store = self.store();
        let log = store.open()?;
        write_pending_records(self, &log)?;
        let keep = match is_identified(&plan.tasks) {
            true => self.keep_objects(&ticket.call, plan)?,
            false => String::new(),
        };
        self.keep_present(plan)?;
        let swept: Vec<PathChangeRecord> = plan
            .tasks
            .iter()
            .map(|task| PathChangeRecord {
                before_id: task.now_id,
                after_id: task.to_id,
                ..PathChangeRecord::new(task.path.clone(), task.now.clone(), task.to.clone())
            })
            .collect();
        let unit = self.new_unit(&ticket.call)?;
        self.count_swept(&swept);
        let temporary = temporary_name();
        let record = UndoRecord::Intent(Box::new(UndoIntent {
            unit: unit.clone(),
            call: ticket.call.clone(),
            tool: ticket.tool.clone(),
            time: now(),
            swept: swept.clone(),
            temporary: temporary.clone(),
            keep,
            ..intent
        }));
        let end = |ending, note: Option<String>| {
            let unit = unit.clone();
            let outcome = UndoRecord::Outcome { unit, ending, note };
            if log.append(&outcome, Durability::Durable).is_err() {
                self.lock_unwritten_records().push(outcome);
            }
        };
        if let Err(error) = log.append(&record, Durability::Durable) {
            let error = store.failed(error);
            end(UnitEnding::NotMade, Some(error.to_string()));
            return Err(error);
        }
        match self.run_tasks(&plan.tasks, &temporary, HashMap::new()) {
            Ok(left) => {
                end(UnitEnding::Made, None);
                plan.left.extend(left);
            }
            Err(error) => {
                let failed = self.roll_back_paths(&swept, &temporary);
                if !failed.is_empty() {
                    return Err(JournalError::NotRestored {
                        error: Box::new(error),
                        paths: failed,
                    });
                }
                end(UnitEnding::NotMade, Some(error.to_string()));
                return Err(error);
            }
        }
        drop(log);
        self.keep_within_limits();
        Ok(unit)
    }

    /// Restores all paths. `staged` has the entries that an interrupted restoration staged.
    pub(super) fn run_tasks(
        &self,
        tasks: &[RestoreTask],
        temporary: &str,
        staged: HashMap<FileId, PathBuf>,
    ) -> Result<Vec<(PathBuf, String)>, JournalError> {
        let store = self.store();
        if is_identified(tasks) {
            let restoration = ObjectRestoration {
                store,
                temporary,
                staged,
            };
            return restoration.run(tasks);
        }
        let restoration = Restoration {
            store,
            temporary,
            keep_times: true,
        };
        restoration.run(tasks)
    }

    /// Stores the contents that the tasks overwrite or remove. Those that are too large are
    /// reported.
    fn keep_present(&self, plan: &mut UndoPlan) -> Result<(), JournalError> {
        let store = self.store();
        let sync = plan.tasks.len() <= SYNCED_SINGLY;
        let mut bytes = 0;
        let targets: HashMap<FileId, Option<String>> = plan
            .tasks
            .iter()
            .filter(|task| task.to.is_present())
            .filter_map(|task| Some((task.to_id?, task.to.hash().map(str::to_owned))))
            .collect();
        for task in &mut plan.tasks {
            let lost = "its content is too large to store: undoing this undo will not restore it";
            let (Some(hash), Some(seen)) = (task.now.hash(), &task.seen) else {
                if matches!(
                    task.now,
                    RecordState::Opaque { .. } | RecordState::Grown { .. }
                ) && task.to == RecordState::Absent
                {
                    plan.left.push((task.path.clone(), lost.to_owned()));
                }
                continue;
            };
            if task.to.hash() == Some(hash) || self.is_only_moved(task, &targets) {
                continue;
            }
            if seen.size > KEPT_FILE || bytes + seen.size > KEPT_ALL {
                task.now = RecordState::Opaque {
                    kind: "a file".to_owned(),
                    seal: UnreadFileStamp::from_stamp(seen),
                };
                plan.left.push((task.path.clone(), lost.to_owned()));
                continue;
            }
            bytes += seen.size;
            store
                .put_file(&task.path, hash, sync)
                .map_err(|error| store.failed(error))?;
        }
        if !sync {
            store.sync_all();
        }
        Ok(())
    }

    /// Reverts every path that has the intended state; returns those for which that failed.
    fn roll_back_paths(&self, swept: &[PathChangeRecord], temporary: &str) -> Vec<PathBuf> {
        if swept.iter().any(PathChangeRecord::is_identified) {
            return self.roll_back_objects(swept, temporary);
        }
        let mut tasks = Vec::new();
        let mut failed = Vec::new();
        for one in swept {
            let Ok(looked) = ObservedPath::from_path(&one.path) else {
                failed.push(one.path.clone());
                continue;
            };
            let now = match found(&looked, one) {
                FileState::Before => looked.state(&one.before),
                FileState::After => looked.state(&one.after),
                FileState::Torn => RecordState::Absent,
                FileState::Other => {
                    failed.push(one.path.clone());
                    continue;
                }
            };
            tasks.push(RestoreTask {
                path: one.path.clone(),
                now,
                seen: looked.entry.map(|entry| entry.stamp),
                to: one.before.clone(),
                mtime: one.before.mtime(),
                now_id: None,
                to_id: None,
            });
        }
        // These contents cannot be restored.
        tasks.retain(|task| {
            let is_lost = matches!(
                task.to,
                RecordState::Opaque { .. } | RecordState::Grown { .. }
            ) && task.now == RecordState::Absent;
            if is_lost {
                failed.push(task.path.clone());
            }
            !is_lost
        });
        if self.run_tasks(&tasks, temporary, HashMap::new()).is_err() {
            failed.extend(tasks.into_iter().map(|task| task.path));
        }
        failed
    }

    /// Recovers a unit after a crash; see [`Self::recover`].
    pub(in crate::undo) fn settle_swept(
        &self,
        unit: &UndoUnit,
    ) -> Result<RecoveryVerdict, JournalError> {
        if unit.intent.observed {
            return Ok(RecoveryVerdict::Completed);
        }
        let (swept, temporary) = (&unit.intent.swept, &unit.intent.temporary);
        if swept.iter().any(PathChangeRecord::is_identified) {
            return self.settle_objects(swept, temporary);
        }
        let parents: HashSet<&Path> = swept.iter().filter_map(|one| one.path.parent()).collect();
        for parent in parents {
            let Ok(directory) = TargetDirectory::open(&parent.join(temporary)) else {
                continue; // it was not created yet, or was removed
            };
            let failed = |error| commit::open_failed("clean up", parent, error);
            directory
                .remove_set_aside(temporary.as_ref())
                .map_err(failed)?;
            directory
                .remove_leftover(temporary.as_ref())
                .map_err(failed)?;
        }
        let mut all = Vec::new();
        for one in swept {
            let looked = observe_path(&one.path)?;
            // If only modes or times change, the path does not show whether the task was done.
            if !(looked.is(&one.after) && looked.is(&one.before)) {
                all.push(found(&looked, one));
            }
        }
        let verdict = match (all.is_empty(), decide(&all)) {
            (true, _) => RecoveryVerdict::Reverted,
            (false, verdict) => verdict,
        };
        match verdict {
            RecoveryVerdict::Reverted | RecoveryVerdict::NeverHappened => {
                self.roll_back_paths(swept, temporary);
            }
            RecoveryVerdict::Completed => self.finish(swept, temporary)?,
            RecoveryVerdict::Unclear => {}
        }
        Ok(verdict)
    }

    /// Sets modes and times of directories. They are set last, so a unit that looks complete may
    /// lack them.
    fn finish(&self, swept: &[PathChangeRecord], temporary: &str) -> Result<(), JournalError> {
        let mut tasks = Vec::new();
        for one in swept.iter().filter(|one| one.after.is_directory()) {
            let looked = observe_path(&one.path)?;
            tasks.push(RestoreTask {
                path: one.path.clone(),
                now: looked.state(&one.after),
                seen: looked.entry.map(|entry| entry.stamp),
                to: one.after.clone(),
                mtime: one.after.mtime().filter(|_| !one.before.is_directory()),
                now_id: None,
                to_id: None,
            });
        }
        self.run_tasks(&tasks, temporary, HashMap::new()).map(drop)
    }
}

fn is_identified(tasks: &[RestoreTask]) -> bool {
    let is_carried = |state: &RecordState| *state == RecordState::Carried;
    tasks.iter().any(|task| {
        let has_id = task.now_id.is_some() || task.to_id.is_some();
        has_id || is_carried(&task.now) || is_carried(&task.to)
    })
}

fn found(looked: &ObservedPath, one: &PathChangeRecord) -> FileState {
    // A directory and another kind of entry cannot replace each other in one step.
    let is_between = looked.entry.is_none()
        && one.before.is_directory() != one.after.is_directory()
        && RecordState::Absent != one.before
        && RecordState::Absent != one.after;
    match () {
        () if looked.is(&one.after) => FileState::After,
        () if looked.is(&one.before) => FileState::Before,
        () if is_between => FileState::Torn,
        () => FileState::Other,
    }
}
