//! The current state of a tree: every entry of every directory that a walk would enter. It includes
//! entries that ignore files exclude, because a query's globs may include them again.
//!
//! Before each answer [`LiveTree::refresh`] brings the tree up to date. The kernel reports most
//! changes (`watch`). The changes it does not report, and how they are handled:
//!
//! - A file is written through another name outside the tree, or through a descriptor opened under
//!   a name that no longer exists: files have their own watches (`file_watches`), or are checked
//!   before each answer.
//! - A store through a memory map: the kernel does not report stores, nor `msync`. While there are
//!   few candidates (`checked_candidates` in `settings`), each is checked with `stat` before its
//!   cached content is used. This detects the first store into a page since the page was last written to
//!   disk. When the file is unmapped, everything is reported. Until then three kinds of stores are
//!   not detected: a later store into the same page, any store into a file that was ruled out, and
//!   any store into a text among very many candidates.
//! - Ignore files above the tree, and the exclude files of the repository and of the user: checked
//!   before each answer.
//! - A mount: the kernel reports it, and the tree is read again.
//! - More events than fit or than are applied one by one (`watch_overflow`), or more directories
//!   than may be watched: the tree is read again, once or before each answer. Reading it again
//!   takes a `stat` of every file, but reads no content.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use super::file_fingerprint::FileFingerprint;
use super::file_watches::FileWatches;
use super::load::{LoadedDirectory, LoadedEntry, LocalDevice, TreeLoader, TreeRefusal};
use super::outside_files::{OutsideFiles, UserExcludes};
use super::watch::{DrainedEvents, WatchEvent, WatchNumber, Watcher};
use crate::Exclusions;
use crate::handle::{Directory, EntryKind};
use crate::skip::{Skip, SkipLog};
use crate::walk::{
    IgnoreLevel, IgnoreRules, IgnoreVerdict, NameRules, is_telling, is_version_control,
};

pub(crate) type EntryNumber = u32;
pub(crate) type DirectoryNumber = u32;

/// The maximum number of changes to apply one by one; with more, the tree is read again.
const MAX_CHANGES: usize = 8000;

/// A name in a directory.
#[derive(Debug)]
pub(crate) struct LiveTreeEntry<T> {
    pub(crate) name: Box<OsStr>,
    pub(crate) parent: DirectoryNumber,
    pub(crate) kind: EntryKind,
    pub(crate) verdict: IgnoreVerdict,
    pub(crate) mark: FileFingerprint,
    /// The number of the directory, if the entry is a directory that was entered.
    pub(crate) directory: Option<DirectoryNumber>,
    /// The watch of the file itself, if it has one.
    pub(crate) watch: Option<WatchNumber>,
    pub(crate) is_there: bool,
    /// Increases with each change, so that content read before the change is not used after it.
    pub(crate) version: u32,
    /// The cached knowledge about the file's content.
    pub(crate) data: T,
}

#[derive(Debug)]
pub(crate) struct TreeDirectory {
    parent: Option<DirectoryNumber>,
    /// The path relative to the root.
    pub(crate) path: PathBuf,
    pub(crate) mark: FileFingerprint,
    watch: Option<WatchNumber>,
    level: Option<Arc<IgnoreLevel>>,
    /// The problems met while reading it.
    pub(crate) skips: Vec<Skip>,
    /// Sorted by name.
    pub(crate) entries: Vec<EntryNumber>,
    is_there: bool,
}

/// A tree that is kept up to date. `T` is the cached knowledge about a file's content; it is
/// discarded when the file changes.
pub(crate) struct LiveTree<T> {
    pub(crate) root: PathBuf,
    pub(crate) current_dir: PathBuf,
    pub(crate) top: Arc<Directory>,
    rules: IgnoreRules,
    /// Problems with the ignore files above the root.
    pub(crate) skips: Vec<Skip>,
    pub(crate) entries: Vec<LiveTreeEntry<T>>,
    pub(crate) directories: Vec<TreeDirectory>,
    pub(crate) watcher: Option<Arc<Watcher>>,
    watched: HashMap<WatchNumber, Vec<DirectoryNumber>>,
    pub(crate) file_watches: FileWatches,
    guards: OutsideFiles,
    has_linked_rules: bool,
    excludes: UserExcludes,
    gone: usize,
    /// Files that the last refresh found moved to their names and not written since.
    pub(crate) moved_here: Vec<EntryNumber>,
    /// Increases when names are added or removed.
    pub(crate) structure: u64,
    pub(crate) threads: usize,
}

/// The events for one name since the last refresh.
#[derive(Clone, Copy, Debug, Default)]
struct NameChange {
    /// The name was added or removed.
    is_listing: bool,
    is_moved_here: bool,
    is_written: bool,
}

/// The cached knowledge about a file's content.
pub(crate) trait ContentKnowledge: Default + Sync {
    /// Returns whether any change since the file was read would show in its timestamps.
    fn is_settled(&self) -> bool;
}

/// The outcome of a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefreshOutcome {
    /// Entries keep their numbers.
    InPlace,
    /// All entries are new; the knowledge about unchanged files was transferred.
    ReadAgain,
}

impl<T: ContentKnowledge> LiveTree<T> {
    /// Reads the tree at a path without links.
    pub(crate) fn read(
        root: &Path,
        current_dir: &Path,
        threads: usize,
        watching: WatchMode,
        file_watches: FileWatches,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, TreeRefusal> {
        let top = Directory::open_real(root).map_err(|_| TreeRefusal::Failed)?;
        let watcher = match watching {
            WatchMode::Enabled => Some(Watcher::new().map_err(|_| TreeRefusal::Failed)?),
            WatchMode::RanOut => None,
        };
        let begun = SystemTime::now();
        let excludes = UserExcludes::find();
        let skips = SkipLog::default();
        let names = NameRules::default();
        let rules = IgnoreRules::new(
            root,
            root,
            current_dir,
            names,
            Exclusions::default(),
            &skips,
        );
        let ran_out = AtomicBool::new(false);
        let loader = TreeLoader {
            top: &top,
            root,
            rules: &rules,
            watcher: watcher.as_ref(),
            threads,
            stop,
            ran_out_of_watches: &ran_out,
            local: LocalDevice::unknown(),
        };
        let loaded = loader.load(Path::new(""), rules.start())?;
        let elsewhere = rules.elsewhere();
        // Files that changed since `begun` are too recent for their timestamps to be trusted.
        let guarded = excludes.path.iter().chain(&elsewhere.paths);
        let guards = OutsideFiles::new(guarded, begun);
        let mut tree = Self {
            root: root.to_path_buf(),
            current_dir: current_dir.to_path_buf(),
            top: Arc::new(top),
            rules,
            skips: skips.into_all(),
            entries: Vec::new(),
            directories: Vec::new(),
            watcher: watcher
                .filter(|_| !ran_out.load(Ordering::Relaxed))
                .map(Arc::new),
            watched: HashMap::new(),
            file_watches,
            guards,
            has_linked_rules: elsewhere.has_linked_rules,
            excludes,
            gone: 0,
            moved_here: Vec::new(),
            structure: 0,
            threads,
        };
        if tree.add(loaded, None).is_none() {
            return Err(TreeRefusal::Failed);
        }
        Ok(tree)
    }

    /// Returns whether all directories are watched. Otherwise everything is checked before each
    /// answer.
    pub(crate) fn is_watched(&self) -> bool {
        self.watcher.is_some()
    }

    /// Returns whether the tree's entries and ignore rules are valid for a query that starts at
    /// this directory.
    pub(crate) fn covers(
        &self,
        directory: DirectoryNumber,
        current_dir: &Path,
        leave_out: &Exclusions,
    ) -> bool {
        let linked = self.has_linked_rules && (directory != 0 || !leave_out.is_empty());
        let global = self.rules.has_global() && current_dir != self.current_dir;
        !linked && !global
    }

    /// Adds directories that were read, below an entry. Returns the number of the first directory.
    fn add(
        &mut self,
        loaded: Vec<LoadedDirectory>,
        below: Option<EntryNumber>,
    ) -> Option<DirectoryNumber> {
        let start = self.directories.len();
        self.directories.reserve(loaded.len());
        let entries = loaded.iter().map(|directory| directory.entries.len());
        self.entries.reserve(entries.sum());
        for loaded in loaded {
            let number = self.directories.len() as DirectoryNumber;
            let above = match loaded.above {
                Some((above, place)) => Some(self.directories[start + above].entries[place]),
                None => below,
            };
            if let Some(above) = above {
                let above = &mut self.entries[above as usize];
                above.directory = Some(number);
                if loaded.mark != FileFingerprint::default() {
                    above.mark = loaded.mark;
                }
            }
            if let Some(watch) = loaded.watch {
                self.watched.entry(watch).or_default().push(number);
            }
            let parent = above.map(|entry| self.entries[entry as usize].parent);
            self.directories.push(TreeDirectory {
                parent,
                path: loaded.path,
                mark: loaded.mark,
                watch: loaded.watch,
                level: loaded.level,
                skips: loaded.skips,
                entries: Vec::new(),
                is_there: true,
            });
            let entries = loaded.entries.into_iter();
            let entries = entries.map(|entry| self.new_entry(entry, number)).collect();
            self.directories[number as usize].entries = entries;
        }
        (self.directories.len() > start).then_some(start as DirectoryNumber)
    }

    fn new_entry(&mut self, loaded: LoadedEntry, parent: DirectoryNumber) -> EntryNumber {
        let number = self.entries.len() as EntryNumber;
        self.entries.push(LiveTreeEntry {
            name: loaded.name.into_boxed_os_str(),
            parent,
            kind: loaded.kind,
            verdict: loaded.verdict,
            mark: loaded.mark,
            directory: None,
            watch: None,
            is_there: true,
            version: 0,
            data: T::default(),
        });
        number
    }

    fn find_in(&self, directory: &TreeDirectory, name: &OsStr) -> Option<EntryNumber> {
        let named = |entry: &EntryNumber| (*self.entries[*entry as usize].name).cmp(name);
        let at = directory.entries.binary_search_by(named).ok()?;
        Some(directory.entries[at])
    }

    /// Returns the directory at a path below the root, if it was entered.
    pub(crate) fn find(&self, path: &Path) -> Option<DirectoryNumber> {
        path.components().try_fold(0, |directory, part| {
            let entry = self.find_in(&self.directories[directory as usize], part.as_os_str())?;
            self.entries[entry as usize].directory
        })
    }

    /// Returns the path of an entry relative to the root.
    pub(crate) fn path_of(&self, entry: EntryNumber) -> PathBuf {
        self.path_in(&self.entries[entry as usize])
    }

    pub(crate) fn path_in(&self, entry: &LiveTreeEntry<T>) -> PathBuf {
        self.directories[entry.parent as usize]
            .path
            .join(&*entry.name)
    }

    /// Returns the current fingerprint of an entry. `path` is a buffer that callers reuse, so that
    /// checking many entries does not allocate for each.
    pub(crate) fn stat_entry(
        &self,
        entry: &LiveTreeEntry<T>,
        path: &mut PathBuf,
    ) -> Option<FileFingerprint> {
        let directory = &self.directories[entry.parent as usize].path;
        path.clear();
        let text = path.as_mut_os_string();
        if !directory.as_os_str().is_empty() {
            text.push(directory);
            text.push("/");
        }
        text.push(&entry.name);
        Some(FileFingerprint::from_stat(&self.top.stat_below(path)?))
    }

    /// Brings the tree up to date with every change that was finished before the call.
    pub(crate) fn refresh(&mut self) -> Result<RefreshOutcome, TreeRefusal> {
        match self.apply_events()? {
            true => Ok(RefreshOutcome::InPlace),
            false => {
                self.read_again()?;
                Ok(RefreshOutcome::ReadAgain)
            }
        }
    }

    /// Applies the changes one by one. Returns false if that is not possible.
    fn apply_events(&mut self) -> Result<bool, TreeRefusal> {
        self.moved_here.clear();
        let Some(watcher) = &self.watcher else {
            return Ok(false);
        };
        // This must come first: anything that changes from here on is seen next time.
        let DrainedEvents::Changes(changes) = watcher.drain() else {
            return Ok(false);
        };
        if changes.len() > MAX_CHANGES
            || self.gone * 2 > self.entries.len() + 1000
            || !self.excludes.are_same()
            || !self.guards.are_same()
        {
            return Ok(false);
        }
        self.apply(changes)
    }

    fn apply(&mut self, changes: Vec<WatchEvent>) -> Result<bool, TreeRefusal> {
        let mut touched: HashMap<DirectoryNumber, HashMap<OsString, NameChange>> = HashMap::new();
        for change in changes {
            let Some(directories) = self.watched.get(&change.watch) else {
                for entry in self.file_watches.take(change.watch) {
                    self.entries[entry as usize].watch = None;
                    self.refresh_mark(entry);
                }
                continue;
            };
            for directory in directories {
                if change.is_gone {
                    match directory {
                        0 => return Err(TreeRefusal::Failed),
                        // The parent directory reports it.
                        _ => continue,
                    }
                }
                let is_there = self.directories[*directory as usize].is_there;
                if change.is_attribute_of_directory && is_there {
                    return Ok(false);
                }
                if is_telling(&change.name) {
                    // Writes inside a repository's own directory (such as `.git`) do not matter.
                    let is_folder = is_version_control(&change.name) && !change.is_listing;
                    if !is_folder {
                        return Ok(false);
                    }
                }
                let names = touched.entry(*directory).or_default();
                let known = names.entry(change.name.clone()).or_default();
                known.is_listing |= change.is_listing;
                known.is_moved_here |= change.is_moved_here;
                known.is_written |= change.is_written;
            }
        }
        for (directory, names) in touched {
            if !self.directories[directory as usize].is_there {
                continue;
            }
            if !self.apply_in(directory, names)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares names of one directory with the current state of the file system.
    fn apply_in(
        &mut self,
        number: DirectoryNumber,
        names: HashMap<OsString, NameChange>,
    ) -> Result<bool, TreeRefusal> {
        let known = &self.directories[number as usize];
        let Ok(opened) = self.top.enter_below(&known.path) else {
            // If the directory was removed with its contents, the parent directory reports it, or
            // already has.
            let above = known
                .parent
                .map(|above| self.directories[above as usize].is_there);
            return Ok(above == Some(true) && self.remove_if_missing(number));
        };
        let is_same = opened.stat().is_ok_and(|found| {
            let mark = FileFingerprint::from_stat(&found);
            (mark.device, mark.inode) == (known.mark.device, known.mark.inode)
        });
        if !is_same {
            return Ok(false);
        }
        let path = self.root.join(&known.path);
        let relative = known.path.clone();
        let level = known.level.clone();
        for (name, change) in names {
            let is_listing = change.is_listing;
            let has_arrived = change.is_moved_here && !change.is_written;
            let ran_out = AtomicBool::new(false);
            let loader = self.loader(&ran_out);
            let now = loader.entry(&opened, name.clone(), &path, level.as_deref())?;
            let before = self.find_in(&self.directories[number as usize], &name);
            if let (Some(before), Some(now)) = (before, &now) {
                let entry = &self.entries[before as usize];
                let is_same_file = entry.kind == EntryKind::File && now.kind == EntryKind::File;
                // A directory that was removed and created again may have the same inode number.
                let is_same_folder = !is_listing
                    && entry.kind == EntryKind::Directory
                    && now.kind == EntryKind::Directory
                    && (entry.mark.device, entry.mark.inode) == (now.mark.device, now.mark.inode);
                if is_same_file {
                    self.drop_content(before);
                    self.entries[before as usize].mark = now.mark;
                    self.moved_here.extend(has_arrived.then_some(before));
                    continue;
                }
                if is_same_folder {
                    continue;
                }
            }
            // The old entry first: its watches end, and they may belong to the directories that are
            // read now if an earlier event has already found those.
            if let Some(before) = before {
                self.remove(before);
            }
            let inside = match &now {
                Some(now) if now.is_entered() => {
                    let loader = self.loader(&ran_out);
                    loader.load(&relative.join(&name), level.clone())?
                }
                _ => Vec::new(),
            };
            // There are more directories than can be watched, or more files outside the tree to
            // check.
            let has_more = !inside.is_empty() && self.guards_needed() > self.guards.len();
            if ran_out.load(Ordering::Relaxed) {
                self.file_watches = self.file_watches.anew(true);
                return Ok(false);
            }
            if has_more {
                return Ok(false);
            }
            if let Some(now) = now {
                let entry = self.new_entry(now, number);
                self.moved_here.extend(has_arrived.then_some(entry));
                let place = self.directories[number as usize]
                    .entries
                    .partition_point(|it| *self.entries[*it as usize].name < *name);
                self.directories[number as usize]
                    .entries
                    .insert(place, entry);
                self.add(inside, Some(entry));
                self.structure += 1;
            }
        }
        Ok(true)
    }

    fn loader<'a>(&'a self, ran_out_of_watches: &'a AtomicBool) -> TreeLoader<'a> {
        TreeLoader {
            top: &self.top,
            root: &self.root,
            rules: &self.rules,
            watcher: self.watcher.as_deref(),
            threads: self.threads,
            stop: &|| false,
            ran_out_of_watches,
            local: LocalDevice::unknown(),
        }
    }

    fn guards_needed(&self) -> usize {
        self.rules.elsewhere().paths.len() + usize::from(self.excludes.path.is_some())
    }

    /// Removes a directory that no longer exists. Returns false if it still exists.
    fn remove_if_missing(&mut self, number: DirectoryNumber) -> bool {
        let path = self.directories[number as usize].path.clone();
        let entry = path.parent().and_then(|above| {
            let above = self.find(above)?;
            self.find_in(&self.directories[above as usize], path.file_name()?)
        });
        match entry {
            Some(entry) if self.top.stat_below(&path).is_none() => {
                self.remove(entry);
                true
            }
            _ => false,
        }
    }

    /// Removes an entry and everything below it.
    fn remove(&mut self, entry: EntryNumber) {
        let parent = self.entries[entry as usize].parent;
        self.directories[parent as usize]
            .entries
            .retain(|it| *it != entry);
        self.structure += 1;
        let mut all = vec![entry];
        while let Some(entry) = all.pop() {
            self.drop_content(entry);
            let entry = &mut self.entries[entry as usize];
            entry.is_there = false;
            self.gone += 1;
            let Some(number) = entry.directory.take() else {
                continue;
            };
            let directory = &mut self.directories[number as usize];
            directory.is_there = false;
            all.append(&mut directory.entries);
            let Some(watch) = directory.watch.take() else {
                continue;
            };
            if let Some(directories) = self.watched.get_mut(&watch) {
                directories.retain(|it| *it != number);
                // The same directory may already have been found under another name.
                if directories.is_empty() {
                    self.watched.remove(&watch);
                    if let Some(watcher) = &self.watcher {
                        watcher.unwatch(watch);
                    }
                }
            }
        }
    }

    /// Reads everything again. The knowledge about a file's content is transferred if nothing
    /// indicates that the file changed.
    fn read_again(&mut self) -> Result<(), TreeRefusal> {
        let watching = match self.watcher {
            Some(_) => WatchMode::Enabled,
            None => WatchMode::RanOut,
        };
        // The old queue has no further use, and its watches count against the kernel's limit.
        self.watcher = None;
        let never = || false;
        let mut new = Self::read(
            &self.root,
            &self.current_dir,
            self.threads,
            watching,
            self.file_watches.anew(false),
            &never,
        )?;
        new.structure = self.structure + 1;
        for number in 0..new.directories.len() {
            let Some(old) = self.find(&new.directories[number].path) else {
                continue;
            };
            for entry in new.directories[number].entries.clone() {
                let entry_now = &mut new.entries[entry as usize];
                let Some(before) = self.find_in(&self.directories[old as usize], &entry_now.name)
                else {
                    continue;
                };
                let before = &mut self.entries[before as usize];
                entry_now.version = before.version.wrapping_add(1);
                if before.kind == EntryKind::File
                    && before.mark == entry_now.mark
                    && before.data.is_settled()
                {
                    entry_now.data = std::mem::take(&mut before.data);
                }
            }
        }
        *self = new;
        Ok(())
    }
}

/// Whether to watch directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchMode {
    Enabled,
    /// There are more directories than may be watched.
    RanOut,
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
