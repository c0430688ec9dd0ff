//! Entries of a directory, of any kind: creating, renaming and removing them, and setting their
//! mode, owner and times. Every new entry gets its final name with one rename.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, Uid,
    chownat, fchmod, futimens, linkat, mkdirat, mknodat, openat, renameat, renameat_with, statat,
    symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::attributes::FileAttributes;
use super::directory::{DIRECTORY, TargetDirectory, TempFile, is_own_temporary};
use crate::stamp::{ContentHash, Stamp};

/// Whether an existing entry may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplacePolicy {
    MustNotExist,
    MayReplace,
}

/// The modification time to set, in nanoseconds since the epoch; `None` leaves the current time.
pub(crate) type NewMtime = Option<i64>;

/// A file that is created again.
pub(crate) struct NewFile<'a> {
    pub(crate) from: &'a File,
    pub(crate) hash: &'a str,
    pub(crate) attributes: &'a FileAttributes,
    pub(crate) mtime: NewMtime,
    /// Syncs the content, so that it survives a power failure.
    pub(crate) sync: bool,
}

impl TargetDirectory {
    /// Returns the stamp of the entry without following links.
    pub(crate) fn stamp(&self) -> io::Result<Option<Stamp>> {
        match statat(&self.handle, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(Stamp::from_stat(&found))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a file; returns `false` if its content does not have the expected hash.
    pub(crate) fn put_file(
        &self,
        temporary: &OsStr,
        new: &NewFile<'_>,
        place: ReplacePolicy,
    ) -> io::Result<bool> {
        let mut temporary = TempFile::create(self, temporary, 0o600)?;
        if copy(new.from, &mut temporary.file)? != new.hash {
            return Ok(false);
        }
        new.attributes.give(&temporary.file)?;
        if new.mtime.is_some() {
            futimens(&temporary.file, &times(new.mtime))?;
        }
        if new.sync {
            temporary.file.sync_all()?;
        }
        match place {
            ReplacePolicy::MustNotExist => temporary.rename_to_new()?,
            ReplacePolicy::MayReplace => temporary.rename_over()?,
        }
        Ok(true)
    }

    /// Creates a symbolic link.
    pub(crate) fn put_link(
        &self,
        temporary: &OsStr,
        target: &Path,
        mtime: NewMtime,
        place: ReplacePolicy,
    ) -> io::Result<()> {
        symlinkat(target, &self.handle, temporary)?;
        if mtime.is_some() {
            // Not every file system stores times of links.
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let _ = utimensat(&self.handle, temporary, &times(mtime), flags);
        }
        self.move_into_place(temporary, place)
    }

    /// Creates a hard link to the file of `twin`.
    pub(crate) fn put_name_of(
        &self,
        temporary: &OsStr,
        twin: &Self,
        place: ReplacePolicy,
    ) -> io::Result<()> {
        let none = AtFlags::empty();
        linkat(&twin.handle, &twin.name, &self.handle, temporary, none)?;
        self.move_into_place(temporary, place)
    }

    fn move_into_place(&self, temporary: &OsStr, place: ReplacePolicy) -> io::Result<()> {
        let (handle, target) = (&self.handle, self.name.as_os_str());
        let settled = match place {
            ReplacePolicy::MayReplace => renameat(handle, temporary, handle, target),
            ReplacePolicy::MustNotExist => {
                match renameat_with(handle, temporary, handle, target, RenameFlags::NOREPLACE) {
                    Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                        linkat(handle, temporary, handle, target, AtFlags::empty())
                    }
                    result => result,
                }
            }
        };
        // Renaming a file over another hard link to it leaves both names.
        let _ = unlinkat(handle, temporary, AtFlags::empty());
        Ok(settled?)
    }

    /// Moves this entry to `there`.
    pub(crate) fn move_to(&self, there: &Self, place: ReplacePolicy) -> io::Result<()> {
        let flags = match place {
            ReplacePolicy::MustNotExist => RenameFlags::NOREPLACE,
            ReplacePolicy::MayReplace => RenameFlags::empty(),
        };
        Ok(renameat_with(
            &self.handle,
            &self.name,
            &there.handle,
            &there.name,
            flags,
        )?)
    }

    /// Creates an empty directory that only its owner can use until its mode is set.
    pub(crate) fn put_directory(&self) -> io::Result<()> {
        Ok(mkdirat(&self.handle, &self.name, Mode::RWXU)?)
    }

    /// Sets the mode of the entry. Follows no link; links have no mode.
    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        match openat(&self.handle, &self.name, flags, Mode::empty()) {
            Ok(opened) => Ok(fchmod(opened, mode)?),
            // The mode of the file forbids opening it. If a link replaced the file, its target must
            // not be changed.
            Err(Errno::ACCESS) if !self.is_link()? => Ok(rustix::fs::chmodat(
                &self.handle,
                &self.name,
                mode,
                AtFlags::empty(),
            )?),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets exactly these attributes on a file or directory, and its time.
    pub(crate) fn restore_attributes(
        &self,
        attributes: &FileAttributes,
        mtime: NewMtime,
    ) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = || openat(&self.handle, &self.name, flags, Mode::empty());
        let opened = match open() {
            Err(Errno::ACCESS) => {
                self.set_mode(attributes.mode | 0o600)?;
                open()
            }
            opened => opened,
        };
        let file = File::from(opened?);
        attributes.restore(&file)?;
        match mtime {
            Some(_) => Ok(futimens(&file, &times(mtime))?),
            None => Ok(()),
        }
    }

    /// Overwrites the file, which other names share. Returns `false` if the content does not have
    /// the expected hash.
    pub(crate) fn overwrite(&self, new: &NewFile<'_>) -> io::Result<bool> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = || openat(&self.handle, &self.name, flags, Mode::empty());
        let opened = match open() {
            Err(Errno::ACCESS) => {
                self.set_mode(new.attributes.mode | 0o600)?;
                open()
            }
            opened => opened,
        };
        let mut file = File::from(opened?);
        let size = new.from.metadata()?.len();
        // A full disk fails before the first old byte is overwritten.
        super::reserve(&file, size)?;
        if copy(new.from, &mut file)? != new.hash {
            return Ok(false);
        }
        file.set_len(size)?;
        if new.sync {
            file.sync_all()?;
        }
        drop(file);
        self.restore_attributes(new.attributes, new.mtime)?;
        Ok(true)
    }

    /// Creates a named pipe.
    pub(crate) fn put_pipe(&self, attributes: &FileAttributes, mtime: NewMtime) -> io::Result<()> {
        mknodat(
            &self.handle,
            &self.name,
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )?;
        self.set_owner(attributes.uid, attributes.gid)?;
        self.set_mode(attributes.mode)?;
        match mtime {
            Some(mtime) => self.set_mtime(mtime),
            None => Ok(()),
        }
    }

    /// Creates a hard link to the entry at `there`, of any kind except a directory.
    pub(crate) fn link_to(&self, there: &Self) -> io::Result<()> {
        let none = AtFlags::empty();
        Ok(linkat(
            &self.handle,
            &self.name,
            &there.handle,
            &there.name,
            none,
        )?)
    }

    fn is_link(&self) -> io::Result<bool> {
        let stamp = self.stamp()?;
        Ok(stamp.is_some_and(|stamp| stamp.mode & 0o170_000 == 0o120_000))
    }

    /// Changes the owner, if that is permitted.
    pub(crate) fn set_owner(&self, uid: u32, gid: u32) -> io::Result<()> {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        match chownat(
            &self.handle,
            &self.name,
            uid,
            gid,
            AtFlags::SYMLINK_NOFOLLOW,
        ) {
            Ok(()) | Err(Errno::PERM | Errno::INVAL | Errno::NOTSUP) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn set_mtime(&self, mtime: i64) -> io::Result<()> {
        let times = times(Some(mtime));
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(utimensat(&self.handle, &self.name, &times, flags)?)
    }

    /// Removes an entry that is not a directory.
    pub(crate) fn remove_entry(&self) -> io::Result<()> {
        Ok(self.unlink_target()?)
    }

    /// Removes a directory; returns `false` if it is not empty.
    pub(crate) fn remove_empty(&self) -> io::Result<bool> {
        match unlinkat(&self.handle, &self.name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a directory with its contents. A rename first makes it disappear from its name in
    /// one step.
    pub(crate) fn remove_all(&self, temporary: &OsStr) -> io::Result<()> {
        renameat(&self.handle, &self.name, &self.handle, temporary)?;
        self.remove_set_aside(temporary)
    }

    /// Removes what an interrupted [`Self::remove_all`] left under its temporary name.
    pub(crate) fn remove_set_aside(&self, temporary: &OsStr) -> io::Result<()> {
        if !is_own_temporary(temporary) {
            return Ok(());
        }
        match openat(&self.handle, temporary, DIRECTORY, Mode::empty()) {
            Ok(_) => {}
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let above = self.real.parent().unwrap_or(Path::new("/"));
        std::fs::remove_dir_all(above.join(temporary))
    }

    pub(crate) fn sync_names(&self) {
        self.sync();
    }
}

fn copy(mut from: &File, to: &mut File) -> io::Result<String> {
    let mut buffer = vec![0; 256 << 10];
    let mut hasher = blake3::Hasher::new();
    loop {
        let count = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count?,
        };
        if count == 0 {
            return Ok(ContentHash::finish(&hasher).to_string());
        }
        hasher.update(&buffer[..count]);
        to.write_all(&buffer[..count])?;
    }
}

fn times(mtime: NewMtime) -> Timestamps {
    let omit = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    Timestamps {
        last_access: omit,
        last_modification: match mtime {
            None => omit,
            Some(mtime) => Timespec {
                tv_sec: mtime.div_euclid(1_000_000_000),
                tv_nsec: mtime.rem_euclid(1_000_000_000),
            },
        },
    }
}
