//! The folder for temporary files of a session's commands.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

/// The folder, which goes away with its last holder. What may still write there must be gone
/// by then; see [`is_last`].
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Does no one else hold it?
pub(crate) fn is_last(scratch: &Arc<Scratch>) -> bool {
    Arc::strong_count(scratch) == 1
}

pub(crate) fn make(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

/// Removes the folder with all that is in it.
pub(crate) fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_err() && path.exists() {
        // Commands leave directories that not even their owner may change.
        open_up(path);
        if let Err(error) = fs::remove_dir_all(path) {
            tracing::debug!(%error, path = %path.display(), "temporary files stay");
        }
    }
}

fn open_up(directory: &Path) {
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        // The type of the entry itself: a link leads out of here.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
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
        drop(Scratch::new(scratch.clone()));
        assert!(!scratch.exists());
        let mode = fs::metadata(&outside).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o500);
    }
}
