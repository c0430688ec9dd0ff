//! What directories held at the last look, so that only those that changed since are read again.
//!
//! The second of a directory's times (`ctime`) changes with every name that is made, removed or renamed in
//! it, and no command can set it. It counts only where that is certain: on disks of this machine, and when
//! the last change was long enough before the reading that a later one cannot have left the same time.
//! Everything else is read each time. What was found is never kept, only which names are worth a look.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, Metadata},
    io,
    num::NonZero,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, SystemTime},
};

use super::super::rules::PathPattern;

/// At most this many looks are kept: of sessions side by side, and with different patterns.
const MOST_LOOKS: usize = 16;

/// Older looks are dropped if all of them together hold more directories than this.
const MAX_DIRECTORIES: usize = 400_000;

/// Two changes within this may leave the same time; some disks count in twos of seconds.
const SETTLED: Duration = Duration::from_secs(3);

/// The last looks, the newest first.
pub(super) struct ScanCache(Mutex<Vec<CachedScan>>);

/// What was seen from some directories on, with some patterns.
struct CachedScan {
    key: ScanKey,
    listings: HashMap<OsString, CachedListing>,
}

#[derive(PartialEq, Eq)]
struct ScanKey {
    roots: Vec<PathBuf>,
    hiding: Vec<PathPattern>,
    locking: Vec<PathPattern>,
}

/// A directory as it was.
struct CachedListing {
    stamp: DirectoryStamp,
    listing: Arc<DirectoryListing>,
    /// This scan has compared the times already, and they are the same.
    is_fresh: bool,
}

/// Which directory it was, and its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DirectoryStamp {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What a directory holds.
#[derive(Debug, Default)]
pub(super) struct DirectoryListing {
    /// How many entries there are.
    pub(super) entries: usize,
    /// Those that are worth a look.
    pub(super) notable: Vec<ListingMatch>,
    /// It exists, and what it holds could not be read.
    pub(super) is_unreadable: bool,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Directory,
    Link,
    Other,
}

/// An entry that is worth a look.
#[derive(Debug)]
pub(super) struct ListingMatch {
    pub(super) name: OsString,
    pub(super) kind: EntryKind,
    pub(super) why: MatchReason,
}

/// Why an entry is worth a look: by its path alone, so that it stays true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchReason {
    /// A pattern hides it.
    Hidden,
    /// A pattern locks it.
    Locked,
    /// Files that decide what other programs run have such names.
    Telling,
    /// A directory: there may be something in it.
    Directory,
    /// A symbolic link, which may lead to one.
    Link,
}

/// The directories of one look.
pub(super) struct ScanListings<'a> {
    kept: &'a ScanCache,
    key: ScanKey,
    before: HashMap<OsString, CachedListing>,
    now: HashMap<OsString, CachedListing>,
    /// By device: can its times be relied on?
    reliable: HashMap<u64, bool>,
    clock: SystemTime,
    /// How many directories were read.
    read: usize,
}

impl ScanCache {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// What the last look at these directories with these patterns left. One beside it begins anew.
    pub(super) fn take(
        &self,
        roots: &[PathBuf],
        [hiding, locking]: [&[&PathPattern]; 2],
        clock: SystemTime,
    ) -> ScanListings<'_> {
        let same = |look: &CachedScan| {
            look.key.roots == roots
                && look.key.hiding.iter().eq(hiding.iter().copied())
                && look.key.locking.iter().eq(locking.iter().copied())
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().position(same).map(|at| kept.remove(at));
        drop(kept);
        let own = |patterns: &[&PathPattern]| patterns.iter().copied().cloned().collect();
        let look = known.unwrap_or_else(|| CachedScan {
            key: ScanKey {
                roots: roots.to_vec(),
                hiding: own(hiding),
                locking: own(locking),
            },
            listings: HashMap::new(),
        });
        ScanListings {
            kept: self,
            key: look.key,
            before: look.listings,
            now: HashMap::new(),
            reliable: HashMap::new(),
            clock,
            read: 0,
        }
    }
}

impl ScanListings<'_> {
    /// Compares the times of all directories of the last scan, by several threads if they are many.
    pub(super) fn compare_times(&mut self) {
        /// Fewer are compared faster than threads start.
        const MANY: usize = 4_096;
        const MAX_THREADS: usize = 8;
        let is_many = self.before.len() > MANY;
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let mut all: Vec<(&OsString, &mut CachedListing)> = self.before.iter_mut().collect();
        for (_, kept) in &mut all {
            kept.is_fresh = false;
        }
        if !is_many || threads == 1 {
            return;
        }
        let part = all.len().div_ceil(threads.min(MAX_THREADS));
        thread::scope(|scope| {
            for part in all.chunks_mut(part) {
                scope.spawn(|| {
                    for (path, kept) in part {
                        kept.is_fresh = DirectoryStamp::read(Path::new(path)) == Some(kept.stamp);
                    }
                });
            }
        });
    }

    /// What a directory holds; `why` says which of it is worth a look.
    pub(super) fn of(
        &mut self,
        directory: &Path,
        why: impl Fn(&Path, EntryKind) -> Option<MatchReason>,
    ) -> Arc<DirectoryListing> {
        if let Some(kept) = self.now.get(directory.as_os_str()) {
            return Arc::clone(&kept.listing);
        }
        if let Some((path, kept)) = self.before.remove_entry(directory.as_os_str())
            && (kept.is_fresh || DirectoryStamp::read(directory) == Some(kept.stamp))
        {
            let listing = Arc::clone(&kept.listing);
            self.now.insert(path, kept);
            return listing;
        }
        // Before it is read: what comes meanwhile changes its times.
        let stamp = DirectoryStamp::read(directory);
        self.read += 1;
        let mut listing = DirectoryListing::default();
        let whole = listing.fill(directory, why).is_some();
        let listing = Arc::new(listing);
        if let Some(stamp) = stamp
            && whole
            && stamp.is_settled(self.clock)
            && self.is_reliable(stamp.device, directory)
        {
            let kept = CachedListing {
                stamp,
                listing: Arc::clone(&listing),
                is_fresh: false,
            };
            self.now.insert(directory.as_os_str().to_owned(), kept);
        }
        listing
    }

    fn is_reliable(&mut self, device: u64, directory: &Path) -> bool {
        let known = self.reliable.entry(device);
        *known.or_insert_with(|| is_of_this_machine(directory))
    }

    /// Leaves them for the next look; how many directories had to be read.
    pub(super) fn keep(self) -> usize {
        let mut kept = self.kept.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One beside it may have been quicker.
        kept.retain(|other| other.key != self.key);
        kept.truncate(MOST_LOOKS - 1);
        let look = CachedScan {
            key: self.key,
            listings: self.now,
        };
        kept.insert(0, look);
        let mut directories = 0;
        let is_kept = kept.iter().position(|look| {
            directories += look.listings.len();
            directories > MAX_DIRECTORIES
        });
        // The newest is always kept.
        kept.truncate(is_kept.map_or(MOST_LOOKS, |first| first.max(1)));
        self.read
    }
}

impl DirectoryStamp {
    fn read(directory: &Path) -> Option<Self> {
        fs::metadata(directory).ok().map(|found| Self::of(&found))
    }

    fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Is the last change so long ago that one after this moment will have another time?
    fn is_settled(&self, now: SystemTime) -> bool {
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        let since = since
            .ok()
            .and_then(|since| i64::try_from(since.as_secs()).ok());
        let margin = SETTLED.as_secs().cast_signed();
        since.is_some_and(|since| self.changed.0 < since - margin)
    }
}

impl DirectoryListing {
    /// Reads it; `None` if not all of it could be read.
    fn fill(
        &mut self,
        directory: &Path,
        why: impl Fn(&Path, EntryKind) -> Option<MatchReason>,
    ) -> Option<()> {
        let mut whole = Some(());
        let entries = fs::read_dir(directory).inspect_err(|error| {
            let is_gone = matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            );
            self.is_unreadable = !is_gone;
        });
        for entry in entries.ok()? {
            let Ok(entry) = entry else {
                self.is_unreadable = true;
                whole = None;
                continue;
            };
            self.entries += 1;
            let kind = entry.file_type();
            if kind.is_err() {
                whole = None;
            }
            let kind = match kind {
                Ok(kind) if kind.is_dir() => EntryKind::Directory,
                Ok(kind) if !kind.is_symlink() => EntryKind::Other,
                Ok(_) | Err(_) => EntryKind::Link,
            };
            if let Some(why) = why(&entry.path(), kind) {
                let name = entry.file_name();
                self.notable.push(ListingMatch { name, kind, why });
            }
        }
        whole
    }
}

/// Is it on a disk of this machine, whose times its own kernel sets?
#[cfg(target_os = "linux")]
fn is_of_this_machine(directory: &Path) -> bool {
    // ext, XFS, Btrfs, tmpfs, overlayfs, ZFS, F2FS, bcachefs
    const MAGIC: [u32; 8] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x794c_7630,
        0x2fc1_2fc1,
        0xf2f5_2010,
        0xca45_1a4e,
    ];
    rustix::fs::statfs(directory).is_ok_and(|found| MAGIC.contains(&(found.f_type as u32)))
}

/// It is not known.
#[cfg(not(target_os = "linux"))]
fn is_of_this_machine(_: &Path) -> bool {
    false
}
