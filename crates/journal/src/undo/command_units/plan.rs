//! The plan of an undo: the present state of every path decides what is done with it.
//!
//! A mode or time that the command did not change stays unchanged. Times are restored only if no
//! later change is in effect: a later build must see that its sources changed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use haft_witness::FileId;

use super::{SHOWN_BYTES, is_same_content, is_same_content_and_extended, is_same_file};
use crate::error::JournalError;
use crate::open::FileSnapshot;
use crate::snapshot::ScannedKind;
use crate::undo::git_index;
use crate::undo::observed_path::ObservedPath;
use crate::undo::preview::UndoConflict;
use crate::undo::record::RecordState;
use crate::undo::restore::RestoreTask;
use crate::undo::units::UndoUnit;
use crate::undo::{UndoError, UndoHistory};

/// The expected present state of a path, and its target state.
pub(super) struct PathUndo<'u> {
    pub(super) unit: &'u str,
    pub(super) expected: RecordState,
    pub(super) target: RecordState,
    /// The identities of both, if they are known.
    pub(super) expected_id: Option<FileId>,
    pub(super) target_id: Option<FileId>,
    /// Modes and times are known, too.
    pub(super) exact: bool,
}

/// The result of planning.
#[derive(Default)]
pub(super) struct UndoPlan {
    pub(super) tasks: Vec<RestoreTask>,
    pub(super) conflicts: Vec<UndoConflict>,
    pub(super) left: Vec<(PathBuf, String)>,
}

impl UndoHistory {
    pub(super) fn plan(
        &self,
        all: &BTreeMap<PathBuf, PathUndo<'_>>,
        set_times: bool,
    ) -> Result<UndoPlan, JournalError> {
        let mut plan = UndoPlan::default();
        let kept = self.store().kept_folder();
        let present: HashSet<FileId> = all
            .values()
            .filter(|wanted| wanted.expected.is_present())
            .filter_map(|wanted| wanted.expected_id)
            .collect();
        // Objects that get another name.
        let linked: HashSet<FileId> = all
            .values()
            .filter(|wanted| wanted.target.is_present() && wanted.expected_id != wanted.target_id)
            .filter_map(|wanted| wanted.target_id)
            .collect();
        for (path, wanted) in all {
            let is_here = wanted.target_id.is_some_and(|id| present.contains(&id));
            let looked = observe_path(path)?;
            if !looked.is(&wanted.expected) && !self.is_refreshed(path, wanted) {
                if !looked.is(&wanted.target) {
                    plan.conflicts
                        .push(self.swept_conflict(path, wanted, &looked));
                }
                continue;
            }
            if !is_where_it_moves(wanted, is_here, kept) {
                let conflict = self.swept_conflict(path, wanted, &looked);
                plan.conflicts.push(conflict);
                continue;
            }
            let now = looked.state(&wanted.expected);
            let gone = matches!(
                wanted.target,
                RecordState::Opaque { .. } | RecordState::Grown { .. }
            );
            let is_same_object = match (&now, &wanted.target) {
                (RecordState::Opaque { seal: now, .. }, RecordState::Opaque { seal: then, .. }) => {
                    is_same_file(now, then)
                }
                _ => false,
            };
            if gone && !is_same_object && !is_here {
                plan.left
                    .push((path.clone(), "its old content was not stored".to_owned()));
                continue;
            }
            let Some(to) = with_present_attributes(&now, wanted) else {
                plan.conflicts
                    .push(self.swept_conflict(path, wanted, &looked));
                continue;
            };
            // The time of another entry says nothing about the target.
            let times_agree = wanted.expected_id != wanted.target_id
                || now.mtime() == wanted.expected.mtime()
                || now.mtime().is_none();
            let mtime = to
                .mtime()
                .filter(|_| set_times && wanted.exact && times_agree);
            let is_source = wanted.target_id.is_some_and(|id| linked.contains(&id));
            let changes_object = is_source
                || wanted.expected_id != wanted.target_id
                    && (wanted.expected_id.is_some() || wanted.target_id.is_some());
            if !changes_object && now == to && mtime.is_none_or(|mtime| now.mtime() == Some(mtime))
            {
                continue;
            }
            if let Some(hash) = to.hash()
                && !is_same_content_and_extended(&now, &to)
                && !(is_here && has_content(all, wanted.target_id, hash))
                && !is_kept_with(&to, kept, hash)
                && self.store().open_blob(hash)?.is_none()
            {
                return Err(JournalError::Undo(UndoError::Damaged {
                    id: wanted.unit.to_owned(),
                    path: path.clone(),
                }));
            }
            if !changes_object && mtime.is_none() && is_same_but_time(&now, &to) {
                continue;
            }
            plan.tasks.push(RestoreTask {
                path: path.clone(),
                seen: looked.entry.map(|entry| entry.stamp),
                now,
                to,
                mtime,
                now_id: wanted.expected_id,
                to_id: wanted.target_id,
            });
        }
        name_twins(&mut plan.tasks);
        Ok(plan)
    }

    /// Returns whether the path is an index of Git with the expected entries.
    fn is_refreshed(&self, path: &Path, wanted: &PathUndo<'_>) -> bool {
        let Some(hash) = wanted.expected.hash().filter(|_| git_index::is_index(path)) else {
            return false;
        };
        let now = FileSnapshot::take(path, git_index::MAX_INDEX)
            .ok()
            .flatten();
        let then = self.store().get(hash).ok().flatten();
        match (now, then) {
            (Some(now), Some(then)) => git_index::has_same_entries(&now.bytes, &then),
            _ => false,
        }
    }

    fn swept_conflict(
        &self,
        path: &Path,
        wanted: &PathUndo<'_>,
        looked: &ObservedPath,
    ) -> UndoConflict {
        let small = |looked: &ObservedPath| {
            let stamp = looked.entry.as_ref().map(|entry| &entry.stamp);
            stamp.is_some_and(|stamp| stamp.size <= SHOWN_BYTES)
        };
        let now = match looked.kind() {
            None => None,
            Some(ScannedKind::File) if small(looked) => {
                super::small_file(path).or_else(|| Some(Vec::new()))
            }
            Some(_) => Some(Vec::new()),
        };
        let kept = |state: &RecordState| match state {
            RecordState::Absent => None,
            RecordState::Regular { hash, size, .. } if *size <= SHOWN_BYTES => {
                Some(self.store().get(hash).ok().flatten())
            }
            _ => Some(None),
        };
        let comparable =
            looked.kind().is_none_or(|kind| kind == ScannedKind::File) && small(looked);
        UndoConflict {
            unit: wanted.unit.to_owned(),
            path: path.to_path_buf(),
            was: if comparable {
                kept(&wanted.target)
            } else {
                Some(None)
            },
            made: kept(&wanted.expected),
            now,
        }
    }
}

/// Returns whether the other path of a moved file has the expected state; `true` if no file is moved.
///
/// If the identities of the paths are known, the paths themselves are checked, so only a stored file
/// is checked here.
fn is_where_it_moves(wanted: &PathUndo<'_>, is_here: bool, kept: &Path) -> bool {
    let is_identified = wanted.expected_id.is_some() || wanted.target_id.is_some();
    if is_identified {
        let is_stored = |state: &RecordState| {
            ObservedPath::from_path(&state_path(state)?)
                .ok()?
                .is(state)
                .then_some(())
        };
        return match &wanted.target {
            target @ RecordState::Moved { to, .. } if to.starts_with(kept) && !is_here => {
                is_stored(target).is_some()
            }
            RecordState::Moved { .. } => is_here,
            _ => true,
        };
    }
    let (to, state) = match (&wanted.expected, &wanted.target) {
        (RecordState::Moved { to, .. }, _) => (to, &RecordState::Absent),
        (_, target @ RecordState::Moved { to, .. }) => (to, target),
        _ => return true,
    };
    ObservedPath::from_path(to).is_ok_and(|there| there.is(state))
}

fn state_path(state: &RecordState) -> Option<PathBuf> {
    match state {
        RecordState::Moved { to, .. } => Some(to.clone()),
        _ => None,
    }
}

/// Returns whether a stored hard link of the file has this content.
fn is_kept_with(to: &RecordState, kept: &Path, hash: &str) -> bool {
    let link = to.kept_below(kept).map(ObservedPath::from_path);
    let content = link.and_then(|link| link.ok()?.content().map(|one| one.hash == hash));
    content.unwrap_or_default()
}

/// Returns whether the present object has this content.
fn has_content(all: &BTreeMap<PathBuf, PathUndo<'_>>, object: Option<FileId>, hash: &str) -> bool {
    let mut states = all.values().filter(|one| one.expected_id == object);
    states.any(|one| one.expected.hash() == Some(hash))
}

pub(super) fn observe_path(path: &Path) -> Result<ObservedPath, JournalError> {
    ObservedPath::from_path(path).map_err(|error| JournalError::io("inspect", path, error))
}

/// Records which tasks are hard links to one file, so that they can be restored as such.
fn name_twins(tasks: &mut [RestoreTask]) {
    let mut first: HashMap<(u64, u64), PathBuf> = HashMap::new();
    for task in tasks {
        if let (RecordState::Regular { twin, .. }, Some(seen)) = (&mut task.now, &task.seen)
            && seen.links > 1
            && twin.is_none()
        {
            let object = (seen.device, seen.inode);
            match first.get(&object) {
                Some(path) => *twin = Some(path.clone()),
                None => {
                    first.insert(object, task.path.clone());
                }
            }
        }
    }
}

/// Combines units, newest first, into one change for each path. They must be consistent with each
/// other.
pub(super) fn compose<'u>(
    units: &[&'u UndoUnit],
) -> Result<BTreeMap<PathBuf, PathUndo<'u>>, UndoError> {
    let mut all: BTreeMap<PathBuf, PathUndo<'u>> = BTreeMap::new();
    for &unit in units {
        for (one, exact) in unit.all_paths() {
            let Some(later) = all.get_mut(&one.path) else {
                let wanted = PathUndo {
                    unit: unit.id(),
                    expected: one.after,
                    target: one.before,
                    expected_id: one.after_id,
                    target_id: one.before_id,
                    exact,
                };
                all.insert(one.path, wanted);
                continue;
            };
            if !is_same_content(&later.target, &one.after) {
                return Err(UndoError::Conflict(format!(
                    "{} was changed outside this session between {} and {}: its earlier state cannot be \
                     restored without losing that change. Nothing was undone. Undo single calls \
                     instead, newest first.",
                    one.path.display(),
                    unit.id(),
                    later.unit
                )));
            }
            later.target = one.before;
            later.target_id = one.before_id;
            later.exact &= exact;
        }
    }
    Ok(all)
}

fn is_same_but_time(now: &RecordState, to: &RecordState) -> bool {
    let timeless = |state: &RecordState| {
        let mut state = state.clone();
        match &mut state {
            RecordState::Regular { mtime, twin, .. } => (*mtime, *twin) = (0, None),
            RecordState::Link { mtime, .. } | RecordState::Directory { mtime, .. } => *mtime = 0,
            _ => {}
        }
        state
    };
    timeless(now) == timeless(to)
}

/// Returns the target with the present values of attributes that the command did not change; `None`
/// if another process changed one that the command changed, too.
fn with_present_attributes(now: &RecordState, wanted: &PathUndo<'_>) -> Option<RecordState> {
    let mut to = wanted.target.clone();
    let expected = &wanted.expected;
    match (&mut to, expected, now) {
        (
            RecordState::Regular {
                mode,
                uid,
                gid,
                extended,
                ..
            },
            RecordState::Regular {
                mode: mode_then,
                uid: uid_then,
                gid: gid_then,
                extended: extended_then,
                ..
            },
            RecordState::Regular {
                mode: mode_now,
                uid: uid_now,
                gid: gid_now,
                extended: extended_now,
                ..
            },
        ) => {
            reconcile_value(mode, mode_then, mode_now, wanted.exact)?;
            reconcile_value(uid, uid_then, uid_now, wanted.exact)?;
            reconcile_value(gid, gid_then, gid_now, wanted.exact)?;
            reconcile_value(extended, extended_then, extended_now, wanted.exact)?;
        }
        (
            RecordState::Directory {
                mode,
                uid,
                gid,
                extended,
                ..
            },
            RecordState::Directory {
                mode: mode_then,
                uid: uid_then,
                gid: gid_then,
                extended: extended_then,
                ..
            },
            RecordState::Directory {
                mode: mode_now,
                uid: uid_now,
                gid: gid_now,
                extended: extended_now,
                ..
            },
        ) => {
            reconcile_value(mode, mode_then, mode_now, wanted.exact)?;
            reconcile_value(uid, uid_then, uid_now, wanted.exact)?;
            reconcile_value(gid, gid_then, gid_now, wanted.exact)?;
            reconcile_value(extended, extended_then, extended_now, wanted.exact)?;
        }
        _ => {}
    }
    Some(to)
}

/// Returns `None` if both the command and another process changed the value.
fn reconcile_value<T: Clone + PartialEq>(to: &mut T, then: &T, now: &T, exact: bool) -> Option<()> {
    if !exact || to == then {
        *to = now.clone();
    } else if now != then && now != to {
        return None;
    }
    Some(())
}
