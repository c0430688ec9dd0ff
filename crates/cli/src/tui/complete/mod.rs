//! Completions: files and folders after `@`, commands after a leading `/`.
//!
//! - [`completion_query`]: detects the text to complete at the caret; pure
//! - `files`: lists files, with `crates/search` or the user's own command
//! - `rank`: ranks the matching names
//! - [`Completer`]: combines these on a thread that may block

mod completer;
mod files;
mod query;
mod rank;

pub(crate) use completer::{CompletableCommand, Completer, CompletionSettings};
pub(crate) use query::{CompletionKind, CompletionQuery, completion_query};

/// The maximum number of completions that are shown.
pub(crate) const MAX_ROWS: usize = 8;

/// A completion. Its texts are not cleaned; the drawing code cleans them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionEntry {
    /// The displayed text.
    pub(crate) label: String,
    /// A hint about the arguments of a command.
    pub(crate) hint: String,
    pub(crate) description: String,
    /// The text that replaces the typed one.
    pub(crate) insert: String,
    /// The number of bytes before the caret that are replaced.
    pub(crate) replaces: usize,
}
