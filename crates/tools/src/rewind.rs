//! The files of a session as they were at some time.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use haft_contract::{CallId, Services};
use haft_journal::{Extent, Journal, JournalError, Mode, UndoError, Which, WriteGrant};

/// A longer file than this is read by the tools only.
const LONGEST_SEEDED: u64 = 64 << 20;

/// What going back changed, or would change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewound {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Lines that come back…
    pub insertions: u64,
    /// …and lines that go.
    pub deletions: u64,
    /// Files that stay as they are, and why.
    pub left: Vec<(PathBuf, String)>,
}

/// Why files cannot be made what they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewindError {
    /// The session keeps no journal.
    NoJournal,
    /// Nothing was changed since.
    Nothing,
    /// Something else stands in the way.
    Failed(String),
}

/// A file counts as read by the session, as it is now.
pub fn note_read(services: &Services, path: &Path) -> Result<(), String> {
    let journal = services.get::<Journal>();
    let journal = journal.map_err(|_| "the session keeps no journal of files".to_owned())?;
    let raw = journal.read_bytes(path, LONGEST_SEEDED);
    let raw = raw.map_err(|error| error.to_string())?;
    journal.saw(raw, Extent::Whole);
    Ok(())
}

/// Makes files what they were; with `preview` it only says what that would do. `by` names who asked.
pub fn rewind(
    services: &Services,
    since: SystemTime,
    preview: bool,
    by: &str,
) -> Result<Rewound, RewindError> {
    let journal = services.get::<Journal>();
    let journal = journal.map_err(|_| RewindError::NoJournal)?;
    let grant = WriteGrant::unconfined(CallId::new().to_string(), by);
    let mode = if preview { Mode::Preview } else { Mode::Apply };
    let undone = match journal.undo(&grant, &Which::Since(since), mode) {
        Ok(undone) => undone,
        Err(JournalError::Undo(UndoError::NothingSince)) => return Err(RewindError::Nothing),
        Err(error) => return Err(RewindError::Failed(error.to_string())),
    };
    if let Some(conflict) = undone.conflict {
        return Err(RewindError::Failed(conflict));
    }
    Ok(Rewound {
        files: undone.files.iter().map(|file| file.given.clone()).collect(),
        insertions: undone.files.iter().map(|file| file.patch.added).sum(),
        deletions: undone.files.iter().map(|file| file.patch.removed).sum(),
        left: undone.left,
    })
}
