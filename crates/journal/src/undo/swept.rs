//! Undo of what commands did: paths of any kind become what they were.
//!
//! The same promises as for single files: all or nothing, only if everything is still as the command
//! left it, and an undo is a unit that can be undone. What a command changed and nobody could keep is
//! told, and left as it is.
//!
//! A mode or a time that the command did not change stays what it is now. Times are set back only
//! while no later change stands: what was built since must see that its sources changed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::looked::Looked;
use super::perform::now;
use super::preview::{Conflict, patch_of};
use super::record::{Ending, Intent, Left, Record, Seal, State, Swept};
use super::recover::{Found, Verdict, decide};
use super::restore::{Restoration, SYNCED_SINGLY, Task};
use super::store::Keep;
use super::take_back::{Mode, Undone, UndoneFile};
use super::units::Unit;
use super::{ChangeKind, History, UndoError};
use crate::commit::{self, Directory, temporary_name};
use crate::error::JournalError;
use crate::lock::FileLock;
use crate::patch::Patch;
use crate::sweep::Kind;
use crate::ticket::Ticket;

/// What an undo removes or overwrites is kept up to this size, and up to this in all.
const KEPT_FILE: u64 = 64 << 20;
const KEPT_ALL: u64 = 256 << 20;
/// So many files are shown with what changed in them, if they are no larger than this.
const SHOWN_FILES: usize = 50;
const SHOWN_BYTES: u64 = 1 << 20;
/// So many conflicts are told.
const TOLD: usize = 10;

/// What a path must be now, and is to become.
struct Wanted<'u> {
    unit: &'u str,
    expected: State,
    target: State,
    /// Mode and times are known, too.
    exact: bool,
}

/// What is to be done, once everything has been looked at.
#[derive(Default)]
struct Plan {
    tasks: Vec<Task>,
    conflicts: Vec<Conflict>,
    left: Vec<(PathBuf, String)>,
}

impl History {
    /// Records what a command was seen to have done; it can be undone by the id that is given.
    /// `kept_content` gives what has a hash.
    pub(crate) fn observe(
        &self,
        ticket: &Ticket,
        about: &str,
        swept: Vec<Swept>,
        left: Vec<Left>,
        kept_content: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    ) -> Result<String, JournalError> {
        let log = self.store().open()?;
        super::perform::say_unsaid(self, &log)?;
        let (mut kept, mut lost) = (Vec::new(), left);
        for one in swept {
            // Where only a mode or a time is different, the content is not needed.
            if let Some(hash) = one.before.hash()
                && !is_same_content_and_extended(&one.before, &one.after)
            {
                match kept_content(hash) {
                    Ok(content) => {
                        self.store().put(&content, Keep::Loosely)?;
                    }
                    Err(error) => {
                        lost.push(Left {
                            why: format!("what was kept of it cannot be read: {error}"),
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
        let intent = Record::Intent(Box::new(Intent {
            unit: unit.clone(),
            call: ticket.call.clone(),
            tool: ticket.tool.clone(),
            time: now(),
            swept: kept,
            left: lost,
            observed: true,
            about: about.to_owned(),
            ..Intent::default()
        }));
        let outcome = Record::Outcome {
            unit: unit.clone(),
            ending: Ending::Made,
            note: None,
        };
        // What the command wrote is not certain to survive a power failure either.
        log.append_all(&[intent, outcome], Keep::Loosely)
            .map_err(|error| self.store().failed(error))?;
        drop(log);
        self.keep_within_limits();
        Ok(unit)
    }

    /// Takes back some paths of what a command did, and leaves the rest to be undone later.
    pub fn take_back(
        &self,
        ticket: &Ticket,
        unit: &str,
        paths: &[PathBuf],
    ) -> Result<Undone, JournalError> {
        let units = self.units()?;
        let unit = units.find(unit)?;
        let mut wanted: HashSet<&Path> = paths.iter().map(PathBuf::as_path).collect();
        // Directories that were made for nothing else go, too.
        let made = |one: &&Swept| one.before == State::Absent && one.after.is_directory();
        for one in unit.swept().filter(made) {
            let mut below = unit
                .swept()
                .filter(|other| other.path != one.path && other.path.starts_with(&one.path));
            let is_above = paths.iter().any(|path| path.starts_with(&one.path));
            let is_needed = |other: &Swept| {
                !wanted.contains(other.path.as_path()) && !other.after.is_directory()
            };
            if is_above && !below.any(is_needed) {
                wanted.insert(&one.path);
            }
        }
        let only = |path: &Path| wanted.contains(path);
        self.undo_swept(ticket, &[unit], Mode::Apply, Some(&only), true)
    }

    /// Takes these units back, newest first.
    pub(super) fn undo_swept(
        &self,
        ticket: &Ticket,
        units: &[&Unit],
        mode: Mode,
        only: Option<&dyn Fn(&Path) -> bool>,
        set_times: bool,
    ) -> Result<Undone, JournalError> {
        let mut wanted = compose(units)?;
        if let Some(only) = only {
            wanted.retain(|path, _| only(path));
        }
        for path in wanted.keys() {
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
        if let (Some(text), Mode::Apply) = (&conflict, mode) {
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
        if mode == Mode::Apply {
            let mut intent = Intent {
                undoes: undid.iter().map(|(id, _)| id.clone()).collect(),
                ..Intent::default()
            };
            if only.is_some() {
                intent.part_of = intent.undoes.pop();
            }
            unit = Some(self.perform_swept(ticket, intent, &mut plan)?);
        }
        Ok(Undone {
            unit,
            undid,
            files,
            conflict,
            left: plan.left,
            results: Vec::new(),
        })
    }

    fn plan(
        &self,
        wanted: &BTreeMap<PathBuf, Wanted<'_>>,
        set_times: bool,
    ) -> Result<Plan, JournalError> {
        let mut plan = Plan::default();
        for (path, wanted) in wanted {
            let looked =
                Looked::at(path).map_err(|error| JournalError::io("look at", path, error))?;
            if !looked.is(&wanted.expected) {
                if !looked.is(&wanted.target) {
                    plan.conflicts
                        .push(self.swept_conflict(path, wanted, &looked));
                }
                continue;
            }
            let now = looked.state(&wanted.expected);
            let gone = matches!(wanted.target, State::Opaque { .. } | State::Grown { .. });
            let is_same_object = match (&now, &wanted.target) {
                (State::Opaque { seal: now, .. }, State::Opaque { seal: then, .. }) => {
                    is_same_file(now, then)
                }
                _ => false,
            };
            if gone && !is_same_object {
                plan.left
                    .push((path.clone(), "what it held was not kept".to_owned()));
                continue;
            }
            let Some(to) = with_present_attributes(&now, wanted) else {
                plan.conflicts
                    .push(self.swept_conflict(path, wanted, &looked));
                continue;
            };
            let times_agree = now.mtime() == wanted.expected.mtime() || now.mtime().is_none();
            let mtime = to
                .mtime()
                .filter(|_| set_times && wanted.exact && times_agree);
            if now == to && mtime.is_none_or(|mtime| now.mtime() == Some(mtime)) {
                continue;
            }
            if let Some(hash) = to.hash()
                && !is_same_content_and_extended(&now, &to)
                && self.store().open_blob(hash)?.is_none()
            {
                return Err(JournalError::Undo(UndoError::Damaged {
                    id: wanted.unit.to_owned(),
                    path: path.clone(),
                }));
            }
            if mtime.is_none() && is_same_but_time(&now, &to) {
                continue;
            }
            plan.tasks.push(Task {
                path: path.clone(),
                seen: looked.entry.map(|entry| entry.stamp),
                now,
                to,
                mtime,
            });
        }
        name_twins(&mut plan.tasks);
        Ok(plan)
    }

    /// Pre-images → intent → all tasks → outcome.
    fn perform_swept(
        &self,
        ticket: &Ticket,
        intent: Intent,
        plan: &mut Plan,
    ) -> Result<String, JournalError> {
        let store = self.store();
        let log = store.open()?;
        super::perform::say_unsaid(self, &log)?;
        self.keep_present(plan)?;
        let swept: Vec<Swept> = plan
            .tasks
            .iter()
            .map(|task| Swept {
                path: task.path.clone(),
                before: task.now.clone(),
                after: task.to.clone(),
            })
            .collect();
        let unit = self.new_unit(&ticket.call)?;
        self.count_swept(&swept);
        let temporary = temporary_name();
        let record = Record::Intent(Box::new(Intent {
            unit: unit.clone(),
            call: ticket.call.clone(),
            tool: ticket.tool.clone(),
            time: now(),
            swept: swept.clone(),
            temporary: temporary.clone(),
            ..intent
        }));
        let end = |ending, note: Option<String>| {
            let unit = unit.clone();
            let outcome = Record::Outcome { unit, ending, note };
            if log.append(&outcome, Keep::Durably).is_err() {
                self.unsaid().push(outcome);
            }
        };
        if let Err(error) = log.append(&record, Keep::Durably) {
            let error = store.failed(error);
            end(Ending::NotMade, Some(error.to_string()));
            return Err(error);
        }
        let restoration = Restoration {
            store,
            temporary: &temporary,
            keep_times: true,
        };
        match restoration.run(&plan.tasks) {
            Ok(used) => {
                end(Ending::Made, None);
                let why = "something else is in it now, so it stays".to_owned();
                let used = used.into_iter().map(|path| (path, why.clone()));
                plan.left.extend(used);
            }
            Err(error) => {
                let failed = self.put_back(&swept, &temporary);
                if !failed.is_empty() {
                    return Err(JournalError::NotPutBack {
                        error: Box::new(error),
                        paths: failed,
                    });
                }
                end(Ending::NotMade, Some(error.to_string()));
                return Err(error);
            }
        }
        drop(log);
        self.keep_within_limits();
        Ok(unit)
    }

    /// Keeps what the tasks overwrite or remove. What is too large for that is told.
    fn keep_present(&self, plan: &mut Plan) -> Result<(), JournalError> {
        let store = self.store();
        let sync = plan.tasks.len() <= SYNCED_SINGLY;
        let mut bytes = 0;
        for task in &mut plan.tasks {
            let lost = "it was too large to be kept: undoing this undo will not bring it back";
            let (Some(hash), Some(seen)) = (task.now.hash(), &task.seen) else {
                if matches!(task.now, State::Opaque { .. } | State::Grown { .. })
                    && task.to == State::Absent
                {
                    plan.left.push((task.path.clone(), lost.to_owned()));
                }
                continue;
            };
            if task.to.hash() == Some(hash) {
                continue;
            }
            if seen.size > KEPT_FILE || bytes + seen.size > KEPT_ALL {
                task.now = State::Opaque {
                    kind: "a file".to_owned(),
                    seal: Seal::of(seen),
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

    /// Every path that is as intended becomes again what it was; gives those that could not.
    fn put_back(&self, swept: &[Swept], temporary: &str) -> Vec<PathBuf> {
        let mut tasks = Vec::new();
        let mut failed = Vec::new();
        for one in swept {
            match Looked::at(&one.path) {
                Ok(looked) if looked.is(&one.after) => tasks.push(Task {
                    path: one.path.clone(),
                    now: looked.state(&one.after),
                    seen: looked.entry.map(|entry| entry.stamp),
                    to: one.before.clone(),
                    mtime: one.before.mtime(),
                }),
                Ok(looked) if looked.is(&one.before) => {}
                _ => failed.push(one.path.clone()),
            }
        }
        // Gone for good.
        tasks.retain(|task| {
            let is_lost = matches!(task.to, State::Opaque { .. } | State::Grown { .. })
                && task.now == State::Absent;
            if is_lost {
                failed.push(task.path.clone());
            }
            !is_lost
        });
        let restoration = Restoration {
            store: self.store(),
            temporary,
            keep_times: true,
        };
        if restoration.run(&tasks).is_err() {
            failed.extend(tasks.into_iter().map(|task| task.path));
        }
        failed
    }

    /// After a crash; see [`Self::recover`].
    pub(super) fn settle_swept(&self, unit: &Unit) -> Result<Verdict, JournalError> {
        if unit.intent.observed {
            return Ok(Verdict::Completed);
        }
        let (swept, temporary) = (&unit.intent.swept, &unit.intent.temporary);
        let parents: HashSet<&Path> = swept.iter().filter_map(|one| one.path.parent()).collect();
        for parent in parents {
            let Ok(directory) = Directory::of(&parent.join(temporary)) else {
                continue; // it was not made yet, or is gone
            };
            let failed = |error| commit::open_failed("clean up", parent, error);
            directory
                .remove_set_aside(temporary.as_ref())
                .map_err(failed)?;
            directory
                .remove_leftover(temporary.as_ref())
                .map_err(failed)?;
        }
        let mut found = Vec::new();
        for one in swept {
            let looked = Looked::at(&one.path)
                .map_err(|error| JournalError::io("look at", &one.path, error))?;
            found.push(match () {
                // Only modes or times are to change: either way it is no one else's.
                () if looked.is(&one.after) && looked.is(&one.before) => continue,
                () if looked.is(&one.after) => Found::After,
                () if looked.is(&one.before) => Found::Before,
                () => Found::Other,
            });
        }
        let verdict = match (found.is_empty(), decide(&found)) {
            (true, _) => Verdict::TakenBack,
            (false, verdict) => verdict,
        };
        // Modes and times are set last, so what looks complete may lack them.
        if matches!(verdict, Verdict::TakenBack | Verdict::NeverHappened) {
            self.put_back(swept, temporary);
        }
        Ok(verdict)
    }

    fn swept_conflict(&self, path: &Path, wanted: &Wanted<'_>, looked: &Looked) -> Conflict {
        let small = |looked: &Looked| {
            let stamp = looked.entry.as_ref().map(|entry| &entry.stamp);
            stamp.is_some_and(|stamp| stamp.size <= SHOWN_BYTES)
        };
        let now = match looked.kind() {
            None => None,
            Some(Kind::File) if small(looked) => {
                std::fs::read(path).ok().or_else(|| Some(Vec::new()))
            }
            Some(_) => Some(Vec::new()),
        };
        let kept = |state: &State| match state {
            State::Absent => None,
            State::Regular { hash, size, .. } if *size <= SHOWN_BYTES => {
                Some(self.store().get(hash).ok().flatten())
            }
            _ => Some(None),
        };
        let comparable = looked.kind().is_none_or(|kind| kind == Kind::File) && small(looked);
        Conflict {
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

    /// The files among the tasks, as people are told.
    fn describe(&self, tasks: &[Task]) -> Vec<UndoneFile> {
        let told = tasks
            .iter()
            .filter(|task| !(task.now.is_directory() && task.to.is_directory()));
        let mut shown = 0;
        told.map(|task| {
            let mut patch = Patch::default();
            let is_small = |state: &State| match state {
                State::Regular { size, .. } => *size <= SHOWN_BYTES,
                _ => true,
            };
            if shown < SHOWN_FILES && is_small(&task.now) && is_small(&task.to) {
                shown += 1;
                let old = task.now.hash().and_then(|_| std::fs::read(&task.path).ok());
                let new = task.to.hash();
                let new = new.and_then(|hash| self.store().get(hash).ok().flatten());
                patch = patch_of(&old.unwrap_or_default(), &new.unwrap_or_default());
            }
            UndoneFile {
                given: task.path.clone(),
                real: task.path.clone(),
                change: ChangeKind::of(task.now != State::Absent, task.to != State::Absent),
                patch,
            }
        })
        .collect()
    }
}

/// Names of one file, so that they can be that again.
fn name_twins(tasks: &mut [Task]) {
    let mut first: HashMap<(u64, u64), PathBuf> = HashMap::new();
    for task in tasks {
        if let (State::Regular { twin, .. }, Some(seen)) = (&mut task.now, &task.seen)
            && seen.links > 1
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

/// What units, newest first, amount to for each path. They must fit together.
fn compose<'u>(units: &[&'u Unit]) -> Result<BTreeMap<PathBuf, Wanted<'u>>, UndoError> {
    let mut all: BTreeMap<PathBuf, Wanted<'u>> = BTreeMap::new();
    for &unit in units {
        for (one, exact) in unit.all_paths() {
            let Some(later) = all.get_mut(&one.path) else {
                let wanted = Wanted {
                    unit: unit.id(),
                    expected: one.after,
                    target: one.before,
                    exact,
                };
                all.insert(one.path, wanted);
                continue;
            };
            if !is_same_content(&later.target, &one.after) {
                return Err(UndoError::Conflict(format!(
                    "{} was changed by someone else between {} and {}: what it was then cannot be \
                     restored without losing that change. Nothing was undone. Undo single calls \
                     instead, newest first.",
                    one.path.display(),
                    unit.id(),
                    later.unit
                )));
            }
            later.target = one.before;
            later.exact &= exact;
        }
    }
    Ok(all)
}

fn is_same_content(one: &State, other: &State) -> bool {
    match (one, other) {
        (State::Regular { hash: one, .. }, State::Regular { hash: other, .. }) => one == other,
        (State::Link { target: one, .. }, State::Link { target: other, .. }) => one == other,
        (State::Opaque { seal: one, .. }, State::Opaque { seal: other, .. }) => {
            is_same_file(one, other)
        }
        _ => one == other || (one.is_directory() && other.is_directory()),
    }
}

pub(super) fn is_same_content_and_extended(one: &State, other: &State) -> bool {
    let extended = |state: &State| state.attributes().map(|attributes| attributes.extended);
    is_same_content(one, other) && extended(one) == extended(other)
}

fn is_same_file(one: &Seal, other: &Seal) -> bool {
    (one.device, one.inode, one.size, one.mtime)
        == (other.device, other.inode, other.size, other.mtime)
}

fn is_same_but_time(now: &State, to: &State) -> bool {
    let timeless = |state: &State| {
        let mut state = state.clone();
        match &mut state {
            State::Regular { mtime, twin, .. } => (*mtime, *twin) = (0, None),
            State::Link { mtime, .. } | State::Directory { mtime, .. } => *mtime = 0,
            _ => {}
        }
        state
    };
    timeless(now) == timeless(to)
}

/// The target, with those attributes that the command did not change as they are now; `None` if
/// someone else changed one that it did change.
fn with_present_attributes(now: &State, wanted: &Wanted<'_>) -> Option<State> {
    let mut to = wanted.target.clone();
    let expected = &wanted.expected;
    match (&mut to, expected, now) {
        (
            State::Regular {
                mode,
                uid,
                gid,
                extended,
                ..
            },
            State::Regular {
                mode: mode_then,
                uid: uid_then,
                gid: gid_then,
                extended: extended_then,
                ..
            },
            State::Regular {
                mode: mode_now,
                uid: uid_now,
                gid: gid_now,
                extended: extended_now,
                ..
            },
        ) => {
            settle(mode, mode_then, mode_now, wanted.exact)?;
            settle(uid, uid_then, uid_now, wanted.exact)?;
            settle(gid, gid_then, gid_now, wanted.exact)?;
            settle(extended, extended_then, extended_now, wanted.exact)?;
        }
        (
            State::Directory { mode, uid, gid, .. },
            State::Directory {
                mode: mode_then,
                uid: uid_then,
                gid: gid_then,
                ..
            },
            State::Directory {
                mode: mode_now,
                uid: uid_now,
                gid: gid_now,
                ..
            },
        ) => {
            settle(mode, mode_then, mode_now, wanted.exact)?;
            settle(uid, uid_then, uid_now, wanted.exact)?;
            settle(gid, gid_then, gid_now, wanted.exact)?;
        }
        _ => {}
    }
    Some(to)
}

/// `None`: the command changed it, and so did someone else.
fn settle<T: Clone + PartialEq>(to: &mut T, then: &T, now: &T, exact: bool) -> Option<()> {
    if !exact || to == then {
        *to = now.clone();
    } else if now != then && now != to {
        return None;
    }
    Some(())
}

fn describe_conflicts(conflicts: &[Conflict]) -> String {
    let told = &conflicts[..conflicts.len().min(TOLD)];
    let mut text = Conflict::describe(told);
    if conflicts.len() > TOLD {
        let more = conflicts.len() - TOLD;
        text.insert_str(0, &format!("{more} more than these were changed, too.\n"));
    }
    text
}

fn describe_left(left: &[(PathBuf, String)]) -> String {
    let told: Vec<String> = left
        .iter()
        .take(TOLD)
        .map(|(path, why)| format!("{}: {why}", path.display()))
        .collect();
    let more = match left.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{}{more}", told.join("; "))
}
