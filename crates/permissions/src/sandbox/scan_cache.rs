//! Caches the contents of scanned directories, so that only changed directories are read again.
//!
//! A directory's `ctime` changes whenever a name in it is created, removed or renamed, and no
//! command can set it. It is used only if this is certain: on file systems of this machine, and if
//! the last change was so long before the scan that a later one must have another time. Other
//! directories are read each time. The cache contains only the names to check, never the result of
//! a check.

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

/// The maximum number of cached scans: of concurrent sessions, and with different patterns.
const MAX_CACHED_SCANS: usize = 16;

/// The maximum number of cached directories. If there are more, the oldest scans are dropped.
const MAX_DIRECTORIES: usize = 400_000;

/// Two changes within this time may have the same `ctime`; some file systems store times in steps
/// of 2 s.
const SETTLED: Duration = Duration::from_secs(3);

/// The cached scans, the newest first.
pub(super) struct ScanCache(Mutex<Vec<CachedScan>>);

/// A scan with some working directories and patterns.
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

/// The cached content of a directory.
struct CachedListing {
    stamp: DirectoryStamp,
    listing: Arc<DirectoryListing>,
    /// Whether the current scan has already compared the times and found them equal.
    is_fresh: bool,
}

/// The identity and times of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DirectoryStamp {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The content of a directory.
#[derive(Debug, Default)]
pub(super) struct DirectoryListing {
    /// The number of entries.
    pub(super) entries: usize,
    /// The entries that a scan must check.
    pub(super) notable: Vec<ListingMatch>,
    /// Whether the directory exists but could not be read completely.
    pub(super) is_unreadable: bool,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScannedEntryKind {
    Directory,
    Link,
    Other,
}

/// An entry that a scan must check.
#[derive(Debug)]
pub(super) struct ListingMatch {
    pub(super) name: OsString,
    pub(super) kind: ScannedEntryKind,
    pub(super) why: MatchReason,
}

/// The reason to check an entry. It depends only on the path, so that it does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchReason {
    /// A pattern hides the path.
    Hidden,
    /// A pattern locks the path.
    Locked,
    /// The name may be the name of a control file.
    Telling,
    /// A directory, which may contain control files.
    Directory,
    /// A symbolic link, which may lead to a directory.
    Link,
}

/// The directories of one scan.
pub(super) struct ScanListings<'a> {
    kept: &'a ScanCache,
    key: ScanKey,
    before: HashMap<OsString, CachedListing>,
    now: HashMap<OsString, CachedListing>,
    /// Whether the times on a device are reliable.
    reliable: HashMap<u64, bool>,
    clock: SystemTime,
    /// The number of directories that were read.
    read: usize,
}

impl ScanCache {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Takes the cached scan with these directories and patterns. A concurrent scan starts without
    /// one.
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
        /// Below this number, comparing is faster than starting threads.
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

    /// Returns the content of a directory. `why` returns the reason to check an entry.
    pub(super) fn listing(
        &mut self,
        directory: &Path,
        why: impl Fn(&Path, ScannedEntryKind) -> Option<MatchReason>,
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
        // Before the directory is read: a change during the read changes its times.
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

    /// Stores the scan for the next one. Returns the number of directories that were read.
    pub(super) fn store_scan(self) -> usize {
        let mut kept = self.kept.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A concurrent scan may have finished earlier.
        kept.retain(|other| other.key != self.key);
        kept.truncate(MAX_CACHED_SCANS - 1);
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
        // The newest scan always stays.
        kept.truncate(is_kept.map_or(MAX_CACHED_SCANS, |first| first.max(1)));
        self.read
    }
}

impl DirectoryStamp {
    fn read(directory: &Path) -> Option<Self> {
        fs::metadata(directory)
            .ok()
            .map(|found| Self::from_metadata(&found))
    }

    fn from_metadata(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Returns whether the last change is so old that a change from now on must have another time.
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
    /// Reads the directory. Returns `None` if a part could not be read.
    fn fill(
        &mut self,
        directory: &Path,
        why: impl Fn(&Path, ScannedEntryKind) -> Option<MatchReason>,
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
                Ok(kind) if kind.is_dir() => ScannedEntryKind::Directory,
                Ok(kind) if !kind.is_symlink() => ScannedEntryKind::Other,
                Ok(_) | Err(_) => ScannedEntryKind::Link,
            };
            if let Some(why) = why(&entry.path(), kind) {
                let name = entry.file_name();
                self.notable.push(ListingMatch { name, kind, why });
            }
        }
        whole
    }
}

/// Returns whether the directory is on a file system of this machine, whose times its kernel sets.
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

/// Returns `false`: it is not known.
#[cfg(not(target_os = "linux"))]
fn is_of_this_machine(_: &Path) -> bool {
    false
}
