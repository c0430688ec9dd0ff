//! Folders for temporary files that a later process can recognize as abandoned.
//!
//! Each process that uses a folder holds a shared lock on it, which the kernel releases when the
//! process dies. A folder without a lock is abandoned. Process IDs would not be enough: they are
//! reused, and differ between PID namespaces.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    hash::{BuildHasher, RandomState},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
    process::geteuid,
};

use crate::scratch;

/// The beginning of the name of every folder that is locked while it is in use. No other folder is
/// removed.
const PREFIX: &str = "haft-tmp-";
/// The number of hexadecimal digits after the prefix.
const DIGITS: usize = 16;
/// The largest number of attempts to create a folder that other processes remove in the meantime.
const ATTEMPTS: u32 = 5;
/// The pause between these attempts.
const REMOVAL_PAUSE: Duration = Duration::from_millis(20);

/// A new folder for temporary files, for this user alone. It is marked as in use as long as this
/// value lives. Dropping the value removes the folder only if it is empty.
#[derive(Debug)]
pub struct ScratchLease {
    path: PathBuf,
    _lock: Option<File>,
}

impl ScratchLease {
    /// Creates a folder with a random name in `parent`. The first call for a `parent` also removes
    /// the abandoned folders there, in the background.
    pub fn create(parent: &Path) -> io::Result<Self> {
        let created = (0..ATTEMPTS).find_map(|_| {
            let number = RandomState::new().hash_one(std::process::id());
            let path = parent.join(format!("{PREFIX}{number:016x}"));
            let created = Self::create_at(path);
            match created {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                created => Some(created),
            }
        });
        remove_abandoned_once(parent);
        created.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
    }

    /// Creates the folder at `path`. Fails if it exists.
    pub fn create_at(path: PathBuf) -> io::Result<Self> {
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = lock_or_make(&path)?;
        Ok(Self { path, _lock: lock })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchLease {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path); // not empty, or already removed
    }
}

/// Creates the folder if it is missing, and marks it as in use until the returned file is closed.
/// Returns `None` if the file system does not support locks; then no process removes folders of
/// others.
pub(crate) fn lock_or_make(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..ATTEMPTS {
        scratch::make(path)?;
        match lock(path) {
            Ok(lock) => return Ok(Some(lock)),
            // Another process considers the folder abandoned and is removing it.
            Err(Errno::WOULDBLOCK | Errno::NOENT) => thread::sleep(REMOVAL_PAUSE),
            Err(_) => return Ok(None),
        }
    }
    Err(io::Error::other(
        "another process removes it again and again",
    ))
}

/// Marks an existing folder as in use.
pub(crate) fn lock(path: &Path) -> Result<File, Errno> {
    let folder = open(path)?;
    flock(&folder, FlockOperation::NonBlockingLockShared)?;
    // The locked folder may have been removed before.
    match is_at(&folder, path) {
        true => Ok(folder),
        false => Err(Errno::NOENT),
    }
}

fn open(path: &Path) -> Result<File, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let opened = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    opened.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Returns whether this open folder is the one at `path`.
fn is_at(folder: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let (Ok(opened), Ok(found)) = (folder.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    identity(opened) == identity(found)
}

fn remove_abandoned_once(parent: &Path) {
    static PARENTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let parent = parent.to_path_buf();
    let mut parents = PARENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if parents.insert(parent.clone()) {
        // If the thread cannot be started, the folders stay until another process starts.
        let _ = thread::Builder::new()
            .name("haft-scratch".to_owned())
            .spawn(move || remove_abandoned(&parent));
    }
}

/// Removes the folders in `parent` that processes of this user created and no process uses any
/// longer.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_scratch_name) {
            remove_if_abandoned(&entry.path());
        }
    }
}

fn remove_if_abandoned(path: &Path) {
    let Ok(folder) = open(path) else {
        return;
    };
    let is_ours = folder
        .metadata()
        .is_ok_and(|found| found.uid() == geteuid().as_raw() && found.mode() & 0o7777 == 0o700);
    // Holds the lock until the folder is removed, so that a process that tries to use the folder in
    // the meantime notices it.
    if is_ours
        && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        && is_at(&folder, path)
    {
        scratch::remove(path);
    }
}

/// Returns whether the name is like `haft-tmp-0123456789abcdef`, or has a suffix for one program:
/// `-3`, `-browser1`.
fn is_scratch_name(name: &str) -> bool {
    let Some((digits, suffix)) = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_at_checked(DIGITS))
    else {
        return false;
    };
    let is_hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_suffix = |suffix: &str| {
        !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    digits.bytes().all(is_hexadecimal)
        && (suffix.is_empty() || suffix.strip_prefix('-').is_some_and(is_suffix))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const NAME: &str = "haft-tmp-0123456789abcdef";

    fn abandoned(path: &Path) {
        fs::DirBuilder::new().mode(0o700).create(path).unwrap();
        fs::write(path.join("file"), "left").unwrap();
    }

    #[test]
    fn an_abandoned_folder_is_removed_and_one_in_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let used = ScratchLease::create(parent.path()).unwrap();
        fs::write(used.path().join("file"), "").unwrap();
        let left = parent.path().join(NAME);
        abandoned(&left);
        abandoned(&parent.path().join(format!("{NAME}-browser1")));
        remove_abandoned(parent.path());
        let there: Vec<_> = fs::read_dir(parent.path()).unwrap().flatten().collect();
        assert_eq!(there.len(), 1, "{there:?}");
        assert!(used.path().join("file").exists());
    }

    #[test]
    fn what_is_not_a_folder_of_ours_stays() {
        let parent = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), "").unwrap();
        let path = |name: &str| parent.path().join(name);
        symlink(outside.path(), path(NAME)).unwrap();
        abandoned(&path("haft-tmp-1123456789abcdef"));
        let open_to_others = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path("haft-tmp-1123456789abcdef"), open_to_others).unwrap();
        fs::write(path("haft-tmp-2123456789abcdef"), "").unwrap();
        let others = [
            "haft-tmp-",
            "haft-tmp-0123456789abcde",
            "haft-tmp-0123456789ABCDEF",
            "haft-tmp-0123456789abcdef-",
            "haft-tmp-0123456789abcdef-a-b",
            "haft-tmp-0123456789abcdefa",
            "haft-0123456789abcdef",
            "haft-demo-0123456789abcdef",
        ];
        for name in others {
            abandoned(&path(name));
        }
        remove_abandoned(parent.path());
        for name in others {
            assert!(path(name).join("file").exists(), "{name}");
        }
        assert!(outside.path().join("file").exists());
        assert!(path(NAME).is_symlink());
        assert!(path("haft-tmp-1123456789abcdef").join("file").exists());
        assert!(path("haft-tmp-2123456789abcdef").exists());
    }

    #[test]
    fn a_folder_of_another_user_stays() {
        if !geteuid().is_root() {
            return; // only root can make one
        }
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join(NAME);
        abandoned(&path);
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        remove_abandoned(parent.path());
        assert!(path.join("file").exists());
    }

    #[test]
    fn a_folder_that_is_removed_before_it_is_locked_is_made_again() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join(NAME);
        // Another process has begun to remove it, and is done a little later.
        scratch::make(&path).unwrap();
        let removing = open(&path).unwrap();
        flock(&removing, FlockOperation::LockExclusive).unwrap();
        let removed = path.clone();
        let remover = thread::spawn(move || {
            thread::sleep(REMOVAL_PAUSE);
            fs::remove_dir(&removed).unwrap();
            drop(removing);
        });
        let held = lock_or_make(&path).unwrap();
        remover.join().unwrap();
        assert!(is_at(held.as_ref().unwrap(), &path));
        remove_abandoned(parent.path());
        assert!(path.exists());
        drop(held);
        remove_abandoned(parent.path());
        assert!(!path.exists());
    }

    #[test]
    fn starts_that_race_with_the_removal_keep_their_folders() {
        let parent = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let folder = ScratchLease::create(parent.path()).unwrap();
                        fs::write(folder.path().join("file"), "").unwrap();
                        remove_abandoned(parent.path());
                        assert!(folder.path().join("file").exists());
                    }
                });
            }
        });
        remove_abandoned(parent.path());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
