//! Directories and files that are opened by name inside an open directory, so that no link is
//! followed.
//!
//! The target of a path can change between two checks; an open directory cannot. So a search opens
//! its root once, by a path without links, and reaches everything else from there. If a directory
//! or file is replaced during the search, nothing outside the root is read.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(not(target_os = "linux"))]
use rustix::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
#[cfg(target_os = "linux")]
use rustix::fs::{RawDir, ResolveFlags, SeekFrom, openat2};
use rustix::io::Errno;

/// The kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl EntryKind {
    fn from_file_type(kind: FileType) -> Option<Self> {
        Some(match kind {
            FileType::Directory => Self::Directory,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => Self::Device,
            _ => return None,
        })
    }
}

/// An opened directory.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

/// Flags for a directory that is only traversed; it need not be readable.
#[cfg(target_os = "linux")]
const PASSING: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASSING: OFlags = OFlags::RDONLY;

/// Flags for reading a file. `NONBLOCK` avoids waiting if a pipe has taken the file's place.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

#[cfg(target_os = "linux")]
const BELOW: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

impl Directory {
    /// Opens the directory at a path without links, for listing. A link in any part is an error.
    pub(crate) fn open_real(real: &Path) -> io::Result<Self> {
        Self::stepwise(real, OFlags::RDONLY)
    }

    /// Like [`Self::open_real`], but only to open entries in the directory.
    pub(crate) fn open_for_entries(real: &Path) -> io::Result<Self> {
        Self::stepwise(real, PASSING)
    }

    /// Opens the directory at a path for listing. Returns `None` if the path contains a link or is
    /// not in canonical form.
    #[cfg(target_os = "linux")]
    pub(crate) fn without_links(path: &Path) -> Option<Self> {
        let names = path.as_os_str().as_bytes().strip_prefix(b"/")?;
        let is_plain = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
        if !names.split(|byte| *byte == b'/').all(is_plain) {
            return None;
        }
        let flags = directory(OFlags::RDONLY);
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve);
        opened.ok().map(Self)
    }

    fn stepwise(real: &Path, last: OFlags) -> io::Result<Self> {
        let names: Vec<&OsStr> = real
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(Ok(name)),
                Component::ParentDir => Some(Err(io::Error::from(io::ErrorKind::InvalidInput))),
                _ => None,
            })
            .collect::<io::Result<_>>()?;
        let flags = |is_last| match is_last {
            true => directory(last),
            false => directory(PASSING),
        };
        let root = rustix::fs::open("/", flags(names.is_empty()), Mode::empty())?;
        let mut reached = Self(root);
        for (at, name) in names.iter().enumerate() {
            let flags = flags(at + 1 == names.len());
            reached = Self(openat(&reached.0, *name, flags, Mode::empty())?);
        }
        Ok(reached)
    }

    /// Opens a directory below this one for listing. No part of the path may be a link.
    #[cfg(target_os = "linux")]
    pub(crate) fn enter_below(&self, path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        Ok(Self(openat2(
            &self.0,
            path,
            directory(OFlags::RDONLY),
            Mode::empty(),
            BELOW,
        )?))
    }

    /// Opens a regular file below this one. No part of the path may be a link. Returns `None` in
    /// the same cases as [`Self::open`].
    #[cfg(target_os = "linux")]
    pub(crate) fn open_below(&self, path: &Path) -> io::Result<Option<File>> {
        match openat2(&self.0, path, FILE, Mode::empty(), BELOW) {
            Ok(file) => {
                let file = File::from(file);
                Ok(file.metadata()?.is_file().then_some(file))
            }
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::NODEV | Errno::NOTDIR) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the `stat` of a path below this directory, without following a final link. Only for
    /// comparison with known values, because an inner part of the path may have become a link.
    #[cfg(target_os = "linux")]
    pub(crate) fn stat_below(&self, path: &Path) -> Option<Stat> {
        statat(&self.0, path, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Like [`Self::stat_below`], but follows links.
    #[cfg(target_os = "linux")]
    pub(crate) fn stat_target_below(&self, path: &Path) -> Option<Stat> {
        statat(&self.0, path, AtFlags::empty()).ok()
    }

    /// Returns the `stat` of the directory itself.
    #[cfg(target_os = "linux")]
    pub(crate) fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.0)?)
    }

    /// Returns the file descriptor, for system calls that need it.
    #[cfg(target_os = "linux")]
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.0
    }

    /// Opens a directory in this one for listing.
    pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let flags = directory(OFlags::RDONLY);
        Ok(Self(openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Opens a regular file in this directory. Returns `None` if no regular file has that name; a
    /// link, a pipe or a device may have it.
    pub(crate) fn open(&self, name: &OsStr) -> io::Result<Option<File>> {
        let file = match openat(&self.0, name, FILE, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::NODEV) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(file.metadata()?.is_file().then_some(file))
    }

    /// Calls `each` with every name except `.` and `..`.
    #[cfg(target_os = "linux")]
    pub(crate) fn list(&self, mut each: impl FnMut(OsString, EntryKind)) -> io::Result<()> {
        // The open descriptor itself is read: opening the directory again takes as long as reading
        // a few names.
        rustix::fs::seek(&self.0, SeekFrom::Start(0))?;
        let mut buffer = [MaybeUninit::uninit(); 32 << 10];
        let mut entries = RawDir::new(&self.0, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // The directory was removed during the listing.
                Err(Errno::NOENT) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            self.each(entry.file_name(), entry.file_type(), &mut each);
        }
        Ok(())
    }

    /// Calls `each` with every name except `.` and `..`.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn list(&self, mut each: impl FnMut(OsString, EntryKind)) -> io::Result<()> {
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            self.each(entry.file_name(), entry.file_type(), &mut each);
        }
        Ok(())
    }

    fn each(&self, name: &CStr, kind: FileType, each: &mut impl FnMut(OsString, EntryKind)) {
        let name = OsStr::from_bytes(name.to_bytes());
        if name == "." || name == ".." {
            return;
        }
        let kind = match kind {
            FileType::Unknown => self.stat_entry(name).and_then(|found| kind_of(&found)),
            kind => EntryKind::from_file_type(kind),
        };
        if let Some(kind) = kind {
            each(name.to_os_string(), kind);
        }
    }

    /// Returns the `stat` of a name, without following a link. Returns `None` if it does not exist
    /// or cannot be read.
    pub(crate) fn stat_entry(&self, name: &OsStr) -> Option<Stat> {
        statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Like [`Self::stat_entry`], but returns an error if the state of the name cannot be determined, as
    /// in a directory that can be listed but not entered.
    pub(crate) fn try_stat_entry(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the `stat` of a name, following links.
    pub(crate) fn stat_target(&self, name: &OsStr) -> Option<Stat> {
        statat(&self.0, name, AtFlags::empty()).ok()
    }

    /// Returns the target of a link as written in it.
    pub(crate) fn link(&self, name: &OsStr) -> Option<PathBuf> {
        let target = readlinkat(&self.0, name, Vec::new()).ok()?;
        Some(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
    }
}

fn directory(access: OFlags) -> OFlags {
    access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

pub(crate) fn kind_of(found: &Stat) -> Option<EntryKind> {
    EntryKind::from_file_type(FileType::from_raw_mode(found.st_mode))
}

/// Returns the modification time. A file system without times reports the Unix epoch.
#[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
pub(crate) fn modified(found: &Stat) -> SystemTime {
    let (seconds, rest) = (found.st_mtime as i64, found.st_mtime_nsec as u64);
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let moment = match seconds >= 0 {
        true => UNIX_EPOCH.checked_add(whole),
        false => UNIX_EPOCH.checked_sub(whole),
    };
    moment
        .and_then(|moment| moment.checked_add(Duration::from_nanos(rest)))
        .unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn neither_a_link_nor_a_pipe_is_opened_and_nothing_waits() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/sub")).unwrap();
        fs::write(root.join("real/file"), "x").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("file", root.join("real/alias")).unwrap();
        let pipe = root.join("real/pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RWXU).unwrap();
        let real = Directory::open_real(&root.join("real")).unwrap();
        assert!(real.open(OsStr::new("file")).unwrap().is_some());
        for name in ["alias", "pipe", "sub", "none"] {
            assert!(real.open(OsStr::new(name)).unwrap().is_none(), "{name}");
        }
        for path in ["link", "link/sub", "real/../real", "real/file"] {
            assert!(Directory::open_real(&root.join(path)).is_err(), "{path}");
            assert!(
                Directory::open_for_entries(&root.join(path)).is_err(),
                "{path}"
            );
        }
        #[cfg(target_os = "linux")]
        {
            let is_open = |path: &str| Directory::without_links(Path::new(path)).is_some();
            let real = root.join("real");
            let real = real.to_str().unwrap();
            assert!(is_open(real) && is_open(&format!("{real}/sub")));
            let not = [
                "/../real/sub",
                "/",
                "/.",
                "//sub",
                "/sub/..",
                "/file",
                "/none",
            ];
            for path in not {
                assert!(!is_open(&format!("{real}{path}")), "{path}");
            }
            for path in ["link", "link/sub"] {
                assert!(!is_open(root.join(path).to_str().unwrap()), "{path}");
            }
            assert!(!is_open("/") && !is_open("") && !is_open("tmp"));
        }
        assert!(matches!(
            real.try_stat_entry(OsStr::new("sub")),
            Ok(Some(_))
        ));
        assert!(matches!(real.try_stat_entry(OsStr::new("none")), Ok(None)));
        // What cannot be looked at is not taken for missing.
        let refused = "x".repeat(300);
        assert!(real.try_stat_entry(OsStr::new(&refused)).is_err());
        assert!(real.enter(OsStr::new("sub")).is_ok());
        assert!(real.enter(OsStr::new("alias")).is_err());
        assert!(Directory::open_real(Path::new("/")).is_ok());
    }
}
