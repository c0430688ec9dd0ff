//! Comparison of two scans of the same directories: finds the change of each path.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use super::preimages::{ObjectKey, PreimageFile, PreimageFill, PreimageMap};
use super::walk::{ScannedKind, ScannedListing, ScannedTree, TreeEntry, grouped};
use super::{CommandChanges, SnapshotLimits, is_directory_both};
use crate::stamp::now_ns;
use crate::undo::{
    ObservedContent, PathChangeRecord, RecordState, UnreadFileStamp, UnrestorablePath, digest,
    read_content, regular, unread,
};

/// A new directory with more entries than this is recorded as a whole.
const GROWN: usize = 500;
/// The maximum number of paths reported as not restorable.
const NAMED: usize = 200;
/// The maximum time to wait for the clock of the file system; if the clock is slower, contents are
/// compared.
const MAX_WAIT: Duration = Duration::from_millis(25);

pub(crate) struct TreeComparison<'a> {
    pub(crate) before: &'a ScannedTree,
    pub(crate) after: &'a ScannedTree,
    pub(crate) filled: &'a PreimageFill,
    /// The start time of the command, in nanoseconds since the epoch.
    pub(crate) begun: i128,
    /// The state that other undo units gave to paths in the meantime.
    pub(crate) claimed: &'a HashMap<PathBuf, RecordState>,
    pub(crate) limits: SnapshotLimits,
    pub(crate) is_control: &'a dyn Fn(&Path) -> bool,
    /// Preimages stored since the command began.
    pub(crate) later: PreimageMap,
    /// The objects of the first scan; filled when needed.
    pub(crate) known: KnownObjects,
    /// The preimages that the record needs, by hash.
    pub(crate) needed: RefCell<HashMap<String, Arc<PreimageFile>>>,
}

/// Objects that existed in the first scan.
#[derive(Default)]
pub(crate) struct KnownObjects {
    /// Objects in directories that have changed.
    touched: OnceCell<HashSet<ObjectKey>>,
    /// All objects.
    all: OnceCell<HashSet<ObjectKey>>,
}

/// Returns how long to wait until every later change must alter a stamp. Only the directories that
/// are new since the last scan matter; for the others the wait is already over.
pub(crate) fn until_certain(tree: &ScannedTree, new: &[Arc<ScannedListing>]) -> Duration {
    let now = now_ns();
    let listed = new.iter().flat_map(|listing| &listing.entries);
    let points = tree.points.values().flatten();
    let waits = listed
        .chain(points)
        .map(|entry| entry.stamp.until_certain(now));
    waits
        .filter(|wait| *wait <= MAX_WAIT)
        .max()
        .unwrap_or_default()
}

type TreePair<'t> = (Option<&'t TreeEntry>, Option<&'t TreeEntry>);

impl<'a> TreeComparison<'a> {
    /// Adds the changes to `changed` and returns the records for the undo journal.
    pub(crate) fn make(
        &self,
        changed: &mut CommandChanges,
    ) -> Result<(Vec<PathChangeRecord>, Vec<UnrestorablePath>), String> {
        let mut pairs = self.pairs();
        let moved = self.take_moved(&mut pairs);
        let grown = self.take_grown(&mut pairs, &moved);
        if pairs.len() > self.limits.changed {
            return Err(format!(
                "the command changed more than {} files and directories",
                grouped(self.limits.changed)
            ));
        }
        let mut left: BTreeMap<PathBuf, String> = BTreeMap::new();
        let mut swept = Vec::new();
        let linked: HashSet<ObjectKey> = pairs
            .values()
            .flat_map(|(before, after)| [before, after])
            .filter_map(|entry| entry.filter(|entry| is_linked(entry)))
            .map(|entry| (entry.stamp.device, entry.stamp.inode))
            .collect();
        let twins = HardLinks {
            before: twins(self.before, self.after, &linked),
            after: twins(self.after, self.before, &linked),
        };
        for one in moved {
            if let RecordState::Moved { to, .. } = &one.before {
                self.count(changed, to, true, false);
            }
            let is_gone = one.after == RecordState::Absent;
            self.count(changed, &one.path, false, is_gone);
            swept.push(one);
        }
        for (path, (before, after)) in &pairs {
            let is_new = before.is_none();
            match self.path_change(path, *before, *after, &twins) {
                Ok(None) => continue,
                Ok(Some(one)) => {
                    if !is_directory_both(&one) {
                        self.count(changed, path, is_new, after.is_none());
                    }
                    swept.push(one);
                }
                Err(why) => {
                    self.count(changed, path, is_new, after.is_none());
                    left.insert(path.clone(), why);
                }
            }
        }
        for one in grown {
            changed.created.push(one.path.clone());
            swept.push(one);
        }
        self.spare_objects(&mut swept, &mut left);
        Ok((swept, named_left(left)))
    }

    fn count(&self, changed: &mut CommandChanges, path: &Path, is_new: bool, is_gone: bool) {
        changed.count(path, is_new, is_gone, self.is_control);
    }

    /// Returns all paths that differ, or that may differ although their stamps are equal.
    fn pairs(&self) -> BTreeMap<PathBuf, TreePair<'a>> {
        let mut pairs = BTreeMap::new();
        let (before, after) = (self.before, self.after);
        // A listing that both scans share was not touched in between.
        for (directory, old, new) in before.listings.different(&after.listings) {
            if self.is_unseen(&directory) {
                continue;
            }
            for (old, new) in merged([old.map(|one| &**one), new.map(|one| &**one)]) {
                if self.differ(old, new)
                    && let Some(entry) = old.or(new)
                {
                    pairs.insert(directory.join(&entry.name), (old, new));
                }
            }
        }
        for (path, old) in &before.points {
            let new = after.points.get(path).and_then(Option::as_ref);
            if self.differ(old.as_ref(), new) && !self.is_unseen(path) {
                pairs.insert(path.clone(), (old.as_ref(), new));
            }
        }
        pairs
    }

    /// Returns whether the directory was not scanned. Changes inside it are unknown; only its
    /// creation or removal is known.
    fn is_unseen(&self, directory: &Path) -> bool {
        let unseen = |tree: &ScannedTree| tree.why_unseen(directory).is_some();
        unseen(self.before) || unseen(self.after)
    }

    fn differ(&self, old: Option<&TreeEntry>, new: Option<&TreeEntry>) -> bool {
        let (Some(old), Some(new)) = (old, new) else {
            return old.is_some() != new.is_some();
        };
        !old.stamp.is_same(&new.stamp)
            || old.target != new.target
            // If the file was written again within a tick of the clock, its stamp would be equal.
            || (old.kind() == ScannedKind::File
                && !old.stamp.until_certain(self.begun).is_zero()
                && self.stored_preimage(old).is_some())
    }

    fn stored_preimage(&self, entry: &TreeEntry) -> Option<&Arc<PreimageFile>> {
        let object = (entry.stamp.device, entry.stamp.inode);
        let is_it = |kept: &&Arc<PreimageFile>| kept.stamp.is_same(&entry.stamp);
        let before = self.filled.contents.get(&object).filter(is_it);
        before.or_else(|| self.later.get(&object).filter(is_it))
    }

    /// Returns whether this object existed in the first scan, at any path.
    fn is_known(&self, entry: &TreeEntry) -> bool {
        let object = (entry.stamp.device, entry.stamp.inode);
        let of = |entry: &TreeEntry| (entry.stamp.device, entry.stamp.inode);
        let touched = self.known.touched.get_or_init(|| {
            let different = self.before.listings.different(&self.after.listings);
            let old = different.iter().filter_map(|(_, old, _)| *old);
            let listed = old.flat_map(|listing| &listing.entries);
            let points = self.before.points.values().flatten();
            listed.chain(points).map(of).collect()
        });
        // An object that disappeared from a directory changed that directory. Only a file with
        // several links can be found elsewhere.
        if touched.contains(&object) || !is_linked(entry) {
            return touched.contains(&object);
        }
        let all = self.known.all.get_or_init(|| {
            let mut all = HashSet::new();
            let listings = &self.before.listings;
            listings.for_each(|_, listing| all.extend(listing.entries.iter().map(of)));
            all
        });
        all.contains(&object)
    }

    fn why_unkept(&self, entry: &TreeEntry) -> String {
        let object = (entry.stamp.device, entry.stamp.inode);
        let why = self.filled.unkept.get(&object).map(|why| &**why);
        let why = why.unwrap_or("changed by another process just before");
        format!("its old content was not stored ({why})")
    }

    /// Returns the record for a path. `None`: no relevant difference. `Err`: the path cannot be
    /// restored.
    fn path_change(
        &self,
        path: &Path,
        before: Option<&TreeEntry>,
        after: Option<&TreeEntry>,
        twins: &HardLinks,
    ) -> Result<Option<PathChangeRecord>, String> {
        let after_state = match after {
            None => RecordState::Absent,
            Some(entry) => self.state_after(path, entry, twins),
        };
        if let Some(claim) = self.claimed.get(path) {
            return match is_claimed(claim, &after_state) {
                true => Ok(None),
                false => Err("several calls changed it at the same time".to_owned()),
            };
        }
        for (entry, tree) in [(before, self.before), (after, self.after)] {
            if entry.is_some_and(|entry| entry.kind() == ScannedKind::Directory)
                && let Some(why) = tree.why_unseen(path)
                && (before.is_none() || after.is_none())
            {
                return Err(format!("it was not scanned: {why}"));
            }
        }
        if let (None, Some(entry)) = (before, after)
            && is_older(path, self.begun)
            && !self.is_known(entry)
        {
            return Err("it was moved here from elsewhere, so an undo leaves it".to_owned());
        }
        let before_state = match before {
            None => RecordState::Absent,
            Some(entry) => match (entry.kind(), self.stored_preimage(entry)) {
                (ScannedKind::File, Some(kept)) => {
                    let mut needed = self.needed.borrow_mut();
                    needed.insert(kept.hash.clone(), Arc::clone(kept));
                    let content = ObservedContent {
                        hash: kept.hash.clone(),
                        extended: kept.extended.clone(),
                    };
                    regular(&entry.stamp, &content, twin_of(&twins.before, path, entry))
                }
                (ScannedKind::File, None) => match after {
                    // The content is the same; the mode can be restored without a preimage.
                    Some(after) if entry.stamp.looks_like(&after.stamp) => {
                        if entry.stamp.mode == after.stamp.mode {
                            return Ok(None);
                        }
                        let pair = (unread(entry), unread(after));
                        return Ok(Some(swept(path, pair.0, pair.1)));
                    }
                    _ => return Err(self.why_unkept(entry)),
                },
                (ScannedKind::Special(_), _)
                    if after.is_some_and(|after| {
                        after.stamp.same_object(&entry.stamp)
                            && after.stamp.mode == entry.stamp.mode
                    }) =>
                {
                    return Ok(None);
                }
                (ScannedKind::Special(kind), _) => {
                    return Err(format!("it was {kind}, which cannot be made again"));
                }
                (ScannedKind::Directory | ScannedKind::Link, _) => unread(entry),
            },
        };
        // A new inode or another ctime is not a visible change.
        Ok((timed(&before_state) != timed(&after_state))
            .then(|| swept(path, before_state, after_state)))
    }

    fn state_after(&self, path: &Path, entry: &TreeEntry, twins: &HardLinks) -> RecordState {
        if entry.kind() == ScannedKind::File
            && entry.stamp.size <= self.limits.read
            && let Ok(content) = read_content(path, &entry.stamp)
        {
            return regular(&entry.stamp, &content, twin_of(&twins.after, path, entry));
        }
        unread(entry)
    }

    /// Takes out files without a preimage that are at another path now: undo moves them back, and
    /// must not remove them from their new path.
    fn take_moved(&self, pairs: &mut BTreeMap<PathBuf, TreePair<'a>>) -> Vec<PathChangeRecord> {
        let is_file = |entry: &&TreeEntry| entry.kind() == ScannedKind::File;
        let object = |entry: &TreeEntry| (entry.stamp.device, entry.stamp.inode);
        let new: HashMap<ObjectKey, (PathBuf, &TreeEntry)> = pairs
            .iter()
            .filter(|(path, (before, _))| before.is_none() && !self.claimed.contains_key(*path))
            .filter_map(|(path, (_, after))| Some((path, after.filter(is_file)?)))
            .map(|(path, entry)| (object(entry), (path.clone(), entry)))
            .collect();
        let mut moved = Vec::new();
        for (path, (before, after)) in pairs.iter() {
            let Some(before) = before.filter(is_file) else {
                continue;
            };
            let is_other = after.is_none_or(|after| !after.stamp.same_object(&before.stamp));
            if is_other
                && self.stored_preimage(before).is_none()
                && !self.claimed.contains_key(path)
                && let Some((to, there)) = new.get(&object(before))
                && there.stamp.looks_like(&before.stamp)
            {
                let state = RecordState::Moved {
                    to: to.clone(),
                    seal: UnreadFileStamp::from_stamp(&there.stamp),
                };
                moved.push((path.clone(), state, *after));
            }
        }
        let mut all = Vec::new();
        for (path, state, after) in moved {
            let after = match after {
                None => RecordState::Absent,
                Some(entry) => self.state_after(&path, entry, &HardLinks::default()),
            };
            if let RecordState::Moved { to, .. } = &state {
                pairs.remove(to);
            }
            pairs.remove(&path);
            all.push(swept(&path, state, after));
        }
        all
    }

    /// Replaces new directories with very many entries by one record each.
    fn take_grown(
        &self,
        pairs: &mut BTreeMap<PathBuf, TreePair<'a>>,
        moved: &[PathChangeRecord],
    ) -> Vec<PathChangeRecord> {
        let mut grown: Vec<PathChangeRecord> = Vec::new();
        let is_new = |pair: &TreePair<'_>| match pair {
            (None, Some(entry)) => entry.kind() == ScannedKind::Directory,
            _ => false,
        };
        let mut top: Option<PathBuf> = None;
        let mut made: Vec<(PathBuf, usize)> = Vec::new();
        for (path, pair) in pairs.iter() {
            match &top {
                Some(above) if path.starts_with(above) => {
                    if let Some((_, count)) = made.last_mut() {
                        *count += 1;
                    }
                }
                _ if is_new(pair) => {
                    top = Some(path.clone());
                    made.push((path.clone(), 0));
                }
                _ => top = None,
            }
        }
        for (directory, count) in made.into_iter().filter(|(_, count)| *count > GROWN) {
            let below = |path: &Path| path.starts_with(&directory) && path != directory;
            let mut inside = pairs.iter().filter(|(path, _)| below(path));
            let has_moved = moved.iter().any(|one| match &one.before {
                RecordState::Moved { to, .. } => below(to),
                _ => false,
            });
            // Everything inside must be new, and no path inside may need its own record.
            let is_special = has_moved
                || inside.any(|(path, (_, after))| {
                    after.is_some_and(|entry| self.is_known(entry) || is_older(path, self.begun))
                        || (self.is_control)(path)
                        || self.claimed.contains_key(path)
                        || self.after.unseen.contains_key(path)
                });
            if is_special {
                continue;
            }
            pairs.retain(|path, _| !path.starts_with(&directory));
            let after = RecordState::Grown {
                entries: count as u64,
                digest: digest(self.after, &directory),
            };
            grown.push(swept(&directory, RecordState::Absent, after));
        }
        grown
    }

    /// If Git repacked its objects and an old object cannot be restored, undo must not remove the
    /// new ones: they are all that is left of the repository.
    fn spare_objects(
        &self,
        swept: &mut Vec<PathChangeRecord>,
        left: &mut BTreeMap<PathBuf, String>,
    ) {
        let stores: BTreeSet<PathBuf> = left
            .keys()
            .filter_map(|path| self.object_store(path))
            .collect();
        for store in stores {
            let is_new = |one: &PathChangeRecord| {
                one.before == RecordState::Absent && one.path.starts_with(&store)
            };
            let why = "git's objects were repacked; the new ones stay".to_owned();
            left.retain(|path, _| !path.starts_with(&store));
            swept.retain(|one| !is_new(one));
            left.insert(store, why);
        }
    }

    fn object_store(&self, path: &Path) -> Option<PathBuf> {
        let mut above = path.ancestors().filter(|above| above.ends_with("objects"));
        above
            .find(|above| {
                let repository = above.parent().and_then(|one| self.before.listings.get(one));
                repository.is_some_and(|one| {
                    super::keep_priority::KeepPriority::is_repository(&one.entries)
                })
            })
            .map(Path::to_path_buf)
    }
}

/// Returns the first paths that cannot be restored, and the number of the others.
pub(crate) fn named_left(left: BTreeMap<PathBuf, String>) -> Vec<UnrestorablePath> {
    let more = left.len().saturating_sub(NAMED);
    let mut named: Vec<UnrestorablePath> = left
        .into_iter()
        .take(NAMED)
        .map(|(path, why)| UnrestorablePath { path, why })
        .collect();
    if let (Some(last), true) = (named.last_mut(), more > 0) {
        last.why += &format!("; and {} more", grouped(more));
    }
    named
}

/// One name of each file that has several names, by object.
#[derive(Default)]
struct HardLinks {
    before: HashMap<ObjectKey, PathBuf>,
    after: HashMap<ObjectKey, PathBuf>,
}

/// For each of these files, returns the first name that is unchanged in the other scan, otherwise
/// the first name.
fn twins(
    tree: &ScannedTree,
    other: &ScannedTree,
    linked: &HashSet<ObjectKey>,
) -> HashMap<ObjectKey, PathBuf> {
    if linked.is_empty() {
        return HashMap::new();
    }
    let mut best: HashMap<ObjectKey, (bool, PathBuf)> = HashMap::new();
    tree.listings.for_each(|directory, listing| {
        let mut other_listing = None;
        // A new name elsewhere does not change the directory, so the number of links that a cached
        // listing has can be too low.
        let is_file = |entry: &&TreeEntry| entry.kind() == ScannedKind::File;
        for entry in listing.entries.iter().filter(is_file) {
            let object = (entry.stamp.device, entry.stamp.inode);
            if !linked.contains(&object) {
                continue;
            }
            let other = other_listing.get_or_insert_with(|| other.listings.get(directory));
            let other = other.and_then(|other| other.find(&entry.name));
            let is_changed = other.is_none_or(|other| !other.stamp.looks_like(&entry.stamp));
            let name = (is_changed, directory.join(&entry.name));
            let best = best.entry(object).or_insert_with(|| name.clone());
            if name < *best {
                *best = name;
            }
        }
    });
    let names = best.into_iter();
    names.map(|(object, (_, path))| (object, path)).collect()
}

/// Returns whether the file may have another name.
fn is_linked(entry: &TreeEntry) -> bool {
    entry.kind() == ScannedKind::File && entry.stamp.links > 1
}

fn twin_of(twins: &HashMap<ObjectKey, PathBuf>, path: &Path, entry: &TreeEntry) -> Option<PathBuf> {
    let twin = twins.get(&(entry.stamp.device, entry.stamp.inode));
    twin.filter(|twin| *twin != path).cloned()
}

/// Returns whether the file was created before the command began; `false` if the file system has no
/// creation times.
fn is_older(path: &Path, begun: i128) -> bool {
    let born = fs::symlink_metadata(path).and_then(|found| found.created());
    let born = born
        .ok()
        .and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    // The clock of the file system may lag by a tick.
    born.is_some_and(|born| (born + MAX_WAIT).as_nanos() as i128 <= begun)
}

fn swept(path: &Path, before: RecordState, after: RecordState) -> PathChangeRecord {
    PathChangeRecord::new(path.to_path_buf(), before, after)
}

/// Returns the state without the name of another hard link, which only one side may have.
fn timed(state: &RecordState) -> RecordState {
    let mut state = state.clone();
    if let RecordState::Regular { twin, .. } = &mut state {
        *twin = None;
    }
    state
}

/// Returns whether another unit made the path what it is now. The unit does not always know mode
/// and times.
pub(crate) fn is_claimed(claim: &RecordState, now: &RecordState) -> bool {
    match (claim, now) {
        (RecordState::Regular { hash: one, .. }, RecordState::Regular { hash: other, .. }) => {
            one == other
        }
        (RecordState::Directory { .. }, RecordState::Directory { .. }) => true,
        _ => timed(claim) == timed(now),
    }
}

/// Merges two sorted lists into pairs with equal names.
fn merged<'t>(lists: [Option<&'t ScannedListing>; 2]) -> Vec<TreePair<'t>> {
    let [old, new] = lists.map(|list| list.map_or(&[][..], |list| &list.entries));
    let mut pairs = Vec::new();
    let (mut at, mut to) = (0, 0);
    while at < old.len() || to < new.len() {
        let order = match (old.get(at), new.get(to)) {
            (Some(a), Some(b)) => a.name.as_bytes().cmp(b.name.as_bytes()),
            (Some(_), None) => std::cmp::Ordering::Less,
            _ => std::cmp::Ordering::Greater,
        };
        let pair = match order {
            std::cmp::Ordering::Less => (old.get(at), None),
            std::cmp::Ordering::Greater => (None, new.get(to)),
            std::cmp::Ordering::Equal => (old.get(at), new.get(to)),
        };
        at += usize::from(pair.0.is_some());
        to += usize::from(pair.1.is_some());
        pairs.push(pair);
    }
    pairs
}
