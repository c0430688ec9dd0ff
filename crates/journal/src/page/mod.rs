//! One page of a file: numbered lines within limits for lines, characters and tokens.
//!
//! Small files are read in one piece; larger ones are streamed, so that memory use depends on the
//! page and not on the file. Up to 64 MB the whole file is scanned (total line count, hash); larger
//! files only as far as the page needs. Files up to 64 MB that are not UTF-8 are read in one piece
//! and decoded, if the encoding is certain.

mod collect;
mod read;

pub(crate) use read::{HASH_LIMIT, read_given, read_page, read_small_page};

use std::path::PathBuf;

use crate::ledger::ReadRecord;
use crate::text::TextFacts;

/// The part of a file to show. `Default` is the first page with the standard limits.
#[derive(Debug, Clone)]
pub struct PageRequest {
    /// The first line, 1-based; 0 means 1.
    pub offset: Option<u64>,
    /// The number of lines; at least 1 is shown.
    pub limit: Option<u64>,
    /// The number of characters of the first line to skip, because earlier pages showed them.
    pub char_offset: u64,
    /// The number of lines if `limit` is missing.
    pub max_lines: u64,
    /// The maximum length of a line in characters; longer lines are cut.
    pub max_line_chars: usize,
    /// The maximum size of the page; see [`estimate_tokens`].
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

    /// Returns whether the caller named a range, and thus knows that the file has more lines.
    fn is_explicit(&self) -> bool {
        self.offset.is_some() || self.limit.is_some()
    }
}

/// One line of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLine {
    /// The line number, 1-based.
    pub number: u64,
    /// The text without the line break.
    pub text: String,
    /// The full length of the line in characters, if `text` was cut.
    pub cut: Option<u64>,
}

/// A range of lines of a text file.
#[derive(Debug, Clone)]
pub struct TextPage {
    /// The file, with all links resolved.
    pub real: PathBuf,
    /// The lines, in order.
    pub lines: Vec<PageLine>,
    /// The file has no text (0 bytes, or only a byte order mark).
    pub empty: bool,
    /// The number of lines of the file; `None` if the file is too large to count them.
    pub total_lines: Option<u64>,
    /// The number of the first line shown; 0 if the file is empty.
    pub first: u64,
    /// The number of the last line shown; 0 if the file is empty.
    pub last: u64,
    /// The first line of the next page, if there is more.
    pub next_offset: Option<u64>,
    /// Every line of the file is included, uncut.
    pub whole: bool,
    /// The page ended early because of `max_tokens`.
    pub truncated_by_tokens: bool,
    /// The page ended early because of `limit` or `max_lines`.
    pub truncated_by_lines: bool,
    /// A special file (`/proc`) was longer than the limit for such files, or could not be read in
    /// time.
    pub unended: bool,
    /// The encoding and line breaks.
    pub facts: TextFacts,
    /// The record for the read ledger.
    pub read_record: ReadRecord,
}

/// Estimates the number of tokens in a text of `bytes` bytes: roughly bytes / 3.5.
///
/// Source code and English have 3–4 bytes per token; a slightly high estimate keeps pages of dense
/// text within their budget, too.
pub fn estimate_tokens(bytes: u64) -> u64 {
    (bytes * 2).div_ceil(7)
}
