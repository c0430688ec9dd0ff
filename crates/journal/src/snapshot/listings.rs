//! Directories by path, as a persistent tree: several versions share their common parts.
//!
//! Copying a version costs a single atomic increment; a change copies only the directories above
//! it. So two versions of a tree of any size are compared in time proportional to their
//! differences.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::walk::ScannedListing;

#[derive(Debug, Clone, Default)]
pub(crate) struct ListingTree {
    top: Arc<ListingNode>,
}

#[derive(Debug, Clone, Default)]
struct ListingNode {
    listing: Option<Arc<ScannedListing>>,
    below: BTreeMap<Arc<OsStr>, Arc<Self>>,
    /// The number of directories in this node and below it.
    directories: usize,
    entries: usize,
}

/// A directory that differs between two versions: its path and its listing in each.
pub(crate) type DifferentListing<'a> = (
    PathBuf,
    Option<&'a Arc<ScannedListing>>,
    Option<&'a Arc<ScannedListing>>,
);

impl ListingTree {
    pub(crate) fn get(&self, path: &Path) -> Option<&Arc<ScannedListing>> {
        self.node(path)?.listing.as_ref()
    }

    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.get(path).is_some()
    }

    /// Returns the number of directories.
    pub(crate) fn len(&self) -> usize {
        self.top.directories
    }

    /// Returns the number of entries in all directories.
    pub(crate) fn entries(&self) -> usize {
        self.top.entries
    }

    pub(crate) fn insert(&mut self, path: &Path, listing: Arc<ScannedListing>) {
        set(&mut self.top, path.iter(), Some(listing));
    }

    /// Removes one directory, but not those below it.
    pub(crate) fn remove(&mut self, path: &Path) {
        if self.contains(path) {
            set(&mut self.top, path.iter(), None);
        }
    }

    /// Removes a directory and everything below it.
    pub(crate) fn remove_all(&mut self, path: &Path) {
        if self.node(path).is_some() {
            cut(&mut self.top, path.iter());
        }
    }

    /// Visits every directory, parents before children.
    pub(crate) fn for_each<'a>(&'a self, mut see: impl FnMut(&Path, &'a Arc<ScannedListing>)) {
        let mut path = PathBuf::new();
        visit(&self.top, &mut path, &mut |path, listing| {
            see(path, listing)
        });
    }

    /// Returns the directories whose listing is not the same object in both versions.
    pub(crate) fn different<'a>(&'a self, other: &'a Self) -> Vec<DifferentListing<'a>> {
        let mut found = Vec::new();
        let mut path = PathBuf::new();
        compare(Some(&self.top), Some(&other.top), &mut path, &mut found);
        found
    }

    fn node(&self, path: &Path) -> Option<&ListingNode> {
        let mut node = &self.top;
        for name in path {
            node = node.below.get(name)?;
        }
        Some(node)
    }
}

impl ListingNode {
    fn is_empty(&self) -> bool {
        self.listing.is_none() && self.below.is_empty()
    }

    /// Updates the totals after the size of a child changed.
    fn resize(&mut self, old: (usize, usize), new: (usize, usize)) {
        self.directories = self.directories + new.0 - old.0;
        self.entries = self.entries + new.1 - old.1;
    }

    fn size(&self) -> (usize, usize) {
        (self.directories, self.entries)
    }
}

fn set(
    node: &mut Arc<ListingNode>,
    mut names: std::path::Iter<'_>,
    listing: Option<Arc<ScannedListing>>,
) {
    let node = Arc::make_mut(node);
    let size = |one: &Option<Arc<ScannedListing>>| {
        let count = one.as_ref().map(|one| one.entries.len());
        (usize::from(count.is_some()), count.unwrap_or_default())
    };
    let Some(name) = names.next() else {
        let (old, new) = (size(&node.listing), size(&listing));
        node.listing = listing;
        node.resize(old, new);
        return;
    };
    if !node.below.contains_key(name) {
        node.below.insert(Arc::from(name), Arc::default());
    }
    let Some(child) = node.below.get_mut(name) else {
        return;
    };
    let old = child.size();
    set(child, names, listing);
    let (new, is_empty) = (child.size(), child.is_empty());
    if is_empty {
        node.below.remove(name);
    }
    node.resize(old, new);
}

/// Removes the subtree at these names, which must exist.
fn cut(node: &mut Arc<ListingNode>, mut names: std::path::Iter<'_>) {
    let Some(name) = names.next() else {
        *node = Arc::default();
        return;
    };
    let node = Arc::make_mut(node);
    let Some(child) = node.below.get_mut(name) else {
        return;
    };
    let old = child.size();
    cut(child, names);
    let (new, is_empty) = (child.size(), child.is_empty());
    if is_empty {
        node.below.remove(name);
    }
    node.resize(old, new);
}

fn visit<'a>(
    node: &'a ListingNode,
    path: &mut PathBuf,
    see: &mut dyn FnMut(&Path, &'a Arc<ScannedListing>),
) {
    if let Some(listing) = &node.listing {
        see(path, listing);
    }
    for (name, child) in &node.below {
        path.push(&**name);
        visit(child, path, see);
        path.pop();
    }
}

fn compare<'a>(
    one: Option<&'a Arc<ListingNode>>,
    other: Option<&'a Arc<ListingNode>>,
    path: &mut PathBuf,
    found: &mut Vec<DifferentListing<'a>>,
) {
    if let (Some(one), Some(other)) = (one, other)
        && Arc::ptr_eq(one, other)
    {
        return;
    }
    let listing = |node: Option<&'a Arc<ListingNode>>| node.and_then(|node| node.listing.as_ref());
    let is_same = match (listing(one), listing(other)) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    };
    if !is_same {
        found.push((path.clone(), listing(one), listing(other)));
    }
    let mut descend = |name: &OsStr, one, other| {
        path.push(name);
        compare(one, other, path, found);
        path.pop();
    };
    if let Some(one) = one {
        for (name, child) in &one.below {
            descend(
                name,
                Some(child),
                other.and_then(|node| node.below.get(name)),
            );
        }
    }
    if let Some(other) = other {
        let is_new = |name: &OsStr| one.is_none_or(|node| !node.below.contains_key(name));
        for (name, child) in other.below.iter().filter(|(name, _)| is_new(name)) {
            descend(name, None, Some(child));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::keep_priority::KeepPriority;
    use super::*;

    fn listing() -> Arc<ScannedListing> {
        Arc::new(ScannedListing {
            entries: Vec::new(),
            rank: KeepPriority::Plain,
            ignores: None,
        })
    }

    #[derive(Debug, Clone)]
    enum Change {
        Insert(usize),
        Remove(usize),
        RemoveAll(usize),
    }

    const PATHS: [&str; 7] = ["/", "/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f/g"];

    fn change() -> impl Strategy<Value = Change> {
        let path = || 0..PATHS.len();
        prop_oneof![
            path().prop_map(Change::Insert),
            path().prop_map(Change::Remove),
            path().prop_map(Change::RemoveAll),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_map_of_paths_that_says_what_differs(
            first in prop::collection::vec(change(), 0..20),
            then in prop::collection::vec(change(), 0..20),
        ) {
            let (mut listings, mut plain) = (ListingTree::default(), HashMap::new());
            let mut before = (listings.clone(), plain.clone());
            for (at, change) in first.iter().chain(&then).enumerate() {
                if at == first.len() {
                    before = (listings.clone(), plain.clone());
                }
                match change {
                    Change::Insert(path) => {
                        let new = listing();
                        listings.insert(Path::new(PATHS[*path]), Arc::clone(&new));
                        plain.insert(PathBuf::from(PATHS[*path]), new);
                    }
                    Change::Remove(path) => {
                        listings.remove(Path::new(PATHS[*path]));
                        plain.remove(Path::new(PATHS[*path]));
                    }
                    Change::RemoveAll(path) => {
                        listings.remove_all(Path::new(PATHS[*path]));
                        plain.retain(|one, _| !one.starts_with(PATHS[*path]));
                    }
                }
            }
            if then.is_empty() {
                before = (listings.clone(), plain.clone());
            }
            let mut all = 0;
            listings.for_each(|path, listing| {
                assert!(Arc::ptr_eq(&plain[path], listing), "{}", path.display());
                all += 1;
            });
            prop_assert_eq!((all, listings.len()), (plain.len(), plain.len()));
            let mut expected: Vec<PathBuf> = plain
                .keys()
                .chain(before.1.keys())
                .filter(|path| match (plain.get(*path), before.1.get(*path)) {
                    (Some(one), Some(other)) => !Arc::ptr_eq(one, other),
                    _ => true,
                })
                .cloned()
                .collect();
            expected.sort_unstable();
            expected.dedup();
            let different = before.0.different(&listings);
            let mut found: Vec<PathBuf> = different.into_iter().map(|one| one.0).collect();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
