//! The lines of the log. What is written here is read back after a crash, by
//! this version or a later one: fields are only ever added.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::commit::Attributes;
use crate::stamp::Stamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Record {
    /// Written, and on the disk, before the first byte of any file changes.
    Intent(Box<Intent>),
    /// A rename would not do for this file: it is overwritten in place from here on.
    InPlace { unit: String, file: usize },
    /// An editor wrote this file, and made something else of it than was meant.
    Became {
        unit: String,
        file: usize,
        after: After,
    },
    /// How it ended. Without one, recovery decides.
    Outcome {
        unit: String,
        ending: Ending,
        /// Why and by whom, where that is not the call itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Units that were given up for room or age.
    Dropped { units: Vec<String> },
}

/// All of what one call does to files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) unit: String,
    pub(super) call: String,
    pub(super) tool: String,
    /// Milliseconds after the epoch.
    pub(super) time: u64,
    /// The units this one takes back, if it is an undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) undoes: Vec<String>,
    /// The unit of which this one takes back some paths only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) part_of: Option<String>,
    pub(super) files: Vec<FileRecord>,
    /// Paths of any kind, of a command or of its undo. Together they are made or not made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) swept: Vec<Swept>,
    /// What was changed and cannot be restored. Only the first are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left: Vec<Left>,
    /// Written after the change was seen, not before it was made: nothing can be half done.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) observed: bool,
    /// The temporary name used in each directory of `swept`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) temporary: String,
    /// For people: what was done, where the tool's name does not say it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) about: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// One path of any kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Swept {
    #[serde(with = "path")]
    pub(crate) path: PathBuf,
    pub(crate) before: RecordState,
    pub(crate) after: RecordState,
}

/// A path that cannot be restored, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Left {
    #[serde(with = "path")]
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FileRecord {
    /// As the call named it.
    #[serde(with = "path")]
    pub(super) given: PathBuf,
    /// After all links: what is written.
    #[serde(with = "path")]
    pub(super) real: PathBuf,
    pub(super) before: RecordState,
    /// `None`: the file is removed.
    pub(super) after: Option<After>,
    /// The temporary file beside it.
    pub(super) temporary: String,
    #[serde(default)]
    pub(super) in_place: bool,
    /// Directories that are missing and will be made, outermost first.
    #[serde(default, with = "paths", skip_serializing_if = "Vec::is_empty")]
    pub(super) made: Vec<PathBuf>,
    /// Directories that go with the file if it leaves them empty, outermost first.
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
        /// Nanoseconds after the epoch; set again only where a command changed it.
        mtime: i64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        extended: Vec<Extended>,
        /// Another name that the file had then, if it had several.
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
    },
    /// Not read: a pipe, a socket, a device, a huge file. Known by its seal only.
    Opaque {
        kind: String,
        seal: Seal,
    },
    /// A file that was not read and, in the other of two states, is at another path.
    Moved {
        #[serde(with = "path")]
        to: PathBuf,
        seal: Seal,
    },
    /// A directory with very many things in it, known by one hash over their names and seals.
    Grown {
        entries: u64,
        digest: String,
    },
}

/// What tells an unread file from a changed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) mtime: i64,
}

impl Seal {
    pub(crate) fn of(stamp: &Stamp) -> Self {
        Self {
            device: stamp.device,
            inode: stamp.inode,
            size: stamp.size,
            mode: stamp.mode,
            mtime: nanoseconds(stamp.mtime_ns),
        }
    }
}

/// Fits until the year 2262.
pub(crate) fn nanoseconds(time: i128) -> i64 {
    i64::try_from(time).unwrap_or_default()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct After {
    pub(super) hash: String,
    pub(super) size: u64,
}

/// An extended attribute; both parts in hexadecimal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Extended {
    name: String,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    /// The files are as intended.
    Made,
    /// The files are as before.
    NotMade,
    /// Someone else changed a file before anyone could tell; it was left alone.
    Unclear,
}

impl RecordState {
    pub(crate) fn hash(&self) -> Option<&str> {
        match self {
            Self::Regular { hash, .. } => Some(hash),
            _ => None,
        }
    }

    /// Of a file as it is to be made again.
    pub(crate) fn attributes(&self) -> Option<Attributes> {
        match self {
            Self::Regular {
                mode,
                uid,
                gid,
                extended,
                ..
            } => Some(Attributes {
                mode: *mode,
                uid: *uid,
                gid: *gid,
                extended: extended
                    .iter()
                    .filter_map(|one| Some((from_hex(&one.name)?, from_hex(&one.value)?)))
                    .collect(),
            }),
            _ => None,
        }
    }

    pub(super) fn mtime(&self) -> Option<i64> {
        match self {
            Self::Regular { mtime, .. }
            | Self::Link { mtime, .. }
            | Self::Directory { mtime, .. } => Some(*mtime),
            _ => None,
        }
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

pub(crate) fn extended(all: &[(Vec<u8>, Vec<u8>)]) -> Vec<Extended> {
    all.iter()
        .map(|(name, value)| Extended {
            name: to_hex(name),
            value: to_hex(value),
        })
        .collect()
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

/// A path is a string, or its bytes in hexadecimal where it is no UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenPath {
    Text(String),
    Bytes { hex: String },
}

impl WrittenPath {
    fn of(path: &Path) -> Self {
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
                None => Err(E::custom("a path that is no hexadecimal")),
            },
        }
    }
}

mod path {
    use super::{Deserialize, Deserializer, Path, PathBuf, Serialize, Serializer, WrittenPath};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        WrittenPath::of(path).serialize(to)
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
        path.as_deref().map(WrittenPath::of).serialize(to)
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
        to.collect_seq(paths.iter().map(|path| WrittenPath::of(path)))
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
        let records: Vec<Record> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let Record::Intent(intent) = &records[0] else {
            panic!("{records:?}")
        };
        assert_eq!(intent.files[0].before.hash(), Some("h"));
        assert!(intent.swept.is_empty() && !intent.observed);
    }

    #[test]
    fn a_record_reads_back_as_it_was_written_whatever_the_path() {
        for name in [&b"plain"[..], b"caf\xe9", "gr\u{fc}n \n".as_bytes()] {
            let path = PathBuf::from(OsString::from_vec(name.to_vec()));
            let record = Record::Intent(Box::new(Intent {
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
                    after: Some(After {
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
                swept: vec![Swept {
                    path: path.clone(),
                    before: RecordState::Link {
                        target: path.clone(),
                        mtime: -1,
                    },
                    after: RecordState::Absent,
                }],
                left: Vec::new(),
                observed: true,
                temporary: String::new(),
                about: String::new(),
            }));
            let line = serde_json::to_string(&record).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
            let Record::Intent(intent) = record else {
                unreachable!()
            };
            let attributes = intent.files[0].before.attributes().unwrap();
            assert_eq!(attributes.extended, [(b"user.k".to_vec(), vec![0_u8, 255])]);
        }
    }
}
