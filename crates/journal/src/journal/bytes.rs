//! Whole files as bytes, for contents that are not shown as lines: images, notebooks, PDFs.

use std::path::PathBuf;

use super::Journal;
use crate::error::JournalError;
use crate::ledger::{ReadRecord, ReadSource};
use crate::open::FileSnapshot;
use crate::page::HASH_LIMIT;
use crate::stamp::ContentHash;
use crate::target::FileTarget;

/// The content of a file at one time. It is recorded as seen only by [`Journal::record_shown`].
#[derive(Debug)]
pub struct RawFile {
    /// The file, with all links resolved.
    pub real: PathBuf,
    /// The whole content.
    pub bytes: Vec<u8>,
    read_record: ReadRecord,
}

/// The extent to which the model saw a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownExtent {
    /// The whole file.
    Whole,
    /// Enough for an edit, but not for overwriting the whole file.
    Part,
}

impl RawFile {
    /// Returns the mode of the file that was read.
    pub fn mode(&self) -> u32 {
        self.read_record.stamp.mode
    }

    /// Returns device and inode, which are equal for hard links to one file.
    pub fn identity(&self) -> (u64, u64) {
        (self.read_record.stamp.device, self.read_record.stamp.inode)
    }
}

impl Journal {
    /// Reads a regular file of at most `limit` bytes; never blocks on files of other kinds.
    pub fn read_bytes(
        &self,
        target: impl Into<FileTarget>,
        limit: u64,
    ) -> Result<RawFile, JournalError> {
        let target = target.into();
        let unsaved = target.unsaved_text();
        let resolved = target.resolve()?;
        let snapshot = match resolved.exists {
            true => match unsaved {
                Some(unsaved) => Some(unsaved.snapshot()),
                None => FileSnapshot::take(&resolved.real, limit)?,
            },
            false => None,
        };
        let Some(FileSnapshot { stamp, bytes }) = snapshot else {
            return Err(self.missing(target.path()));
        };
        let sight = ReadRecord {
            hash: (stamp.size <= HASH_LIMIT).then(|| ContentHash::compute(&bytes)),
            settled: unsaved.is_none() && stamp.is_settled(),
            stamp,
            shown: None,
            partial: false,
            source: match unsaved {
                Some(_) => ReadSource::Editor,
                None => ReadSource::Read,
            },
        };
        if let Some(unsaved) = unsaved {
            self.record_base(unsaved);
        }
        Ok(RawFile {
            real: resolved.real,
            bytes,
            read_record: sight,
        })
    }

    /// Records that the content was shown: from now on the session knows the file.
    pub fn record_shown(&self, raw: RawFile, extent: ShownExtent) {
        let RawFile {
            real,
            bytes,
            read_record: sight,
        } = raw;
        let partial = extent == ShownExtent::Part;
        let sight = ReadRecord { partial, ..sight };
        self.ledger.record(&real, sight, Some(bytes));
    }
}
