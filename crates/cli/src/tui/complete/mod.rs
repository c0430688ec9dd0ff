//! Completions: files and folders behind `@`, commands behind a first `/`.
//!
//! - [`completion_query`]: what is being completed at the caret; pure
//! - `files`: which files there are, by `crates/search` or by the person's own command
//! - `rank`: which of them fit, the best first
//! - [`Completer`]: both together, for a thread that may wait

mod completer;
mod files;
mod query;
mod rank;

pub(crate) use completer::{CommandEntry, Completer, CompletionSettings};
pub(crate) use query::{CompletionKind, CompletionQuery, completion_query};

/// So many completions are shown.
pub(crate) const MOST_ROWS: usize = 8;

/// One that can be chosen. All of it is as files and servers write it: what draws it cleans it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    /// What is shown.
    pub(crate) label: String,
    /// What a command expects behind its name.
    pub(crate) hint: String,
    pub(crate) description: String,
    /// What takes the place of what was typed.
    pub(crate) insert: String,
    /// So many bytes before the caret are replaced.
    pub(crate) replaces: usize,
}
