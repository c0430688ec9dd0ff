//! One writer per file: in this process and, by advice, across processes.
//!
//! In the process two keys are held, always in this order: the real path, which
//! stays the same when a rename gives the file a new inode, and the object
//! itself, which is what hard links share. Other processes see a `flock`.

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

const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

static HELD: Mutex<BTreeSet<Key>> = Mutex::new(BTreeSet::new());
static FREED: Condvar = Condvar::new();

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Path(PathBuf),
    Object { device: u64, inode: u64 },
}

/// How many files of one unit are also locked against other processes, which takes an open file
/// each; for the rest the re-check before each commit must do.
const LOCKED_ACROSS: usize = 256;

/// Held around read, check and write; released on drop.
#[derive(Debug)]
pub(crate) struct FileLock {
    // Dropped in this order: other processes first, then the threads of this one.
    _objects: Objects,
    _paths: Vec<Held>,
}

#[derive(Debug, Default)]
struct Objects {
    across_processes: Vec<File>,
    held: Vec<Held>,
}

impl FileLock {
    /// Waits for the file at a resolved path, which may not exist yet.
    pub(crate) fn hold(real: &Path) -> Result<Self, JournalError> {
        Self::hold_all(&[real])
    }

    /// The same for paths of any kind, and as many as there are: those that are no files, and those
    /// beyond the first few, are only locked in this process.
    pub(crate) fn hold_many(reals: &[&Path]) -> Result<Self, JournalError> {
        let sorted: BTreeSet<&Path> = reals.iter().copied().collect();
        let paths: Vec<Held> = sorted
            .iter()
            .map(|real| Held::acquire(Key::Path(real.to_path_buf())))
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

    /// Waits for several files. All paths come before all objects, each in order, so that no two
    /// holders can wait for each other.
    pub(crate) fn hold_all(reals: &[&Path]) -> Result<Self, JournalError> {
        let sorted: BTreeSet<&Path> = reals.iter().copied().collect();
        let paths: Vec<Held> = sorted
            .iter()
            .map(|real| Held::acquire(Key::Path(real.to_path_buf())))
            .collect();
        Self::hold_objects(&sorted, paths)
    }

    fn hold_objects(reals: &BTreeSet<&Path>, paths: Vec<Held>) -> Result<Self, JournalError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(objects) = Objects::hold(reals, deadline)? {
                return Ok(Self {
                    _objects: objects,
                    _paths: paths,
                });
            }
        }
    }
}

impl Objects {
    /// `None`: a holder before us has replaced a file; its lock is then a lock on nothing.
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
                .push(Held::acquire(Key::Object { device, inode }));
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
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Err(Errno::WOULDBLOCK) => return None,
            Err(Errno::INTR) => {}
            // Some network file systems have no locks: the re-check before the commit must do.
            Ok(()) | Err(_) => return Some(file),
        }
    }
}

#[derive(Debug)]
struct Held(Key);

impl Held {
    fn acquire(key: Key) -> Self {
        let mut held = lock_table();
        while held.contains(&key) {
            held = FREED.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.insert(key.clone());
        Self(key)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        lock_table().remove(&self.0);
        FREED.notify_all();
    }
}

fn lock_table() -> MutexGuard<'static, BTreeSet<Key>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}
