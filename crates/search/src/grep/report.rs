//! The result of a grep.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::skip::SkipSummary;
use crate::stop::SearchCompletion;

/// The length in characters at which a row's text is cut, for display only: the search always sees
/// the whole line.
pub const MAX_COLUMNS: usize = 500;

/// The requested rows, and how much of the tree was searched for them.
#[derive(Clone, Debug)]
pub struct GrepReport {
    /// The rows after `offset`, at most `head_limit` of them.
    pub found: GrepMatches,
    /// True if there are rows after those in `found`.
    pub more: bool,
    /// The counts of everything found, shown or not. These are the true totals only if the search
    /// was complete; see [`Self::totals`].
    pub tally: GrepCounts,
    /// Files that were not searched, or only in part.
    pub skipped: SkipSummary,
    /// Reports whether the whole tree was searched.
    pub completion: SearchCompletion,
    /// The `head_limit` of the query.
    pub head_limit: Option<usize>,
    /// The `offset` of the query.
    pub offset: usize,
}

impl GrepReport {
    /// Returns the totals over the whole tree, or `None` if the search ended early.
    pub fn totals(&self) -> Option<GrepCounts> {
        (self.completion == SearchCompletion::Complete).then_some(self.tally)
    }
}

/// The rows, of the kind that belongs to the query's mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrepMatches {
    /// In path order, then line order.
    Rows(Vec<GrepRow>),
    /// Newest first; files with the same time are in path order.
    Files(Vec<PathBuf>),
    /// In path order.
    Counts(Vec<FileCount>),
}

/// The counts of a grep. If the rows ended at the limit, these cover the rows up to the end of the
/// page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrepCounts {
    /// Files with at least one row.
    pub files: usize,
    /// The number of rows, before `offset` and limit are applied.
    pub rows: usize,
    /// In content mode, the number of matching rows. In count mode, the total. `None` in files
    /// mode, where the search of a file ends at its first match.
    pub matches: Option<u64>,
}

/// One printed line of content mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepRow {
    /// The file; for a [`RowKind::Break`], the file that follows.
    pub path: Arc<Path>,
    /// The line number, starting at 1. `None` for breaks and notices.
    pub line: Option<u64>,
    /// The kind of the line.
    pub kind: RowKind,
    /// The text without its line end, at most [`MAX_COLUMNS`] characters. Invalid UTF-8 is
    /// replaced.
    pub text: String,
    /// The length of the whole text in characters, if it was cut.
    pub full_length: Option<usize>,
}

/// The kind of a printed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// A line that matches.
    Match,
    /// A line near a match.
    Context,
    /// A break between groups of lines that are not adjacent; printed as `--`.
    Break,
    /// A remark about the file, printed as `path: text`: the file is binary, so its further matches
    /// are not shown.
    Notice,
}

/// The number of matches in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCount {
    /// The file.
    pub path: PathBuf,
    /// The number of matching lines; in multiline mode, of matches.
    pub count: u64,
}
