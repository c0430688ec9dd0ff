//! The opened directory of a target. Every step of a commit happens inside it, so that renaming or
//! swapping the directory concurrently cannot misdirect a write.
//!
//! It is opened without following any link, so the path that was checked is the path that is
//! written. Names below it are single components.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, Mode, OFlags, RenameFlags, accessat, linkat, mkdirat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::error::JournalError;
use crate::open::{FileSnapshot, open_real, open_regular_in};

/// The prefix of our temporary files.
const TEMPORARY: &str = ".haft-";

pub(super) const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

#[derive(Debug)]
pub(crate) struct TargetDirectory {
    pub(super) handle: OwnedFd,
    /// The name of the target inside the directory.
    pub(super) name: OsString,
    /// The path of the target, for messages.
    pub(super) real: PathBuf,
}

impl TargetDirectory {
    /// Opens the directory of a resolved path. [`io::ErrorKind::NotFound`] if it does not exist.
    pub(crate) fn open(real: &Path) -> io::Result<Self> {
        let (parent, name) = split(real)?;
        Ok(Self {
            handle: open_directory(parent)?,
            name,
            real: real.to_path_buf(),
        })
    }

    /// Like [`Self::open`], but creates the missing directories.
    pub(super) fn make(real: &Path) -> io::Result<(Self, CreatedParents)> {
        let (parent, name) = split(real)?;
        let mut missing = Vec::new();
        let mut base = parent;
        let mut handle = loop {
            match open_directory(base) {
                Ok(handle) => break handle,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            let (above, name) = split(base)?;
            missing.push(name);
            base = above;
        };
        let mut made = CreatedParents::default();
        for name in missing.into_iter().rev() {
            match mkdirat(&handle, &name, Mode::from_raw_mode(0o777)) {
                Ok(()) => made.0.push((handle.try_clone()?, name.clone())),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            handle = openat(&handle, &name, DIRECTORY | OFlags::RDONLY, Mode::empty())?;
        }
        let real = real.to_path_buf();
        Ok((Self { handle, name, real }, made))
    }

    /// Returns the target's whole content, or `None` if the file does not exist.
    pub(crate) fn snapshot(&self, limit: u64) -> Result<Option<FileSnapshot>, JournalError> {
        let opened = open_regular_in(self.handle.as_fd(), &self.name, &self.real);
        FileSnapshot::from_opened(opened, &self.real, limit)
    }

    pub(crate) fn open_target(&self, access: Access) -> io::Result<File> {
        let mode = if access.contains(Access::WRITE_OK) {
            OFlags::RDWR
        } else {
            OFlags::RDONLY
        };
        let flags = mode | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.handle, &self.name, flags, Mode::empty())?.into())
    }

    pub(super) fn may_write(&self) -> Result<(), Errno> {
        accessat(&self.handle, &self.name, Access::WRITE_OK, AtFlags::EACCESS)
    }

    /// Returns whether the name no longer refers to this open file.
    pub(super) fn target_moved(&self, target: &File) -> io::Result<bool> {
        let opened = target.metadata()?;
        match statat(&self.handle, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) => Ok((named.st_dev, named.st_ino) != (opened.dev(), opened.ino())),
            Err(Errno::NOENT) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the target's name.
    pub(super) fn unlink_target(&self) -> Result<(), Errno> {
        unlinkat(&self.handle, &self.name, AtFlags::empty())
    }

    /// Removes a temporary file that an interrupted commit may have left. Ignores names that are
    /// not those of our temporary files.
    pub(crate) fn remove_leftover(&self, temporary: &OsStr) -> io::Result<()> {
        if !is_own_temporary(temporary) {
            return Ok(());
        }
        match unlinkat(&self.handle, temporary, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a rename durable. File systems that cannot do this are ignored: the content itself is
    /// already synced.
    pub(super) fn sync(&self) {
        let _ = rustix::fs::fsync(&self.handle);
    }
}

fn split(real: &Path) -> io::Result<(&Path, OsString)> {
    match (real.parent(), real.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name.to_os_string())),
        _ => Err(io::ErrorKind::IsADirectory.into()),
    }
}

fn open_directory(real: &Path) -> io::Result<OwnedFd> {
    match open_real(real, DIRECTORY | OFlags::RDONLY) {
        // A directory may be searchable but not readable; then it cannot be synced.
        #[cfg(target_os = "linux")]
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_real(real, DIRECTORY | OFlags::PATH)
        }
        result => result,
    }
}

/// Returns whether this name may come from [`temporary_name`]. A record with any other name was not
/// written by this program.
pub(crate) fn is_own_temporary(name: &OsStr) -> bool {
    let name = name.to_str();
    name.is_some_and(|name| name.starts_with(TEMPORARY) && !name.contains('/'))
}

/// Returns an unused name for a temporary file, which other processes cannot guess.
pub(crate) fn temporary_name() -> String {
    // A fresh random state per name is unpredictable and needs no dependency.
    let random = RandomState::new().hash_one(TEMPORARY);
    format!("{TEMPORARY}{random:016x}.tmp")
}

/// A temporary file in the directory of the target. It is removed on drop unless it was renamed.
pub(super) struct TempFile<'d> {
    pub(super) file: File,
    directory: &'d TargetDirectory,
    name: &'d OsStr,
    renamed: bool,
}

impl<'d> TempFile<'d> {
    pub(super) fn create(
        directory: &'d TargetDirectory,
        name: &'d OsStr,
        mode: u32,
    ) -> io::Result<Self> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(&directory.handle, name, flags, Mode::from_raw_mode(mode))?;
        Ok(Self {
            file: handle.into(),
            directory,
            name,
            renamed: false,
        })
    }

    /// Renames the file over the target.
    pub(super) fn rename_over(mut self) -> Result<(), Errno> {
        let handle = &self.directory.handle;
        renameat(handle, self.name, handle, &self.directory.name)?;
        self.renamed = true;
        Ok(())
    }

    /// Renames the file to the target's name, which must be free; [`Errno::EXIST`] if it is not.
    pub(super) fn rename_to_new(mut self) -> Result<(), Errno> {
        let handle = &self.directory.handle;
        let target: &OsStr = &self.directory.name;
        match renameat_with(handle, self.name, handle, target, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                // A hard link fails on an existing name, too. The temporary name is removed on
                // drop.
                linkat(handle, self.name, handle, target, AtFlags::empty())
            }
            Ok(()) => {
                self.renamed = true;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = unlinkat(&self.directory.handle, self.name, AtFlags::empty());
        }
    }
}

/// The directories that were created for a new file. They are removed on drop, unless
/// [`Self::persist`] was called.
#[derive(Default)]
pub(super) struct CreatedParents(Vec<(OwnedFd, OsString)>);

impl CreatedParents {
    /// Makes the directories permanent and durable.
    pub(super) fn persist(mut self) {
        for (above, _) in self.0.drain(..) {
            let _ = rustix::fs::fsync(&above);
        }
    }
}

impl Drop for CreatedParents {
    fn drop(&mut self) {
        for (handle, name) in self.0.iter().rev() {
            // Fails, as it should, if another process has put a file there.
            let _ = unlinkat(handle, name, AtFlags::REMOVEDIR);
        }
    }
}

/// Returns the directories that are missing for a file, outermost first.
pub(crate) fn missing_parents(real: &Path) -> io::Result<Vec<PathBuf>> {
    let mut missing = Vec::new();
    for path in real.ancestors().skip(1) {
        match std::fs::symlink_metadata(path) {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(path.to_owned()),
            Err(error) => return Err(error),
        }
    }
    missing.reverse();
    Ok(missing)
}

/// Removes directories that were created for files that no longer exist, innermost first, if they
/// are empty.
pub(crate) fn remove_made<'p>(made: impl IntoIterator<Item = &'p PathBuf>) {
    let outermost_first: BTreeSet<&PathBuf> = made.into_iter().collect();
    for path in outermost_first.into_iter().rev() {
        // A directory that was never created or that is in use does not stop the removal of the
        // others.
        if let Ok(above) = TargetDirectory::open(path) {
            let _ = unlinkat(&above.handle, &above.name, AtFlags::REMOVEDIR);
        }
    }
}
