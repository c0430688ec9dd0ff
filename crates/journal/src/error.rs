//! All errors of file access, worded for the model.

use std::io;
use std::path::{Path, PathBuf};

use crate::edit::EditError;
use crate::notebook::NotebookError;
use crate::text::Encoding;
use crate::undo::UndoError;

/// The reason why a file was not read or not changed.
///
/// Parts of the texts are anchors that hooks and interfaces match on (spec tools.md §1–3): "does
/// not exist", "is a directory", "binary file", "has not been read yet", "modified since", "String
/// to replace not found", "Found N matches".
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
#[non_exhaustive]
pub enum JournalError {
    /// No such file; `near` are files with a similar name.
    #[error("{} does not exist.{}", .path.display(), did_you_mean(.near))]
    DoesNotExist { path: PathBuf, near: Vec<PathBuf> },
    /// A directory where a file was expected.
    #[error("{} is a directory, not a file: list it instead, or name a file in it.", .path.display())]
    IsDirectory { path: PathBuf },
    /// A device, a pipe or a socket.
    #[error("{} is a {kind}, not a regular file: it cannot be read or written with file tools.", .path.display())]
    NotRegular { path: PathBuf, kind: &'static str },
    /// A part of the path is a file.
    #[error("{} cannot exist: a part of its path is a file, not a directory. Choose another path.", .path.display())]
    ParentIsFile { path: PathBuf },
    /// A loop of symbolic links, or too long a chain.
    #[error("{}: too many symbolic links (more than 40, or a loop). Name the real file.", .path.display())]
    TooManyLinks { path: PathBuf },
    /// A symbolic link appeared between resolving and opening.
    #[error("a symbolic link appeared in {} while it was being opened. Nothing was read or changed; try again.", .path.display())]
    LinkAppeared { path: PathBuf },
    /// The path no longer leads to the file that was permitted.
    #[error("{} now leads to another file than when this call was permitted: a symbolic link in it was changed. Nothing was read or changed; repeat the call if you still need it.", .path.display())]
    LeadsElsewhere { path: PathBuf },
    /// The real path is not one the write grant covers.
    #[error("{} leads to {}, which is outside the directories this call may write to. Nothing was changed. Choose a path inside them, or ask the user to allow this one.", .path.display(), .real.display())]
    Outside { path: PathBuf, real: PathBuf },
    /// The file is not text.
    #[error("{} is a binary file ({}, {size} bytes) and cannot be handled as text.", .path.display(), .kind.unwrap_or("type unknown"))]
    Binary {
        path: PathBuf,
        kind: Option<&'static str>,
        size: u64,
    },
    /// The requested page begins after the last line.
    #[error("{}: offset {offset} is past the end: the file has {total_lines} line{}. Use an offset from 1 to {total_lines}.", .path.display(), plural(*.total_lines))]
    OffsetPastEnd {
        path: PathBuf,
        offset: u64,
        total_lines: u64,
    },
    /// The requested page begins after the end of its first line.
    #[error("{}: char_offset {char_offset} is past the end of line {line}, which has {length} characters. Use a smaller char_offset, or continue with the next line.", .path.display())]
    CharOffsetPastEnd {
        path: PathBuf,
        line: u64,
        char_offset: u64,
        length: u64,
    },
    /// A special file of unknown length.
    #[error("{} is a special file of unknown length: it can be read in part, but not changed.", .path.display())]
    Endless { path: PathBuf },
    /// The file is above a limit.
    #[error("{} is too large ({size} bytes, limit {limit}). Use a shell command on it instead.", .path.display())]
    TooLarge {
        path: PathBuf,
        size: u64,
        limit: u64,
    },
    /// The session has not seen the file it would overwrite.
    #[error("{} has not been read yet. Read it first, so that nothing unseen is overwritten.", .path.display())]
    NotRead { path: PathBuf },
    /// The session has seen only a part of the file it would overwrite.
    #[error("{} has not been read yet as a whole: only a PARTIAL view was shown. Read it first: the rest, with offset and limit, and with char_offset where a line was cut; or use Edit for a small change.", .path.display())]
    PartlyRead { path: PathBuf },
    /// The file changed since the session saw it.
    #[error("{} was modified since it was read (by the user, a command or a formatter). {}", .path.display(), drift_advice(.diff))]
    ModifiedSince { path: PathBuf, diff: Option<String> },
    /// A notebook could not be read or changed.
    #[error("{}: {error}.", .path.display())]
    Notebook { path: PathBuf, error: NotebookError },
    /// A text edit failed.
    #[error("{}: {error}", .path.display())]
    Edit { path: PathBuf, error: EditError },
    /// The content cannot be written in the encoding of the file.
    #[error("{} is {encoding}; writing this content as UTF-8 would silently change its encoding. Convert the file with a shell command first, or delete it and write it again.", .path.display())]
    EncodingWouldChange { path: PathBuf, encoding: Encoding },
    /// The content has a character that the file's encoding lacks.
    #[error("{} is {encoding}, which has no {character} (U+{:04X}). Use only characters of {encoding}, or convert the file to UTF-8 with a shell command first.", .path.display(), u32::from(*.character))]
    NotInCodePage {
        path: PathBuf,
        encoding: Encoding,
        character: char,
    },
    /// The mode of the file has no write bit.
    #[error("{} is read-only (no write permission in its mode); to change it, run chmod first.", .path.display())]
    ReadOnly { path: PathBuf },
    /// The editor did not save the file although it reported so.
    #[error("{} has unsaved changes in the editor, and the editor did not save them. Nothing was changed. Ask the user to save the file, then retry.", .path.display())]
    NotSaved { path: PathBuf },
    /// The editor that should write the file refused.
    #[error("{} was not written: the editor refused it ({why}). Nothing was changed. Ask the user, or try again.", .path.display())]
    EditorRefused { path: PathBuf, why: String },
    /// Another process holds the lock of the file.
    #[error("{} is locked by another process (waited 5 s). Try again later.", .path.display())]
    Locked { path: PathBuf },
    /// The file changed between the check and the write.
    #[error("{} was modified since the change was prepared; nothing was written. Read it again and retry.", .path.display())]
    Drifted { path: PathBuf },
    /// The data for undo could not be saved, so nothing was changed.
    #[error("the undo journal in {} cannot be used ({}), so nothing was changed. Free some space or fix its permissions, then retry.", .folder.display(), why(.source))]
    UndoJournal { folder: PathBuf, source: io::Error },
    /// Writing failed in the middle, and so did restoring.
    #[error("writing {} failed ({}), and restoring its content failed, too: the file may be incomplete. Check it before you continue. With an undo journal, Undo and the next start try again to restore it.", .path.display(), why(.source))]
    HalfWritten { path: PathBuf, source: io::Error },
    /// A change of several files failed, and some could not be restored.
    #[error("{error} And {} could not be restored: check {} before you continue.", names(.paths), if .paths.len() == 1 { "it" } else { "them" })]
    NotRestored {
        error: Box<JournalError>,
        paths: Vec<PathBuf>,
    },
    /// Files of a prepared change are no longer what was expected.
    #[error("{} changed since the change was prepared, so no file was written. Prepare the change again.", names(.paths))]
    Drift { paths: Vec<PathBuf> },
    /// Nothing was undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// No space left.
    #[error("disk full: {} was not changed. Free some space and retry.", .path.display())]
    DiskFull { path: PathBuf },
    /// Anything else the operating system reports.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl JournalError {
    /// Converts an operating system error into the most specific variant.
    pub(crate) fn io(doing: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => Self::DoesNotExist {
                path,
                near: Vec::new(),
            },
            io::ErrorKind::IsADirectory => Self::IsDirectory { path },
            io::ErrorKind::NotADirectory => Self::ParentIsFile { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ if source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                Self::TooManyLinks { path }
            }
            _ => Self::Io {
                doing,
                path,
                source,
            },
        }
    }
}

fn did_you_mean(near: &[PathBuf]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let names: Vec<String> = near.iter().map(|path| path.display().to_string()).collect();
    format!(" Did you mean {}?", names.join(" or "))
}

fn why(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "disk full".to_owned(),
        _ => source.to_string(),
    }
}

fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}

fn drift_advice(diff: &Option<String>) -> String {
    match diff {
        Some(diff) => {
            format!(
                "Nothing was written. The changes since then:\n{diff}\nRead it again, then retry on the new content."
            )
        }
        None => "Nothing was written. Read it again, then retry on the new content.".to_owned(),
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
