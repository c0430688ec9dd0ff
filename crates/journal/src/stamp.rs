//! What tells one state of a file from another: its stamp and its content hash.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Timestamps are trusted only when they were at least this old at the time of
/// looking: two writes within one clock tick leave the same mtime.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Identity and attributes of an opened file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    pub mtime_ns: i128,
    /// Unlike mtime it cannot be set back, so a forged mtime is noticed.
    pub ctime_ns: i128,
    pub mode: u32,
    pub links: u64,
    pub uid: u32,
    pub gid: u32,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
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

    /// Same object with the same size and mtime; says nothing about a same-tick write.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        self.same_object(other) && self.size == other.size && self.mtime_ns == other.mtime_ns
    }

    pub(crate) fn same_object(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Were the times old enough, now, that any later write must change them?
    pub(crate) fn is_settled(&self) -> bool {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let newest = self.mtime_ns.max(self.ctime_ns);
        now.as_nanos() as i128 - newest >= SETTLED_AFTER.as_nanos() as i128
    }

    /// A mode without any write bit is a wish to be left alone, also by root.
    pub(crate) fn is_read_only(&self) -> bool {
        self.mode & 0o222 == 0
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}

/// BLAKE3 of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash(blake3::Hash);

impl ContentHash {
    pub fn of(bytes: &[u8]) -> Self {
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
