//! Undo of commands: restores paths of any kind.
//!
//! The promises are the same as for single files: all or nothing, only if everything is still as
//! the command left it, and an undo is a unit that can be undone. Changes whose preimages could not
//! be stored are reported and left alone.
//!
//! - `plan`: the tasks of an undo, or the reasons against it
//! - `carry_out`: applying them step by step, and recovery after a crash

mod carry_out;
mod object_recovery;
mod objects;
mod plan;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use super::mutation::now;
use super::preview::{UndoConflict, patch_of};
use super::record::{
    PathChangeRecord, RecordState, UndoIntent, UndoRecord, UnitEnding, UnreadFileStamp,
    UnrestorablePath,
};
use super::restore::RestoreTask;
use super::revert::{UndoMode, UndoOutcome, UndoneFile};
use super::store::Durability;
use super::units::UndoUnit;
use super::{ChangeKind, UndoError, UndoHistory};
use crate::error::JournalError;
use crate::lock::FileLock;
use crate::open::FileSnapshot;
use crate::patch::Patch;
use crate::write_grant::WriteGrant;

/// The maximum number of files shown with a diff; files above `SHOWN_BYTES` are shown without.
const SHOWN_FILES: usize = 50;
const SHOWN_BYTES: u64 = 1 << 20;
/// The maximum number of conflicts listed.
const MAX_CONFLICTS: usize = 10;

impl UndoHistory {
    /// Records the observed changes of a command; returns the id of the unit for undo.
    /// `kept_content` returns the content for a hash.
    pub(crate) fn record_command(
        &self,
        ticket: &WriteGrant,
        about: &str,
        swept: Vec<PathChangeRecord>,
        left: Vec<UnrestorablePath>,
        kept_content: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    ) -> Result<String, JournalError> {
        let log = self.store().open()?;
        super::mutation::write_pending_records(self, &log)?;
        let (mut kept, mut lost) = (Vec::new(), left);
        for one in swept {
            // If only mode or time changed, the content is not needed.
            if let Some(hash) = one.before.hash()
                && !is_same_content_and_extended(&one.before, &one.after)
            {
                match kept_content(hash) {
                    Ok(content) => {
                        self.store().put(&content, Durability::BestEffort)?;
                    }
                    Err(error) => {
                        lost.push(UnrestorablePath {
                            why: format!("its stored content cannot be read: {error}"),
                            path: one.path,
                        });
                        continue;
                    }
                }
            }
            kept.push(one);
        }
        let unit = self.new_unit(&ticket.call)?;
        self.count_swept(&kept);
        let intent = UndoRecord::Intent(Box::new(UndoIntent {
            unit: unit.clone(),
            call: ticket.call.clone(),
            tool: ticket.tool.clone(),
            time: now(),
            swept: kept,
            left: lost,
            observed: true,
            about: about.to_owned(),
            ..UndoIntent::default()
        }));
        let outcome = UndoRecord::Outcome {
            unit: unit.clone(),
            ending: UnitEnding::Made,
            note: None,
        };
        // The command's own writes are not certain to survive a power failure either.
        log.append_all(&[intent, outcome], Durability::BestEffort)
            .map_err(|error| self.store().failed(error))?;
        drop(log);
        self.keep_within_limits();
        Ok(unit)
    }

    /// Reverts some paths of what a command did; the rest can be undone later.
    pub fn revert_paths(
        &self,
        ticket: &WriteGrant,
        unit: &str,
        paths: &[PathBuf],
    ) -> Result<UndoOutcome, JournalError> {
        let units = self.units()?;
        let unit = units.find(unit)?;
        let mut wanted: HashSet<&Path> = paths.iter().map(PathBuf::as_path).collect();
        // Directories that the command created only for these paths are removed, too.
        let made =
            |one: &&PathChangeRecord| one.before == RecordState::Absent && one.after.is_directory();
        for one in unit.swept().filter(made) {
            let mut below = unit
                .swept()
                .filter(|other| other.path != one.path && other.path.starts_with(&one.path));
            let is_above = paths.iter().any(|path| path.starts_with(&one.path));
            let is_needed = |other: &PathChangeRecord| {
                !wanted.contains(other.path.as_path()) && !other.after.is_directory()
            };
            if is_above && !below.any(is_needed) {
                wanted.insert(&one.path);
            }
        }
        for other in units.together(unit) {
            let shared = other.swept().any(|one| wanted.contains(one.path.as_path()));
            if shared && other.id() != unit.id() {
                return Err(UndoError::OnlyTogether {
                    id: unit.id().to_owned(),
                    other: other.id().to_owned(),
                }
                .into());
            }
        }
        self.check_overlaps_ended(&[unit])?;
        let only = |path: &Path| wanted.contains(path);
        self.undo_swept(ticket, &[unit], UndoMode::Apply, Some(&only), true)
    }

    /// Reverts these units, newest first.
    pub(super) fn undo_swept(
        &self,
        ticket: &WriteGrant,
        units: &[&UndoUnit],
        mode: UndoMode,
        only: Option<&dyn Fn(&Path) -> bool>,
        set_times: bool,
    ) -> Result<UndoOutcome, JournalError> {
        let mut wanted = plan::compose(units)?;
        if let Some(only) = only {
            wanted.retain(|path, _| only(path));
        }
        let kept = self.store().kept_folder();
        for path in wanted.keys().filter(|path| !path.starts_with(kept)) {
            ticket.admit(path, path)?;
        }
        let paths: Vec<&Path> = wanted.keys().map(PathBuf::as_path).collect();
        let _lock = FileLock::hold_many(&paths)?;
        let mut plan = self.plan(&wanted, set_times)?;
        let listed = units.iter().filter(|_| only.is_none());
        for left in listed.flat_map(|unit| &unit.intent.left) {
            plan.left.push((left.path.clone(), left.why.clone()));
        }
        let undid: Vec<(String, String)> = units
            .iter()
            .map(|unit| (unit.id().to_owned(), unit.intent.tool.clone()))
            .collect();
        let conflict = (!plan.conflicts.is_empty()).then(|| describe_conflicts(&plan.conflicts));
        if let (Some(text), UndoMode::Apply) = (&conflict, mode) {
            return Err(UndoError::Conflict(text.clone()).into());
        }
        if conflict.is_none() && plan.tasks.is_empty() {
            return Err(match plan.left.is_empty() {
                true => UndoError::NothingSince.into(),
                false => UndoError::NotCovered {
                    id: undid[0].0.clone(),
                    why: describe_left(&plan.left),
                }
                .into(),
            });
        }
        let files = self.describe(&plan.tasks);
        let mut unit = None;
        if mode == UndoMode::Apply {
            let mut intent = UndoIntent {
                undoes: undid.iter().map(|(id, _)| id.clone()).collect(),
                ..UndoIntent::default()
            };
            if only.is_some() {
                intent.part_of = intent.undoes.pop();
            }
            unit = Some(self.perform_swept(ticket, intent, &mut plan)?);
        }
        Ok(UndoOutcome {
            unit,
            undid,
            files,
            conflict,
            left: plan.left,
            results: Vec::new(),
        })
    }

    /// Returns the files among the tasks in the form that users see.
    fn describe(&self, tasks: &[RestoreTask]) -> Vec<UndoneFile> {
        let told = tasks
            .iter()
            .filter(|task| !(task.now.is_directory() && task.to.is_directory()))
            .filter(|task| !task.path.starts_with(self.store().kept_folder()))
            .filter(|task| {
                task.now_id.is_none() || task.now_id != task.to_id || task.now != task.to
            });
        let mut shown = 0;
        told.map(|task| {
            let mut patch = Patch::default();
            let is_small = |state: &RecordState| match state {
                RecordState::Regular { size, .. } => *size <= SHOWN_BYTES,
                _ => true,
            };
            if shown < SHOWN_FILES && is_small(&task.now) && is_small(&task.to) {
                shown += 1;
                let old = match &task.now {
                    RecordState::Regular { .. } | RecordState::Moved { .. } => {
                        small_file(&task.path)
                    }
                    _ => None,
                };
                let kept = task.to.kept_below(self.store().kept_folder());
                let new = match task.to.hash() {
                    Some(hash) => self.store().get(hash).ok().flatten(),
                    None => kept.and_then(small_file),
                };
                patch = patch_of(&old.unwrap_or_default(), &new.unwrap_or_default());
            }
            UndoneFile {
                given: task.path.clone(),
                real: task.path.clone(),
                change: ChangeKind::from_existence(task.now.is_present(), task.to.is_present()),
                patch,
            }
        })
        .collect()
    }
}

/// Returns the content of a file for display; `None` if the path is not a regular file or is too
/// large.
fn small_file(path: &Path) -> Option<Vec<u8>> {
    let found = FileSnapshot::take(path, SHOWN_BYTES).ok().flatten();
    found.map(|found| found.bytes)
}

fn is_same_content(one: &RecordState, other: &RecordState) -> bool {
    match (one, other) {
        (RecordState::Regular { hash: one, .. }, RecordState::Regular { hash: other, .. }) => {
            one == other
        }
        (RecordState::Link { target: one, .. }, RecordState::Link { target: other, .. }) => {
            one == other
        }
        (RecordState::Opaque { seal: one, .. }, RecordState::Opaque { seal: other, .. }) => {
            is_same_file(one, other)
        }
        (RecordState::Moved { seal: one, .. }, RecordState::Moved { seal: other, .. }) => {
            (one.size, one.mtime) == (other.size, other.mtime)
        }
        // A file that only one of two units has read.
        (RecordState::Moved { seal, .. }, RecordState::Regular { size, mtime, .. })
        | (RecordState::Regular { size, mtime, .. }, RecordState::Moved { seal, .. }) => {
            (seal.size, seal.mtime) == (*size, *mtime)
        }
        (RecordState::Carried, _) | (_, RecordState::Carried) => true,
        _ => one == other || (one.is_directory() && other.is_directory()),
    }
}

/// Returns whether the states are equal, except for the name of another hard link, which only one
/// side may have.
pub(crate) fn is_same_but_twin(one: &RecordState, other: &RecordState) -> bool {
    let plain = |state: &RecordState| {
        let mut state = state.clone();
        if let RecordState::Regular { twin, .. } = &mut state {
            *twin = None;
        }
        state
    };
    plain(one) == plain(other)
}

pub(super) fn is_same_content_and_extended(one: &RecordState, other: &RecordState) -> bool {
    let extended = |state: &RecordState| state.attributes().map(|attributes| attributes.extended);
    is_same_content(one, other) && extended(one) == extended(other)
}

fn is_same_file(one: &UnreadFileStamp, other: &UnreadFileStamp) -> bool {
    (one.device, one.inode, one.size, one.mtime)
        == (other.device, other.inode, other.size, other.mtime)
}

fn describe_conflicts(conflicts: &[UndoConflict]) -> String {
    let told = &conflicts[..conflicts.len().min(MAX_CONFLICTS)];
    let mut text = UndoConflict::describe(told);
    if conflicts.len() > MAX_CONFLICTS {
        let more = conflicts.len() - MAX_CONFLICTS;
        text.insert_str(0, &format!("{more} more paths were changed, too.\n"));
    }
    text
}

fn describe_left(left: &[(PathBuf, String)]) -> String {
    let told: Vec<String> = left
        .iter()
        .take(MAX_CONFLICTS)
        .map(|(path, why)| format!("{}: {why}", path.display()))
        .collect();
    let more = match left.len().saturating_sub(MAX_CONFLICTS) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{}{more}", told.join("; "))
}
