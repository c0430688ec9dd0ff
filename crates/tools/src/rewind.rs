//! Restoring the files of a session to an earlier time.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use haft_contract::{CallId, Services};
use haft_journal::{
    Journal, JournalError, ShownExtent, UndoError, UndoMode, UndoOutcome, UndoSelection,
    UnitSummary, WriteGrant,
};

/// The maximum size of a file that this module reads, in bytes.
const MAX_SEEDED_BYTES: u64 = 64 << 20;

const NO_JOURNAL: &str = "the session has no journal of files";

/// The result of a rewind or of its preview.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindOutcome {
    /// The changed files.
    pub files: Vec<PathBuf>,
    /// The number of lines that are added back.
    pub insertions: u64,
    /// The number of lines that are removed.
    pub deletions: u64,
    /// Files that are not restored, with the reason.
    pub not_restored: Vec<(PathBuf, String)>,
}

/// The reason why files cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewindError {
    /// The session has no journal.
    NoJournal,
    /// No file was changed since the given time.
    Nothing,
    /// Another error.
    Failed(String),
}

/// Records the present content of a file as read by the session.
pub fn record_read(services: &Services, path: &Path) -> Result<(), String> {
    let journal = services.get::<Journal>();
    let journal = journal.map_err(|_| NO_JOURNAL.to_owned())?;
    let raw = journal.read_bytes(path, MAX_SEEDED_BYTES);
    let raw = raw.map_err(|error| error.to_string())?;
    journal.record_shown(raw, ShownExtent::Whole);
    Ok(())
}

/// Restores files to their state at `since`. With `preview`, only reports what would be restored.
/// `by` names the requester.
pub fn rewind(
    services: &Services,
    since: SystemTime,
    preview: bool,
    by: &str,
) -> Result<RewindOutcome, RewindError> {
    let journal = services.get::<Journal>();
    let journal = journal.map_err(|_| RewindError::NoJournal)?;
    let grant = WriteGrant::unconfined(CallId::new().to_string(), by);
    let mode = if preview {
        UndoMode::Preview
    } else {
        UndoMode::Apply
    };
    let undone = match journal.undo(&grant, &UndoSelection::Since(since), mode) {
        Ok(undone) => undone,
        Err(JournalError::Undo(UndoError::NothingSince)) => return Err(RewindError::Nothing),
        Err(error) => return Err(RewindError::Failed(error.to_string())),
    };
    if let Some(conflict) = undone.conflict {
        return Err(RewindError::Failed(conflict));
    }
    Ok(RewindOutcome {
        files: undone.files.iter().map(|file| file.given.clone()).collect(),
        insertions: undone.files.iter().map(|file| file.patch.added).sum(),
        deletions: undone.files.iter().map(|file| file.patch.removed).sum(),
        not_restored: undone.left,
    })
}

/// Returns the changes in the session's journal, the newest first.
pub fn changes(services: &Services, limit: usize) -> Result<Vec<UnitSummary>, String> {
    let journal = services.get::<Journal>();
    let journal = journal.map_err(|_| NO_JOURNAL.to_owned())?;
    let history = journal
        .required_history()
        .map_err(|error| error.to_string())?;
    history.list(limit).map_err(|error| error.to_string())
}

/// Undoes changes. With `preview`, only reports what would be undone. `by` names the requester.
pub fn undo_changes(
    services: &Services,
    which: &UndoSelection,
    preview: bool,
    by: &str,
) -> Result<UndoOutcome, String> {
    let journal = services.get::<Journal>();
    let journal = journal.map_err(|_| NO_JOURNAL.to_owned())?;
    let grant = WriteGrant::unconfined(CallId::new().to_string(), by);
    let mode = if preview {
        UndoMode::Preview
    } else {
        UndoMode::Apply
    };
    let undone = journal.undo(&grant, which, mode);
    undone.map_err(|error| error.to_string())
}

/// Appends a line to a file, which is created if it is missing. Without a journal in `services`,
/// the change is recorded in the folder `undo`, where `haft undo` finds it. `by` names the
/// requester.
pub fn append_line(
    services: Option<&Services>,
    undo: &Path,
    path: &Path,
    line: &str,
    by: &str,
) -> Result<PathBuf, String> {
    let known = services.and_then(|services| services.get::<Journal>().ok());
    let journal = match known {
        Some(journal) => journal,
        None => Arc::new(Journal::new(None).with_undo(undo)),
    };
    let failed = |error: JournalError| error.to_string();
    let mut text = String::new();
    if path.exists() {
        let raw = journal.read_bytes(path, MAX_SEEDED_BYTES).map_err(failed)?;
        text = String::from_utf8(raw.bytes.clone())
            .map_err(|_| format!("{} is not UTF-8 text", path.display()))?;
        journal.record_shown(raw, ShownExtent::Whole);
    } else if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line.trim_end());
    text.push('\n');
    let grant = WriteGrant::unconfined(CallId::new().to_string(), by);
    let written = journal.write(&grant, path, &text).map_err(failed)?;
    Ok(written.real)
}
