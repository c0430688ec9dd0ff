//! Errors of undo, worded for the model or the user who requested it.

use std::path::PathBuf;

/// The reason why nothing was undone. In every case all files are unchanged.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
#[non_exhaustive]
pub enum UndoError {
    /// The session made no change that is still in effect.
    #[error("there is nothing to undo: no change of this session is in effect.")]
    Nothing,
    /// All changes are older than the limits of the journal.
    #[error(
        "there is nothing left to undo: {count} earlier changes of this session can no longer be undone, because undo data is kept for 30 days, 10,000 changes and 1 GB per session. Use version control, or change the files by hand."
    )]
    AllDropped { count: usize },
    /// Nothing was changed since the given time.
    #[error("nothing was changed since then, or everything has been undone already.")]
    NothingSince,
    /// No unit has this id.
    #[error("no change has the id {id}. {}", recent_names(.recent))]
    Unknown { id: String, recent: Vec<String> },
    /// The unit is older than the limits of the journal.
    #[error(
        "{id} can no longer be undone: what was there before has been dropped, because undo data is kept for 30 days, 10,000 changes and 1 GB per session. Use version control, or change the files by hand."
    )]
    Dropped { id: String },
    /// The unit is already undone.
    #[error("{id} has been undone already, by {by}. To make its change again, undo {by}.")]
    AlreadyUndone { id: String, by: String },
    /// The unit failed, so it changed nothing.
    #[error("{id} changed nothing: {why} There is nothing to undo.")]
    NeverMade { id: String, why: String },
    /// The command that changes the files is still running.
    #[error(
        "{id} is still running. It can be undone when all its processes have ended; stop its task first."
    )]
    StillRunning { id: String },
    /// A command that changed the same files at the same time is still running.
    #[error(
        "{id} and {running} changed the same files at the same time, and {running} is still running. Stop its task first; then both can be undone together."
    )]
    OverlapRunning { id: String, running: String },
    /// A part of the unit cannot be undone alone.
    #[error(
        "{id} and {other} changed the same file at the same time, so neither can be undone alone. Undo {id} as a whole: that undoes both."
    )]
    OnlyTogether { id: String, other: String },
    /// A crash interrupted the unit, and its files were changed since.
    #[error(
        "{id} was interrupted by a crash, and one of its files was changed outside this session since, so it cannot be undone as a whole. Change the files by hand."
    )]
    Unclear { id: String },
    /// A preimage is missing or damaged.
    #[error("the content of {path} before {id} is missing or damaged in the undo journal; nothing was undone.", path = .path.display())]
    Damaged { id: String, path: PathBuf },
    /// A command made changes that undo cannot revert.
    #[error(
        "undo does not cover {id}: {why}. Nothing was undone. An earlier change can be undone by its own id."
    )]
    NotCovered { id: String, why: String },
    /// The files were changed since; the text lists them with the changes.
    #[error("{0}")]
    Conflict(String),
    /// Another user could have written records that change files in the name of this one.
    #[error("the undo journal in {folder} belongs to another user, so nothing was undone. Undo it as that user.", folder = .folder.display())]
    OtherUser { folder: PathBuf },
    /// The session has no undo journal.
    #[error("this session has no undo journal, so nothing can be undone.")]
    NoJournal,
}

fn recent_names(recent: &[String]) -> String {
    if recent.is_empty() {
        "No change of this session can be undone.".to_owned()
    } else {
        format!("The latest that can be undone: {}.", recent.join(", "))
    }
}
