//! Restoring paths of any kind from their present state to a target state.
//!
//! Each path changes with one rename, so a crash leaves every path in one of its two states. New
//! files are made before old ones are removed, and contents that cannot be restored are removed
//! last. Directories get their times at the end, when nothing in them changes any longer.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use haft_witness::FileId;

use super::command_units::is_same_content_and_extended;
use super::record::RecordState;
use super::store::UndoStore;
use crate::commit::{NewFile, NewMtime, ReplacePolicy, TargetDirectory, open_failed};
use crate::error::JournalError;
use crate::stamp::Stamp;

/// The maximum number of paths that are synced one by one; more are synced together.
pub(super) const SYNCED_SINGLY: usize = 64;

/// The permissions that the owner of a directory needs to change its entries.
const OPEN: u32 = 0o700;

/// One path to restore.
#[derive(Debug)]
pub(super) struct RestoreTask {
    pub(super) path: PathBuf,
    /// The stamp when the plan was made.
    pub(super) seen: Option<Stamp>,
    pub(super) now: RecordState,
    pub(super) to: RecordState,
    /// The modification time to set; `None` leaves the time of the restoration.
    pub(super) mtime: NewMtime,
    /// The identities of the present and of the target entry, if they are known.
    pub(super) now_id: Option<FileId>,
    pub(super) to_id: Option<FileId>,
}

pub(super) struct Restoration<'a> {
    pub(super) store: &'a UndoStore,
    /// The name of new entries before they are renamed into place.
    pub(super) temporary: &'a str,
    /// Directories get back their present times after the change.
    pub(super) keep_times: bool,
}

impl Restoration<'_> {
    /// Performs all tasks, or stops at the first failure. Returns, with the reasons, the
    /// directories that were not removed because they are not empty, and the directories without
    /// their time.
    pub(super) fn run(
        &self,
        tasks: &[RestoreTask],
    ) -> Result<Vec<(PathBuf, String)>, JournalError> {
        let sync = tasks.len() <= SYNCED_SINGLY;
        let above = self.times_above(tasks);
        let by_depth = deepest_last(tasks);
        for task in &by_depth {
            self.open_up(task)?;
        }
        // Directories that must become another kind of entry, and other entries that must become
        // directories.
        let in_the_way: Vec<&Path> = tasks
            .iter()
            .filter(|task| task.now.is_directory() && !can_stay_directory(&task.to))
            .map(|task| task.path.as_path())
            .collect();
        let is_in_the_way = |path: &Path| path.ancestors().any(|above| in_the_way.contains(&above));
        for task in by_depth.iter().rev().filter(|task| is_present(&task.now)) {
            if is_in_the_way(&task.path) || (!task.now.is_directory() && task.to.is_directory()) {
                self.remove(task)?;
            }
        }
        for task in &by_depth {
            if task.to.is_directory() && !task.now.is_directory() {
                self.make_directory(task)?;
            }
        }
        let (twins, others): (Vec<&RestoreTask>, Vec<&RestoreTask>) = by_depth
            .iter()
            .copied()
            .partition(|task| has_twin(&task.to));
        for task in others.into_iter().chain(twins) {
            let place = match is_present(&task.now) && !is_in_the_way(&task.path) {
                true => ReplacePolicy::MayReplace,
                false => ReplacePolicy::MustNotExist,
            };
            self.put(task, place, sync)?;
        }
        let mut left = Vec::new();
        let goes = |task: &&&RestoreTask| {
            let has_moved = matches!(task.now, RecordState::Moved { .. });
            let goes = is_present(&task.now) && task.to == RecordState::Absent;
            goes && !has_moved && !is_in_the_way(&task.path)
        };
        let lost = |task: &&&RestoreTask| {
            matches!(
                task.now,
                RecordState::Opaque { .. } | RecordState::Grown { .. }
            )
        };
        let going = by_depth.iter().rev().filter(goes);
        let (last, first): (Vec<_>, Vec<_>) = going.partition(lost);
        let is_plain = |task: &&&RestoreTask| !task.now.is_directory() || lost(task);
        let (files, directories): (Vec<_>, Vec<_>) =
            first.into_iter().chain(last).partition(is_plain);
        for task in files.into_iter().chain(directories) {
            if !self.remove(task)? {
                let why = "it has other entries now, so it stays";
                left.push((task.path.clone(), why.to_owned()));
            }
        }
        for task in by_depth.iter().rev() {
            if let Some(why) = self.finish_directory(task)? {
                left.push((task.path.clone(), why));
            }
        }
        for (path, mtime) in above {
            // The directory itself is not part of the restoration, so an error is ignored.
            let _ = TargetDirectory::open(&path).and_then(|directory| directory.set_mtime(mtime));
        }
        if !sync {
            self.store.sync_all();
        }
        Ok(left)
    }

    /// Returns the times of directories that change only because tasks change entries in them.
    fn times_above(&self, tasks: &[RestoreTask]) -> BTreeMap<PathBuf, i64> {
        let mut above = BTreeMap::new();
        for task in tasks.iter().filter(|_| self.keep_times) {
            let Some(parent) = task.path.parent() else {
                continue;
            };
            if !above.contains_key(parent)
                && let Ok(Some(stamp)) = TargetDirectory::open(parent).and_then(|one| one.stamp())
            {
                above.insert(
                    parent.to_path_buf(),
                    super::record::nanoseconds(stamp.mtime_ns),
                );
            }
        }
        for task in tasks {
            above.remove(&task.path);
        }
        above
    }

    /// Sets owner and mode of a directory first. If the target mode does not let its owner change
    /// entries, that mode is set at the end.
    fn open_up(&self, task: &RestoreTask) -> Result<(), JournalError> {
        let io = |error| failed(task, error);
        let (RecordState::Directory { .. }, Some(seen)) = (&task.now, &task.seen) else {
            return Ok(());
        };
        let mode = match &task.to {
            RecordState::Directory { mode, uid, gid, .. } => {
                if (seen.uid, seen.gid) != (*uid, *gid) {
                    self.open_parent(task)?.set_owner(*uid, *gid).map_err(io)?;
                }
                mode | OPEN
            }
            _ => seen.mode | OPEN,
        };
        match mode & 0o7777 == seen.mode & 0o7777 {
            true => Ok(()),
            false => self.open_parent(task)?.set_mode(mode).map_err(io),
        }
    }

    fn open_parent(&self, task: &RestoreTask) -> Result<TargetDirectory, JournalError> {
        TargetDirectory::open(&task.path).map_err(|error| failed(task, error))
    }

    fn temporary(&self) -> &OsStr {
        self.temporary.as_ref()
    }

    /// Checks that the entry still has the stamp from when the plan was made.
    fn require_seen(&self, task: &RestoreTask, at: &TargetDirectory) -> Result<(), JournalError> {
        match is_seen(task, at).map_err(|error| failed(task, error))? {
            true => Ok(()),
            false => Err(JournalError::Drifted {
                path: task.path.clone(),
            }),
        }
    }

    /// Removes the entry. Returns `false` if it is a directory that is not empty, which stays.
    fn remove(&self, task: &RestoreTask) -> Result<bool, JournalError> {
        let at = self.open_parent(task)?;
        self.require_seen(task, &at)?;
        let removed = match &task.now {
            RecordState::Grown { .. } => at.remove_all(self.temporary()).map(|()| true),
            RecordState::Directory { .. } => at.remove_empty(),
            _ => at.remove_entry().map(|()| true),
        };
        match removed {
            Ok(false) if task.to != RecordState::Absent => Err(JournalError::Drifted {
                path: task.path.clone(),
            }),
            result => result.map_err(|error| failed(task, error)),
        }
    }

    fn make_directory(&self, task: &RestoreTask) -> Result<(), JournalError> {
        let io = |error| failed(task, error);
        let at = self.open_parent(task)?;
        at.put_directory().map_err(io)?;
        if let RecordState::Directory { mode, uid, gid, .. } = &task.to {
            at.set_owner(*uid, *gid).map_err(io)?;
            at.set_mode(mode | OPEN).map_err(io)?;
        }
        Ok(())
    }

    fn put(
        &self,
        task: &RestoreTask,
        mut place: ReplacePolicy,
        sync: bool,
    ) -> Result<(), JournalError> {
        if let RecordState::Moved { to, .. } = &task.now
            && !matches!(task.to, RecordState::Moved { .. })
        {
            let at = self.open_parent(task)?;
            self.require_seen(task, &at)?;
            let moved = TargetDirectory::open(to)
                .and_then(|to| at.move_to(&to, ReplacePolicy::MustNotExist));
            moved.map_err(|error| failed(task, error))?;
            place = ReplacePolicy::MustNotExist;
        }
        if !is_present(&task.to) || task.to.is_directory() {
            return Ok(());
        }
        let at = self.open_parent(task)?;
        let result = match &task.to {
            RecordState::Absent
            | RecordState::Carried
            | RecordState::Pipe { .. }
            | RecordState::Directory { .. }
            | RecordState::Grown { .. } => {
                return Ok(());
            }
            RecordState::Moved { to, .. } => {
                self.require_seen(task, &at)?;
                TargetDirectory::open(to).and_then(|from| from.move_to(&at, place))
            }
            RecordState::Link { target, .. } => {
                if place == ReplacePolicy::MayReplace {
                    self.require_seen(task, &at)?;
                }
                at.put_link(self.temporary(), target, task.mtime, place)
            }
            RecordState::Opaque { seal, .. } => {
                self.require_seen(task, &at)?;
                at.set_mode(seal.mode)
            }
            RecordState::Regular { .. } => {
                if place == ReplacePolicy::MayReplace {
                    self.require_seen(task, &at)?;
                }
                return self.put_regular(task, &at, place, sync);
            }
        };
        result.map_err(|error| failed(task, error))
    }

    fn put_regular(
        &self,
        task: &RestoreTask,
        at: &TargetDirectory,
        place: ReplacePolicy,
        sync: bool,
    ) -> Result<(), JournalError> {
        let io = |error| failed(task, error);
        let (Some(hash), Some(attributes)) = (task.to.hash(), task.to.attributes()) else {
            return Ok(());
        };
        let twin = match &task.to {
            RecordState::Regular { twin, .. } => twin.as_deref(),
            _ => None,
        };
        if is_same_content_and_extended(&task.now, &task.to) && !is_parted(at, twin) {
            at.set_owner(attributes.uid, attributes.gid).map_err(io)?;
            at.set_mode(attributes.mode).map_err(io)?;
            return match task.mtime {
                Some(mtime) => at.set_mtime(mtime).map_err(io),
                None => Ok(()),
            };
        }
        if let Some(twin) = twin
            && super::observed_path::hash_of(twin).is_ok_and(|found| found.as_deref() == Some(hash))
            && let Ok(twin) = TargetDirectory::open(twin)
            && at.put_name_of(self.temporary(), &twin, place).is_ok()
        {
            return Ok(());
        }
        let damaged = || self.store.damaged(&task.path);
        let blob = self.store.open_blob(hash)?.ok_or_else(damaged)?;
        let new = NewFile {
            from: &blob,
            hash,
            attributes: &attributes,
            mtime: task.mtime,
            sync,
        };
        let put = at.put_file(self.temporary(), &new, place);
        if !put.map_err(io)? {
            return Err(damaged());
        }
        if sync {
            at.sync_names();
        }
        Ok(())
    }

    /// Sets a mode that forbids changes in a directory, and its time; returns the reason if the
    /// time could not be set.
    fn finish_directory(&self, task: &RestoreTask) -> Result<Option<String>, JournalError> {
        let RecordState::Directory { mode, .. } = &task.to else {
            return Ok(None);
        };
        if mode & OPEN != OPEN {
            let given = self.open_parent(task)?.set_mode(*mode);
            given.map_err(|error| failed(task, error))?;
        }
        let Some(mtime) = task.mtime else {
            return Ok(None);
        };
        let given = TargetDirectory::open(&task.path).and_then(|at| at.set_mtime(mtime));
        Ok(given
            .err()
            .map(|error| format!("its time could not be set: {error}")))
    }
}

/// Returns whether the entry still has the stamp from when the plan was made.
pub(super) fn is_seen(task: &RestoreTask, at: &TargetDirectory) -> io::Result<bool> {
    let now = at.stamp()?;
    Ok(match (&task.seen, &now) {
        (None, None) => true,
        (Some(_), Some(now)) if task.now.is_directory() => now.mode & 0o170_000 == 0o040_000,
        // Our own changes may have changed the number of its other names, or its time.
        (Some(seen), Some(now)) if seen.links > 1 => seen.same_object(now) && seen.size == now.size,
        (Some(seen), Some(now)) => seen.is_same(now),
        _ => false,
    })
}

fn is_present(state: &RecordState) -> bool {
    *state != RecordState::Absent
}

/// Returns whether no other entry replaces the directory; removing it is done at the end.
fn can_stay_directory(to: &RecordState) -> bool {
    to.is_directory() || *to == RecordState::Absent
}

fn has_twin(state: &RecordState) -> bool {
    matches!(state, RecordState::Regular { twin: Some(_), .. })
}

/// Returns whether the other hard link, which was restored before this one, is another file now.
fn is_parted(at: &TargetDirectory, twin: Option<&Path>) -> bool {
    let twin = twin.and_then(|twin| TargetDirectory::open(twin).ok()?.stamp().ok()?);
    match (twin, at.stamp()) {
        (Some(twin), Ok(Some(own))) => !twin.same_object(&own),
        _ => false,
    }
}

/// Sorts tasks so that a directory comes before its entries.
fn deepest_last(tasks: &[RestoreTask]) -> Vec<&RestoreTask> {
    let mut sorted: Vec<&RestoreTask> = tasks.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    sorted
}

pub(super) fn failed(task: &RestoreTask, error: io::Error) -> JournalError {
    open_failed("restore", &task.path, error)
}
