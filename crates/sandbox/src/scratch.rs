//! The folder for temporary files of a session's commands.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::{DirBuilderExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::scratch_lease;

/// The largest depth of directories that are made accessible; deeper ones stay.
const MAX_DEPTH: u32 = 500;

/// The folder for temporary files. It is removed when the last reference is dropped. Processes that
/// may still write there must have ended by then; see [`is_last`].
pub(crate) struct ScratchFolder {
    path: PathBuf,
    /// The lock that marks the folder as in use by our process.
    lock: Mutex<Option<File>>,
}

impl ScratchFolder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            lock: Mutex::default(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Marks the folder, which a sandbox has created, as in use by our process.
    pub(crate) fn hold(&self) {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // If our lock fails, the sandbox still has its own.
        *lock = scratch_lease::lock(&self.path).ok();
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Returns whether this is the only reference to the folder.
pub(crate) fn is_last(scratch: &Arc<ScratchFolder>) -> bool {
    Arc::strong_count(scratch) == 1
}

pub(crate) fn make(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Removes the folder with its contents.
pub(crate) fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_err() && path.exists() {
        // Commands may leave directories that not even their owner may change.
        if let Ok(folder) = openat(CWD, path, DIRECTORY, Mode::empty()) {
            open_up(&folder, MAX_DEPTH);
        }
        if let Err(error) = fs::remove_dir_all(path) {
            tracing::debug!(%error, path = %path.display(), "temporary files stay");
        }
    }
}

/// Opens a directory itself, regardless of its mode, and never the target of a symlink.
const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Makes a directory and all those below it accessible to their owner. Works on open directories,
/// so that one that is replaced by a symlink in the meantime is not followed.
fn open_up(directory: &OwnedFd, depth: u32) {
    let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o700));
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
        if let Ok(below) = openat(directory, entry.file_name(), DIRECTORY, Mode::empty()) {
            open_up(&below, depth - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_may_change_is_removed_and_what_a_link_leads_to_is_not() {
        let place = tempfile::tempdir().unwrap();
        let (scratch, outside) = (place.path().join("scratch"), place.path().join("outside"));
        fs::create_dir_all(scratch.join("a/b")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o500)).unwrap();
        std::os::unix::fs::symlink(&outside, scratch.join("a/link")).unwrap();
        fs::write(scratch.join("a/b/file"), "").unwrap();
        for closed in ["a/b", "a"] {
            fs::set_permissions(scratch.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
        }
        drop(ScratchFolder::new(scratch.clone()));
        assert!(!scratch.exists());
        let mode = fs::metadata(&outside).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o500);
    }
}
