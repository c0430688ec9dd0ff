//! The fold: a witness log and the disk become records of changed paths.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use haft_witness::{FileId, UnitFolder, WitnessLog, WitnessedEntry, WitnessedKind};
use rustix::fs::CWD;

use super::log_summary::{LogObject, LogSummary};
use super::trees::{PresentEntry, TouchedTrees, TreeSide};
use crate::commit::set_kept_attributes;
use crate::snapshot::{ScannedKind, TreeEntry};
use crate::stamp::Stamp;
use crate::undo::{
    MAX_INDEX, ObservedContent, PathChangeRecord, RecordState, UnreadFileStamp, XattrRecord,
    described, extended, is_index, is_same_but_twin, read_attributes, read_content, regular,
    unread,
};

/// Larger files are identified by their stamps instead of their contents.
const MAX_READ: u64 = 64 << 20;

/// The result of a fold.
#[derive(Debug, Default)]
pub(crate) struct FoldedUnit {
    pub(crate) records: Vec<PathChangeRecord>,
    /// Paths that cannot be restored, with the reason.
    pub(crate) left: BTreeMap<PathBuf, String>,
    /// Stored copies that undo needs, by hash.
    pub(crate) copies: HashMap<String, PathBuf>,
    /// Contents to copy, by hash: indexes of Git, before and after.
    pub(crate) indexes: HashMap<String, PathBuf>,
}

/// The state of a file before the command.
#[derive(Debug, Clone)]
enum FileBefore {
    /// The hash of its content is known.
    Known(RecordState),
    /// It was removed, and is stored.
    Kept(RecordState),
    /// Neither content nor metadata changed; it may be at another path.
    Unchanged,
    /// It cannot be restored.
    Lost(String),
}

/// Compares a log with the disk. `folder` is the place of the stored files that the records name;
/// `is_single` selects paths that need their own record.
pub(crate) fn fold_unit(
    log: &WitnessLog,
    folder: &UnitFolder,
    is_single: &dyn Fn(&Path) -> bool,
) -> FoldedUnit {
    let summary = LogSummary::new(log);
    let trees = TouchedTrees::read(&summary, is_single);
    let fold = UnitFold {
        objects: &summary.objects,
        trees: &trees,
        kept: folder.objects(),
        files: RefCell::default(),
        copies: RefCell::default(),
        contents: RefCell::default(),
        indexes: RefCell::default(),
    };
    let mut folded = FoldedUnit::default();
    for path in &summary.unnamed {
        let why = "it was changed through a new hard link, and its other names are not known";
        folded.left.insert(path.clone(), why.to_owned());
    }
    for (path, why) in &trees.unread {
        folded.left.insert(path.clone(), why.clone());
    }
    for path in trees.paths() {
        match fold.record(&path) {
            Ok(None) => {}
            Ok(Some(record)) => folded.records.push(record),
            Err(why) => {
                folded.left.insert(path, why);
            }
        }
    }
    folded.copies = fold.copies.into_inner();
    folded.indexes = fold.indexes.into_inner();
    folded
}

struct UnitFold<'a> {
    objects: &'a HashMap<FileId, LogObject>,
    trees: &'a TouchedTrees,
    /// The directory of the stored files.
    kept: PathBuf,
    files: RefCell<HashMap<FileId, FileBefore>>,
    copies: RefCell<HashMap<String, PathBuf>>,
    /// The contents that were read, by object.
    contents: RefCell<HashMap<FileId, ObservedContent>>,
    indexes: RefCell<HashMap<String, PathBuf>>,
}

impl UnitFold<'_> {
    fn record(&self, path: &Path) -> Result<Option<PathChangeRecord>, String> {
        let (before, after) = (self.trees.before(path), self.trees.after(path));
        let (before_id, after_id) = (
            match &before {
                TreeSide::Known(id) => Some(*id),
                _ => None,
            },
            match &after {
                TreeSide::Known(entry) => Some(entry.id),
                _ => None,
            },
        );
        let is_same = before_id.is_some() && before_id == after_id;
        // If a file lost or got another name, its record is needed to link that name.
        let has_same_names = before_id
            .is_none_or(|id| self.trees.before_paths.get(&id) == self.trees.after_paths.get(&id));
        // The entries of a new directory go with it, even if they are equal to the old ones.
        let is_below_change = self.trees.is_below_change(path);
        let is_in_place = is_same && has_same_names && !is_below_change;
        let before = match before {
            TreeSide::Absent => RecordState::Absent,
            TreeSide::Carried => RecordState::Carried,
            TreeSide::Known(id) => match self.state_before(id)? {
                None if is_in_place => return Ok(None),
                None => self.moved(id, self.trees.after_paths.get(&id))?,
                Some(state) => self.with_index_before(path, id, state),
            },
        };
        let after = match after {
            TreeSide::Absent => RecordState::Absent,
            TreeSide::Carried => RecordState::Carried,
            TreeSide::Known(entry) => self.state_after(path, entry)?,
        };
        self.add_index(path, path, &after);
        let is_nothing = !before.is_present() && !after.is_present();
        let is_unchanged =
            is_same_but_twin(&before, &after) || is_same_but_time_of_directory(&before, &after);
        let is_other = !is_same && !self.is_elsewhere(before_id, after_id);
        let keeps_place = is_in_place || (is_other && !is_below_change);
        if is_nothing || (is_unchanged && keeps_place) {
            return Ok(None);
        }
        Ok(Some(PathChangeRecord {
            before_id,
            after_id,
            ..PathChangeRecord::new(path.to_path_buf(), before, after)
        }))
    }

    /// Reads the content of a removed index of Git: another index with the same entries is not
    /// another state.
    fn with_index_before(&self, path: &Path, id: FileId, state: RecordState) -> RecordState {
        let RecordState::Moved { to, seal } = &state else {
            return state;
        };
        let is_index = is_index(path) && to.starts_with(&self.kept) && seal.size <= MAX_INDEX;
        let object = self.objects.get(&id).filter(|_| is_index);
        let read = || {
            let found = TreeEntry::from_path(to).ok()??;
            read_content(to, &found.stamp).ok()
        };
        let (Some(object), Some(content)) = (object, object.and_then(|_| read())) else {
            return state;
        };
        let attributes = extended(&content.extended);
        let read = object.state(content.hash, seal.size, attributes, Some(to.clone()));
        self.add_index(path, to, &read);
        read
    }

    fn add_index(&self, path: &Path, content: &Path, state: &RecordState) {
        if let RecordState::Regular { hash, size, .. } = state
            && *size <= MAX_INDEX
            && is_index(path)
        {
            let mut indexes = self.indexes.borrow_mut();
            indexes.insert(hash.clone(), content.to_path_buf());
        }
    }

    /// Returns whether one of these objects is also at a path of the other tree.
    fn is_elsewhere(&self, before: Option<FileId>, after: Option<FileId>) -> bool {
        before.is_some_and(|id| self.trees.after_paths.contains_key(&id))
            || after.is_some_and(|id| self.trees.before_paths.contains_key(&id))
    }

    /// Returns the first state of an object; `None` for an unchanged file that still exists.
    fn state_before(&self, id: FileId) -> Result<Option<RecordState>, String> {
        let object = self
            .objects
            .get(&id)
            .ok_or("the witness log does not describe it")?;
        let entry = &object.entry;
        let present = self.present(id);
        Ok(Some(match entry.kind {
            WitnessedKind::Directory => RecordState::Directory {
                mode: entry.mode,
                uid: entry.uid,
                gid: entry.gid,
                mtime: entry.mtime,
                extended: match (&object.xattrs, present) {
                    (Some(_), _) => object.attributes(),
                    (None, Some((path, _))) => attributes_of(path),
                    (None, None) => Vec::new(),
                },
            },
            WitnessedKind::Link => RecordState::Link {
                target: match &entry.target {
                    Some(target) => target.as_path().to_path_buf(),
                    None => return Err("its target is not known".to_owned()),
                },
                mtime: entry.mtime,
            },
            WitnessedKind::Pipe => RecordState::Pipe {
                mode: entry.mode,
                uid: entry.uid,
                gid: entry.gid,
                mtime: entry.mtime,
            },
            WitnessedKind::Socket | WitnessedKind::Device => match present {
                Some((_, present)) => unread(&present.entry),
                None if entry.kind == WitnessedKind::Socket => {
                    return Err("it was a socket, which cannot be made again".to_owned());
                }
                None => return Err("it was a device, which cannot be made again".to_owned()),
            },
            WitnessedKind::File => match self.file_before(id, object) {
                FileBefore::Known(state) | FileBefore::Kept(state) => state,
                FileBefore::Unchanged => return Ok(None),
                FileBefore::Lost(why) => return Err(why),
            },
        }))
    }

    fn file_before(&self, id: FileId, object: &LogObject) -> FileBefore {
        if let Some(known) = self.files.borrow().get(&id) {
            return known.clone();
        }
        let state = self.read_before(id, object).unwrap_or_else(|error| {
            FileBefore::Lost(format!("its stored content cannot be read: {error}"))
        });
        self.files.borrow_mut().insert(id, state.clone());
        state
    }

    fn read_before(&self, id: FileId, object: &LogObject) -> io::Result<FileBefore> {
        let first = &object.entry;
        let present = self.present(id);
        let link = object.link.as_ref().map(|name| self.kept.join(name));
        if let Some(copy) = &object.copy {
            let copy = self.kept.join(copy);
            let stamp = Stamp::from_metadata(&fs::symlink_metadata(&copy)?);
            let hash = read_content(&copy, &stamp)?.hash;
            let size = stamp.size;
            let is_needed = match present {
                Some((path, present)) => {
                    present.entry.stamp.size != size
                        || self.content(id, path, &present.entry)?.hash != hash
                }
                None => true,
            };
            if is_needed {
                self.copies.borrow_mut().insert(hash.clone(), copy);
            }
            let twin = link.filter(|_| present.is_none());
            return Ok(FileBefore::Known(object.state(
                hash,
                size,
                object.attributes(),
                twin,
            )));
        }
        let Some((path, present)) = present else {
            return match (link, &object.missing) {
                (Some(link), _) => read_kept(&link, object),
                (None, Some(why)) => Ok(FileBefore::Lost(lost(why))),
                (None, None) => Ok(FileBefore::Lost(lost("it was moved away"))),
            };
        };
        let stamp = &present.entry.stamp;
        if let Some(why) = &object.missing
            && (stamp.size, nanoseconds(stamp)) != (first.size, first.mtime)
        {
            return Ok(FileBefore::Lost(lost(why)));
        }
        let has_first_metadata = has_metadata(stamp, first);
        if !object.is_changed && has_first_metadata {
            return Ok(FileBefore::Unchanged);
        }
        let content = self.content(id, path, &present.entry)?;
        let attributes = match object.xattrs {
            Some(_) => object.attributes(),
            None => extended(&content.extended),
        };
        if has_first_metadata && attributes == extended(&content.extended) {
            return Ok(FileBefore::Unchanged);
        }
        Ok(FileBefore::Known(object.state(
            content.hash,
            stamp.size,
            attributes,
            None,
        )))
    }

    /// Returns the state of an unchanged file, which is at another path in the other tree.
    fn moved(&self, id: FileId, others: Option<&Vec<PathBuf>>) -> Result<RecordState, String> {
        let (_, present) = self.present(id).ok_or("it was moved away")?;
        let to = others.and_then(|paths| paths.first());
        Ok(RecordState::Moved {
            to: to.ok_or("it was moved away")?.clone(),
            seal: UnreadFileStamp::from_stamp(&present.entry.stamp),
        })
    }

    fn state_after(&self, path: &Path, present: &PresentEntry) -> Result<RecordState, String> {
        if let Some(grown) = &present.grown {
            return Ok(grown.clone());
        }
        let (entry, id) = (&present.entry, present.id);
        if entry.kind() != ScannedKind::File {
            return Ok(described(path, entry));
        }
        if let Some(object) = self.objects.get(&id)
            && matches!(self.file_before(id, object), FileBefore::Unchanged)
            && self.trees.before_paths.contains_key(&id)
        {
            return self.moved(id, self.trees.before_paths.get(&id));
        }
        if entry.stamp.size <= MAX_READ
            && let Ok(content) = self.content(id, path, entry)
        {
            return Ok(regular(&entry.stamp, &content, None));
        }
        Ok(unread(entry))
    }

    /// Returns one path of an object that still exists.
    fn present(&self, id: FileId) -> Option<(&Path, &PresentEntry)> {
        let path = self.trees.after_paths.get(&id)?.first()?;
        let entry = self.trees.after.get(path)?.as_ref()?;
        Some((path, entry))
    }

    fn content(&self, id: FileId, path: &Path, entry: &TreeEntry) -> io::Result<ObservedContent> {
        if let Some(known) = self.contents.borrow().get(&id) {
            return Ok(known.clone());
        }
        let content = read_content(path, &entry.stamp)?;
        self.contents.borrow_mut().insert(id, content.clone());
        Ok(content)
    }
}

impl LogObject {
    fn attributes(&self) -> Vec<XattrRecord> {
        let all = self.xattrs.iter().flatten();
        let all: Vec<_> = all
            .map(|one| (one.name.0.clone(), one.value.0.clone()))
            .collect();
        extended(&all)
    }

    fn state(
        &self,
        hash: String,
        size: u64,
        extended: Vec<XattrRecord>,
        twin: Option<PathBuf>,
    ) -> RecordState {
        RecordState::Regular {
            hash,
            size,
            mode: self.entry.mode,
            uid: self.entry.uid,
            gid: self.entry.gid,
            mtime: self.entry.mtime,
            extended,
            twin,
        }
    }
}

/// Returns the first state of a removed file from the hard link to it. If its metadata changed
/// before it was removed, the link gets the first metadata again, unless the file has more names.
fn read_kept(link: &Path, object: &LogObject) -> io::Result<FileBefore> {
    let first = &object.entry;
    let found = TreeEntry::from_path(link)?.ok_or(io::ErrorKind::NotFound)?;
    if found.stamp.size != first.size {
        return Ok(FileBefore::Lost(lost(
            "it was changed before it was removed",
        )));
    }
    let is_same = match &object.xattrs {
        Some(_) => object.attributes() == attributes_of(link),
        None => true,
    };
    if has_metadata(&found.stamp, first) && is_same {
        return Ok(FileBefore::Kept(kept(link, &found.stamp)));
    }
    if found.stamp.links == 1 {
        set_kept_attributes(link, first, object.xattrs.as_deref())?;
        let found = TreeEntry::from_path(link)?.ok_or(io::ErrorKind::NotFound)?;
        return Ok(FileBefore::Kept(kept(link, &found.stamp)));
    }
    let content = read_content(link, &found.stamp)?;
    let attributes = match object.xattrs {
        Some(_) => object.attributes(),
        None => extended(&content.extended),
    };
    let (hash, size) = (content.hash, found.stamp.size);
    let twin = Some(link.to_path_buf());
    Ok(FileBefore::Known(
        object.state(hash, size, attributes, twin),
    ))
}

fn kept(link: &Path, stamp: &Stamp) -> RecordState {
    RecordState::Moved {
        to: link.to_path_buf(),
        seal: UnreadFileStamp::from_stamp(stamp),
    }
}

fn lost(why: &str) -> String {
    format!("its old content was not stored ({why})")
}

fn nanoseconds(stamp: &Stamp) -> i64 {
    crate::undo::nanoseconds(stamp.mtime_ns)
}

fn has_metadata(stamp: &Stamp, first: &WitnessedEntry) -> bool {
    (
        stamp.size,
        nanoseconds(stamp),
        stamp.mode & 0o7777,
        stamp.uid,
        stamp.gid,
    ) == (first.size, first.mtime, first.mode, first.uid, first.gid)
}

fn attributes_of(path: &Path) -> Vec<XattrRecord> {
    extended(&read_attributes(path).unwrap_or_default())
}

fn is_same_but_time_of_directory(before: &RecordState, after: &RecordState) -> bool {
    let timeless = |state: &RecordState| match state.clone() {
        RecordState::Directory {
            mode,
            uid,
            gid,
            extended,
            ..
        } => Some((mode, uid, gid, extended)),
        _ => None,
    };
    timeless(before).is_some() && timeless(before) == timeless(after)
}

/// Returns the present identity of the entry at a path.
pub(crate) fn identity(path: &Path) -> Option<FileId> {
    FileId::from_entry(CWD, path.as_os_str())
}
