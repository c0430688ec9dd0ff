//! One writer per file: enforced in this process, and by advisory locks across processes.
//!
//! In the process two keys are locked, always in this order: the real path, which stays the same
//! when a rename gives the file a new inode, and the file object, which hard links share. Other
//! processes see a `flock`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::JournalError;
use crate::open::{is_behind_link, open_regular};

const TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_PAUSE: Duration = Duration::from_millis(10);

static HELD: Mutex<BTreeSet<LockKey>> = Mutex::new(BTreeSet::new());
static FREED: Condvar = Condvar::new();

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum LockKey {
    Path(PathBuf),
    Object { device: u64, inode: u64 },
}

/// The number of files of one unit that are also locked against other processes, which takes an
/// open file each. For the rest, the check before each commit has to suffice.
const LOCKED_ACROSS: usize = 256;

/// A lock held during read, check and write; released on drop.
#[derive(Debug)]
pub(crate) struct FileLock {
    // Dropped in this order: first the locks that other processes see, then those of this one.
    _objects: ObjectLocks,
    _paths: Vec<KeyLock>,
}

#[derive(Debug, Default)]
struct ObjectLocks {
    across_processes: Vec<File>,
    held: Vec<KeyLock>,
}

impl FileLock {
    /// Waits for the lock of the file at a resolved path, which may not exist yet.
    pub(crate) fn hold(real: &Path) -> Result<Self, JournalError> {
        Self::hold_all(&[real])
    }

    /// Like [`Self::hold_all`], but for any number of paths of any kind. Paths that are not regular
    /// files, and files beyond the first [`LOCKED_ACROSS`], are locked only in this process.
    pub(crate) fn hold_many(reals: &[&Path]) -> Result<Self, JournalError> {
        let sorted: BTreeSet<&Path> = reals.iter().copied().collect();
        let paths: Vec<KeyLock> = sorted
            .iter()
            .map(|real| KeyLock::acquire(LockKey::Path(real.to_path_buf())))
            .collect();
        let is_file = |real: &&&Path| {
            fs::symlink_metadata(real).is_ok_and(|found| found.is_file()) && !is_behind_link(real)
        };
        let files: BTreeSet<&Path> = sorted
            .iter()
            .filter(is_file)
            .take(LOCKED_ACROSS)
            .copied()
            .collect();
        Self::hold_objects(&files, paths)
    }

    /// Waits for the locks of several files. All paths are locked before all objects, each in
    /// order, so that no two holders can wait for each other.
    pub(crate) fn hold_all(reals: &[&Path]) -> Result<Self, JournalError> {
        let sorted: BTreeSet<&Path> = reals.iter().copied().collect();
        let paths: Vec<KeyLock> = sorted
            .iter()
            .map(|real| KeyLock::acquire(LockKey::Path(real.to_path_buf())))
            .collect();
        Self::hold_objects(&sorted, paths)
    }

    fn hold_objects(reals: &BTreeSet<&Path>, paths: Vec<KeyLock>) -> Result<Self, JournalError> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(objects) = ObjectLocks::hold(reals, deadline)? {
                return Ok(Self {
                    _objects: objects,
                    _paths: paths,
                });
            }
        }
    }
}

impl ObjectLocks {
    /// Returns `None` if the previous holder replaced a file, which makes the lock useless.
    fn hold(reals: &BTreeSet<&Path>, deadline: Instant) -> Result<Option<Self>, JournalError> {
        let mut found: BTreeMap<(u64, u64), (&Path, Option<File>)> = BTreeMap::new();
        for &real in reals {
            let opened = match open_regular(real) {
                Ok(opened) => opened,
                Err(JournalError::DoesNotExist { .. }) => continue,
                Err(error) => return Err(error),
            };
            let file = (found.len() < LOCKED_ACROSS).then_some(opened.file);
            // Two names of one object are locked once.
            found
                .entry((opened.stamp.device, opened.stamp.inode))
                .or_insert((real, file));
        }
        let mut objects = Self::default();
        for &(device, inode) in found.keys() {
            objects
                .held
                .push(KeyLock::acquire(LockKey::Object { device, inode }));
        }
        for (key, (real, file)) in found {
            if let Some(file) = file {
                let locked =
                    wait_for_flock(file, deadline).ok_or_else(|| JournalError::Locked {
                        path: real.to_path_buf(),
                    })?;
                objects.across_processes.push(locked);
            }
            let current = fs::symlink_metadata(real).ok();
            if current.is_none_or(|found| (found.dev(), found.ino()) != key) {
                return Ok(None);
            }
        }
        Ok(Some(objects))
    }
}

fn wait_for_flock(file: File, deadline: Instant) -> Option<File> {
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(RETRY_PAUSE),
            Err(Errno::WOULDBLOCK) => return None,
            Err(Errno::INTR) => {}
            // Some network file systems have no locks: the check before the commit has to suffice.
            Ok(()) | Err(_) => return Some(file),
        }
    }
}

#[derive(Debug)]
struct KeyLock(LockKey);

impl KeyLock {
    fn acquire(key: LockKey) -> Self {
        let mut held = lock_table();
        while held.contains(&key) {
            held = FREED.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.insert(key.clone());
        Self(key)
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        lock_table().remove(&self.0);
        FREED.notify_all();
    }
}

fn lock_table() -> MutexGuard<'static, BTreeSet<LockKey>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}
