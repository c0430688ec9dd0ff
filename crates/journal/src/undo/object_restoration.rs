//! Restoring trees by the identities of their entries: moved directories, hard links, and names
//! that other entries took.
//!
//! 1. Deepest first, entries that must leave their path are moved to a staging directory, if another
//!    path needs them, or to the folder of the undo.
//! 2. Parents first, each free path gets its entry: staged, stored, a hard link, or a new one.
//! 3. Files and directories get their content and their metadata. A file with several names is
//!    written in place, so that all of them share the content.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use haft_witness::FileId;

use super::record::{RecordState, decode_extended};
use super::restore::{RestoreTask, SYNCED_SINGLY, failed, is_seen};
use super::store::UndoStore;
use crate::commit::{FileAttributes, NewFile, ReplacePolicy, TargetDirectory};
use crate::error::JournalError;
use crate::stamp::Stamp;

pub(super) struct ObjectRestoration<'a> {
    pub(super) store: &'a UndoStore,
    /// The name of temporary files and directories.
    pub(super) temporary: &'a str,
    /// The places of entries that an interrupted restoration has staged.
    pub(super) staged: HashMap<FileId, PathBuf>,
}

/// The present place of the entry for a path.
#[derive(Debug, Clone)]
enum EntrySource {
    /// It is outside the tree, and moves with its last use.
    Outside(PathBuf),
    /// It is in the tree; only a hard link is possible.
    InPlace(PathBuf),
}

struct RestorationState<'t> {
    sources: HashMap<FileId, EntrySource>,
    /// The number of paths that still need each object.
    uses: HashMap<FileId, usize>,
    /// The states of objects in the present tree.
    present: HashMap<FileId, &'t RecordState>,
    /// The staging directories by device.
    staging: BTreeMap<u64, PathBuf>,
    /// Paths with a file that was created with its content.
    complete: HashSet<&'t Path>,
    left: Vec<(PathBuf, String)>,
}

impl ObjectRestoration<'_> {
    /// Performs all tasks, or stops at the first failure. Returns the paths that were not restored,
    /// with the reasons.
    pub(super) fn run(
        mut self,
        tasks: &[RestoreTask],
    ) -> Result<Vec<(PathBuf, String)>, JournalError> {
        let mut sorted: Vec<&RestoreTask> = tasks.iter().collect();
        sorted.sort_by(|a, b| a.path.cmp(&b.path));
        let sync = tasks.len() <= SYNCED_SINGLY;
        let times = stamps_above(&sorted);
        for task in &sorted {
            open_directory(task)?;
        }
        let stays = staying(tasks);
        let stays: HashSet<&Path> = (tasks.iter().zip(stays))
            .filter_map(|(task, stays)| stays.then_some(task.path.as_path()))
            .collect();
        let (staying, leaving): (Vec<&RestoreTask>, Vec<&RestoreTask>) =
            (sorted.iter().copied()).partition(|task| stays.contains(task.path.as_path()));
        let mut state = RestorationState::new(&staying, &leaving);
        for (id, path) in std::mem::take(&mut self.staged) {
            if let Some(parent) = path.parent()
                && let Ok(found) = fs::symlink_metadata(parent)
            {
                let device = Stamp::from_metadata(&found).device;
                state.staging.insert(device, parent.to_path_buf());
            }
            state.sources.insert(id, EntrySource::Outside(path));
        }
        for task in leaving.iter().rev().filter(|task| task.now.is_present()) {
            self.remove(task, &sorted, &mut state)?;
        }
        for task in leaving.iter().filter(|task| task.to.is_present()) {
            self.place(task, &mut state, sync)?;
        }
        for task in &sorted {
            self.restore_file(task, &mut state, sync)?;
        }
        for task in sorted.iter().rev() {
            restore_directory(task, &mut state)?;
        }
        for staging in state.staging.values() {
            match fs::remove_dir(staging) {
                // Another process added a file, or an interrupted restoration left more than this
                // one needs.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    let why = "it has other entries now, so it stays";
                    state.left.push((staging.clone(), why.to_owned()));
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(JournalError::io("remove", staging, error));
                }
                _ => {}
            }
        }
        for (path, stamp) in times {
            // The directory itself is not part of the restoration, so an error is ignored. Another
            // entry may have its path now.
            if let Ok(directory) = TargetDirectory::open(&path)
                && let Ok(Some(now)) = directory.stamp()
                && now.same_object(&stamp)
            {
                let _ = directory.set_mtime(super::record::nanoseconds(stamp.mtime_ns));
            }
        }
        if !sync {
            self.store.sync_all();
        }
        Ok(state.left)
    }

    fn remove<'t>(
        &self,
        task: &'t RestoreTask,
        sorted: &[&RestoreTask],
        state: &mut RestorationState<'t>,
    ) -> Result<(), JournalError> {
        let io = |error| failed(task, error);
        let at = TargetDirectory::open(&task.path).map_err(io)?;
        if !is_seen(task, &at).map_err(io)? {
            return Err(JournalError::Drifted {
                path: task.path.clone(),
            });
        }
        if let Some(id) = task.now_id
            && state.uses.contains_key(&id)
        {
            if state.sources.contains_key(&id) {
                return at.remove_entry().map_err(io);
            }
            let aside = self.staging(task, sorted, state)?.join(object_name(id));
            move_entry(&at, &aside).map_err(io)?;
            state.sources.insert(id, EntrySource::Outside(aside));
            return Ok(());
        }
        match &task.now {
            RecordState::Moved { to, .. } if to.starts_with(self.store.kept_folder()) => {
                if to.symlink_metadata().is_ok() {
                    return at.remove_entry().map_err(io); // another name of the same file
                }
                make_private_parents(to).map_err(io)?;
                move_entry(&at, to).map_err(io)
            }
            RecordState::Directory { .. } => match at.remove_empty() {
                Ok(true) => Ok(()),
                Ok(false) if task.to.is_present() => Err(JournalError::Drifted {
                    path: task.path.clone(),
                }),
                Ok(false) => {
                    let why = "it has other entries now, so it stays";
                    state.left.push((task.path.clone(), why.to_owned()));
                    Ok(())
                }
                Err(error) => Err(io(error)),
            },
            RecordState::Grown { .. } => at.remove_all(self.temporary.as_ref()).map_err(io),
            _ => at.remove_entry().map_err(io),
        }
    }

    /// Returns a directory on the file system of the task that no task moves.
    fn staging(
        &self,
        task: &RestoreTask,
        sorted: &[&RestoreTask],
        state: &mut RestorationState<'_>,
    ) -> Result<PathBuf, JournalError> {
        let device = |path: &Path| {
            let found = fs::symlink_metadata(path).ok();
            found.map(|found| Stamp::from_metadata(&found).device)
        };
        let parent = task.path.parent().unwrap_or(Path::new("/"));
        let own = device(parent).unwrap_or_default();
        if let Some(known) = state.staging.get(&own) {
            return Ok(known.clone());
        }
        let parents = sorted.iter().filter_map(|task| task.path.parent());
        let mut parents: Vec<&Path> = parents.filter(|path| device(path) == Some(own)).collect();
        parents.sort_by_key(|path| path.as_os_str().len());
        let staging = parents.first().unwrap_or(&parent).join(self.temporary);
        let mut builder = fs::DirBuilder::new();
        match builder.mode(0o700).create(&staging) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(task, error));
            }
            _ => {}
        }
        state.staging.insert(own, staging.clone());
        Ok(staging)
    }

    fn place<'t>(
        &self,
        task: &'t RestoreTask,
        state: &mut RestorationState<'t>,
        sync: bool,
    ) -> Result<(), JournalError> {
        let io = |error| failed(task, error);
        let at = TargetDirectory::open(&task.path).map_err(io)?;
        let known = task.to_id.and_then(|id| state.sources.get(&id).cloned());
        let kept = task.to.kept_below(self.store.kept_folder());
        let kept = kept.filter(|path| path.symlink_metadata().is_ok());
        let source = known.or_else(|| Some(EntrySource::Outside(kept?.to_path_buf())));
        let uses = task.to_id.and_then(|id| state.uses.get_mut(&id));
        let is_last = uses.is_none_or(|uses| {
            *uses = uses.saturating_sub(1);
            *uses == 0
        });
        match source {
            Some(EntrySource::InPlace(path)) => {
                let there = TargetDirectory::open(&path).map_err(io)?;
                there.link_to(&at).map_err(io)?;
                return Ok(());
            }
            Some(EntrySource::Outside(path)) => {
                let there = TargetDirectory::open(&path).map_err(io)?;
                match is_last {
                    true => there.move_to(&at, ReplacePolicy::MustNotExist),
                    false => there.link_to(&at),
                }
                .map_err(io)?;
                if let (Some(id), true) = (task.to_id, is_last) {
                    let source = EntrySource::InPlace(task.path.clone());
                    state.sources.insert(id, source);
                } else if let Some(id) = task.to_id {
                    state.sources.insert(id, EntrySource::Outside(path));
                }
                return Ok(());
            }
            None => {}
        }
        self.create(task, &at, state, sync)?;
        if let Some(id) = task.to_id {
            let source = EntrySource::InPlace(task.path.clone());
            state.sources.insert(id, source);
        }
        Ok(())
    }

    fn create<'t>(
        &self,
        task: &'t RestoreTask,
        at: &TargetDirectory,
        state: &mut RestorationState<'t>,
        sync: bool,
    ) -> Result<(), JournalError> {
        let io = |error| failed(task, error);
        match &task.to {
            RecordState::Directory { .. } => at.put_directory().map_err(io),
            RecordState::Link { target, .. } => {
                let place = ReplacePolicy::MustNotExist;
                let temporary = self.temporary_file();
                at.put_link(temporary.as_ref(), target, task.mtime, place)
                    .map_err(io)
            }
            RecordState::Pipe { mode, uid, gid, .. } => {
                let attributes = FileAttributes {
                    mode: *mode,
                    uid: *uid,
                    gid: *gid,
                    extended: Vec::new(),
                };
                at.put_pipe(&attributes, task.mtime).map_err(io)
            }
            RecordState::Regular { .. } => {
                self.put_content(task, at, ReplacePolicy::MustNotExist, sync)?;
                state.complete.insert(&task.path);
                Ok(())
            }
            _ => Err(self.store.damaged(&task.path)),
        }
    }

    /// Creates or replaces a file.
    fn put_content(
        &self,
        task: &RestoreTask,
        at: &TargetDirectory,
        place: ReplacePolicy,
        sync: bool,
    ) -> Result<(), JournalError> {
        let damaged = || self.store.damaged(&task.path);
        let hash = task.to.hash().ok_or_else(damaged)?;
        let attributes = task.to.attributes().ok_or_else(damaged)?;
        let blob = self.store.open_blob(hash)?.ok_or_else(damaged)?;
        let new = NewFile {
            from: &blob,
            hash,
            attributes: &attributes,
            mtime: task.mtime,
            sync,
        };
        let links = at.stamp().map_err(|error| failed(task, error))?;
        let is_shared = links.is_some_and(|stamp| stamp.links > 1);
        let put = match place == ReplacePolicy::MayReplace && is_shared {
            true => at.overwrite(&new),
            false => at.put_file(self.temporary_file().as_ref(), &new, place),
        };
        match put.map_err(|error| failed(task, error))? {
            true => Ok(()),
            false => Err(damaged()),
        }
    }

    /// The name of temporary files. A directory may use the other name.
    fn temporary_file(&self) -> String {
        temporary_file(self.temporary)
    }

    /// Sets the content and the metadata of a file that existed before.
    fn restore_file<'t>(
        &self,
        task: &'t RestoreTask,
        state: &mut RestorationState<'t>,
        sync: bool,
    ) -> Result<(), JournalError> {
        let io = |error| failed(task, error);
        if state.complete.contains(task.path.as_path()) {
            return Ok(());
        }
        match &task.to {
            RecordState::Regular { hash, .. } => {
                let at = TargetDirectory::open(&task.path).map_err(io)?;
                let known = task.to_id.and_then(|id| state.present.get(&id));
                let known = known.and_then(|state| state.hash());
                let is_same = match known {
                    Some(known) => known == hash,
                    None => {
                        let found = super::observed_path::hash_of(&task.path).map_err(io)?;
                        found.as_deref() == Some(hash)
                    }
                };
                if !is_same {
                    self.put_content(task, &at, ReplacePolicy::MayReplace, sync)?;
                } else if let Some(attributes) = task.to.attributes() {
                    at.restore_attributes(&attributes, task.mtime).map_err(io)?;
                }
                if let Some(id) = task.to_id {
                    state.present.insert(id, &task.to);
                }
                Ok(())
            }
            RecordState::Pipe { mode, uid, gid, .. } => {
                let at = TargetDirectory::open(&task.path).map_err(io)?;
                at.set_owner(*uid, *gid).map_err(io)?;
                at.set_mode(*mode).map_err(io)
            }
            RecordState::Opaque { seal, .. } if task.now.is_present() => {
                let at = TargetDirectory::open(&task.path).map_err(io)?;
                at.set_mode(seal.mode).map_err(io)
            }
            _ => Ok(()),
        }
    }
}

impl<'t> RestorationState<'t> {
    fn new(staying: &[&'t RestoreTask], leaving: &[&'t RestoreTask]) -> Self {
        let mut sources = HashMap::new();
        for task in staying {
            if let Some(id) = task.now_id {
                sources.insert(id, EntrySource::InPlace(task.path.clone()));
            }
        }
        let mut uses: HashMap<FileId, usize> = HashMap::new();
        for task in leaving.iter().filter(|task| task.to.is_present()) {
            if let Some(id) = task.to_id {
                *uses.entry(id).or_default() += 1;
            }
        }
        let all = staying.iter().chain(leaving);
        let present = all.filter(|task| task.now.is_present());
        let present = present.filter_map(|task| Some((task.now_id?, &task.now)));
        Self {
            sources,
            uses,
            present: present.collect(),
            staging: BTreeMap::new(),
            complete: HashSet::new(),
            left: Vec::new(),
        }
    }
}

/// Returns for each task whether its entry keeps its path. A directory whose identity no other path
/// has may be any directory. Nothing stays below a directory that leaves.
pub(super) fn staying(tasks: &[RestoreTask]) -> Vec<bool> {
    let ids = |state: fn(&RestoreTask) -> (&RecordState, Option<FileId>)| -> HashSet<FileId> {
        let present = tasks.iter().map(state);
        let present = present.filter(|(state, _)| state.is_present());
        present.filter_map(|(_, id)| id).collect()
    };
    let (now, to) = (
        ids(|task| (&task.now, task.now_id)),
        ids(|task| (&task.to, task.to_id)),
    );
    let is_needed =
        |id: Option<FileId>, ids: &HashSet<FileId>| id.is_some_and(|id| ids.contains(&id));
    let is_plain = |state: &RecordState| matches!(state, RecordState::Directory { .. });
    let keeps_entry = |task: &RestoreTask| {
        let is_same = task.now_id.is_some() && task.now_id == task.to_id;
        let is_any_directory = is_plain(&task.now)
            && is_plain(&task.to)
            && !is_needed(task.now_id, &to)
            && !is_needed(task.to_id, &now);
        task.now.is_present() && task.to.is_present() && (is_same || is_any_directory)
    };
    let keeps: Vec<bool> = tasks.iter().map(keeps_entry).collect();
    let leaving = tasks.iter().zip(&keeps).filter(|(_, keeps)| !**keeps);
    let leaving: HashSet<&Path> = leaving.map(|(task, _)| task.path.as_path()).collect();
    let stays = |(task, keeps): (&RestoreTask, &bool)| {
        let mut above = task.path.ancestors().skip(1);
        *keeps && !above.any(|above| leaving.contains(above))
    };
    tasks.iter().zip(&keeps).map(stays).collect()
}

/// The name of temporary files next to a staging directory.
pub(super) fn temporary_file(temporary: &str) -> String {
    temporary.replacen(".tmp", "-file.tmp", 1)
}

/// The name of a staged or stored entry.
pub(super) fn object_name(id: FileId) -> String {
    let (seconds, rest) = id.born.unwrap_or_default();
    format!("{:x}-{:x}-{seconds:x}-{rest:x}", id.device, id.inode)
}

fn move_entry(at: &TargetDirectory, to: &Path) -> io::Result<()> {
    let to = TargetDirectory::open(to)?;
    at.move_to(&to, ReplacePolicy::MustNotExist)
}

fn make_private_parents(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path.parent().unwrap_or(Path::new("/")))
}

/// Lets the owner of a directory change its entries. The directory gets its mode at the end.
fn open_directory(task: &RestoreTask) -> Result<(), JournalError> {
    const OPEN: u32 = 0o700;
    let (RecordState::Directory { .. }, Some(seen)) = (&task.now, &task.seen) else {
        return Ok(());
    };
    if seen.mode & OPEN == OPEN {
        return Ok(());
    }
    TargetDirectory::open(&task.path)
        .and_then(|at| at.set_mode(seen.mode | OPEN))
        .map_err(|error| failed(task, error))
}

fn restore_directory(
    task: &RestoreTask,
    state: &mut RestorationState<'_>,
) -> Result<(), JournalError> {
    let RecordState::Directory {
        mode,
        uid,
        gid,
        extended,
        ..
    } = &task.to
    else {
        return Ok(());
    };
    let attributes = FileAttributes {
        mode: *mode,
        uid: *uid,
        gid: *gid,
        extended: decode_extended(extended),
    };
    let io = |error| failed(task, error);
    let at = TargetDirectory::open(&task.path).map_err(io)?;
    at.restore_attributes(&attributes, None).map_err(io)?;
    if let Some(mtime) = task.mtime
        && let Err(error) = at.set_mtime(mtime)
    {
        let why = format!("its time could not be set: {error}");
        state.left.push((task.path.clone(), why));
    }
    Ok(())
}

/// Returns the stamps of directories whose times change only because entries in them change.
fn stamps_above(sorted: &[&RestoreTask]) -> BTreeMap<PathBuf, Stamp> {
    let mut above = BTreeMap::new();
    for parent in sorted.iter().filter_map(|task| task.path.parent()) {
        if !above.contains_key(parent)
            && let Ok(Some(stamp)) = TargetDirectory::open(parent).and_then(|one| one.stamp())
        {
            above.insert(parent.to_path_buf(), stamp);
        }
    }
    for task in sorted {
        above.remove(&task.path);
    }
    above
}
