//! The witness: stores the old state of a name or file before the guard carries out its first change,
//! so that undo is exact.
//!
//! Files and names that the command itself created are not recorded: undo removes them. A file that
//! loses a name is stored by a hard link, which takes the same time for every size. A file that is
//! opened for writing is copied, unless the session has a copy of the same state.
//!
//! If a limit or an error prevents that, the call waits for an answer of our process.

mod stored_files;

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    path::{Path, PathBuf},
};

use haft_witness::{
    FileId, KeptWay, LogLine, OsBytes, WitnessedChange, WitnessedEntry, WitnessedKind,
    WitnessedXattr, encode,
};
use rustix::{
    fs::{CWD, OFlags, getxattr, listxattr, readlinkat},
    io::Errno,
    time::{ClockId, clock_gettime},
};

use self::stored_files::{StorageDecision, StorageProblem, StoredFiles};
use super::{
    caller::handle_path,
    perform::{NameLocation, open_handle},
};
use crate::{StorageAnswer, UnstoredFile, protocol::WitnessOrder};

/// The maximum size of the list of extended attributes of a file, and of a value, in the kernel.
const MAX_XATTR: usize = 64 << 10;

/// Records the changes of one command.
pub(in crate::child) struct ChangeWitness {
    log: RefCell<WitnessLogWriter>,
    roots: Vec<WitnessRoot>,
    seen: RefCell<SeenFiles>,
    stored: StoredFiles,
    /// Whether our process answers questions about files that cannot be stored.
    asks: bool,
    /// The answers about files.
    decisions: RefCell<HashMap<FileId, StorageDecision>>,
}

/// The reason why a call is not carried out now.
#[derive(Debug)]
pub(super) enum StorageStop {
    /// Our process must decide about this file first.
    Ask(UnstoredObject),
    /// Our process refused the change, because undo would not cover it.
    Refused,
}

/// A file that could not be stored.
#[derive(Debug)]
pub(super) struct UnstoredObject {
    pub(super) id: FileId,
    pub(super) file: UnstoredFile,
}

/// A writable directory.
struct WitnessRoot {
    path: PathBuf,
    /// Its handle in the mount namespace of our process. `None` if its changes are not recorded.
    directory: Option<OwnedFd>,
}

struct WitnessLogWriter {
    file: File,
    lines: u64,
    /// The number of bytes that it may still get.
    bytes_left: u64,
    /// The first error. Nothing is recorded after it.
    failure: Option<String>,
}

/// The names and files that already have a line in the log, or need none.
#[derive(Default)]
struct SeenFiles {
    names: HashSet<(FileId, OsString)>,
    /// Files whose metadata is in the log, and whether their content is stored as well.
    files: HashMap<FileId, bool>,
    /// Files and directories that the command created.
    created: HashSet<FileId>,
    /// The paths in the log of files with several hard links.
    paths: HashSet<(FileId, PathBuf)>,
}

impl WitnessLogWriter {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let left = self.bytes_left.checked_sub(line.len() as u64);
        self.bytes_left = left.ok_or_else(|| io::Error::other("there are too many changes"))?;
        self.file.write_all(line)
    }
}

impl SeenFiles {
    /// Returns whether the file has several hard links and this path of it is not in the log, and
    /// records that it is.
    fn is_new_path(&mut self, entry: &WitnessedEntry, path: &Path) -> bool {
        entry.kind == WitnessedKind::File
            && entry.links > 1
            && self.paths.insert((entry.id, path.to_path_buf()))
    }

    /// Returns whether a file did not have this path before the command: the command created the
    /// directory, or the path leads to another file by now.
    fn is_other_path(&self, id: FileId, path: &Path) -> bool {
        let above = path.parent().map(Path::as_os_str);
        let directory = above.and_then(|above| FileId::from_entry(CWD, above));
        FileId::from_entry(CWD, path.as_os_str()) != Some(id)
            || directory.is_some_and(|directory| self.created.contains(&directory))
    }
}

impl ChangeWitness {
    /// Creates the witness for an order, which names the recorded directories. `files` are the log,
    /// the directory of stored files, that of shared copies (if any), and the recorded
    /// directories. `writable` are all directories in which the command may write. `socket` leads to
    /// our process.
    pub(in crate::child) fn new(
        order: &WitnessOrder,
        files: Vec<OwnedFd>,
        writable: &[PathBuf],
        socket: UnixStream,
    ) -> io::Result<Self> {
        let mut files = files.into_iter();
        let mut next = || files.next().ok_or(io::ErrorKind::NotFound);
        let (log, objects) = (next()?, next()?);
        let copies = order.has_copies.then(&mut next).transpose()?;
        let mut roots: Vec<WitnessRoot> = writable
            .iter()
            .map(|path| WitnessRoot {
                path: path.clone(),
                directory: None,
            })
            .collect();
        for root in &order.roots {
            let path = Path::new(OsStr::from_bytes(root.as_slice()));
            let directory = next()?;
            if let Some(root) = roots.iter_mut().find(|root| root.path == path) {
                root.directory = Some(directory);
            }
        }
        // The deepest directory decides.
        roots.sort_by_key(|root| std::cmp::Reverse(root.path.as_os_str().len()));
        Ok(Self {
            log: RefCell::new(WitnessLogWriter {
                file: File::from(log),
                lines: 0,
                bytes_left: order.limits.log_bytes,
                failure: None,
            }),
            roots,
            seen: RefCell::default(),
            stored: StoredFiles::new(objects, copies, order.limits, socket),
            asks: order.asks,
            decisions: RefCell::default(),
        })
    }

    /// Applies the answer of our process about a file.
    pub(super) fn on_answer(&self, id: FileId, answer: StorageAnswer) {
        let decision = match answer {
            StorageAnswer::Lease(lease) => return self.stored.add_lease(lease),
            StorageAnswer::Copy => StorageDecision::Copy,
            StorageAnswer::Skip(why) => StorageDecision::Skip(why),
            StorageAnswer::Refuse => StorageDecision::Refuse,
        };
        self.decisions.borrow_mut().insert(id, decision);
    }

    /// Returns what the log contains about a file that could not be stored: the reason. Otherwise
    /// the call waits or fails.
    fn decided(
        &self,
        entry: &WitnessedEntry,
        path: &Path,
        problem: StorageProblem,
    ) -> Result<String, StorageStop> {
        if !self.asks {
            return Ok(problem.text);
        }
        match self.decisions.borrow().get(&entry.id) {
            Some(StorageDecision::Skip(why)) => Ok(why.clone()),
            Some(StorageDecision::Refuse) => Err(StorageStop::Refused),
            // The copy failed after the decision to make it.
            Some(StorageDecision::Copy) if problem.error.is_some() => Err(StorageStop::Refused),
            Some(StorageDecision::Copy) | None => Err(StorageStop::Ask(UnstoredObject {
                id: entry.id,
                file: UnstoredFile {
                    path: path.to_path_buf(),
                    link_bytes: problem.link_bytes,
                    copy_bytes: problem.copy_bytes,
                    error: problem.error,
                },
            })),
        }
    }

    /// Returns whether our process decided that this file is copied regardless of the limits.
    fn must_copy(&self, id: FileId) -> bool {
        matches!(
            self.decisions.borrow().get(&id),
            Some(StorageDecision::Copy)
        )
    }

    /// Records that all processes of the command have exited. Returns the reason why the log is not
    /// complete, if it is not.
    pub(in crate::child) fn end(&self) -> Option<String> {
        self.write(WitnessedChange::End);
        self.log.borrow().failure.clone()
    }

    /// Records a name that is about to get another entry, or none.
    pub(super) fn name_changes(&self, place: &NameLocation) {
        if self.root_above(&place.path).is_none() {
            return;
        }
        let Some(parent) = FileId::from_entry(&place.directory, OsStr::new("")) else {
            return;
        };
        let mut seen = self.seen.borrow_mut();
        let is_new =
            !seen.created.contains(&parent) && seen.names.insert((parent, place.name.clone()));
        if is_new {
            self.write(WitnessedChange::Name {
                path: OsBytes::from(&*place.path),
                entry: entry_of(place),
            });
        }
    }

    /// Records that the command created this file.
    pub(super) fn created(&self, file: impl AsFd, name: &OsStr) {
        self.seen
            .borrow_mut()
            .created
            .extend(FileId::from_entry(file, name));
    }

    /// Records a file that is about to lose a name: it is removed, or another file replaces it.
    pub(super) fn entry_goes(&self, place: &NameLocation) -> Result<(), StorageStop> {
        let Some(root) = self.root_above(&place.path) else {
            return Ok(());
        };
        let Some(mut entry) = WitnessedEntry::from_entry(&place.directory, &place.name) else {
            return Ok(());
        };
        let mut seen = self.seen.borrow_mut();
        if seen.created.contains(&entry.id) {
            return Ok(());
        }
        let must_copy = self.must_copy(entry.id);
        let (kept, missing) = match entry.kind {
            WitnessedKind::File if seen.files.get(&entry.id) == Some(&true) => {
                // The other names show the new content. A link keeps the file itself, so that undo
                // changes all names.
                if entry.links == 1 {
                    return Ok(());
                }
                (self.stored.link_removed(place, &entry, root).ok(), None)
            }
            WitnessedKind::File => {
                match self.stored.store_removed(place, &entry, root, must_copy) {
                    Ok(kept) => {
                        if kept.way == KeptWay::Copy {
                            seen.files.insert(entry.id, true);
                            entry.xattrs = xattrs_of_entry(place);
                        }
                        (Some(kept), None)
                    }
                    Err(problem) => (None, Some(self.decided(&entry, &place.path, problem)?)),
                }
            }
            WitnessedKind::Directory if seen.files.contains_key(&entry.id) => return Ok(()),
            WitnessedKind::Directory => {
                seen.files.insert(entry.id, false);
                entry.xattrs = xattrs_of_entry(place);
                (None, None)
            }
            // The line of its name is enough.
            WitnessedKind::Link
            | WitnessedKind::Pipe
            | WitnessedKind::Socket
            | WitnessedKind::Device => return Ok(()),
        };
        self.write(WitnessedChange::Object {
            path: OsBytes::from(&*place.path),
            other_path: seen.is_other_path(entry.id, &place.path),
            entry,
            kept,
            missing,
        });
        Ok(())
    }

    /// Records a file whose content is about to change.
    pub(super) fn content_changes(&self, file: &OwnedFd, path: &Path) -> Result<(), StorageStop> {
        if self.root_of(path).is_none() {
            return Ok(());
        }
        let Some(mut entry) = WitnessedEntry::from_entry(file, OsStr::new("")) else {
            return Ok(());
        };
        let mut seen = self.seen.borrow_mut();
        if seen.created.contains(&entry.id) {
            return Ok(());
        }
        let known = seen.files.get(&entry.id).copied();
        let (kept, missing) = match known {
            Some(true) => (None, None),
            _ => match self.stored.copy(file, path, self.must_copy(entry.id)) {
                Ok(kept) => (Some(kept), None),
                Err(problem) => (None, Some(self.decided(&entry, path, problem)?)),
            },
        };
        seen.files.insert(entry.id, true);
        let is_new_path = seen.is_new_path(&entry, path);
        if known == Some(true) && !is_new_path {
            return Ok(());
        }
        if known.is_none() {
            entry.xattrs = xattrs(file);
        }
        self.write(WitnessedChange::Object {
            path: OsBytes::from(path),
            other_path: seen.is_other_path(entry.id, path),
            entry,
            kept,
            missing,
        });
        Ok(())
    }

    /// Records a file or directory whose metadata is about to change.
    pub(super) fn metadata_changes(&self, file: &OwnedFd, path: &Path) {
        if self.root_of(path).is_none() {
            return;
        }
        let Some(mut entry) = WitnessedEntry::from_entry(file, OsStr::new("")) else {
            return;
        };
        let mut seen = self.seen.borrow_mut();
        if entry.links == 0 || seen.created.contains(&entry.id) {
            return;
        }
        let is_known = seen.files.contains_key(&entry.id);
        if !seen.is_new_path(&entry, path) && is_known {
            return;
        }
        if !is_known {
            seen.files.insert(entry.id, false);
            entry.xattrs = xattrs(file);
        }
        self.write(WitnessedChange::Object {
            path: OsBytes::from(path),
            other_path: seen.is_other_path(entry.id, path),
            entry,
            kept: None,
            missing: None,
        });
    }

    /// Records that a directory is about to be moved with everything below it. Returns the number of
    /// the line, for [`Self::failed`].
    pub(super) fn directory_moves(
        &self,
        from: &NameLocation,
        to: &NameLocation,
        exchange: bool,
    ) -> Option<u64> {
        let id = FileId::from_entry(&from.directory, &from.name)?;
        self.write(WitnessedChange::Moved {
            from: OsBytes::from(&*from.path),
            to: OsBytes::from(&*to.path),
            id,
            exchange,
        })
    }

    /// Records that a change was not carried out.
    pub(super) fn failed(&self, line: u64) {
        self.write(WitnessedChange::Failed { line });
    }

    /// Like [`Self::root_of`], but `None` for the recorded directory itself: a command can neither
    /// remove nor replace it.
    fn root_above(&self, path: &Path) -> Option<(&Path, &OwnedFd)> {
        self.root_of(path).filter(|(root, _)| *root != path)
    }

    /// Returns the recorded directory that contains a path, and its handle.
    fn root_of(&self, path: &Path) -> Option<(&Path, &OwnedFd)> {
        let root = self
            .roots
            .iter()
            .find(|root| path.starts_with(&root.path))?;
        Some((&root.path, root.directory.as_ref()?))
    }

    /// Appends a line, and returns its number. The line is not synced: it survives the death of every
    /// process, but not a power failure.
    fn write(&self, change: WitnessedChange) -> Option<u64> {
        let mut log = self.log.borrow_mut();
        if log.failure.is_some() {
            return None;
        }
        log.lines += 1;
        let number = log.lines;
        let line = LogLine {
            number,
            time: now(),
            change,
        };
        let written = encode(&line).and_then(|line| log.append(&line));
        if let Err(error) = written {
            log.failure = Some(format!(
                "the log of changes ends before the command: {error}"
            ));
            return None;
        }
        Some(number)
    }
}

/// Returns the time in nanoseconds since the epoch.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000) + nanoseconds
}

/// Returns the entry at a place, with the target of a link.
fn entry_of(place: &NameLocation) -> Option<WitnessedEntry> {
    let mut entry = WitnessedEntry::from_entry(&place.directory, &place.name)?;
    if entry.kind == WitnessedKind::Link {
        let target = readlinkat(&place.directory, &*place.name, Vec::new()).ok()?;
        entry.target = Some(OsBytes(target.into_bytes()));
    }
    Some(entry)
}

/// Returns the extended attributes of the file at a place, which must not be a symlink.
fn xattrs_of_entry(place: &NameLocation) -> Vec<WitnessedXattr> {
    let file = open_handle(&place.directory, &place.name, OFlags::NOFOLLOW);
    file.map(|file| xattrs(&file)).unwrap_or_default()
}

/// Returns the extended attributes of a file. Those that cannot be read are left out.
fn xattrs(file: &OwnedFd) -> Vec<WitnessedXattr> {
    let path = handle_path(file);
    let Some(names) = read_xattr(|buffer| listxattr(&*path, buffer)) else {
        return Vec::new();
    };
    let names = names.split(|byte| *byte == 0);
    names
        .filter(|name| !name.is_empty())
        .filter_map(|name| {
            let value = read_xattr(|buffer| getxattr(&*path, OsStr::from_bytes(name), buffer))?;
            Some(WitnessedXattr {
                name: OsBytes(name.to_vec()),
                value: OsBytes(value),
            })
        })
        .collect()
}

/// Reads into a small buffer, and again into the largest one if that is too small.
fn read_xattr(read: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 256];
    let length = match read(&mut bytes) {
        Err(Errno::RANGE) => {
            bytes.resize(MAX_XATTR, 0);
            read(&mut bytes).ok()?
        }
        read => read.ok()?,
    };
    bytes.truncate(length);
    Some(bytes)
}
