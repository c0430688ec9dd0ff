//! Leases: what the running commands of a session may store.
//!
//! The limits apply to the session, so a command gets a lease and asks for more when it has used it.
//! Before a limit refuses, the oldest units are dropped, but none younger than
//! [`UndoLimits::min_age`](super::UndoLimits::min_age).

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::UndoHistory;
use super::limits::UndoTotals;
use crate::error::JournalError;

/// The unit in which leases are given, so that a command rarely asks: 64 MiB of copies, and removed
/// files of 1 GiB.
const STEP: StoredBytes = StoredBytes {
    copied: 64 << 20,
    pinned: 1 << 30,
};
/// The space that stays free: this many bytes, or this part of the disk, whichever is more.
const MIN_FREE: u64 = 1 << 30;
const MIN_FREE_PART: u64 = 50;
/// The size of the blocks in which `stat` counts the allocated space.
const BLOCK: u64 = 512;

/// Numbers of stored bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredBytes {
    /// The bytes of copies.
    pub copied: u64,
    /// The sizes of removed files that are stored by a hard link.
    pub pinned: u64,
}

impl StoredBytes {
    fn plus(self, other: Self) -> Self {
        Self {
            copied: self.copied.saturating_add(other.copied),
            pinned: self.pinned.saturating_add(other.pinned),
        }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            copied: self.copied.saturating_sub(other.copied),
            pinned: self.pinned.saturating_sub(other.pinned),
        }
    }

    fn at_most(self, other: Self) -> Self {
        Self {
            copied: self.copied.min(other.copied),
            pinned: self.pinned.min(other.pinned),
        }
    }

    fn covers(self, other: Self) -> bool {
        self.copied >= other.copied && self.pinned >= other.pinned
    }
}

/// The leases of the running commands, by the names of their folders.
#[derive(Debug, Clone, Default)]
pub(super) struct StorageLeases(Arc<Mutex<HashMap<String, StoredBytes>>>);

impl StorageLeases {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, StoredBytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn total(&self) -> StoredBytes {
        let all = self.lock();
        all.values()
            .fold(StoredBytes::default(), |sum, one| sum.plus(*one))
    }
}

/// Ends the lease of a command when it is dropped.
#[derive(Debug)]
pub(crate) struct LeaseGuard {
    leases: StorageLeases,
    name: String,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.leases.lock().remove(&self.name);
    }
}

impl UndoHistory {
    /// Returns the guard that ends the lease of a command.
    pub(crate) fn lease_guard(&self, name: &str) -> LeaseGuard {
        LeaseGuard {
            leases: self.leases.clone(),
            name: name.to_owned(),
        }
    }

    /// Returns how many more bytes the command with this name may store: at least `needed`. `None` if
    /// the limits do not allow that, even after the oldest units were dropped.
    pub(crate) fn extend_lease(&self, name: &str, needed: StoredBytes) -> Option<StoredBytes> {
        let mut room = self.room().ok()?;
        if !room.covers(needed) {
            self.free_room(needed);
            room = self.room().ok()?;
        }
        if !room.covers(needed) {
            return None;
        }
        let mut lease = needed;
        if needed.copied > 0 || needed.pinned == 0 {
            lease.copied = needed.copied.max(STEP.copied.min(room.copied));
        }
        if needed.pinned > 0 || needed.copied == 0 {
            lease.pinned = needed.pinned.max(STEP.pinned.min(room.pinned));
        }
        self.add_lease(name, lease);
        Some(lease)
    }

    /// Adds bytes that a command stores regardless of the limits.
    pub(crate) fn add_lease(&self, name: &str, more: StoredBytes) {
        let mut all = self.leases.lock();
        let lease = all.entry(name.to_owned()).or_default();
        *lease = lease.plus(more);
    }

    /// Returns the bytes that running commands may store in addition to their leases.
    fn room(&self) -> Result<StoredBytes, JournalError> {
        let used = self.used()?.plus(self.leases.total());
        Ok(self.max_stored(used).minus(used))
    }

    /// Returns the limits, given what is stored and leased.
    pub(super) fn max_stored(&self, used: StoredBytes) -> StoredBytes {
        let disk = rustix::fs::statvfs(self.folder()).ok();
        let space = disk.map(|disk| {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let size = disk.f_blocks.saturating_mul(disk.f_frsize);
            let reserve = (size / MIN_FREE_PART).max(MIN_FREE);
            StoredBytes {
                copied: free.saturating_sub(reserve).saturating_add(used.copied),
                pinned: free.saturating_add(used.pinned) / 4,
            }
        });
        let limits = StoredBytes {
            copied: self.limits.bytes,
            pinned: self.limits.pinned,
        };
        space.map_or(limits, |space| limits.at_most(space))
    }

    /// Returns what the recorded units and shared copies use.
    fn used(&self) -> Result<StoredBytes, JournalError> {
        let mut tally = self.tally();
        if tally.is_none() {
            *tally = Some(UndoTotals::from_units(&self.units()?, self.store()));
        }
        let used = tally.get_or_insert_default().stored();
        let shared = self.unused_shared_copies();
        let shared = shared.iter().map(|(_, size, _)| size).sum();
        Ok(used.plus(StoredBytes {
            copied: shared,
            pinned: 0,
        }))
    }

    /// Frees room for a command: removes copies that no unit needs, and then the oldest units.
    fn free_room(&self, needed: StoredBytes) {
        let mut shared = self.unused_shared_copies();
        shared.sort_by_key(|(_, _, time)| *time);
        let mut has_room = false;
        for (path, _, _) in shared {
            let _ = fs::remove_file(path);
            has_room = self.room().is_ok_and(|room| room.covers(needed));
            if has_room {
                break;
            }
        }
        if !has_room {
            let _ = self.drop_oldest(needed.plus(self.leases.total()));
        }
    }

    /// Returns the shared copies that no unit uses, each with its size and the time when it was made.
    fn unused_shared_copies(&self) -> Vec<(PathBuf, u64, i64)> {
        let entries = fs::read_dir(self.store().shared_copies_folder());
        let entries = entries.into_iter().flatten().flatten();
        let unused = entries.filter_map(|entry| {
            let found = entry.metadata().ok()?;
            // A copy that a unit uses has another name, and is added there.
            (found.is_file() && found.nlink() == 1).then(|| {
                let size = stored_size(&found);
                (entry.path(), size, found.mtime())
            })
        });
        unused.collect()
    }
}

/// Returns the size of a stored file without its holes.
fn stored_size(found: &fs::Metadata) -> u64 {
    found.blocks().saturating_mul(BLOCK).min(found.len())
}

/// Returns the size of a stored content without its holes; 0 if it is not stored.
pub(super) fn size_at(path: &Path) -> u64 {
    path.symlink_metadata()
        .map_or(0, |found| stored_size(&found))
}
