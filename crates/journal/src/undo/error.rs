//! Why nothing was undone, worded for the model or the person who asked.

use std::path::PathBuf;

/// Why nothing was undone. In every case all files are as they were.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
#[non_exhaustive]
pub enum UndoError {
    /// The session changed nothing that stands.
    #[error("there is nothing to undo: no change of this session stands.")]
    Nothing,
    /// All changes are older than what is kept.
    #[error(
        "there is nothing left to undo: {count} earlier changes of this session can no longer be undone, because undo data is kept for 30 days, 10,000 changes and 512 MB per session. Use version control, or change the files by hand."
    )]
    AllDropped { count: usize },
    /// Nothing was changed since the time that was named.
    #[error("nothing was changed since then, or everything has been undone already.")]
    NothingSince,
    /// No such unit.
    #[error("no change has the id {id}. {}", recent_names(.recent))]
    Unknown { id: String, recent: Vec<String> },
    /// The unit is older than what is kept.
    #[error(
        "{id} can no longer be undone: what was there before has been dropped, because undo data is kept for 30 days, 10,000 changes and 512 MB per session. Use version control, or change the files by hand."
    )]
    Dropped { id: String },
    /// The unit was undone before.
    #[error("{id} has been undone already, by {by}. To make its change again, undo {by}.")]
    AlreadyUndone { id: String, by: String },
    /// The unit failed, so it changed nothing.
    #[error("{id} changed nothing: {why} There is nothing to undo.")]
    NeverMade { id: String, why: String },
    /// A crash interrupted the unit, and its files were changed since.
    #[error(
        "{id} was interrupted by a crash, and a file of it was changed by someone else since, so it cannot be undone as a whole. Change the files by hand."
    )]
    Unclear { id: String },
    /// A pre-image is missing or not what was saved.
    #[error("what {path} held before {id} is missing or damaged in the undo journal; nothing was undone.", path = .path.display())]
    Damaged { id: String, path: PathBuf },
    /// A command changed what undo cannot restore.
    #[error(
        "undo does not cover {id}: {why}. Nothing was undone. An earlier change can be undone by its own id."
    )]
    NotCovered { id: String, why: String },
    /// The files were changed since; the text says which, and how.
    #[error("{0}")]
    Conflict(String),
    /// The session keeps no undo journal.
    #[error("this session keeps no undo journal, so nothing can be undone.")]
    NoJournal,
}

fn recent_names(recent: &[String]) -> String {
    if recent.is_empty() {
        "No change of this session can be undone.".to_owned()
    } else {
        format!("The latest that can be undone: {}.", recent.join(", "))
    }
}
