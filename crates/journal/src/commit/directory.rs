//! The opened directory of a target: every step of a commit happens inside it,
//! so that renaming or swapping the directory meanwhile cannot misdirect a write.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::open::open_real;

pub(super) struct Directory {
    handle: OwnedFd,
    /// Name of the target inside.
    name: OsString,
}

impl Directory {
    pub(super) fn of(real: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY;
        let handle = match open_real(parent, flags) {
            // A directory may be enterable but not listable; then it just cannot be synced.
            #[cfg(target_os = "linux")]
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                open_real(parent, OFlags::DIRECTORY | OFlags::PATH)?
            }
            result => result?,
        };
        Ok(Self {
            handle,
            name: name.to_os_string(),
        })
    }

    pub(super) fn open_target(&self, access: Access) -> io::Result<File> {
        let mode = if access.contains(Access::WRITE_OK) {
            OFlags::RDWR
        } else {
            OFlags::RDONLY
        };
        let flags = mode | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.handle, &self.name, flags, Mode::empty())?.into())
    }

    /// Does the name no longer lead to this opened file?
    pub(super) fn target_moved(&self, target: &File) -> bool {
        let named = statat(&self.handle, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        match (named, target.metadata()) {
            (Ok(named), Ok(opened)) => (named.st_dev, named.st_ino) != (opened.dev(), opened.ino()),
            _ => true,
        }
    }

    /// Makes a rename durable. Not every file system can; the content itself is synced already.
    pub(super) fn sync(&self) {
        let _ = rustix::fs::fsync(&self.handle);
    }
}

/// A file beside the target that removes itself unless it is renamed.
pub(super) struct Temporary<'d> {
    pub(super) file: File,
    directory: &'d Directory,
    name: OsString,
    renamed: bool,
}

impl<'d> Temporary<'d> {
    pub(super) fn create(directory: &'d Directory, mode: u32) -> io::Result<Self> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            // A fresh random state per name: unpredictable, and no dependency.
            let random = RandomState::new().hash_one(directory.name.as_os_str());
            let name = OsString::from(format!(".haft-{random:016x}.tmp"));
            match openat(&directory.handle, &name, flags, Mode::from_raw_mode(mode)) {
                Ok(handle) => {
                    return Ok(Self {
                        file: handle.into(),
                        directory,
                        name,
                        renamed: false,
                    });
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes the place of the target.
    pub(super) fn rename_over(mut self) -> Result<(), Errno> {
        let handle = &self.directory.handle;
        renameat(handle, &self.name, handle, &self.directory.name)?;
        self.renamed = true;
        Ok(())
    }

    /// Takes a name that must be free; [`Errno::EXIST`] if it is not.
    pub(super) fn rename_to_new(mut self) -> Result<(), Errno> {
        let handle = &self.directory.handle;
        let target: &OsStr = &self.directory.name;
        match renameat_with(handle, &self.name, handle, target, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                // A link refuses an existing name, too; the temporary name goes on drop.
                linkat(handle, &self.name, handle, target, AtFlags::empty())
            }
            Ok(()) => {
                self.renamed = true;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = unlinkat(&self.directory.handle, &self.name, AtFlags::empty());
        }
    }
}

/// Directories made for a new file; removed again unless kept.
#[derive(Default)]
pub(super) struct MadeParents(Vec<PathBuf>);

impl MadeParents {
    pub(super) fn make(real: &Path) -> io::Result<Self> {
        let missing: Vec<&Path> = real
            .ancestors()
            .skip(1)
            .take_while(|ancestor| !ancestor.exists())
            .collect();
        let mut made = Self::default();
        for directory in missing.into_iter().rev() {
            match fs::create_dir(directory) {
                Ok(()) => made.0.push(directory.to_path_buf()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }

    pub(super) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for MadeParents {
    fn drop(&mut self) {
        for directory in self.0.iter().rev() {
            // Fails, rightly, if someone else has put something there.
            let _ = fs::remove_dir(directory);
        }
    }
}
