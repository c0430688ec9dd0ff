//! The directories that a command has created at names that led to no directory before.
//!
//! A program may trust a directory by its path. So a directory is new only if the command created it at
//! a name that led to no directory when the command began, and only until it is moved to another name
//! that did. Directories are compared by identity, and the birth time must be that of the creation: otherwise
//! another command could put an existing directory in place of the created one.

use std::{
    cell::RefCell,
    collections::HashSet,
    ffi::{OsStr, OsString},
    os::fd::OwnedFd,
    time::{Duration, SystemTime},
};

use haft_witness::FileId;
use rustix::fs::{FileType, Mode, OFlags, openat};

use super::{
    caller::real,
    perform::{CallMediation, NameLocation, open_handle, root},
};
use crate::NewDirectory;

/// The maximum lag of the clock of file systems.
const CLOCK_LAG: Duration = Duration::from_millis(50);

/// The maximum number of directories above a path. Paths have at most 4,096 bytes.
const MAX_DEPTH: usize = 2_048;

/// The directories that a command has created.
#[derive(Default)]
pub(super) struct NewDirectories(RefCell<DirectoryRecord>);

#[derive(Default)]
struct DirectoryRecord {
    /// Directories that the command created at free names.
    new: HashSet<FileId>,
    /// Directories that the command created at, or moved to, names that led to a directory before.
    replacing: HashSet<FileId>,
    /// Names that led to a directory before: the directory that contains the name, and the name
    /// without case.
    taken: HashSet<(FileId, String)>,
    /// The directories above files with guarded names that were permitted, up to the root.
    holding: HashSet<FileId>,
}

impl DirectoryRecord {
    /// Returns whether this name led to a directory before the command.
    fn is_taken(&self, place: &NameLocation) -> bool {
        slot(place).is_none_or(|slot| self.taken.contains(&slot))
    }
}

/// Returns the identity of a name.
fn slot(place: &NameLocation) -> Option<(FileId, String)> {
    let directory = FileId::from_entry(&place.directory, OsStr::new(""))?;
    let name = place.name.to_string_lossy();
    Some((directory, name.to_uppercase().to_lowercase()))
}

impl NewDirectories {
    /// Records a directory that the command has just created. `started` is a time before that.
    pub(super) fn created(&self, place: &NameLocation, started: SystemTime) {
        let Some(id) = FileId::from_entry(&place.directory, &place.name) else {
            return;
        };
        let mut record = self.0.borrow_mut();
        match is_born_since(id, started) && !record.is_taken(place) {
            true => record.new.insert(id),
            false => record.replacing.insert(id),
        };
    }

    /// Records that an entry is no longer at its name. `id` is its identity if it is a directory, and
    /// `kind` its kind.
    pub(super) fn removed(&self, place: &NameLocation, kind: FileType, id: Option<FileId>) {
        if !self.is_old(kind, id) {
            return;
        }
        let mut record = self.0.borrow_mut();
        if let Some(slot) = slot(place)
            && !record.new.contains(&slot.0)
        {
            record.taken.insert(slot);
        }
    }

    /// Forgets a directory that no longer exists.
    pub(super) fn remove_record(&self, id: Option<FileId>) {
        if let Some(id) = id {
            let mut record = self.0.borrow_mut();
            record.new.remove(&id);
            record.replacing.remove(&id);
        }
    }

    /// Returns whether this is a directory, or a symlink that may lead to one, that the command did not
    /// create at a free name.
    pub(super) fn is_old(&self, kind: FileType, id: Option<FileId>) -> bool {
        let is_new = || id.is_some_and(|id| self.0.borrow().new.contains(&id));
        matches!(kind, FileType::Directory | FileType::Symlink) && !is_new()
    }

    /// Returns whether a directory with files that have guarded names would be moved to a name that led
    /// to a directory before, or below that name. `replaces`: it leads to one now.
    pub(super) fn would_replace(&self, id: FileId, target: &NameLocation, replaces: bool) -> bool {
        let holds = self.0.borrow().holding.contains(&id);
        holds && (replaces || self.0.borrow().is_taken(target) || self.is_in_replacing(target))
    }

    /// Records a directory that was moved to this name.
    pub(super) fn moved(&self, id: FileId, target: &NameLocation, replaces: bool) {
        let mut record = self.0.borrow_mut();
        if replaces || record.is_taken(target) {
            record.new.remove(&id);
            record.replacing.insert(id);
        }
        if record.holding.contains(&id) {
            drop(record);
            self.holds_guarded(&target.directory);
        }
    }

    /// Records that a file with a guarded name was permitted in this directory.
    pub(super) fn holds_guarded(&self, directory: &OwnedFd) {
        let above = ids_above(directory).unwrap_or_default();
        let ids = above.into_iter().map(|(id, _)| id);
        self.0.borrow_mut().holding.extend(ids);
    }

    /// Returns whether one of the directories above a name replaces an older directory.
    fn is_in_replacing(&self, place: &NameLocation) -> bool {
        let record = self.0.borrow();
        !record.replacing.is_empty()
            && ids_above(&place.directory)
                .is_none_or(|ids| ids.iter().any(|(id, _)| record.replacing.contains(id)))
    }

    /// Returns the new directories above an entry of this directory, the outermost first. Empty if the
    /// directory itself is not new.
    pub(super) fn above(&self, directory: &OwnedFd) -> Vec<NewDirectory> {
        let record = self.0.borrow();
        if record.new.is_empty() {
            return Vec::new();
        }
        let own = FileId::from_entry(directory, OsStr::new(""));
        if own.is_none_or(|own| !record.new.contains(&own)) {
            return Vec::new();
        }
        let Some(ids) = ids_above(directory) else {
            return Vec::new();
        };
        if ids.iter().any(|(id, _)| record.replacing.contains(id)) {
            return Vec::new();
        }
        let new = ids.iter().take_while(|(id, _)| record.new.contains(id));
        let found: Option<Vec<NewDirectory>> = new
            .map(|(id, handle)| {
                let path = real(handle).ok()?;
                Some(NewDirectory { path, id: *id })
            })
            .collect();
        let mut found = found.unwrap_or_default();
        found.reverse();
        found
    }
}

/// Returns whether a directory was created since a time. Without a birth time that is unknown.
fn is_born_since(id: FileId, started: SystemTime) -> bool {
    let started = started.checked_sub(CLOCK_LAG);
    let started = started.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let born = id.born.and_then(|(seconds, nanoseconds)| {
        Some(Duration::new(u64::try_from(seconds).ok()?, nanoseconds))
    });
    matches!((started, born), (Some(started), Some(born)) if born >= started)
}

/// Returns this directory and those above it, by their handles: a path could lead to others by now.
fn ids_above(directory: &OwnedFd) -> Option<Vec<(FileId, OwnedFd)>> {
    let mut found: Vec<(FileId, OwnedFd)> = Vec::new();
    let mut handle = directory.try_clone().ok()?;
    for _ in 0..MAX_DEPTH {
        let id = FileId::from_entry(&handle, OsStr::new(""))?;
        // The directory above the root is the root.
        if found.last().is_some_and(|(last, _)| *last == id) {
            return Some(found);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = openat(&handle, "..", flags, Mode::empty()).ok()?;
        found.push((id, std::mem::replace(&mut handle, above)));
    }
    None
}

impl CallMediation<'_> {
    /// Returns the new directories above an open file, by its path. Empty if the path leads to another
    /// file by now.
    pub(super) fn new_directories_above(
        &self,
        file: &OwnedFd,
        path: &std::path::Path,
    ) -> Vec<NewDirectory> {
        let above = path
            .parent()
            .zip(path.file_name())
            .and_then(|(above, name)| {
                let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
                let directory = open_handle(&root().ok()?, above.as_os_str(), flags).ok()?;
                let there = FileId::from_entry(&directory, name)?;
                (FileId::from_entry(file, OsStr::new(""))? == there).then_some(directory)
            });
        let above = above.map(|directory| self.mediator.new_directories.above(&directory));
        above.unwrap_or_default()
    }
}

/// Returns whether this is a hook of a repository, by its path.
pub(super) fn is_hook(path: &std::path::Path) -> bool {
    let mut names = path.iter().map(OsString::from);
    let mut is = |wanted: &str| names.any(|name| name.eq_ignore_ascii_case(wanted));
    is(".git") && is("hooks")
}
