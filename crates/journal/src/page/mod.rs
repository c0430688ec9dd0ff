//! One page of a file: numbered lines within a line, character and token budget.
//!
//! Small files are read at once; larger ones are streamed, so memory follows the
//! answer and not the file. Up to 64 MB the whole file is scanned (total line
//! count, hash); beyond that only as far as the page needs. Within 64 MB a file that
//! is not UTF-8 is read at once and decoded, if its encoding is certain.

mod collect;
mod read;

pub(crate) use read::{HASH_LIMIT, read_given, read_page, read_small_page};

use std::path::PathBuf;

use crate::ledger::Sight;
use crate::text::TextFacts;

/// What to show. `Default` is the first page with the standard limits.
#[derive(Debug, Clone)]
pub struct PageRequest {
    /// First line, 1-based; 0 means 1.
    pub offset: Option<u64>,
    /// Number of lines; at least 1 is shown.
    pub limit: Option<u64>,
    /// Characters of the first line to skip: how many of a cut line are known already.
    pub char_offset: u64,
    /// Takes the place of a missing `limit`.
    pub max_lines: u64,
    /// Longer lines are cut.
    pub max_line_chars: usize,
    /// See [`estimate_tokens`].
    pub max_tokens: u64,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self {
            offset: None,
            limit: None,
            char_offset: 0,
            max_lines: 2_000,
            max_line_chars: 2_000,
            max_tokens: 25_000,
        }
    }
}

impl PageRequest {
    fn first_line(&self) -> u64 {
        self.offset.unwrap_or(1).max(1)
    }

    fn line_count(&self) -> u64 {
        self.limit.unwrap_or(self.max_lines).max(1)
    }

    /// A reader who named a range knows that there is more than the range.
    fn is_explicit(&self) -> bool {
        self.offset.is_some() || self.limit.is_some()
    }
}

/// One line of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLine {
    /// 1-based.
    pub number: u64,
    /// Without its break.
    pub text: String,
    /// The true length of the line in characters, if `text` ends before it does.
    pub cut: Option<u64>,
}

/// A range of lines of a text file.
#[derive(Debug, Clone)]
pub struct TextPage {
    /// The file it is of, after all links.
    pub real: PathBuf,
    /// The lines, in order.
    pub lines: Vec<PageLine>,
    /// The file has no text at all (0 bytes, or only a byte order mark).
    pub empty: bool,
    /// `None` when the file is too large to be counted.
    pub total_lines: Option<u64>,
    /// Number of the first and of the last line shown; both 0 if the file is empty.
    pub first: u64,
    /// The last line shown.
    pub last: u64,
    /// Where to go on, if there is more.
    pub next_offset: Option<u64>,
    /// Every line of the file is here, uncut.
    pub whole: bool,
    /// It ended early because of `max_tokens`.
    pub truncated_by_tokens: bool,
    /// It ended early because of `max_lines`.
    pub truncated_by_lines: bool,
    /// A special file (`/proc`) had more than is read of such files, or did not give it in time.
    pub unended: bool,
    /// Encoding and line breaks.
    pub facts: TextFacts,
    /// What the ledger holds of it.
    pub sight: Sight,
}

/// How many tokens a text of this many bytes costs, roughly: bytes / 3.5.
///
/// Source code and English run at 3–4 bytes a token; erring a little upwards
/// keeps a page within its budget for dense text, too.
pub fn estimate_tokens(bytes: u64) -> u64 {
    (bytes * 2).div_ceil(7)
}
