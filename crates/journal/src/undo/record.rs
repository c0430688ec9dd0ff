//! The lines of the log. What is written here is read back after a crash, by
//! this version or a later one: fields are only ever added.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::commit::Attributes;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Record {
    /// Written, and on the disk, before the first byte of any file changes.
    Intent(Intent),
    /// A rename would not do for this file: it is overwritten in place from here on.
    InPlace { unit: String, file: usize },
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) unit: String,
    pub(super) call: String,
    pub(super) tool: String,
    /// Milliseconds after the epoch.
    pub(super) time: u64,
    /// The units this one takes back, if it is an undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) undoes: Vec<String>,
    pub(super) files: Vec<FileRecord>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FileRecord {
    /// As the call named it.
    #[serde(with = "path")]
    pub(super) given: PathBuf,
    /// After all links: what is written.
    #[serde(with = "path")]
    pub(super) real: PathBuf,
    pub(super) before: Before,
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
pub(super) enum Before {
    Absent,
    Regular {
        hash: String,
        size: u64,
        mode: u32,
        uid: u32,
        gid: u32,
        /// Nanoseconds after the epoch; for people, never set again.
        mtime: i64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        extended: Vec<Extended>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct After {
    pub(super) hash: String,
    pub(super) size: u64,
}

/// An extended attribute; both parts in hexadecimal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Extended {
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

impl Before {
    pub(super) fn hash(&self) -> Option<&str> {
        match self {
            Self::Absent => None,
            Self::Regular { hash, .. } => Some(hash),
        }
    }

    /// Of a file as it is to be made again.
    pub(super) fn attributes(&self) -> Option<Attributes> {
        match self {
            Self::Absent => None,
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
        }
    }
}

impl FileRecord {
    pub(super) fn after_hash(&self) -> Option<&str> {
        self.after.as_ref().map(|after| after.hash.as_str())
    }
}

pub(super) fn extended(all: &[(Vec<u8>, Vec<u8>)]) -> Vec<Extended> {
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
enum Written {
    Text(String),
    Bytes { hex: String },
}

impl Written {
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
    use super::{Deserialize, Deserializer, Path, PathBuf, Serialize, Serializer, Written};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        Written::of(path).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Written::deserialize(from)?.read()
    }
}

mod paths {
    use super::{Deserialize, Deserializer, PathBuf, Serializer, Written};

    pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| Written::of(path)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let written: Vec<Written> = Deserialize::deserialize(from)?;
        written.into_iter().map(Written::read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_it_was_written_whatever_the_path() {
        for name in [&b"plain"[..], b"caf\xe9", "gr\u{fc}n \n".as_bytes()] {
            let path = PathBuf::from(OsString::from_vec(name.to_vec()));
            let record = Record::Intent(Intent {
                unit: "u".into(),
                call: "c".into(),
                tool: "Edit".into(),
                time: 1,
                undoes: vec!["x".into()],
                files: vec![FileRecord {
                    given: path.clone(),
                    real: path.clone(),
                    before: Before::Regular {
                        hash: "h".into(),
                        size: 3,
                        mode: 0o640,
                        uid: 1,
                        gid: 2,
                        mtime: 1_700_000_000_123_456_789,
                        extended: extended(&[(b"user.k".to_vec(), vec![0, 255])]),
                    },
                    after: Some(After {
                        hash: "i".into(),
                        size: 4,
                    }),
                    temporary: ".haft-1.tmp".into(),
                    in_place: true,
                    made: vec![path],
                    unmade: Vec::new(),
                    added: 1,
                    removed: 2,
                }],
            });
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
