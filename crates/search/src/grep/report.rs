//! What a grep answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::skip::Skipped;
use crate::stop::Completion;

/// A row's text is cut here, for display only: the search always sees the whole line.
pub const MAX_COLUMNS: usize = 500;

/// The asked rows, and how much of the tree they speak for.
#[derive(Clone, Debug)]
pub struct GrepReport {
    /// The rows after `offset`, at most `head_limit` of them.
    pub found: Found,
    /// There are rows behind those in `found`.
    pub more: bool,
    /// Everything counted, shown or not. These are the true totals only if the search was complete:
    /// [`Self::totals`].
    pub tally: Tally,
    /// What was not searched.
    pub skipped: Skipped,
    /// Whether everything was.
    pub completion: Completion,
    /// As asked.
    pub head_limit: Option<usize>,
    /// As asked.
    pub offset: usize,
}

impl GrepReport {
    /// The totals over the whole tree, or `None` when it was not searched to its end.
    pub fn totals(&self) -> Option<Tally> {
        (self.completion == Completion::Complete).then_some(self.tally)
    }
}

/// One kind of row for each mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// In path order, then line order.
    Rows(Vec<Row>),
    /// Newest first, those of the same time in path order.
    Files(Vec<PathBuf>),
    /// In path order.
    Counts(Vec<FileCount>),
}

/// What was counted. When rows ended at the limit this covers the rows up to the end of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Files with at least one row.
    pub files: usize,
    /// Rows in all, before `offset` and limit.
    pub rows: usize,
    /// Content: rows that are a match. Count: the sum of the counts. `None` for files, where one
    /// match ends a file.
    pub matches: Option<u64>,
}

/// One printed line of content mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The file; for a [`RowKind::Break`], the one that follows.
    pub path: Arc<Path>,
    /// From 1; only matches and context have one.
    pub line: Option<u64>,
    /// What it is.
    pub kind: RowKind,
    /// Without its line end; bytes that are not UTF-8 are replaced; at most [`MAX_COLUMNS`]
    /// characters.
    pub text: String,
    /// How long the text was, in characters, if it was cut.
    pub full_length: Option<usize>,
}

/// What a printed line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// It matches.
    Match,
    /// It stands near a match.
    Context,
    /// Between groups of lines that do not touch; printed as `--`.
    Break,
    /// A remark about the file, printed as `path: text`: it is binary, so its further matches are
    /// not shown.
    Notice,
}

/// How often a file matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCount {
    /// The file.
    pub path: PathBuf,
    /// Lines, or matches in multiline mode.
    pub count: u64,
}
