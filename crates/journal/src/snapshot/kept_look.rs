//! The last look, brought up to date by what the kernel reports of the directories in it.
//!
//! In a large tree a look costs a second; a command changes a few directories. So the tree of the last
//! look is kept, every directory in it is watched, and only those in which something happened are
//! listed again. Where nothing can be watched, or more happened than was reported, everything is looked
//! at as before.
//!
//! A file with several names may be written by one that is not watched, so the directories of such
//! files are always listed again.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::rank::Ignores;
use super::walk::{Area, EntryKind, Listing, Listings, Pending, TooMuch, Tree, TreeEntry};
use super::watch::DirectoryWatch;

/// If more than one of so many directories is to be listed again, a look at everything is as quick.
const MOST_LISTED_AGAIN: usize = 3;

#[derive(Debug)]
pub(crate) struct KeptLook {
    roots: Vec<PathBuf>,
    leave_out: HashSet<PathBuf>,
    listings: Arc<Listings>,
    tree_unseen: Vec<(PathBuf, String)>,
    watch: DirectoryWatch,
    /// Directories that were listed before they were watched.
    unsure: HashSet<PathBuf>,
    /// Directories of files that have other names, too.
    shared: HashSet<PathBuf>,
}

impl KeptLook {
    /// Begins to watch everything in a tree that was just looked at. `None`: it cannot be watched.
    pub(crate) fn of(area: &Area, tree: &Tree) -> Option<Self> {
        let mut kept = Self {
            roots: area.roots.clone(),
            leave_out: area.leave_out.clone(),
            listings: Arc::default(),
            tree_unseen: Vec::new(),
            watch: DirectoryWatch::new()?,
            unsure: HashSet::new(),
            shared: HashSet::new(),
        };
        kept.adopt(tree).then_some(kept)
    }

    /// Is it a look at the same directories?
    pub(crate) fn fits(&self, area: &Area) -> bool {
        self.roots == area.roots && self.leave_out == area.leave_out && is_inside(area)
    }

    /// Looks again. `None`: too much happened, so that everything must be looked at.
    pub(crate) fn again(&mut self, area: &Area) -> Option<Result<Tree, TooMuch>> {
        let changed = self.watch.changed()?;
        let mut dirty: Vec<PathBuf> = changed.into_iter().collect();
        dirty.extend(self.unsure.drain());
        dirty.extend(self.shared.iter().cloned());
        dirty.sort();
        dirty.dedup();
        if dirty.len() > self.listings.len() / MOST_LISTED_AGAIN {
            return None;
        }
        let tree = match self.listed_again(area, &dirty) {
            Ok(tree) => tree,
            Err(reason) => return Some(Err(reason)),
        };
        let is_same = Arc::ptr_eq(&tree.listings, &self.listings);
        (is_same || self.adopt(&tree)).then_some(Ok(tree))
    }

    /// Takes over what a look found, and watches what is new in it. `false`: not all can be watched.
    pub(crate) fn adopt(&mut self, tree: &Tree) -> bool {
        for (path, listing) in tree.listings.iter() {
            let known = self.listings.get(path);
            if known.is_some_and(|known| Arc::ptr_eq(known, listing)) {
                continue;
            }
            if known.is_none() {
                if !self.watch.add(path) {
                    return false;
                }
                self.unsure.insert(path.clone());
            }
            let is_shared = listing
                .entries
                .iter()
                .any(|entry| entry.kind() == EntryKind::File && entry.stamp.links > 1);
            match is_shared {
                true => self.shared.insert(path.clone()),
                false => self.shared.remove(path),
            };
        }
        self.shared.retain(|path| tree.listings.contains_key(path));
        self.watch.forget(&|path| !tree.listings.contains_key(path));
        self.listings = match self.listings.is_empty() {
            true => Arc::clone(&tree.listings),
            false => self.shared_with(&tree.listings),
        };
        self.tree_unseen = tree
            .unseen
            .iter()
            .map(|(path, why)| (path.clone(), why.clone()))
            .collect();
        true
    }

    /// The same listings; what is as it was is the very listing that it was, which costs nothing to
    /// compare and to keep.
    fn shared_with(&self, listings: &Arc<Listings>) -> Arc<Listings> {
        let mut listings = Arc::clone(listings);
        let same = listings.iter().filter_map(|(path, listing)| {
            let known = self.listings.get(path)?;
            let is_same = !Arc::ptr_eq(known, listing)
                && known.rank == listing.rank
                && known.entries == listing.entries;
            is_same.then(|| (path.clone(), Arc::clone(known)))
        });
        let same: Vec<(PathBuf, Arc<Listing>)> = same.collect();
        if !same.is_empty() {
            Arc::make_mut(&mut listings).extend(same);
        }
        listings
    }

    fn listed_again(&self, area: &Area, dirty: &[PathBuf]) -> Result<Tree, TooMuch> {
        let mut tree = Tree {
            listings: Arc::clone(&self.listings),
            unseen: self.tree_unseen.iter().cloned().collect(),
            ..Tree::default()
        };
        area.look_at_points(&mut tree);
        if dirty.is_empty() {
            tree.entries = self.listings.values().map(|one| one.entries.len()).sum();
            return Ok(tree);
        }
        let mut gone = HashSet::new();
        let mut new = Vec::new();
        let listings = Arc::make_mut(&mut tree.listings);
        for path in dirty {
            if path.ancestors().any(|above| gone.contains(above)) {
                continue;
            }
            let Some(old) = listings.get(path).cloned() else {
                continue;
            };
            let above = path.parent().and_then(|above| listings.get(above));
            let pending = Pending {
                path: path.clone(),
                rank: old.rank,
                ignores: above.and_then(|above| above.ignores.clone()),
                device: None,
            };
            let Some((listing, below)) = again(area, pending) else {
                gone.insert(path.clone());
                continue;
            };
            let is_same = |name: &std::ffi::OsStr| {
                let (old, now) = (old.find(name), listing.find(name));
                old.zip(now)
                    .is_some_and(|(old, now)| old.stamp.same_object(&now.stamp))
            };
            for entry in &old.entries {
                if entry.kind() == EntryKind::Directory && !is_same(&entry.name) {
                    gone.insert(path.join(&entry.name));
                }
            }
            new.extend(below.into_iter().filter(|one| {
                let name = one.path.file_name().unwrap_or_default();
                let known = listings.contains_key(&one.path) || tree.unseen.contains_key(&one.path);
                !(known && is_same(name))
            }));
            listings.insert(path.clone(), Arc::new(listing));
        }
        let mut above: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
        for path in dirty {
            // What happens in a directory shows in its times, which are listed one above.
            if let Some(parent) = path.parent().filter(|above| listings.contains_key(*above)) {
                above.entry(parent).or_default().push(path);
            }
        }
        for (directory, changed) in above {
            if let Some(listing) = listings
                .get(directory)
                .and_then(|one| restamped(one, &changed))
            {
                listings.insert(directory.to_path_buf(), Arc::new(listing));
            }
        }
        if !gone.is_empty() {
            let is_gone = |path: &Path| path.ancestors().any(|above| gone.contains(above));
            listings.retain(|path, _| !is_gone(path));
            tree.unseen.retain(|path, _| !is_gone(path));
        }
        let count = listings.values().map(|one| one.entries.len()).sum();
        area.look_below(new, count, &mut tree)?;
        tree.entries = tree.listings.values().map(|one| one.entries.len()).sum();
        Ok(tree)
    }
}

/// The listing with the stamps that these directories in it have now; `None` if it has them already.
fn restamped(listing: &Listing, directories: &[&Path]) -> Option<Listing> {
    let mut entries = None;
    for path in directories {
        let name = path.file_name()?;
        let at = listing.entries.iter().position(|entry| entry.name == name);
        let (Some(at), Ok(Some(now))) = (at, TreeEntry::at(path)) else {
            continue;
        };
        if listing.entries[at].stamp != now.stamp
            && listing.entries[at].stamp.same_object(&now.stamp)
        {
            let entries = entries.get_or_insert_with(|| listing.entries.clone());
            entries[at].stamp = now.stamp;
        }
    }
    entries.map(|entries| Listing {
        entries,
        rank: listing.rank,
        ignores: listing.ignores.clone(),
    })
}

/// Does the command line name nothing besides the roots?
pub(crate) fn is_inside(area: &Area) -> bool {
    let inside = |path: &PathBuf| area.roots.iter().any(|root| path.starts_with(root));
    !area.roots.is_empty() && area.named.iter().all(inside)
}

/// One directory, and those in it. `None`: it is not there any more, or cannot be read.
fn again(area: &Area, pending: Pending) -> Option<(Listing, Vec<Pending>)> {
    let entries = area.entries_in(&pending.path).ok()?;
    let ignores = Ignores::extend(
        &pending.path,
        &entries,
        pending.ignores.clone(),
        pending.rank,
    );
    let below = area.directories_in(&pending, &entries, ignores.as_ref());
    let listing = Listing {
        entries,
        rank: pending.rank,
        ignores,
    };
    Some((listing, below))
}

#[cfg(test)]
#[path = "kept_look_tests.rs"]
mod kept_look_tests;
