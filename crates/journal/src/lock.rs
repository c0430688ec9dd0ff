//! One writer per file: in this process and, by advice, across processes.
//!
//! In the process two keys are held, always in this order: the real path, which
//! stays the same when a rename gives the file a new inode, and the object
//! itself, which is what hard links share. Other processes see a `flock`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::JournalError;
use crate::open::open_regular;

const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

static HELD: Mutex<BTreeSet<Key>> = Mutex::new(BTreeSet::new());
static FREED: Condvar = Condvar::new();

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Path(PathBuf),
    Object { device: u64, inode: u64 },
}

/// Held around read, check and write; released on drop.
#[derive(Debug)]
pub(crate) struct FileLock {
    // Dropped in this order: other processes first, then the threads of this one.
    _across_processes: Option<File>,
    _object: Option<Held>,
    _path: Held,
}

impl FileLock {
    /// Waits for the file at a resolved path, which may not exist yet.
    pub(crate) fn hold(real: &Path) -> Result<Self, JournalError> {
        let path = Held::acquire(Key::Path(real.to_path_buf()));
        let deadline = Instant::now() + PATIENCE;
        loop {
            let opened = match open_regular(real) {
                Ok(opened) => opened,
                Err(JournalError::DoesNotExist { .. }) => {
                    return Ok(Self {
                        _across_processes: None,
                        _object: None,
                        _path: path,
                    });
                }
                Err(error) => return Err(error),
            };
            let (device, inode) = (opened.stamp.device, opened.stamp.inode);
            let object = Held::acquire(Key::Object { device, inode });
            let across_processes =
                wait_for_flock(opened.file, deadline).ok_or_else(|| JournalError::Locked {
                    path: real.to_path_buf(),
                })?;
            // The holder before us may have replaced the file; its lock is then a lock on nothing.
            let current = fs::symlink_metadata(real).ok();
            if current.is_some_and(|found| (found.dev(), found.ino()) == (device, inode)) {
                return Ok(Self {
                    _across_processes: Some(across_processes),
                    _object: Some(object),
                    _path: path,
                });
            }
        }
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
