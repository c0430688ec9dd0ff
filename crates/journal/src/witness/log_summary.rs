//! A witness log as slots and objects: the first occupant of each name, and the first state of each
//! file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_witness::{
    FileId, KeptWay, WitnessLog, WitnessedChange, WitnessedEntry, WitnessedKind, WitnessedXattr,
};
use rustix::fs::CWD;

use super::log_tree::{DirectoryIndex, LogTree};
use crate::open::is_behind_link;

/// A name in a directory that the command did not create.
#[derive(Debug)]
pub(super) struct LogSlot {
    /// The path before the command.
    pub(super) initial: PathBuf,
    /// The path after it; `None` if the directory was removed.
    pub(super) last: Option<PathBuf>,
    /// The entry before the command; `None` if the name was free.
    pub(super) first: Option<FileId>,
}

/// A file, directory or other entry that existed before the command.
#[derive(Debug)]
pub(super) struct LogObject {
    /// The first state.
    pub(super) entry: WitnessedEntry,
    /// The first extended attributes, if they were read.
    pub(super) xattrs: Option<Vec<WitnessedXattr>>,
    /// The name of the stored copy of the content, if any.
    pub(super) copy: Option<String>,
    /// The name of a stored hard link, if it lost a name.
    pub(super) link: Option<String>,
    /// Its content or metadata may have changed in place.
    pub(super) is_changed: bool,
    /// The reason why its content was not stored.
    pub(super) missing: Option<String>,
}

#[derive(Debug)]
pub(super) struct LogSummary {
    pub(super) slots: Vec<LogSlot>,
    pub(super) objects: HashMap<FileId, LogObject>,
    /// Paths of files that were changed through a new name; their old names are not known.
    pub(super) unnamed: Vec<PathBuf>,
}

#[derive(Default)]
struct SlotTable {
    all: Vec<(DirectoryIndex, OsString, Option<FileId>)>,
    index: HashMap<(DirectoryIndex, OsString), usize>,
}

impl LogSummary {
    /// Reads the lines in order, and compares the last one with the disk: after a crash its change
    /// may not have been carried out.
    pub(super) fn new(log: &WitnessLog) -> Self {
        let mut tree = LogTree::new();
        let mut slots = SlotTable::default();
        let mut objects: HashMap<FileId, LogObject> = HashMap::new();
        let mut unnamed = Vec::new();
        let last = log.changes.len().saturating_sub(1);
        for (at, change) in log.changes.iter().enumerate() {
            match change {
                WitnessedChange::Name { path, entry } => {
                    let path = path.as_path();
                    let id = entry.as_ref().map(|entry| entry.id);
                    slots.add(&mut tree, path, id);
                    let Some(entry) = entry else { continue };
                    objects
                        .entry(entry.id)
                        .or_insert_with(|| LogObject::new(entry))
                        .add_xattrs_of_directory(entry);
                    if entry.kind == WitnessedKind::Directory {
                        tree.identify(path, entry.id);
                    }
                }
                WitnessedChange::Object {
                    path,
                    other_path,
                    entry,
                    kept,
                    missing,
                } => {
                    let path = path.as_path();
                    let is_original = !other_path && slots.add(&mut tree, path, Some(entry.id));
                    let object = match objects.entry(entry.id) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => {
                            if !is_original {
                                unnamed.push(path.to_path_buf());
                            }
                            new.insert(LogObject::new(entry))
                        }
                    };
                    object.missing = object.missing.take().or_else(|| missing.clone());
                    match kept {
                        Some(kept) if kept.way == KeptWay::Link => {
                            object.link.get_or_insert_with(|| kept.name.clone());
                            continue;
                        }
                        Some(kept) => {
                            object.copy.get_or_insert_with(|| kept.name.clone());
                        }
                        None => {}
                    }
                    object.is_changed = true;
                    object.xattrs.get_or_insert_with(|| entry.xattrs.clone());
                }
                WitnessedChange::Moved {
                    from,
                    to,
                    id,
                    exchange,
                } => {
                    let (from, to) = (from.as_path(), to.as_path());
                    if at == last && !is_carried_out(from, to, *id, *exchange, &mut tree) {
                        continue;
                    }
                    match exchange {
                        true => tree.exchange(from, to),
                        false => tree.move_directory(from, to, *id),
                    }
                }
                WitnessedChange::Failed { .. } | WitnessedChange::End => {}
            }
        }
        Self {
            slots: slots.into_paths(&tree),
            objects,
            unnamed,
        }
    }
}

impl LogObject {
    fn new(entry: &WitnessedEntry) -> Self {
        Self {
            entry: entry.clone(),
            xattrs: None,
            copy: None,
            link: None,
            is_changed: false,
            missing: None,
        }
    }

    fn add_xattrs_of_directory(&mut self, entry: &WitnessedEntry) {
        if entry.kind == WitnessedKind::Directory && !entry.xattrs.is_empty() {
            self.xattrs.get_or_insert_with(|| entry.xattrs.clone());
        }
    }
}

impl SlotTable {
    /// Adds the first occupant of a name. Returns `false` if it is known already.
    fn add(&mut self, tree: &mut LogTree, path: &Path, first: Option<FileId>) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return true;
        };
        let key = (tree.locate(parent), name.to_owned());
        if let Entry::Vacant(new) = self.index.entry(key.clone()) {
            new.insert(self.all.len());
            self.all.push((key.0, key.1, first));
            return true;
        }
        false
    }

    fn into_paths(self, tree: &LogTree) -> Vec<LogSlot> {
        let mut last_paths: HashMap<DirectoryIndex, Option<PathBuf>> = HashMap::new();
        let slots = self.all.into_iter().map(|(directory, name, first)| {
            let last = last_paths
                .entry(directory)
                .or_insert_with(|| present_path(tree, directory));
            LogSlot {
                initial: tree.initial_path(directory).join(&name),
                last: last.as_ref().map(|last| last.join(&name)),
                first,
            }
        });
        slots.collect()
    }
}

/// Returns the path of a directory, if it still exists there.
fn present_path(tree: &LogTree, directory: DirectoryIndex) -> Option<PathBuf> {
    let path = tree.final_path(directory)?;
    let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let is_same = match tree.id(directory) {
        Some(id) => FileId::from_entry(CWD, path.as_os_str()) == Some(id),
        None => is_directory,
    };
    (is_directory && is_same && !is_behind_link(&path)).then_some(path)
}

/// Returns whether the move in the last line was carried out. Later changes that need no line may
/// have removed or moved a file, but a directory is at its first path only if it was not moved.
fn is_carried_out(from: &Path, to: &Path, id: FileId, exchange: bool, tree: &mut LogTree) -> bool {
    let is_at = |path: &Path, id: FileId| FileId::from_entry(CWD, path.as_os_str()) == Some(id);
    let (first, second) = (tree.locate(from), tree.locate(to));
    if exchange
        && tree.id(first) != Some(id)
        && let Some(directory) = tree.id(second)
    {
        return !is_at(to, directory);
    }
    !is_at(from, id)
}
