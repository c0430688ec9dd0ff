//! The stamp and the content hash, which identify a state of a file.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// Timestamps are trusted only if they were at least this old when they were read: two writes
/// within one clock tick leave the same mtime.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

const TICK: Duration = Duration::from_millis(20);

/// Identity and attributes of an open file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The device number of the file system.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last content change, in nanoseconds since the epoch.
    pub mtime_ns: i128,
    /// The time of the last status change. Unlike mtime it cannot be set, so a forged mtime is
    /// noticed.
    pub ctime_ns: i128,
    /// File type and permissions.
    pub mode: u32,
    /// The number of hard links.
    pub links: u64,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl Stamp {
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            mtime_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            ctime_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            mode: metadata.mode(),
            links: metadata.nlink(),
            uid: metadata.uid(),
            gid: metadata.gid(),
        }
    }

    #[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(crate) fn from_stat(found: &Stat) -> Self {
        Self {
            device: found.st_dev as u64,
            inode: found.st_ino as u64,
            size: found.st_size as u64,
            mtime_ns: nanoseconds(found.st_mtime as i64, found.st_mtime_nsec as i64),
            ctime_ns: nanoseconds(found.st_ctime as i64, found.st_ctime_nsec as i64),
            mode: found.st_mode as u32,
            links: found.st_nlink as u64,
            uid: found.st_uid,
            gid: found.st_gid,
        }
    }

    /// Returns whether all fields are equal, except the number of links, which other names change.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.looks_like(other)
            && self.ctime_ns == other.ctime_ns
            && (self.mode, self.uid, self.gid) == (other.mode, other.uid, other.gid)
    }

    /// Returns whether it is the same object with the same size and mtime; a write within the same
    /// tick goes unnoticed.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        self.same_object(other) && self.size == other.size && self.mtime_ns == other.mtime_ns
    }

    pub(crate) fn same_object(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Returns whether the times are old enough now that any later write must change them.
    pub(crate) fn is_settled(&self) -> bool {
        let newest = self.mtime_ns.max(self.ctime_ns);
        now_ns() - newest >= SETTLED_AFTER.as_nanos() as i128
    }

    /// Returns how long it takes until every further change must alter the times.
    pub(crate) fn until_certain(&self, now_ns: i128) -> Duration {
        let since = (now_ns - self.ctime_ns).clamp(0, i128::from(u64::MAX));
        self.tick()
            .saturating_sub(Duration::from_nanos(since as u64))
    }

    /// Returns the maximum time between two writes that leave the same times: twice the longest
    /// kernel tick, or longer if the file system seems to store whole seconds only.
    fn tick(&self) -> Duration {
        const SECOND: i128 = 1_000_000_000;
        if self.mtime_ns % SECOND == 0 && self.ctime_ns % SECOND == 0 {
            SETTLED_AFTER
        } else {
            TICK
        }
    }

    /// Returns whether no write bit is set. Such a file must not be changed, not even by root.
    pub(crate) fn is_read_only(&self) -> bool {
        self.mode & 0o222 == 0
    }
}

/// Returns the current time in nanoseconds since the epoch.
pub(crate) fn now_ns() -> i128 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.as_nanos() as i128
}

fn nanoseconds(seconds: i64, rest: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}

/// The BLAKE3 hash of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash(blake3::Hash);

impl ContentHash {
    /// Returns the hash of these bytes.
    pub fn compute(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes))
    }

    pub(crate) fn finish(hasher: &blake3::Hasher) -> Self {
        Self(hasher.finalize())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.to_hex())
    }
}
