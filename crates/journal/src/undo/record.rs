//! The records of the log. They are read again after a crash, by this version or a later one, so
//! fields are only ever added.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use haft_witness::FileId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::commit::{FileAttributes, is_own_temporary};
use crate::stamp::Stamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum UndoRecord {
    /// The intended change. It is on disk before the first byte of any file changes, except for
    /// changes that a command made.
    Intent(Box<UndoIntent>),
    /// A rename is not possible for this file: it is overwritten in place from here on.
    InPlace { unit: String, file: usize },
    /// An editor wrote this file, with a content that differs from the intended one.
    Became {
        unit: String,
        file: usize,
        after: PostImage,
    },
    /// The outcome of a unit. If it is missing, recovery decides.
    Outcome {
        unit: String,
        ending: UnitEnding,
        /// The reason for the outcome: the error of the call, or the finding of recovery.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Units that were dropped because of their size or age.
    Dropped { units: Vec<String> },
}

/// All changes of files by one call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct UndoIntent {
    pub(super) unit: String,
    pub(super) call: String,
    pub(super) tool: String,
    /// The time in milliseconds since the epoch.
    pub(super) time: u64,
    /// The units that this one reverts, if it is an undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) undoes: Vec<String>,
    /// The unit that this one reverts partly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) part_of: Option<String>,
    pub(super) files: Vec<FileRecord>,
    /// The paths of any kind that a command, or the undo of one, changes. All of them are made or
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) swept: Vec<PathChangeRecord>,
    /// Changes that cannot be reverted. Only the first ones are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left: Vec<UnrestorablePath>,
    /// The record was written after the change was made by a command, so it can never be half done.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) observed: bool,
    /// The temporary name that is used in each directory of `swept`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) temporary: String,
    /// A description for users, if the tool's name does not suffice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) about: String,
    /// The name of the folder below `keep/` with the files that this unit keeps, if any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) keep: String,
    /// The names of the folders of commands that changed the same files while both ran. They are
    /// undone together with this unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) overlaps: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl UndoIntent {
    /// Returns whether a temporary name cannot come from this program. Recovery would create and
    /// remove files with that name.
    pub(super) fn names_foreign_temporary(&self) -> bool {
        let files = self.files.iter().map(|file| &file.temporary);
        let mut names = files.chain([&self.temporary]);
        names.any(|name| !name.is_empty() && !is_own_temporary(name.as_ref()))
    }
}

/// The change of one path of any kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PathChangeRecord {
    #[serde(with = "path")]
    pub(crate) path: PathBuf,
    pub(crate) before: RecordState,
    pub(crate) after: RecordState,
    /// The identity of the entry before. Entries with equal identities are one object: a moved
    /// entry, or hard links. Known only for changes that the sandbox witnessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before_id: Option<FileId>,
    /// The identity of the entry after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after_id: Option<FileId>,
}

impl PathChangeRecord {
    /// Creates a record of entries whose identities are not known.
    pub(crate) fn new(path: PathBuf, before: RecordState, after: RecordState) -> Self {
        Self {
            path,
            before,
            after,
            before_id: None,
            after_id: None,
        }
    }

    /// Returns whether nothing changed at the path. Undo needs the record to link another name to
    /// the file.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.before_id == self.after_id && self.before == self.after
    }

    /// Returns whether the record has identities, and so must be restored by them.
    pub(super) fn is_identified(&self) -> bool {
        let is_carried = |state: &RecordState| *state == RecordState::Carried;
        self.before_id.is_some()
            || self.after_id.is_some()
            || is_carried(&self.before)
            || is_carried(&self.after)
    }
}

/// A path that cannot be restored, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnrestorablePath {
    #[serde(with = "path")]
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FileRecord {
    /// The path as the call named it.
    #[serde(with = "path")]
    pub(super) given: PathBuf,
    /// The path with all links resolved, which is written.
    #[serde(with = "path")]
    pub(super) real: PathBuf,
    pub(super) before: RecordState,
    /// `None`: the file is removed.
    pub(super) after: Option<PostImage>,
    /// The name of the temporary file in the same directory.
    pub(super) temporary: String,
    #[serde(default)]
    pub(super) in_place: bool,
    /// Missing directories that will be created, outermost first.
    #[serde(default, with = "paths", skip_serializing_if = "Vec::is_empty")]
    pub(super) made: Vec<PathBuf>,
    /// Directories that are removed with the file if they become empty, outermost first.
    #[serde(default, with = "paths", skip_serializing_if = "Vec::is_empty")]
    pub(super) unmade: Vec<PathBuf>,
    pub(super) added: u64,
    pub(super) removed: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum RecordState {
    Absent,
    Regular {
        hash: String,
        size: u64,
        mode: u32,
        uid: u32,
        gid: u32,
        /// Nanoseconds since the epoch; restored only if a command changed it.
        mtime: i64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        extended: Vec<XattrRecord>,
        /// Another hard link to the file at that time, if any.
        #[serde(default, with = "some_path", skip_serializing_if = "Option::is_none")]
        twin: Option<PathBuf>,
    },
    Link {
        #[serde(with = "path")]
        target: PathBuf,
        mtime: i64,
    },
    Directory {
        mode: u32,
        uid: u32,
        gid: u32,
        mtime: i64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        extended: Vec<XattrRecord>,
    },
    /// A named pipe, which can be created again.
    Pipe {
        mode: u32,
        uid: u32,
        gid: u32,
        mtime: i64,
    },
    /// A pipe, a socket, a device or a huge file, whose content was not read. Identified only by
    /// its seal.
    Opaque {
        kind: String,
        seal: UnreadFileStamp,
    },
    /// A file whose content was not read and that is at another path in the other of the two
    /// states.
    Moved {
        #[serde(with = "path")]
        to: PathBuf,
        seal: UnreadFileStamp,
    },
    /// A directory with very many entries, identified by one hash over their names and stamps.
    Grown {
        entries: u64,
        digest: String,
    },
    /// The entry, if any, was moved together with a directory above it, which has its own record.
    Carried,
}

/// The stamp of a file that was not read, to detect changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnreadFileStamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) mtime: i64,
}

impl UnreadFileStamp {
    pub(crate) fn from_stamp(stamp: &Stamp) -> Self {
        Self {
            device: stamp.device,
            inode: stamp.inode,
            size: stamp.size,
            mode: stamp.mode,
            mtime: nanoseconds(stamp.mtime_ns),
        }
    }
}

/// Converts to 64 bits, which is enough until the year 2262.
pub(crate) fn nanoseconds(time: i128) -> i64 {
    i64::try_from(time).unwrap_or_default()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PostImage {
    pub(super) hash: String,
    pub(super) size: u64,
}

/// An extended attribute; name and value are in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct XattrRecord {
    name: String,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum UnitEnding {
    /// The files have the intended state.
    Made,
    /// The files have their previous state.
    NotMade,
    /// Another process changed a file before the outcome was known; the file was left alone.
    Unclear,
}

impl RecordState {
    pub(crate) fn hash(&self) -> Option<&str> {
        match self {
            Self::Regular { hash, .. } => Some(hash),
            _ => None,
        }
    }

    /// Returns the attributes for creating the file again.
    pub(crate) fn attributes(&self) -> Option<FileAttributes> {
        match self {
            Self::Regular {
                mode,
                uid,
                gid,
                extended,
                ..
            } => Some(FileAttributes {
                mode: *mode,
                uid: *uid,
                gid: *gid,
                extended: decode_extended(extended),
            }),
            _ => None,
        }
    }

    pub(super) fn mtime(&self) -> Option<i64> {
        match self {
            Self::Regular { mtime, .. }
            | Self::Link { mtime, .. }
            | Self::Pipe { mtime, .. }
            | Self::Directory { mtime, .. } => Some(*mtime),
            _ => None,
        }
    }

    /// Returns whether the state has an entry that the record describes.
    pub(crate) fn is_present(&self) -> bool {
        !matches!(self, Self::Absent | Self::Carried)
    }

    /// Returns the stored file that the state refers to, if it is below this folder.
    pub(super) fn kept_below(&self, folder: &Path) -> Option<&Path> {
        let path = match self {
            Self::Moved { to, .. } => to,
            Self::Regular {
                twin: Some(twin), ..
            } => twin,
            _ => return None,
        };
        path.starts_with(folder).then_some(path)
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. } | Self::Grown { .. })
    }
}

impl FileRecord {
    pub(super) fn after_hash(&self) -> Option<&str> {
        self.after.as_ref().map(|after| after.hash.as_str())
    }
}

/// Returns extended attributes as records, sorted by name.
pub(crate) fn extended(all: &[(Vec<u8>, Vec<u8>)]) -> Vec<XattrRecord> {
    let records = all.iter().map(|(name, value)| XattrRecord {
        name: to_hex(name),
        value: to_hex(value),
    });
    let mut records: Vec<XattrRecord> = records.collect();
    records.sort_unstable();
    records
}

/// Returns the names and values of recorded attributes.
pub(super) fn decode_extended(all: &[XattrRecord]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let decode = |one: &XattrRecord| Some((from_hex(&one.name)?, from_hex(&one.value)?));
    all.iter().filter_map(decode).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

/// A path as a string, or its bytes in hexadecimal if it is not valid UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenPath {
    Text(String),
    Bytes { hex: String },
}

impl WrittenPath {
    fn from_path(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes {
                hex: to_hex(path.as_os_str().as_bytes()),
            },
        }
    }

    fn read<E: serde::de::Error>(self) -> Result<PathBuf, E> {
        match self {
            Self::Text(text) => Ok(text.into()),
            Self::Bytes { hex } => match from_hex(&hex) {
                Some(bytes) => Ok(OsString::from_vec(bytes).into()),
                None => Err(E::custom("a path that is not hexadecimal")),
            },
        }
    }
}

mod path {
    use super::{Deserialize, Deserializer, Path, PathBuf, Serialize, Serializer, WrittenPath};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        WrittenPath::from_path(path).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        WrittenPath::deserialize(from)?.read()
    }
}

mod some_path {
    use super::{Deserialize, Deserializer, PathBuf, Serialize, Serializer, WrittenPath};

    pub(super) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_deref().map(WrittenPath::from_path).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        let written: Option<WrittenPath> = Deserialize::deserialize(from)?;
        written.map(WrittenPath::read).transpose()
    }
}

mod paths {
    use super::{Deserialize, Deserializer, PathBuf, Serializer, WrittenPath};

    pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| WrittenPath::from_path(path)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let written: Vec<WrittenPath> = Deserialize::deserialize(from)?;
        written.into_iter().map(WrittenPath::read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written before commands were covered.
    #[test]
    fn old_lines_are_still_read() {
        let lines = [
            r#"{"kind":"intent","unit":"u","call":"u","tool":"Edit","time":1,"files":[{"given":"/a","real":"/a","before":{"state":"regular","hash":"h","size":3,"mode":420,"uid":0,"gid":0,"mtime":5},"after":{"hash":"i","size":4},"temporary":".haft-0.tmp","in_place":false,"added":1,"removed":1}]}"#,
            r#"{"kind":"intent","unit":"v","call":"v","tool":"Undo","time":2,"undoes":["u"],"files":[{"given":"/b","real":"/b","before":{"state":"absent"},"after":null,"temporary":"","added":0,"removed":0}]}"#,
            r#"{"kind":"outcome","unit":"u","ending":"made"}"#,
            r#"{"kind":"dropped","units":["w"]}"#,
        ];
        let records: Vec<UndoRecord> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let UndoRecord::Intent(intent) = &records[0] else {
            panic!("{records:?}")
        };
        assert_eq!(intent.files[0].before.hash(), Some("h"));
        assert!(intent.swept.is_empty() && !intent.observed);
    }

    #[test]
    fn a_record_reads_back_as_it_was_written_whatever_the_path() {
        for name in [&b"plain"[..], b"caf\xe9", "gr\u{fc}n \n".as_bytes()] {
            let path = PathBuf::from(OsString::from_vec(name.to_vec()));
            let record = UndoRecord::Intent(Box::new(UndoIntent {
                unit: "u".into(),
                call: "c".into(),
                tool: "Edit".into(),
                time: 1,
                undoes: vec!["x".into()],
                files: vec![FileRecord {
                    given: path.clone(),
                    real: path.clone(),
                    before: RecordState::Regular {
                        hash: "h".into(),
                        size: 3,
                        mode: 0o640,
                        uid: 1,
                        gid: 2,
                        mtime: 1_700_000_000_123_456_789,
                        extended: extended(&[(b"user.k".to_vec(), vec![0, 255])]),
                        twin: Some(path.clone()),
                    },
                    after: Some(PostImage {
                        hash: "i".into(),
                        size: 4,
                    }),
                    temporary: ".haft-1.tmp".into(),
                    in_place: true,
                    made: vec![path.clone()],
                    unmade: Vec::new(),
                    added: 1,
                    removed: 2,
                }],
                part_of: None,
                swept: vec![PathChangeRecord::new(
                    path.clone(),
                    RecordState::Link {
                        target: path.clone(),
                        mtime: -1,
                    },
                    RecordState::Absent,
                )],
                left: Vec::new(),
                observed: true,
                temporary: String::new(),
                about: String::new(),
                keep: String::new(),
                overlaps: Vec::new(),
            }));
            let line = serde_json::to_string(&record).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<UndoRecord>(&line).unwrap(), record);
            let UndoRecord::Intent(intent) = record else {
                unreachable!()
            };
            let attributes = intent.files[0].before.attributes().unwrap();
            assert_eq!(attributes.extended, [(b"user.k".to_vec(), vec![0_u8, 255])]);
        }
    }
}
