//! What has become of files since they were last looked at.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use haft_journal::{DecodedText, HistoryMark, Journal, RecordedChange};

use super::{
    follow::{CHANGED, CREATED, DELETED},
    servers::text_of,
};

/// Tells whether a file is still the same.
pub(super) type FileStamp = (u64, u64, u64, i64, i64);

/// What a file is now.
pub(super) enum Looked {
    Same,
    Text {
        stamp: FileStamp,
        text: String,
        /// What it was before it was changed, where it was and no one had looked at it.
        base: Option<String>,
    },
    Gone,
}

/// What was found.
pub(super) struct FileLooks {
    /// Where the record of changes ends now.
    pub(super) mark: HistoryMark,
    /// What was recorded: calls and commands, also of files that no one follows. By path, as the protocol counts.
    pub(super) changed: BTreeMap<PathBuf, u32>,
    pub(super) looked: Vec<(PathBuf, Looked)>,
}

/// Looks at files, each with how it was last found, and at what was recorded since a mark.
pub(super) fn look_at(
    known: Vec<(PathBuf, Option<FileStamp>)>,
    journal: &Journal,
    mark: HistoryMark,
) -> FileLooks {
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
        Some(DecodedText::of(&content)?.text)
    };
    let looked = known.into_iter().map(|(path, stamp)| {
        let mut found = look(&path, stamp);
        if stamp.is_none()
            && let Looked::Text { base: was, .. } = &mut found
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
    FileLooks {
        changed: changed.collect(),
        looked,
        mark,
    }
}

fn look(path: &Path, known: Option<FileStamp>) -> Looked {
    match stamp(path) {
        None => Looked::Gone,
        Some(now) if Some(now) == known => Looked::Same,
        Some(now) => match text_of(path) {
            Ok(Some(text)) => Looked::Text {
                stamp: now,
                text,
                base: None,
            },
            Ok(None) | Err(_) => Looked::Gone,
        },
    }
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mtime = found.mtime().wrapping_mul(1_000_000_000) + found.mtime_nsec();
    let ctime = found.ctime().wrapping_mul(1_000_000_000) + found.ctime_nsec();
    Some((found.dev(), found.ino(), found.size(), mtime, ctime))
}
