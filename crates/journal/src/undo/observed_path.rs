//! The present state of a path, compared with a record.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::record::{RecordState, UnreadFileStamp, extended, nanoseconds};
use crate::commit::FileAttributes;
use crate::open::{is_behind_link, open_real};
use crate::snapshot::{NAMED_PIPE, ScanArea, ScannedKind, ScannedTree, TreeEntry};
use crate::stamp::{ContentHash, Stamp};

/// The present state of a path. Its content is read on demand.
#[derive(Debug)]
pub(super) struct ObservedPath {
    path: PathBuf,
    pub(super) entry: Option<TreeEntry>,
    content: OnceCell<Option<ObservedContent>>,
}

/// The content hash and the extended attributes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObservedContent {
    pub(crate) hash: String,
    pub(crate) extended: Vec<(Vec<u8>, Vec<u8>)>,
}

impl ObservedPath {
    pub(super) fn from_path(path: &Path) -> io::Result<Self> {
        // If a directory was replaced by a link, the file seen through it is another one.
        let entry = match is_behind_link(path) {
            true => None,
            false => TreeEntry::from_path(path)?,
        };
        Ok(Self {
            path: path.to_path_buf(),
            entry,
            content: OnceCell::new(),
        })
    }

    pub(super) fn kind(&self) -> Option<ScannedKind> {
        self.entry.as_ref().map(TreeEntry::kind)
    }

    /// Returns `None` if this is not a file, changed while it was read, or cannot be read.
    pub(super) fn content(&self) -> Option<&ObservedContent> {
        let entry = self.entry.as_ref()?;
        let read = || read_content(&self.path, &entry.stamp).ok();
        self.content.get_or_init(read).as_ref()
    }

    /// Returns whether the path matches the record. Modes and times are compared elsewhere.
    pub(super) fn is(&self, state: &RecordState) -> bool {
        let Some(entry) = &self.entry else {
            return !state.is_present();
        };
        match state {
            RecordState::Absent => false,
            RecordState::Carried => true,
            RecordState::Pipe { .. } => entry.kind() == ScannedKind::Special(NAMED_PIPE),
            RecordState::Regular { hash, size, .. } => {
                entry.kind() == ScannedKind::File
                    && entry.stamp.size == *size
                    && self.content().is_some_and(|content| content.hash == *hash)
            }
            RecordState::Link { target, .. } => entry.target.as_ref() == Some(target),
            RecordState::Directory { .. } => entry.kind() == ScannedKind::Directory,
            RecordState::Opaque { seal, .. } => UnreadFileStamp::from_stamp(&entry.stamp) == *seal,
            // An undo in between may have created the file again.
            RecordState::Moved { seal, .. } => {
                let now = UnreadFileStamp::from_stamp(&entry.stamp);
                (now.size, now.mode, now.mtime) == (seal.size, seal.mode, seal.mtime)
            }
            RecordState::Grown { digest, entries } => {
                entry.kind() == ScannedKind::Directory
                    && digest_below(&self.path, *entries).is_some_and(|found| found == *digest)
            }
        }
    }

    /// Like [`Self::is`], but usually without reading the content: size and mtime suffice.
    pub(super) fn probably_is(&self, state: &RecordState) -> bool {
        match (state, &self.entry) {
            (RecordState::Regular { size, mtime, .. }, Some(entry)) => {
                entry.kind() == ScannedKind::File
                    && entry.stamp.size == *size
                    && (nanoseconds(entry.stamp.mtime_ns) == *mtime || self.is(state))
            }
            (RecordState::Grown { .. }, Some(entry)) => entry.kind() == ScannedKind::Directory,
            _ => self.is(state),
        }
    }

    /// Returns the present state as a record. Reads only as much as the recorded state `is`
    /// requires.
    pub(super) fn state(&self, is: &RecordState) -> RecordState {
        match (is, &self.entry) {
            (RecordState::Carried, _) => RecordState::Carried,
            (_, None) => RecordState::Absent,
            (RecordState::Grown { .. } | RecordState::Moved { .. }, _) => is.clone(),
            (RecordState::Regular { twin, .. }, Some(entry)) => match self.content() {
                Some(content) => {
                    let is_twin = |path: &&PathBuf| {
                        let found = TreeEntry::from_path(path).ok().flatten();
                        found.is_some_and(|found| found.stamp.same_object(&entry.stamp))
                    };
                    let twin = twin.as_ref().filter(is_twin).cloned();
                    regular(&entry.stamp, content, twin)
                }
                None => unread(entry),
            },
            (RecordState::Opaque { .. }, Some(entry)) => unread(entry),
            (_, Some(entry)) => described(&self.path, entry),
        }
    }
}

/// Like [`unread`], but with all that can be read of a directory or a pipe.
pub(crate) fn described(path: &Path, entry: &TreeEntry) -> RecordState {
    let mut state = unread(entry);
    let stamp = &entry.stamp;
    if let RecordState::Directory {
        extended: attributes,
        ..
    } = &mut state
    {
        // The attributes of a directory that must not be opened are not changed either.
        *attributes = extended(&read_attributes(path).unwrap_or_default());
    } else if entry.kind() == ScannedKind::Special(NAMED_PIPE) {
        state = RecordState::Pipe {
            mode: stamp.mode & 0o7777,
            uid: stamp.uid,
            gid: stamp.gid,
            mtime: nanoseconds(stamp.mtime_ns),
        };
    }
    state
}

/// Returns the extended attributes of a file or directory.
pub(crate) fn read_attributes(path: &Path) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(open_real(path, flags)?);
    let stamp = Stamp::from_metadata(&file.metadata()?);
    Ok(FileAttributes::from_file(&file, &stamp)?.extended)
}

/// Returns the record of a regular file with its content.
pub(crate) fn regular(
    stamp: &Stamp,
    content: &ObservedContent,
    twin: Option<PathBuf>,
) -> RecordState {
    RecordState::Regular {
        hash: content.hash.clone(),
        size: stamp.size,
        mode: stamp.mode & 0o7777,
        uid: stamp.uid,
        gid: stamp.gid,
        mtime: nanoseconds(stamp.mtime_ns),
        extended: extended(&content.extended),
        twin,
    }
}

/// Returns the record of anything else, or of a file whose content was not read.
pub(crate) fn unread(entry: &TreeEntry) -> RecordState {
    let stamp = &entry.stamp;
    match (entry.kind(), &entry.target) {
        (ScannedKind::Link, Some(target)) => RecordState::Link {
            target: target.clone(),
            mtime: nanoseconds(stamp.mtime_ns),
        },
        (ScannedKind::Directory, _) => RecordState::Directory {
            mode: stamp.mode & 0o7777,
            uid: stamp.uid,
            gid: stamp.gid,
            mtime: nanoseconds(stamp.mtime_ns),
            extended: Vec::new(),
        },
        (kind, _) => RecordState::Opaque {
            kind: match kind {
                ScannedKind::Special(kind) => kind.to_owned(),
                _ => "a file".to_owned(),
            },
            seal: UnreadFileStamp::from_stamp(stamp),
        },
    }
}

/// Hashes a file, which must still have the stamp `seen`.
pub(crate) fn read_content(path: &Path, seen: &Stamp) -> io::Result<ObservedContent> {
    let changed = || io::Error::other("it changed while it was read");
    if ScannedKind::from_stamp(seen) != ScannedKind::File {
        return Err(changed());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut file = File::from(open_real(path, flags)?);
    let opened = Stamp::from_metadata(&file.metadata()?);
    if !opened.is_same(seen) {
        return Err(changed());
    }
    let mut buffer = vec![0; 256 << 10];
    let mut hasher = blake3::Hasher::new();
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if !Stamp::from_metadata(&file.metadata()?).is_same(seen) {
        return Err(changed());
    }
    Ok(ObservedContent {
        hash: ContentHash::finish(&hasher).to_string(),
        extended: FileAttributes::from_file(&file, &opened)?.extended,
    })
}

/// Returns the hash of the file at a path, if it exists.
pub(super) fn hash_of(path: &Path) -> io::Result<Option<String>> {
    let looked = ObservedPath::from_path(path)?;
    Ok(looked.content().map(|content| content.hash.clone()))
}

/// Returns one hash for everything below a directory; `None` if it has far more entries than
/// before.
pub(crate) fn digest_below(path: &Path, entries: u64) -> Option<String> {
    let area = ScanArea {
        roots: vec![path.to_path_buf()],
        entries: usize::try_from(entries).ok()?.checked_mul(2)?,
        deadline: std::time::Instant::now().checked_add(Duration::from_secs(60)),
        ..ScanArea::default()
    };
    let tree = area.scan(None).ok()?;
    Some(digest(&tree, path))
}

/// Hashes names, modes, sizes and times, but no attributes that a restored file cannot have again.
pub(crate) fn digest(tree: &ScannedTree, directory: &Path) -> String {
    fn add(tree: &ScannedTree, directory: &Path, hasher: &mut blake3::Hasher) {
        use std::os::unix::ffi::OsStrExt;
        let Some(listing) = tree.listings.get(directory) else {
            hasher.update(b"?");
            return;
        };
        for entry in &listing.entries {
            let stamp = &entry.stamp;
            let is_directory = entry.kind() == ScannedKind::Directory;
            hasher.update(&(entry.name.len() as u64).to_le_bytes());
            hasher.update(entry.name.as_bytes());
            hasher.update(&stamp.mode.to_le_bytes());
            if let Some(target) = &entry.target {
                hasher.update(target.as_os_str().as_bytes());
            }
            if is_directory {
                hasher.update(b"(");
                add(tree, &directory.join(&entry.name), hasher);
                hasher.update(b")");
            } else {
                hasher.update(&stamp.size.to_le_bytes());
                hasher.update(&stamp.mtime_ns.to_le_bytes());
            }
        }
    }
    let mut hasher = blake3::Hasher::new();
    add(tree, directory, &mut hasher);
    ContentHash::finish(&hasher).to_string()
}
