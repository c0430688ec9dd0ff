//! Detection of changes in files since they were last read.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use haft_journal::{DecodedText, HistoryMark, Journal, RecordedChange};

use super::{
    diagnostics_tracker::{CHANGED, CREATED, DELETED},
    servers::text_of,
};

/// Identifies a state of a file: device, inode, size and times.
pub(super) type FileStamp = (u64, u64, u64, i64, i64);

/// The present state of a file.
pub(super) enum ObservedFile {
    Same,
    Text {
        stamp: FileStamp,
        text: String,
        /// The text before the change, if the file changed before it was first read.
        base: Option<String>,
    },
    Gone,
}

/// The result of a check.
pub(super) struct FileScan {
    /// The present end of the record of changes.
    pub(super) mark: HistoryMark,
    /// The recorded changes by calls and commands, also of untracked files. By path, with the
    /// change kind of the protocol.
    pub(super) changed: BTreeMap<PathBuf, u32>,
    pub(super) scanned: Vec<(PathBuf, ObservedFile)>,
}

/// Checks files against their last known stamps, and reads the changes that were recorded since a
/// mark.
pub(super) fn scan_files(
    known: Vec<(PathBuf, Option<FileStamp>)>,
    journal: &Journal,
    mark: HistoryMark,
) -> FileScan {
    let recorded = journal
        .history()
        .and_then(|history| history.recorded_since(&mark).ok());
    let (recorded, mark) = recorded.unwrap_or_else(|| (Vec::new(), mark));
    let recorded: HashMap<&Path, &RecordedChange> = recorded
        .iter()
        .map(|change| (change.path.as_path(), change))
        .collect();
    let base = |path: &Path| {
        let change = recorded.get(path)?;
        if !change.was_there {
            return Some(String::new());
        }
        let content = journal.history()?.content(change.before.as_deref()?)?;
        Some(DecodedText::decode(&content)?.text)
    };
    let looked = known.into_iter().map(|(path, stamp)| {
        let mut found = scan_file(&path, stamp);
        if stamp.is_none()
            && let ObservedFile::Text { base: was, .. } = &mut found
        {
            *was = base(&path);
        }
        (path, found)
    });
    let looked = looked.collect();
    let kind = |change: &RecordedChange| match (change.was_there, change.is_there) {
        (false, true) => CREATED,
        (true, true) => CHANGED,
        (_, false) => DELETED,
    };
    let changed = recorded
        .values()
        .map(|change| (change.path.clone(), kind(change)));
    FileScan {
        changed: changed.collect(),
        scanned: looked,
        mark,
    }
}

fn scan_file(path: &Path, known: Option<FileStamp>) -> ObservedFile {
    match stamp(path) {
        None => ObservedFile::Gone,
        Some(now) if Some(now) == known => ObservedFile::Same,
        Some(now) => match text_of(path) {
            Ok(Some(text)) => ObservedFile::Text {
                stamp: now,
                text,
                base: None,
            },
            Ok(None) | Err(_) => ObservedFile::Gone,
        },
    }
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mtime = found.mtime().wrapping_mul(1_000_000_000) + found.mtime_nsec();
    let ctime = found.ctime().wrapping_mul(1_000_000_000) + found.ctime_nsec();
    Some((found.dev(), found.ino(), found.size(), mtime, ctime))
}
