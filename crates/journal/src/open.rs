//! Opening a regular file by path, without ever blocking.
//!
//! Links are resolved first. The real path is then opened with "no symbolic links anywhere", so
//! that a directory cannot be replaced by a link between a policy check of the real path and the
//! open. File kinds are checked before the open (opening a device may have effects) and again on
//! the opened file.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType as Kind, Mode, OFlags, openat, statat};

use crate::error::JournalError;
use crate::special_files::{SpecialRead, read_special};
use crate::stamp::Stamp;

/// The maximum number of links; the kernel has the same limit.
const MAX_HOPS: usize = 40;

/// A path with all symbolic links resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    /// The path as the caller named it.
    pub given: PathBuf,
    /// The absolute path without links. For a dangling link: the target that would be created.
    pub real: PathBuf,
    /// Whether `real` exists.
    pub exists: bool,
}

/// Resolves all links of `path`; the file itself and its directories may be missing.
pub fn resolve(path: &Path) -> Result<ResolvedPath, JournalError> {
    let given = path.to_path_buf();
    match fs::canonicalize(path) {
        Ok(real) => Ok(ResolvedPath {
            given,
            real,
            exists: true,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (real, exists) = resolve_missing(path)?;
            Ok(ResolvedPath {
                given,
                real,
                exists,
            })
        }
        Err(error) => Err(JournalError::io("resolve", path, error)),
    }
}

fn resolve_missing(path: &Path) -> Result<(PathBuf, bool), JournalError> {
    let failed = |error| JournalError::io("resolve", path, error);
    let mut current = std::path::absolute(path).map_err(failed)?;
    for _ in 0..MAX_HOPS {
        let (base, missing) = existing_part(&current).map_err(failed)?;
        let Some((first, rest)) = missing.split_first() else {
            return Ok((base, true)); // created by another process concurrently
        };
        let next = base.join(first);
        match fs::read_link(&next) {
            Ok(target) => {
                current = base.join(target);
                current.extend(rest);
            }
            Err(_) => {
                let mut real = next;
                real.extend(rest);
                return Ok((real, false));
            }
        }
    }
    Err(JournalError::TooManyLinks {
        path: path.to_path_buf(),
    })
}

/// Returns the deepest existing ancestor, resolved, and the names below it.
fn existing_part(path: &Path) -> io::Result<(PathBuf, Vec<OsString>)> {
    let mut names = Vec::new();
    let mut base = path;
    loop {
        match fs::canonicalize(base) {
            Ok(real) => {
                names.reverse();
                return Ok((real, names));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match (base.components().next_back(), base.parent()) {
            (Some(Component::Normal(name)), Some(parent)) => {
                names.push(name.to_os_string());
                base = parent;
            }
            // `..` below a missing directory is an error, as for the kernel.
            _ => return Err(io::ErrorKind::NotFound.into()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) file: File,
    pub(crate) stamp: Stamp,
}

/// Opens the regular file at a resolved path for reading.
pub(crate) fn open_regular(real: &Path) -> Result<OpenedFile, JournalError> {
    let failed = |error: io::Error| JournalError::io("open", real, error);
    // Opening a device may have effects, so its kind is checked first.
    require_regular(
        real,
        fs::symlink_metadata(real).map_err(failed)?.file_type(),
    )?;
    open_seen(real)
}

/// Like [`open_regular`], but for a path that the caller has just found to be a regular file.
pub(crate) fn open_seen(real: &Path) -> Result<OpenedFile, JournalError> {
    let failed = |error: io::Error| JournalError::io("open", real, error);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(open_real(real, flags).map_err(|error| opening_failed(real, error))?);
    let metadata = file.metadata().map_err(failed)?;
    require_regular(real, metadata.file_type())?;
    Ok(OpenedFile {
        stamp: Stamp::from_metadata(&metadata),
        file,
    })
}

/// Opens the regular file `name` in an opened directory; `real` is its path, for messages.
pub(crate) fn open_regular_in(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    real: &Path,
) -> Result<OpenedFile, JournalError> {
    let failed = |error: io::Error| JournalError::io("open", real, error);
    let found =
        statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| failed(error.into()))?;
    let path = || real.to_path_buf();
    match Kind::from_raw_mode(found.st_mode) {
        Kind::RegularFile => {}
        Kind::Directory => return Err(JournalError::IsDirectory { path: path() }),
        Kind::Symlink => return Err(JournalError::LinkAppeared { path: path() }),
        kind => {
            let kind = match kind {
                Kind::Fifo => "named pipe (FIFO)",
                Kind::Socket => "socket",
                Kind::CharacterDevice => "character device",
                _ => "block device",
            };
            return Err(JournalError::NotRegular { path: path(), kind });
        }
    }
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(
        openat(directory, name, flags, Mode::empty()).map_err(|error| failed(error.into()))?,
    );
    let metadata = file.metadata().map_err(failed)?;
    require_regular(real, metadata.file_type())?;
    Ok(OpenedFile {
        stamp: Stamp::from_metadata(&metadata),
        file,
    })
}

/// Converts an open error. A real path has no links, so a link in it appeared after it was
/// resolved.
fn opening_failed(real: &Path, error: io::Error) -> JournalError {
    match error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        true => JournalError::LinkAppeared {
            path: real.to_path_buf(),
        },
        false => JournalError::io("open", real, error),
    }
}

fn require_regular(path: &Path, kind: FileType) -> Result<(), JournalError> {
    let path = path.to_path_buf();
    let kind = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => return Err(JournalError::IsDirectory { path }),
        kind if kind.is_fifo() => "named pipe (FIFO)",
        kind if kind.is_socket() => "socket",
        kind if kind.is_char_device() => "character device",
        kind if kind.is_block_device() => "block device",
        kind if kind.is_symlink() => return Err(JournalError::LinkAppeared { path }),
        _ => "file of unknown kind",
    };
    Err(JournalError::NotRegular { path, kind })
}

/// Opens a resolved path; a symbolic link in any part of it is an error.
pub(crate) fn open_real(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, ResolveFlags, openat2};
        use rustix::io::Errno;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(CWD, real, flags, Mode::empty(), resolve) {
            // Old kernels, and sandboxes that filter the call: open one component after the other.
            Err(Errno::NOSYS | Errno::PERM) => {}
            result => return Ok(result?),
        }
    }
    open_stepwise(real, flags)
}

/// Returns whether a directory of a formerly real path is a symbolic link now.
pub(crate) fn is_behind_link(real: &Path) -> bool {
    real.ancestors().skip(1).any(Path::is_symlink)
}

/// Emulates `openat2` with `RESOLVE_NO_SYMLINKS` where that call is not available: opens each
/// directory inside the previous one.
fn open_stepwise(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    const PASSING: OFlags = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    const PASSING: OFlags = OFlags::RDONLY;
    let passing = PASSING | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut names = real.components().filter_map(|part| match part {
        Component::Normal(name) => Some(Ok(name)),
        Component::ParentDir => Some(Err(io::Error::from(io::ErrorKind::InvalidInput))),
        _ => None,
    });
    let mut last = match names.next() {
        Some(name) => name?,
        None => return Ok(rustix::fs::open("/", flags, Mode::empty())?),
    };
    let mut directory = rustix::fs::open("/", passing, Mode::empty())?;
    for name in names {
        directory = openat(&directory, last, passing, Mode::empty())?;
        last = name?;
    }
    Ok(openat(&directory, last, flags, Mode::empty())?)
}

/// The whole content of a file at one time, with its stamp.
#[derive(Debug)]
pub(crate) struct FileSnapshot {
    pub(crate) stamp: Stamp,
    pub(crate) bytes: Vec<u8>,
}

impl FileSnapshot {
    /// Reads the whole file at a resolved path; `None` if it does not exist.
    pub(crate) fn take(real: &Path, limit: u64) -> Result<Option<Self>, JournalError> {
        Self::from_opened(open_regular(real), real, limit)
    }

    /// Reads the whole file from the result of opening it; `real` is its path.
    pub(crate) fn from_opened(
        opened: Result<OpenedFile, JournalError>,
        real: &Path,
        limit: u64,
    ) -> Result<Option<Self>, JournalError> {
        let opened = match opened {
            Ok(opened) => opened,
            Err(JournalError::DoesNotExist { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let size = opened.stamp.size;
        if size > limit {
            return Err(JournalError::TooLarge {
                path: real.to_path_buf(),
                size,
                limit,
            });
        }
        let SpecialRead { bytes, ended } =
            read_all(&opened).map_err(|error| JournalError::io("read", real, error))?;
        if !ended {
            return Err(JournalError::Endless {
                path: real.to_path_buf(),
            });
        }
        Ok(Some(Self {
            stamp: opened.stamp,
            bytes,
        }))
    }
}

/// Reads to the end, usually with one system call. Only a file of size 0 may have no known end.
pub(crate) fn read_all(opened: &OpenedFile) -> io::Result<SpecialRead> {
    let size = opened.stamp.size;
    if size == 0 {
        return read_special(&opened.file);
    }
    let whole = |bytes| SpecialRead { bytes, ended: true };
    // One byte more than expected: a short read then proves the end.
    let mut bytes = vec![0; size as usize + 1];
    let mut filled = 0;
    loop {
        match (&opened.file).read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if filled == size as usize {
            break;
        }
        if filled == bytes.len() {
            // The file grew while it was read.
            bytes.truncate(filled);
            (&opened.file).read_to_end(&mut bytes)?;
            return Ok(whole(bytes));
        }
    }
    bytes.truncate(filled);
    Ok(whole(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_dangling_link_resolves_to_the_target_to_create() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        symlink("missing/file", root.join("first")).unwrap();
        symlink("first", root.join("second")).unwrap();
        let resolved = resolve(&root.join("second")).unwrap();
        assert_eq!(
            (resolved.real, resolved.exists),
            (root.join("missing/file"), false)
        );
    }

    #[test]
    fn paths_that_lead_nowhere_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        symlink("loop", dir.path().join("loop")).unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        let cases = [
            ("loop", "too many symbolic links"),
            ("file/below", "a part of its path is a file"),
            ("missing/../other", "does not exist"),
        ];
        for (path, text) in cases {
            let error = resolve(&dir.path().join(path)).unwrap_err().to_string();
            assert!(error.contains(text), "{path}: {error}");
        }
    }

    #[test]
    fn a_link_in_the_middle_of_a_real_path_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "x").unwrap();
        symlink("real", root.join("link")).unwrap();
        assert!(open_regular(&root.join("real/file")).is_ok());
        assert!(open_regular(&root.join("link/file")).is_err());
        for (path, opens) in [
            ("real/file", true),
            ("link/file", false),
            ("real/../real/file", false),
        ] {
            let opened = open_stepwise(&root.join(path), OFlags::RDONLY | OFlags::NOFOLLOW);
            assert_eq!(opened.is_ok(), opens, "{path}: {opened:?}");
        }
    }
}
