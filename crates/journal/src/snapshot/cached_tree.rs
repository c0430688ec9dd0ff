//! The last scan, updated by what the kernel reports about its directories.
//!
//! Scanning a large tree takes a second, but a command changes only a few directories. So the tree
//! of the last scan is cached, every directory is watched before it is listed, and only directories
//! with events are listed again. Directories that cannot be watched are listed every time. If the
//! kernel dropped events, all are listed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::keep_priority::DirectoryIgnores;
use super::listings::ListingTree;
use super::walk::{
    PendingDirectory, ScanArea, ScanLimit, ScannedKind, ScannedListing, ScannedTree, TreeEntry,
    is_missing, threads_for,
};
use super::watch::{TreeWatch, WatchLimits};

#[derive(Debug)]
pub(crate) struct CachedTree {
    roots: Vec<PathBuf>,
    leave_out: HashSet<PathBuf>,
    listings: ListingTree,
    unseen: BTreeMap<PathBuf, String>,
    watch: Option<TreeWatch>,
    /// Directories that are listed every time.
    unwatched: BTreeSet<PathBuf>,
    /// The number of directories that the last scan listed.
    pub(crate) listed: usize,
}

impl CachedTree {
    /// Scans everything and watches it from then on.
    pub(crate) fn scan(
        area: &ScanArea,
        limits: WatchLimits,
    ) -> Result<(Self, ScannedTree), ScanLimit> {
        let watch = TreeWatch::new(limits);
        let mut tree = area.scan(watch.as_ref())?;
        let kept = Self {
            roots: area.roots.clone(),
            leave_out: area.leave_out.clone(),
            listings: tree.listings.clone(),
            unseen: tree.unseen.clone(),
            watch,
            unwatched: std::mem::take(&mut tree.unwatched),
            listed: tree.listings.len(),
        };
        Ok((kept, tree))
    }

    /// Returns whether this is a scan of the same directories.
    pub(crate) fn fits(&self, area: &ScanArea) -> bool {
        self.roots == area.roots && self.leave_out == area.leave_out
    }

    /// Updates the scan. After an error the cached scan must not be used any longer.
    pub(crate) fn rescan(&mut self, area: &ScanArea) -> Result<ScannedTree, ScanLimit> {
        let changed = self.watch.as_ref().and_then(TreeWatch::changed);
        let dirty: BTreeSet<PathBuf> = match changed {
            Some(changed) => {
                let changed = changed.iter().map(|path| path.to_path_buf());
                let dirty = changed.chain(self.unwatched.iter().cloned());
                dirty.filter(|path| self.listings.contains(path)).collect()
            }
            None => {
                let mut all = BTreeSet::new();
                self.listings.for_each(|path, _| {
                    all.insert(path.to_path_buf());
                });
                all
            }
        };
        let mut tree = ScannedTree {
            listings: self.listings.clone(),
            unseen: self.unseen.clone(),
            ..ScannedTree::default()
        };
        area.read_start_points(&mut tree);
        let dirty: Vec<PathBuf> = dirty.into_iter().collect();
        self.list_again(area, &dirty, &mut tree)?;
        for (path, _, now) in self.listings.different(&tree.listings) {
            if now.is_none() {
                self.unwatched.remove(&path);
                if let Some(watch) = &self.watch {
                    watch.unwatch(&path);
                }
            }
        }
        self.unwatched.append(&mut tree.unwatched);
        self.listed = dirty.len();
        self.listings = tree.listings.clone();
        self.unseen = tree.unseen.clone();
        tree.entries = tree.listings.entries();
        Ok(tree)
    }

    fn list_again(
        &mut self,
        area: &ScanArea,
        dirty: &[PathBuf],
        tree: &mut ScannedTree,
    ) -> Result<(), ScanLimit> {
        let mut gone: HashSet<PathBuf> = HashSet::new();
        let mut new = Vec::new();
        let found = list_all(area, dirty, self.watch.as_ref())?;
        for (path, found) in dirty.iter().zip(found) {
            if path.ancestors().any(|above| gone.contains(above)) {
                continue;
            }
            let Some(old) = tree.listings.get(path).cloned() else {
                continue;
            };
            let (entries, is_watched) = match found {
                RelistResult::Entries(entries, is_watched) => (entries, is_watched),
                RelistResult::Gone => {
                    gone.insert(path.clone());
                    continue;
                }
                RelistResult::Unreadable(why) => {
                    tree.unseen.insert(path.clone(), why);
                    gone.insert(path.clone());
                    continue;
                }
            };
            match is_watched {
                true => self.unwatched.remove(path),
                false => self.unwatched.insert(path.clone()),
            };
            // An unchanged directory keeps its listing, so that comparisons can skip it.
            if entries != old.entries {
                let (listing, below) = with_ranks(area, path, entries, &old, tree);
                new.extend(replace(path, &old, listing, below, tree, &mut gone));
            }
        }
        restamp(dirty, tree);
        for path in &gone {
            tree.listings.remove_all(path);
            let below: Vec<PathBuf> = tree
                .unseen
                .range(path.clone()..)
                .map(|(path, _)| path)
                .take_while(|below| below.starts_with(path))
                .filter(|below| *below != path || !dirty.contains(path))
                .cloned()
                .collect();
            for path in below {
                tree.unseen.remove(&path);
            }
        }
        let count = tree.listings.entries();
        area.scan_below(new, count, self.watch.as_ref(), tree)
    }
}

/// Builds the new listing of a known directory, and the list of its subdirectories.
fn with_ranks(
    area: &ScanArea,
    path: &Path,
    entries: Vec<TreeEntry>,
    old: &ScannedListing,
    tree: &ScannedTree,
) -> (ScannedListing, Vec<PendingDirectory>) {
    let above = path.parent().and_then(|above| tree.listings.get(above));
    let above = above.and_then(|above| above.ignores.clone());
    let pending = PendingDirectory {
        path: path.to_path_buf(),
        rank: old.rank,
        ignores: above.clone(),
        device: None,
    };
    let ignores = DirectoryIgnores::extend(path, &entries, above, old.rank);
    let below = area.directories_in(&pending, &entries, ignores.as_ref());
    let listing = ScannedListing {
        entries,
        rank: old.rank,
        ignores,
    };
    (listing, below)
}

/// Replaces a listing by a new one. Returns the subdirectories that are new; those that no longer
/// exist are added to `gone`.
fn replace(
    path: &Path,
    old: &ScannedListing,
    listing: ScannedListing,
    below: Vec<PendingDirectory>,
    tree: &mut ScannedTree,
    gone: &mut HashSet<PathBuf>,
) -> Vec<PendingDirectory> {
    let is_same = |name: &OsStr| {
        let both = old.find(name).zip(listing.find(name));
        both.is_some_and(|(old, now)| old.stamp.same_object(&now.stamp))
    };
    for entry in &old.entries {
        if entry.kind() == ScannedKind::Directory && !is_same(&entry.name) {
            let path = path.join(&entry.name);
            // Removed immediately, because another directory may have the same name now.
            tree.listings.remove_all(&path);
            gone.insert(path);
        }
    }
    let new = below.into_iter().filter(|one| {
        let name = one.path.file_name().unwrap_or_default();
        let known = tree.listings.contains(&one.path) || tree.unseen.contains_key(&one.path);
        !(known && is_same(name))
    });
    let new = new.collect();
    tree.listings.insert(path, Arc::new(listing));
    new
}

/// Updates the stamps of these directories in their parents' listings: a change in a directory
/// alters its times.
fn restamp(directories: &[PathBuf], tree: &mut ScannedTree) {
    let mut above: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for path in directories {
        let parent = path.parent().filter(|above| tree.listings.contains(above));
        if let Some(parent) = parent {
            above.entry(parent).or_default().push(path);
        }
    }
    for (directory, changed) in above {
        let listing = tree.listings.get(directory);
        if let Some(listing) = listing.and_then(|one| restamped(one, &changed)) {
            tree.listings.insert(directory, Arc::new(listing));
        }
    }
}

/// Returns the listing with the current stamps of these subdirectories; `None` if they are up to
/// date.
fn restamped(listing: &ScannedListing, directories: &[&Path]) -> Option<ScannedListing> {
    let mut entries = None;
    for path in directories {
        let Some(at) = path.file_name().and_then(|name| listing.position(name)) else {
            continue;
        };
        let Ok(Some(now)) = TreeEntry::from_path(path) else {
            continue;
        };
        if listing.entries[at].stamp != now.stamp
            && listing.entries[at].stamp.same_object(&now.stamp)
        {
            let entries = entries.get_or_insert_with(|| listing.entries.clone());
            entries[at].stamp = now.stamp;
        }
    }
    entries.map(|entries| ScannedListing {
        entries,
        rank: listing.rank,
        ignores: listing.ignores.clone(),
    })
}

enum RelistResult {
    /// The entries, and whether the directory is watched.
    Entries(Vec<TreeEntry>, bool),
    Gone,
    Unreadable(String),
}

/// Lists these directories; the results have the same order.
fn list_all(
    area: &ScanArea,
    directories: &[PathBuf],
    watch: Option<&TreeWatch>,
) -> Result<Vec<RelistResult>, ScanLimit> {
    let next = AtomicUsize::new(0);
    let is_late = AtomicBool::new(false);
    let all = Mutex::new(Vec::with_capacity(directories.len()));
    let work = || {
        let mut own = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(directory) = directories.get(at) else {
                break;
            };
            if area
                .deadline
                .is_some_and(|deadline| Instant::now() > deadline)
            {
                is_late.store(true, Ordering::Relaxed);
                break;
            }
            let found = match area.list(directory, watch) {
                Ok((entries, is_watched)) => RelistResult::Entries(entries, is_watched),
                Err(error) if is_missing(&error) => RelistResult::Gone,
                Err(error) => RelistResult::Unreadable(format!("it cannot be read: {error}")),
            };
            own.push((at, found));
        }
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.append(&mut own);
    };
    std::thread::scope(|scope| {
        for _ in 1..threads_for(directories.len()) {
            scope.spawn(work);
        }
        work();
    });
    if is_late.into_inner() {
        return Err(ScanLimit::Time);
    }
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_unstable_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, found)| found).collect())
}

#[cfg(test)]
#[path = "kept_look_tests.rs"]
mod kept_look_tests;
