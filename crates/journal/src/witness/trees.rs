//! The touched part of the two trees: the entries of each path before and after a command.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use haft_witness::FileId;
use rustix::fs::CWD;

use super::log_summary::LogSummary;
use crate::snapshot::{ScannedKind, TreeEntry};
use crate::undo::{RecordState, digest_below};

/// A new directory with more entries than this is recorded as a whole.
const GROWN: usize = 500;

/// An entry that exists after the command.
#[derive(Debug)]
pub(super) struct PresentEntry {
    pub(super) id: FileId,
    pub(super) entry: TreeEntry,
    /// The state of a new directory that is recorded as a whole.
    pub(super) grown: Option<RecordState>,
}

/// The entries of all touched paths. `None`: no entry.
#[derive(Debug, Default)]
pub(super) struct TouchedTrees {
    pub(super) before: BTreeMap<PathBuf, Option<FileId>>,
    pub(super) after: BTreeMap<PathBuf, Option<PresentEntry>>,
    /// The paths of each object.
    pub(super) before_paths: HashMap<FileId, Vec<PathBuf>>,
    pub(super) after_paths: HashMap<FileId, Vec<PathBuf>>,
    /// Paths that could not be read.
    pub(super) unread: Vec<(PathBuf, String)>,
}

/// The entry of a path in one of the trees.
pub(super) enum TreeSide<T> {
    Known(T),
    /// The directory of the path was moved with its contents.
    Carried,
    Absent,
}

impl TouchedTrees {
    /// Reads the entries that exist now. Of directories that the command created, all entries
    /// belong to the tree.
    pub(super) fn read(log: &LogSummary, is_single: &dyn Fn(&Path) -> bool) -> Self {
        let mut trees = Self::default();
        for slot in &log.slots {
            trees
                .before
                .entry(slot.initial.clone())
                .or_insert(slot.first);
            let Some(last) = &slot.last else { continue };
            if !trees.after.contains_key(last) {
                trees.observe(last, log, is_single);
            }
        }
        for (path, id) in &trees.before {
            if let Some(id) = id {
                trees
                    .before_paths
                    .entry(*id)
                    .or_default()
                    .push(path.clone());
            }
        }
        for (path, entry) in &trees.after {
            if let Some(entry) = entry {
                let paths = trees.after_paths.entry(entry.id).or_default();
                paths.push(path.clone());
            }
        }
        trees
    }

    fn observe(&mut self, path: &Path, log: &LogSummary, is_single: &dyn Fn(&Path) -> bool) {
        let entry = match read_entry(path) {
            Ok(entry) => entry,
            Err(error) => {
                self.unread.push((path.to_path_buf(), error.to_string()));
                return;
            }
        };
        let is_new = entry.as_ref().is_some_and(|entry| {
            entry.entry.kind() == ScannedKind::Directory && !log.objects.contains_key(&entry.id)
        });
        self.after.insert(path.to_path_buf(), entry);
        if !is_new {
            return;
        }
        let mut below = BTreeMap::new();
        let mut is_plain = true;
        let mut pending = vec![path.to_path_buf()];
        while let Some(directory) = pending.pop() {
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) => {
                    is_plain = false;
                    self.unread.push((directory, error.to_string()));
                    continue;
                }
            };
            for found in entries.flatten() {
                let path = found.path();
                let Ok(Some(entry)) = read_entry(&path) else {
                    continue;
                };
                let is_known = log.objects.contains_key(&entry.id);
                is_plain &= !is_known && !is_single(&path) && !self.before.contains_key(&path);
                if !is_known && entry.entry.kind() == ScannedKind::Directory {
                    pending.push(path.clone());
                }
                below.insert(path, Some(entry));
            }
        }
        let entries = below.len() as u64;
        if is_plain
            && below.len() > GROWN
            && let Some(digest) = digest_below(path, entries)
            && let Some(Some(top)) = self.after.get_mut(path)
        {
            top.grown = Some(RecordState::Grown { entries, digest });
            return;
        }
        self.after.extend(below);
    }

    pub(super) fn before(&self, path: &Path) -> TreeSide<FileId> {
        match self.before.get(path) {
            Some(Some(id)) => TreeSide::Known(*id),
            Some(None) => TreeSide::Absent,
            None => {
                let above = path.ancestors().skip(1).find_map(|up| self.before.get(up));
                let is_moved = |id: &FileId| self.after_paths.contains_key(id);
                side(above.is_some_and(|id| id.as_ref().is_some_and(is_moved)))
            }
        }
    }

    pub(super) fn after(&self, path: &Path) -> TreeSide<&PresentEntry> {
        match self.after.get(path) {
            Some(Some(entry)) => TreeSide::Known(entry),
            Some(None) => TreeSide::Absent,
            None => {
                let above = path.ancestors().skip(1).find_map(|up| self.after.get(up));
                let is_moved = |entry: &PresentEntry| self.before_paths.contains_key(&entry.id);
                side(above.is_some_and(|entry| entry.as_ref().is_some_and(is_moved)))
            }
        }
    }

    /// Returns whether a directory above the path is another one than before.
    pub(super) fn is_below_change(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|above| {
            let before = self.before.get(above).copied().flatten();
            let after = self.after.get(above);
            let after = after.and_then(|entry| entry.as_ref().map(|entry| entry.id));
            before != after
        })
    }

    /// Returns all touched paths in order.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let all = self.before.keys().chain(self.after.keys());
        let all: std::collections::BTreeSet<&PathBuf> = all.collect();
        all.into_iter().cloned().collect()
    }
}

fn side<T>(is_moved: bool) -> TreeSide<T> {
    match is_moved {
        true => TreeSide::Carried,
        false => TreeSide::Absent,
    }
}

fn read_entry(path: &Path) -> io::Result<Option<PresentEntry>> {
    let Some(entry) = TreeEntry::from_path(path)? else {
        return Ok(None);
    };
    let id = FileId::from_entry(CWD, path.as_os_str());
    Ok(id.map(|id| PresentEntry {
        id,
        entry,
        grown: None,
    }))
}
