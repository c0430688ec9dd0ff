//! Replacing the content of a file: readers see the whole old or the whole new content.
//!
//! Normally a temporary file in the same directory is renamed over the target, after mode, owner
//! and extended attributes were copied. The file is written in place only if a rename is not
//! possible (a directory that is not writable, a mount point) or would change more than the content
//! (hard links, an owner that cannot be set).

mod attributes;
mod directory;
mod entry;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use haft_witness::{WitnessedEntry, WitnessedXattr};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use crate::error::JournalError;
use crate::open::FileSnapshot;
use crate::stamp::Stamp;
pub(crate) use attributes::FileAttributes;
use directory::TempFile;
pub(crate) use directory::{
    TargetDirectory, is_own_temporary, missing_parents, remove_made, temporary_name,
};
pub(crate) use entry::{NewFile, NewMtime, ReplacePolicy};

/// Called once before a file is overwritten in place; an error stops the commit.
pub(crate) type BeforeInPlace<'a> = &'a mut dyn FnMut() -> Result<(), JournalError>;

/// Sets the attributes and the time of a stored file to those of a witnessed entry. Extended
/// attributes stay if they were not read.
pub(crate) fn set_kept_attributes(
    path: &Path,
    first: &WitnessedEntry,
    xattrs: Option<&[WitnessedXattr]>,
) -> io::Result<()> {
    let directory = TargetDirectory::open(path)?;
    let extended = match xattrs {
        Some(all) => all
            .iter()
            .map(|one| (one.name.0.clone(), one.value.0.clone()))
            .collect(),
        None => crate::undo::read_attributes(path)?,
    };
    let attributes = FileAttributes {
        mode: first.mode,
        uid: first.uid,
        gid: first.gid,
        extended,
    };
    directory.restore_attributes(&attributes, Some(first.mtime))
}

/// Fails for a file that must not or cannot be written, before anything is done.
pub(crate) fn check_writable(real: &Path, stamp: &Stamp) -> Result<(), JournalError> {
    let access = accessat(CWD, real, Access::WRITE_OK, AtFlags::EACCESS);
    check_access(real, stamp, access)
}

fn check_access(real: &Path, stamp: &Stamp, access: Result<(), Errno>) -> Result<(), JournalError> {
    if stamp.is_read_only() {
        return Err(JournalError::ReadOnly {
            path: real.to_path_buf(),
        });
    }
    match access {
        Err(error @ (Errno::ACCESS | Errno::ROFS | Errno::PERM)) => {
            Err(JournalError::io("write", real, error))
        }
        // Other failures show up, with their own cause, in the write itself.
        _ => Ok(()),
    }
}

/// Creates a file that did not exist, and its parent directories. Without `attributes` it gets the
/// default mode of new files.
pub(crate) fn create(
    real: &Path,
    content: &[u8],
    temporary: &OsStr,
    attributes: Option<&FileAttributes>,
) -> Result<Stamp, JournalError> {
    let failed = |error: io::Error| open_failed("create", real, error);
    let (directory, parents) = TargetDirectory::make(real).map_err(failed)?;
    // The umask reduces the mode, as for any new file.
    let mode = if attributes.is_some() { 0o600 } else { 0o666 };
    let mut temporary = TempFile::create(&directory, temporary, mode).map_err(failed)?;
    temporary.file.write_all(content).map_err(failed)?;
    if let Some(attributes) = attributes {
        attributes.give(&temporary.file).map_err(failed)?;
    }
    temporary.file.sync_all().map_err(failed)?;
    let placed = CommittedFile::new(&temporary.file).map_err(failed)?;
    match temporary.rename_to_new() {
        Ok(()) => {}
        Err(Errno::EXIST) => return Err(drifted(real)),
        Err(error) => return Err(failed(error.into())),
    }
    directory.sync();
    parents.persist();
    Ok(placed.stamp())
}

/// Replaces the content of a file that is still as in `before`.
pub(crate) fn replace(
    real: &Path,
    before: &FileSnapshot,
    content: &[u8],
    temporary: &OsStr,
    before_in_place: BeforeInPlace<'_>,
) -> Result<Stamp, JournalError> {
    let directory =
        TargetDirectory::open(real).map_err(|error| open_failed("write", real, error))?;
    check_access(real, &before.stamp, directory.may_write())?;
    if before.stamp.links == 1
        && let Some(stamp) = replace_by_rename(real, &directory, before, content, temporary)?
    {
        return Ok(stamp);
    }
    replace_in_place(real, &directory, before, content, before_in_place)
}

/// Removes the name of a file that is still as in `before`.
pub(crate) fn remove(real: &Path, before: &FileSnapshot) -> Result<(), JournalError> {
    let failed = |error: io::Error| open_failed("remove", real, error);
    let directory = TargetDirectory::open(real).map_err(failed)?;
    check_access(real, &before.stamp, Ok(()))?;
    let target = directory.open_target(Access::READ_OK).map_err(failed)?;
    if !is_unchanged(&directory, &target, before).map_err(failed)? {
        return Err(drifted(real));
    }
    directory
        .unlink_target()
        .map_err(|error| failed(error.into()))?;
    directory.sync();
    Ok(())
}

/// Converts an error from opening a resolved path. The path had no links when it was resolved, so a
/// link in it appeared since then.
pub(crate) fn open_failed(doing: &'static str, real: &Path, error: io::Error) -> JournalError {
    match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => JournalError::LinkAppeared {
            path: real.to_path_buf(),
        },
        _ => JournalError::io(doing, real, error),
    }
}

/// Replaces the file by renaming a temporary file over it. `None`: a rename is not possible or not
/// right here, and nothing has changed yet.
fn replace_by_rename(
    real: &Path,
    directory: &TargetDirectory,
    before: &FileSnapshot,
    content: &[u8],
    temporary: &OsStr,
) -> Result<Option<Stamp>, JournalError> {
    let failed = |error: io::Error| JournalError::io("write", real, error);
    let mut temporary = match TempFile::create(directory, temporary, 0o600) {
        Ok(temporary) => temporary,
        Err(error) if is_denied(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    temporary.file.write_all(content).map_err(failed)?;
    let target = directory.open_target(Access::READ_OK).map_err(failed)?;
    if !attributes::copy(&target, &temporary.file, &before.stamp).map_err(failed)? {
        return Ok(None);
    }
    temporary.file.sync_all().map_err(failed)?;
    let placed = CommittedFile::new(&temporary.file).map_err(failed)?;
    if !is_unchanged(directory, &target, before).map_err(failed)? {
        return Err(drifted(real));
    }
    match temporary.rename_over() {
        Ok(()) => {}
        Err(Errno::XDEV | Errno::BUSY) => return Ok(None),
        Err(error) => return Err(failed(error.into())),
    }
    directory.sync();
    Ok(Some(placed.stamp()))
}

fn replace_in_place(
    real: &Path,
    directory: &TargetDirectory,
    before: &FileSnapshot,
    content: &[u8],
    before_in_place: BeforeInPlace<'_>,
) -> Result<Stamp, JournalError> {
    let failed = |error: io::Error| JournalError::io("write", real, error);
    let target = directory
        .open_target(Access::READ_OK | Access::WRITE_OK)
        .map_err(failed)?;
    if !same_content(&target, &before.bytes).map_err(failed)? {
        return Err(drifted(real));
    }
    // Reserves space first, so that a full disk fails before the first old byte is overwritten.
    reserve(&target, content.len() as u64).map_err(failed)?;
    let placed = CommittedFile::new(&target).map_err(failed)?;
    before_in_place()?;
    if let Err(error) = overwrite(&target, content) {
        return Err(match overwrite(&target, &before.bytes) {
            Ok(()) => failed(error),
            Err(_) => JournalError::HalfWritten {
                path: real.to_path_buf(),
                source: error,
            },
        });
    }
    attributes::keep_mode(&target, &before.stamp);
    Ok(placed.stamp())
}

/// An open file with the new content, which is about to be in its final location. Reading its stamp
/// afterwards must not fail: by then the change is made.
struct CommittedFile {
    file: File,
    before: Stamp,
}

impl CommittedFile {
    fn new(file: &File) -> io::Result<Self> {
        let before = Stamp::from_metadata(&file.metadata()?);
        let file = file.try_clone()?;
        Ok(Self { file, before })
    }

    /// Returns the stamp after the change. If it cannot be read, returns the stamp from before,
    /// which makes the file look changed.
    fn stamp(self) -> Stamp {
        match self.file.metadata() {
            Ok(now) => Stamp::from_metadata(&now),
            Err(_) => self.before,
        }
    }
}

fn overwrite(target: &File, content: &[u8]) -> io::Result<()> {
    target.write_all_at(content, 0)?;
    target.set_len(content.len() as u64)?;
    target.sync_all()
}

fn reserve(target: &File, length: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if length > 0 {
        use rustix::fs::{FallocateFlags, fallocate};
        // Not every file system can reserve space; only the "no space" errors matter.
        let reserved = fallocate(target, FallocateFlags::KEEP_SIZE, 0, length);
        if let Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) = reserved {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Returns whether the name still refers to this file and the content is still as in `before`.
fn is_unchanged(
    directory: &TargetDirectory,
    target: &File,
    before: &FileSnapshot,
) -> io::Result<bool> {
    Ok(same_content(target, &before.bytes)? && !directory.target_moved(target)?)
}

pub(crate) fn same_content(mut file: &File, expected: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; (expected.len() + 1).min(256 << 10)];
    let mut rest = expected;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(rest.is_empty()),
            Ok(count) => match rest.strip_prefix(&buffer[..count]) {
                Some(further) => rest = further,
                None => return Ok(false),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_denied(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS)
    )
}

fn drifted(real: &Path) -> JournalError {
    JournalError::Drifted {
        path: real.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_file_that_changed_after_the_look_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let path = root.join("file");
        for linked in [false, true] {
            fs::write(&path, "seen").unwrap();
            if linked {
                fs::hard_link(&path, root.join("twin")).unwrap();
            }
            let before = FileSnapshot::take(&path, u64::MAX).unwrap().unwrap();
            for meanwhile in ["else", "", "seen and more"] {
                fs::write(&path, meanwhile).unwrap();
                let result = replace(
                    &path,
                    &before,
                    b"new",
                    temporary_name().as_ref(),
                    &mut || Ok(()),
                );
                assert!(
                    matches!(result, Err(JournalError::Drifted { .. })),
                    "{result:?}"
                );
                assert_eq!(fs::read(&path).unwrap(), meanwhile.as_bytes());
            }
        }
        assert_eq!(names(&root), ["file", "twin"]);
    }

    #[test]
    fn a_file_that_appeared_after_the_look_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("file"), "theirs").unwrap();
        let result = create(&root.join("file"), b"ours", temporary_name().as_ref(), None);
        assert!(
            matches!(result, Err(JournalError::Drifted { .. })),
            "{result:?}"
        );
        assert_eq!(fs::read(root.join("file")).unwrap(), b"theirs");
        assert_eq!(names(&root), ["file"]);
    }

    #[test]
    fn a_failed_creation_takes_its_parents_back() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        // Everything works until the rename, which finds the name too long.
        let path = root.join("x/y").join("n".repeat(300));
        assert!(create(&path, b"content", temporary_name().as_ref(), None).is_err());
        assert!(names(&root).is_empty());
    }
}
