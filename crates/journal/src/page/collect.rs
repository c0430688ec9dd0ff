//! Selects the lines of one page from a stream of pieces.
//!
//! A piece never ends inside a UTF-8 character nor between CR and LF; the reader ensures that.

use memchr::{memchr, memchr_iter};

use super::{PageLine, PageRequest, estimate_tokens};

/// The estimated size of a line number, its padding, the tab and the line break, in bytes.
const LINE_OVERHEAD: u64 = 8;

pub(super) struct PageCollector {
    break_byte: u8,
    first: u64,
    end: u64,
    max_chars: u64,
    max_tokens: u64,
    char_offset: u64,
    /// The number of the current line.
    line: u64,
    /// At least one byte of the current line was read.
    begun: bool,
    current: CurrentLine,
    lines: Vec<PageLine>,
    bytes: u64,
    done: bool,
    more: bool,
    over_budget: bool,
    lossy: bool,
    too_short: Option<u64>,
}

/// The current line, if it is to be shown.
#[derive(Default)]
struct CurrentLine {
    kept: Vec<u8>,
    kept_chars: u64,
    chars: u64,
    last_byte: Option<u8>,
}

pub(super) struct CollectedPage {
    pub(super) lines: Vec<PageLine>,
    /// The number of lines seen so far; all lines, if the whole file was pushed.
    pub(super) seen_lines: u64,
    /// There is text after the last line shown.
    pub(super) more: bool,
    pub(super) over_budget: bool,
    /// Some bytes of the lines shown are not valid UTF-8.
    pub(super) lossy: bool,
    /// The length of the first line, if `char_offset` is past its end.
    pub(super) too_short: Option<u64>,
}

impl PageCollector {
    pub(super) fn new(request: &PageRequest, break_byte: u8) -> Self {
        let first = request.first_line();
        Self {
            break_byte,
            first,
            end: first.saturating_add(request.line_count()),
            max_chars: request.max_line_chars as u64,
            max_tokens: request.max_tokens,
            char_offset: request.char_offset,
            line: 1,
            begun: false,
            current: CurrentLine::default(),
            lines: Vec::new(),
            bytes: 0,
            done: false,
            more: false,
            over_budget: false,
            lossy: false,
            too_short: None,
        }
    }

    /// Returns whether the page is complete and more text is known to follow.
    pub(super) fn is_settled(&self) -> bool {
        self.more
    }

    pub(super) fn push(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            if self.done {
                self.more = true;
                return self.count(piece);
            }
            if self.line < self.first {
                piece = self.skip(piece);
                continue;
            }
            let end = memchr(self.break_byte, piece);
            self.store_part(&piece[..end.unwrap_or(piece.len())]);
            self.begun = true;
            let Some(end) = end else { return };
            self.end_line(true);
            piece = &piece[end + 1..];
        }
    }

    pub(super) fn finish(mut self) -> CollectedPage {
        if self.begun && !self.done && self.line >= self.first {
            self.end_line(false);
        }
        let seen_lines = if self.begun { self.line } else { self.line - 1 };
        CollectedPage {
            lines: self.lines,
            seen_lines,
            more: self.more,
            over_budget: self.over_budget,
            lossy: self.lossy,
            too_short: self.too_short,
        }
    }

    fn count(&mut self, piece: &[u8]) {
        self.line += memchr_iter(self.break_byte, piece).count() as u64;
        self.begun = piece.last() != Some(&self.break_byte);
    }

    /// Skips lines before the page; returns the rest of the piece.
    fn skip<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let wanted = self.first - self.line;
        let breaks = memchr_iter(self.break_byte, piece).count() as u64;
        if breaks < wanted {
            self.count(piece);
            return &[];
        }
        let nth = usize::try_from(wanted - 1).unwrap_or(usize::MAX);
        let Some(position) = memchr_iter(self.break_byte, piece).nth(nth) else {
            return &[]; // unreachable: there are enough breaks
        };
        self.line = self.first;
        self.begun = false;
        &piece[position + 1..]
    }

    fn char_offset_here(&self) -> u64 {
        if self.line == self.first {
            self.char_offset
        } else {
            0
        }
    }

    fn store_part(&mut self, part: &[u8]) {
        let from = self.char_offset_here();
        // One more than is shown, so that a CR before the break can still be removed.
        let until = from + self.max_chars + 1;
        let chars = count_chars(part);
        let current = &mut self.current;
        if let Some(&byte) = part.last() {
            current.last_byte = Some(byte);
        }
        if current.chars >= from && current.chars + chars <= until {
            current.kept.extend_from_slice(part); // the usual case: all of it
            current.kept_chars += chars;
        } else if current.chars < until && current.chars + chars > from {
            let start = char_position(part, from.saturating_sub(current.chars));
            let end = char_position(part, until - current.chars);
            current.kept.extend_from_slice(&part[start..end]);
            current.kept_chars += count_chars(&part[start..end]);
        }
        current.chars += chars;
    }

    fn end_line(&mut self, at_break: bool) {
        let from = self.char_offset_here();
        let mut current = std::mem::take(&mut self.current);
        if at_break && self.break_byte == b'\n' && current.last_byte == Some(b'\r') {
            if current.chars == from + current.kept_chars && current.kept_chars > 0 {
                current.kept.pop();
                current.kept_chars -= 1;
            }
            current.chars -= 1;
        }
        let mut text = String::from_utf8(current.kept).unwrap_or_else(|error| {
            self.lossy = true;
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        });
        let cut = (current.chars > from.saturating_add(self.max_chars)).then_some(current.chars);
        if text.len() as u64 > self.max_chars
            && let Some((end, _)) = text.char_indices().nth(self.max_chars as usize)
        {
            text.truncate(end);
        }
        if from > 0 && from >= current.chars {
            self.too_short = Some(current.chars);
        }
        let bytes = self.bytes + text.len() as u64 + LINE_OVERHEAD;
        if estimate_tokens(bytes) > self.max_tokens && !self.lines.is_empty() {
            self.over_budget = true;
            self.more = true;
            self.done = true;
        } else {
            self.bytes = bytes;
            self.lines.push(PageLine {
                number: self.line,
                text,
                cut,
            });
            self.done = self.line + 1 >= self.end;
        }
        if at_break {
            self.line += 1;
            self.begun = false;
        }
    }
}

/// Counts characters: one begins at every byte that is not a UTF-8 continuation byte.
fn count_chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| !is_continuation(byte)).count() as u64
}

/// Returns the offset of the character with this index, or the end.
fn char_position(bytes: &[u8], index: u64) -> usize {
    if index >= bytes.len() as u64 {
        return bytes.len();
    }
    bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| !is_continuation(**byte))
        .nth(index as usize)
        .map_or(bytes.len(), |(position, _)| position)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
