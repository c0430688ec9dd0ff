//! Normalized texts: breaks, typography or trailing whitespace are folded, with a mapping back to
//! the original offsets.
//!
//! Folds can be stacked: each works on the text of the previous one, and offsets are mapped back
//! through the same chain. All folds are linear, and borrow the text if there is nothing to fold.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr3_iter};

use crate::lines::BreakStyle;
use crate::step_counter::spend;

/// A folded text with the mapping to its original offsets.
pub(super) struct FoldedText<'a> {
    pub(super) text: Cow<'a, [u8]>,
    shifts: Vec<OffsetShift>,
}

/// Offsets after `place` in the folded text are `by` bytes further on in the original.
struct OffsetShift {
    place: u32,
    by: u32,
}

impl<'a> FoldedText<'a> {
    pub(super) fn unchanged(text: &'a [u8]) -> Self {
        Self {
            text: Cow::Borrowed(text),
            shifts: Vec::new(),
        }
    }

    /// Folds CRLF to LF; in a file of CR style also every CR to LF.
    pub(super) fn breaks(bytes: &'a [u8], style: BreakStyle) -> Self {
        if memchr(b'\r', bytes).is_none() {
            return Self::unchanged(bytes);
        }
        let mut fold = TextFolder::new(bytes);
        for position in memchr_iter(b'\r', bytes) {
            if bytes.get(position + 1) == Some(&b'\n') {
                fold.replace(position, 2, b"\n");
            } else if style == BreakStyle::Cr {
                fold.replace(position, 1, b"\n");
            } // otherwise a lone CR is data
        }
        fold.finish()
    }

    /// Folds all kinds of quotes, dashes and spaces to their ASCII forms.
    pub(super) fn typography(bytes: &'a [u8]) -> Self {
        let mut fold = TextFolder::new(bytes);
        for position in memchr3_iter(0xc2, 0xe2, 0xe3, bytes) {
            if let Some((length, plain)) = plain_sign(&bytes[position..]) {
                fold.replace(position, length, &[plain]);
            }
        }
        fold.finish()
    }

    /// Removes spaces and tabs before LF. The offset of an LF maps to the start of the whitespace
    /// before it.
    pub(super) fn trailing_blanks(bytes: &'a [u8]) -> Self {
        let mut fold = TextFolder::new(bytes);
        let mut line_start = 0;
        for position in memchr_iter(b'\n', bytes) {
            let blanks = trailing_blanks(&bytes[line_start..position]);
            if blanks > 0 {
                fold.replace(position - blanks, blanks + 1, b"\n");
            }
            line_start = position + 1;
        }
        fold.finish()
    }

    pub(super) fn is_unchanged(&self) -> bool {
        matches!(self.text, Cow::Borrowed(_))
    }

    /// Maps an offset to the original text. An offset before a folded character maps to before that
    /// character, so that no CRLF and no character is split.
    pub(super) fn original(&self, offset: usize) -> usize {
        let behind = self
            .shifts
            .partition_point(|shift| (shift.place as usize) < offset);
        match behind.checked_sub(1) {
            Some(last) => offset + self.shifts[last].by as usize,
            None => offset,
        }
    }
}

/// Returns the number of spaces and tabs at the end of a line.
pub(super) fn trailing_blanks(line: &[u8]) -> usize {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let blanks = line.iter().rev().take_while(is_blank).count();
    spend!(blanks + 1);
    blanks
}

struct TextFolder<'a> {
    bytes: &'a [u8],
    text: Vec<u8>,
    shifts: Vec<OffsetShift>,
    copied: usize,
}

impl<'a> TextFolder<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        spend!(bytes.len());
        Self {
            bytes,
            text: Vec::new(),
            shifts: Vec::new(),
            copied: 0,
        }
    }

    /// Replaces `length` bytes at `position` by `plain`; positions must ascend.
    fn replace(&mut self, position: usize, length: usize, plain: &[u8]) {
        if self.text.capacity() == 0 {
            self.text.reserve(self.bytes.len());
        }
        self.text
            .extend_from_slice(&self.bytes[self.copied..position]);
        self.text.extend_from_slice(plain);
        self.copied = position + length;
        if length > 1 {
            // Files are loaded up to 512 MB, so offsets fit into 32 bits.
            self.shifts.push(OffsetShift {
                place: (self.text.len() - 1) as u32,
                by: (self.copied - self.text.len()) as u32,
            });
        }
    }

    fn finish(mut self) -> FoldedText<'a> {
        if self.copied == 0 {
            return FoldedText::unchanged(self.bytes);
        }
        self.text.extend_from_slice(&self.bytes[self.copied..]);
        FoldedText {
            text: Cow::Owned(self.text),
            shifts: self.shifts,
        }
    }
}

/// Parses a typographic sign at the start: returns its length and its ASCII form.
fn plain_sign(bytes: &[u8]) -> Option<(usize, u8)> {
    let (length, plain) = match bytes {
        [0xc2, 0xa0, ..] => (2, b' '),
        [0xe2, 0x80, last, ..] => {
            let plain = match last {
                0x82..=0x8a | 0xaf => b' ', // U+2002–200A, U+202F
                0x90..=0x95 => b'-',        // ‐ ‑ ‒ – — ―
                0x98..=0x9b => b'\'',       // ‘ ’ ‚ ‛
                0x9c..=0x9f => b'"',        // “ ” „ ‟
                _ => return None,
            };
            (3, plain)
        }
        [0xe2, 0x81, 0x9f, ..] | [0xe3, 0x80, 0x80, ..] => (3, b' '),
        [0xe2, 0x88, 0x92, ..] => (3, b'-'),
        _ => return None,
    };
    Some((length, plain))
}

/// Returns whether the character is a space or tab, or is folded to a space.
pub(super) fn is_blank(character: char) -> bool {
    let mut bytes = [0; 4];
    let bytes = character.encode_utf8(&mut bytes).as_bytes();
    matches!(character, ' ' | '\t') || matches!(plain_sign(bytes), Some((_, b' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_listed_signs_are_folded() {
        let folded: String = ('\0'..=char::MAX)
            .filter(|character| {
                let text = character.to_string();
                !FoldedText::typography(text.as_bytes()).is_unchanged()
            })
            .collect();
        let expected = "\u{a0}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}‐‑‒–—―‘’‚‛“”„‟\u{202f}\u{205f}−\u{3000}";
        assert_eq!(folded, expected);
    }

    #[test]
    fn offsets_go_back_to_where_they_were() {
        let text = "“a”\r\nb \t\r\nc – d".as_bytes();
        let breaks = FoldedText::breaks(text, BreakStyle::CrLf);
        let signs = FoldedText::typography(&breaks.text);
        let lines = FoldedText::trailing_blanks(&signs.text);
        assert_eq!(&*lines.text, b"\"a\"\nb\nc - d");
        let original: Vec<usize> = (0..=lines.text.len())
            .map(|offset| breaks.original(signs.original(lines.original(offset))))
            .collect();
        //                     “  a  ”  ⏎  b  ⏎   c   ·   –   ·   d
        assert_eq!(original, [0, 3, 4, 7, 9, 10, 14, 15, 16, 19, 20, 21]);
    }
}
