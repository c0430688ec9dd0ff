//! A scan of everything below some directories: names, kinds and stamps, but no contents.
//!
//! Hidden and ignored files are included. Files that git ignores are scanned last, so that a limit
//! that is reached there affects only those directories. Links are never followed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::keep_priority::{DirectoryIgnores, KeepPriority};
use super::listings::ListingTree;
use super::watch::TreeWatch;
use crate::stamp::Stamp;

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    pub(crate) name: OsString,
    pub(crate) stamp: Stamp,
    /// The target, if the entry is a symbolic link.
    pub(crate) target: Option<PathBuf>,
}

impl TreeEntry {
    /// Returns the entry at a path, or `None` if the path does not exist.
    pub(crate) fn from_path(path: &Path) -> io::Result<Option<Self>> {
        match fs::symlink_metadata(path) {
            Ok(found) => Self::from_metadata(path, OsString::new(), &found).map(Some),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn from_metadata(path: &Path, name: OsString, found: &Metadata) -> io::Result<Self> {
        let target = match found.is_symlink() {
            true => Some(fs::read_link(path)?),
            false => None,
        };
        Ok(Self {
            name,
            stamp: Stamp::from_metadata(found),
            target,
        })
    }

    pub(crate) fn kind(&self) -> ScannedKind {
        ScannedKind::from_stamp(&self.stamp)
    }
}

/// The name of the kind of named pipes.
pub(crate) const NAMED_PIPE: &str = "a named pipe";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScannedKind {
    File,
    Directory,
    Link,
    /// Another kind, with its name.
    Special(&'static str),
}

impl ScannedKind {
    pub(crate) fn from_stamp(stamp: &Stamp) -> Self {
        use rustix::fs::FileType;
        match FileType::from_raw_mode(stamp.mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Special(NAMED_PIPE),
            FileType::Socket => Self::Special("a socket"),
            _ => Self::Special("a device"),
        }
    }
}

/// A directory with its entries, sorted by name.
#[derive(Debug)]
pub(crate) struct ScannedListing {
    pub(crate) entries: Vec<TreeEntry>,
    pub(crate) rank: KeepPriority,
    pub(crate) ignores: Option<Arc<DirectoryIgnores>>,
}

impl ScannedListing {
    pub(crate) fn find(&self, name: &OsStr) -> Option<&TreeEntry> {
        self.entries.get(self.position(name)?)
    }

    pub(crate) fn position(&self, name: &OsStr) -> Option<usize> {
        let by_name = |entry: &TreeEntry| entry.name.as_bytes().cmp(name.as_bytes());
        self.entries.binary_search_by(by_name).ok()
    }
}

/// The result of a scan: the state of all directories at one time.
#[derive(Debug, Default)]
pub(crate) struct ScannedTree {
    /// The listings by path. Unchanged ones are shared with earlier scans.
    pub(crate) listings: ListingTree,
    /// The paths where the scan started, and other requested paths; they may be missing.
    pub(crate) points: BTreeMap<PathBuf, Option<TreeEntry>>,
    /// Directories that could not be scanned, with the reason.
    pub(crate) unseen: BTreeMap<PathBuf, String>,
    /// Directories whose changes are not reported.
    pub(crate) unwatched: BTreeSet<PathBuf>,
    pub(crate) entries: usize,
}

impl ScannedTree {
    /// Returns the reason why this path, or what is below it, was not scanned.
    pub(crate) fn why_unseen(&self, path: &Path) -> Option<&str> {
        if self.unseen.is_empty() {
            return None;
        }
        let mut above = path.ancestors();
        above.find_map(|path| self.unseen.get(path).map(String::as_str))
    }
}

/// The paths to scan and the limits of the scan.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScanArea {
    /// Real paths; no path is below another one.
    pub(crate) roots: Vec<PathBuf>,
    /// Real paths; everything below them is scanned first.
    pub(crate) named: Vec<PathBuf>,
    pub(crate) leave_out: HashSet<PathBuf>,
    pub(crate) entries: usize,
    pub(crate) deadline: Option<Instant>,
}

/// The limit that was reached before everything important was scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanLimit {
    Entries,
    Time,
}

impl ScanArea {
    /// Scans the area. Directories are watched before they are listed. `Err`: a limit was reached
    /// before all files that git does not ignore were scanned.
    pub(crate) fn scan(&self, watch: Option<&TreeWatch>) -> Result<ScannedTree, ScanLimit> {
        let mut tree = ScannedTree::default();
        let first = self.read_start_points(&mut tree);
        let mut found = self.run(first, 0, false, watch)?;
        let later = std::mem::take(&mut found.later);
        let count = found.count;
        tree.take(found);
        let paths: Vec<PathBuf> = later.iter().map(|one| one.path.clone()).collect();
        match self.run(later, count, true, watch) {
            Ok(found) => tree.take(found),
            Err(reason) => {
                let why = match reason {
                    ScanLimit::Entries => format!("more than {} files", grouped(self.entries)),
                    ScanLimit::Time => "scanning it took too long".to_owned(),
                };
                let unseen = paths.into_iter().map(|path| (path, why.clone()));
                tree.unseen.extend(unseen);
            }
        }
        tree.entries = tree.listings.entries();
        Ok(tree)
    }

    /// Splits the area: the roots with the named paths inside them, and the named paths elsewhere.
    pub(super) fn split(&self) -> (Self, Option<Self>) {
        let is_inside = |path: &&PathBuf| self.roots.iter().any(|root| path.starts_with(root));
        let (inside, outside): (Vec<_>, Vec<_>) = self.named.iter().partition(is_inside);
        let with = |roots: &[PathBuf], named: Vec<&PathBuf>| Self {
            roots: roots.to_vec(),
            named: named.into_iter().cloned().collect(),
            ..self.clone()
        };
        let outside = (!outside.is_empty()).then(|| with(&[], outside));
        (with(&self.roots, inside), outside)
    }

    /// Reads the paths where the scan starts; returns the directories to scan.
    pub(super) fn read_start_points(&self, tree: &mut ScannedTree) -> Vec<PendingDirectory> {
        let mut first = Vec::new();
        for root in self.roots.iter().chain(&self.named) {
            self.point(root, tree);
            let is_named = self.named.contains(root);
            let is_inside = is_named && self.roots.iter().any(|other| root.starts_with(other));
            if !is_inside {
                if let (true, Some(above)) = (is_named, root.parent()) {
                    self.point(above, tree);
                }
                let rank = if is_named {
                    KeepPriority::Named
                } else {
                    KeepPriority::Plain
                };
                first.push(PendingDirectory::root(root, rank));
            }
        }
        first
    }

    /// Adds everything below these directories.
    pub(super) fn scan_below(
        &self,
        directories: Vec<PendingDirectory>,
        already: usize,
        watch: Option<&TreeWatch>,
        tree: &mut ScannedTree,
    ) -> Result<(), ScanLimit> {
        if !directories.is_empty() {
            let found = self.run(directories, already, true, watch)?;
            tree.take(found);
        }
        Ok(())
    }

    /// Returns the entries of a directory, sorted and without left-out paths, and whether later
    /// changes of it will be reported.
    pub(super) fn list(
        &self,
        directory: &Path,
        watch: Option<&TreeWatch>,
    ) -> io::Result<(Vec<TreeEntry>, bool)> {
        let watch = watch.filter(|watch| watch.add_directory(directory));
        let mut entries = entries_of(directory)?;
        if !self.leave_out.is_empty() {
            entries.retain(|entry| !self.leave_out.contains(&directory.join(&entry.name)));
        }
        entries.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        let Some(watch) = watch else {
            return Ok((entries, false));
        };
        let is_linked =
            |entry: &TreeEntry| entry.kind() == ScannedKind::File && entry.stamp.links > 1;
        let linked = entries.iter().filter(|entry| is_linked(entry));
        let is_watched = watch.set_files(directory, linked.map(|entry| &*entry.name));
        // Reads the stamps again, because a file may have been written before it was watched.
        for entry in entries.iter_mut().filter(|entry| is_linked(entry)) {
            if let Ok(found) = fs::symlink_metadata(directory.join(&entry.name)) {
                let now = Stamp::from_metadata(&found);
                if now.same_object(&entry.stamp) {
                    entry.stamp = now;
                }
            }
        }
        Ok((entries, is_watched))
    }

    /// Returns the directories among these entries, with their ranks.
    pub(super) fn directories_in(
        &self,
        pending: &PendingDirectory,
        entries: &[TreeEntry],
        ignores: Option<&Arc<DirectoryIgnores>>,
    ) -> Vec<PendingDirectory> {
        let is_repository = KeepPriority::is_repository(entries);
        let directories = entries.iter();
        let directories = directories.filter(|entry| entry.kind() == ScannedKind::Directory);
        directories
            .map(|entry| {
                let path = pending.path.join(&entry.name);
                let rank = if self.named.contains(&path) {
                    KeepPriority::Named
                } else {
                    let ignores = ignores.map(|ignores| &**ignores);
                    pending
                        .rank
                        .for_directory(&path, &entry.name, is_repository, ignores)
                };
                PendingDirectory {
                    path,
                    rank,
                    ignores: ignores.cloned(),
                    device: Some(entry.stamp.device),
                }
            })
            .collect()
    }

    /// Reads the state of a path; if it is missing, also of its ancestors up to one that exists.
    fn point(&self, path: &Path, tree: &mut ScannedTree) {
        for path in path.ancestors() {
            match TreeEntry::from_path(path) {
                Ok(Some(entry)) => {
                    tree.points.insert(path.to_path_buf(), Some(entry));
                    return;
                }
                Ok(None) => {
                    tree.points.insert(path.to_path_buf(), None);
                }
                Err(error) => {
                    tree.unseen.insert(path.to_path_buf(), error.to_string());
                    return;
                }
            }
        }
    }

    /// Scans everything below these directories; unless `last` is set, ignored directories are
    /// postponed.
    fn run(
        &self,
        start: Vec<PendingDirectory>,
        already: usize,
        last: bool,
        watch: Option<&TreeWatch>,
    ) -> Result<WalkResult, ScanLimit> {
        let shared = SharedScan {
            area: self,
            last,
            watch,
            count: AtomicUsize::new(already),
            stopped: AtomicBool::new(false),
            late: AtomicBool::new(false),
            state: Mutex::new(WalkState {
                queue: start,
                ..WalkState::default()
            }),
            changed: Condvar::new(),
        };
        std::thread::scope(|scope| {
            for _ in 1..threads_for(usize::MAX) {
                scope.spawn(|| shared.work());
            }
            shared.work();
        });
        let count = shared.count.load(Ordering::Relaxed);
        if shared.late.load(Ordering::Relaxed) {
            return Err(ScanLimit::Time);
        }
        if shared.stopped.load(Ordering::Relaxed) {
            return Err(ScanLimit::Entries);
        }
        let mut found = shared
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .found;
        found.count = count;
        Ok(found)
    }
}

impl ScannedTree {
    fn take(&mut self, found: WalkResult) {
        for (path, listing) in found.listings {
            self.listings.insert(&path, Arc::new(listing));
        }
        self.unseen.extend(found.unseen);
        self.unwatched.extend(found.unwatched);
    }

    /// Adds the result of a scan of other paths.
    pub(super) fn add(&mut self, other: Self) {
        other.listings.for_each(|path, listing| {
            if !self.listings.contains(path) {
                self.listings.insert(path, Arc::clone(listing));
            }
        });
        self.points.extend(other.points);
        self.unseen.extend(other.unseen);
        self.entries = self.listings.entries();
    }
}

/// The number of threads: more than four would wait for each other in the kernel, and few
/// directories need only one.
pub(super) fn threads_for(count: usize) -> usize {
    let most = std::thread::available_parallelism().map_or(1, |count| count.get().min(4));
    most.min(count / 64 + 1)
}

/// A directory that is still to be scanned.
#[derive(Debug)]
pub(super) struct PendingDirectory {
    pub(super) path: PathBuf,
    pub(super) rank: KeepPriority,
    pub(super) ignores: Option<Arc<DirectoryIgnores>>,
    pub(super) device: Option<u64>,
}

impl PendingDirectory {
    fn root(path: &Path, rank: KeepPriority) -> Self {
        Self {
            path: path.to_path_buf(),
            rank,
            ignores: None,
            device: None,
        }
    }
}

#[derive(Default)]
struct WalkResult {
    listings: Vec<(PathBuf, ScannedListing)>,
    unseen: Vec<(PathBuf, String)>,
    later: Vec<PendingDirectory>,
    unwatched: Vec<PathBuf>,
    count: usize,
}

#[derive(Default)]
struct WalkState {
    queue: Vec<PendingDirectory>,
    busy: usize,
    found: WalkResult,
}

struct SharedScan<'a> {
    area: &'a ScanArea,
    /// Ignored directories are scanned, too, instead of being postponed.
    last: bool,
    watch: Option<&'a TreeWatch>,
    count: AtomicUsize,
    stopped: AtomicBool,
    late: AtomicBool,
    state: Mutex<WalkState>,
    changed: Condvar,
}

impl SharedScan<'_> {
    fn lock(&self) -> MutexGuard<'_, WalkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut own = WalkResult::default();
        while let Some(pending) = self.next() {
            let below = if self.stopped.load(Ordering::Relaxed) {
                Vec::new()
            } else {
                self.list(pending, &mut own)
            };
            let mut state = self.lock();
            state.queue.extend(below);
            state.busy -= 1;
            self.changed.notify_all();
        }
        let mut state = self.lock();
        state.found.listings.append(&mut own.listings);
        state.found.unseen.append(&mut own.unseen);
        state.found.later.append(&mut own.later);
        state.found.unwatched.append(&mut own.unwatched);
    }

    /// Returns the next directory; `None` if nothing is left and no thread can add more.
    fn next(&self) -> Option<PendingDirectory> {
        let mut state = self.lock();
        loop {
            if let Some(pending) = state.queue.pop() {
                state.busy += 1;
                return Some(pending);
            }
            if state.busy == 0 {
                self.changed.notify_all();
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lists one directory; returns the subdirectories to scan now.
    fn list(&self, pending: PendingDirectory, found: &mut WalkResult) -> Vec<PendingDirectory> {
        let (entries, is_watched) = match self.area.list(&pending.path, self.watch) {
            Ok(found) => found,
            Err(error) if is_missing(&error) => return Vec::new(),
            Err(error) => {
                let why = format!("it cannot be read: {error}");
                found.unseen.push((pending.path, why));
                return Vec::new();
            }
        };
        let count = self.count.fetch_add(entries.len(), Ordering::Relaxed) + entries.len();
        let is_late = self
            .area
            .deadline
            .is_some_and(|deadline| Instant::now() > deadline);
        if is_late {
            self.late.store(true, Ordering::Relaxed);
        }
        if is_late || count > self.area.entries {
            self.stopped.store(true, Ordering::Relaxed);
            return Vec::new();
        }
        let ignores = DirectoryIgnores::extend(
            &pending.path,
            &entries,
            pending.ignores.clone(),
            pending.rank,
        );
        let mut below = Vec::new();
        for next in self
            .area
            .directories_in(&pending, &entries, ignores.as_ref())
        {
            let crossed = pending.device.is_some() && pending.device != next.device;
            if crossed && is_of_the_kernel(&next.path) {
                found
                    .unseen
                    .push((next.path, "the kernel's own files".to_owned()));
                continue;
            }
            if next.rank == KeepPriority::Ignored && !self.last {
                found.later.push(next);
            } else {
                below.push(next);
            }
        }
        if self.watch.is_some() && !is_watched {
            found.unwatched.push(pending.path.clone());
        }
        let listing = ScannedListing {
            entries,
            rank: pending.rank,
            ignores,
        };
        found.listings.push((pending.path, listing));
        below
    }
}

fn entries_of(directory: &Path) -> io::Result<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let found = match entry.metadata() {
            Err(error) if is_missing(&error) => continue,
            found => found?,
        };
        let path = match found.is_symlink() {
            true => entry.path(),
            false => PathBuf::new(),
        };
        match TreeEntry::from_metadata(&path, entry.file_name(), &found) {
            Err(error) if is_missing(&error) || error.kind() == io::ErrorKind::InvalidInput => {}
            entry => entries.push(entry?),
        }
    }
    Ok(entries)
}

/// Returns whether the error means that the path does not exist.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Returns whether this is `/proc` or a similar file system, where reading has effects and may
/// never end.
fn is_of_the_kernel(path: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        // proc, sysfs, cgroup, cgroup2, debugfs, tracefs, bpf, securityfs
        const MAGIC: [u64; 8] = [
            0x9fa0,
            0x6265_6572,
            0x0027_e0eb,
            0x6367_7270,
            0x6462_6720,
            0x7472_6163,
            0xcafe_4a11,
            0x7363_6673,
        ];
        rustix::fs::statfs(path).is_ok_and(|found| MAGIC.contains(&(found.f_type as u64)))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        false
    }
}

/// Formats a number with separators, like `200,000`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod walk_tests;
