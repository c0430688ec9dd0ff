//! Line breaks: LF and CRLF, and CR only in a file that has no LF.
//!
//! Other characters that some languages treat as breaks (FF, VT, NEL, U+2028/9) are data.

use memchr::{memchr, memchr_iter};

use crate::step_counter::spend;

/// The break style of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BreakStyle {
    /// One line without a break, or no text.
    #[default]
    None,
    /// LF throughout.
    Lf,
    /// CRLF throughout.
    CrLf,
    /// LF and CRLF both occur.
    Mixed,
    /// Old Macintosh: CR, and no LF.
    Cr,
}

/// One line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineBreak {
    Lf,
    CrLf,
    Cr,
}

impl LineBreak {
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::Cr => b"\r",
        }
    }
}

/// The number of breaks of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BreakCounts {
    pub(crate) lf: u64,
    pub(crate) crlf: u64,
    pub(crate) lone_cr: u64,
}

impl BreakCounts {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut counts = Self::default();
        counts.add(bytes);
        counts
    }

    /// Adds the counts of a piece of a file; no piece may end between CR and LF.
    pub(crate) fn add(&mut self, piece: &[u8]) {
        spend!(piece.len());
        let all_lf = memchr_iter(b'\n', piece).count() as u64;
        let all_cr = memchr_iter(b'\r', piece).count() as u64;
        let crlf = match (all_lf, all_cr) {
            (0, _) | (_, 0) => 0,
            _ => memchr_iter(b'\r', piece)
                .filter(|&position| piece.get(position + 1) == Some(&b'\n'))
                .count() as u64,
        };
        self.lf += all_lf - crlf;
        self.crlf += crlf;
        self.lone_cr += all_cr - crlf;
    }

    pub(crate) fn style(&self) -> BreakStyle {
        match (self.lf, self.crlf, self.lone_cr) {
            (0, 0, 0) => BreakStyle::None,
            (0, 0, _) => BreakStyle::Cr,
            (_, 0, _) => BreakStyle::Lf,
            (0, _, _) => BreakStyle::CrLf,
            _ => BreakStyle::Mixed,
        }
    }

    /// Returns the most frequent break, if any.
    pub(crate) fn majority(&self) -> Option<LineBreak> {
        match self.style() {
            BreakStyle::None => None,
            BreakStyle::Cr => Some(LineBreak::Cr),
            _ if self.crlf > self.lf => Some(LineBreak::CrLf),
            _ => Some(LineBreak::Lf),
        }
    }
}

/// A line without its break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a [u8],
    /// `None` only for a last line without a break.
    pub(crate) line_break: Option<LineBreak>,
}

/// Splits text into lines; a final break does not start another line.
pub(crate) fn split_lines(bytes: &[u8], style: BreakStyle) -> impl Iterator<Item = Line<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((position, line_break)) = find_break(rest, style) else {
            let line = Line {
                text: rest,
                line_break: None,
            };
            rest = &[];
            return Some(line);
        };
        let line = Line {
            text: &rest[..position],
            line_break: Some(line_break),
        };
        rest = &rest[position + line_break.bytes().len()..];
        Some(line)
    })
}

/// Returns the first break in `bytes`, by the rules of a file of this style.
pub(crate) fn find_break(bytes: &[u8], style: BreakStyle) -> Option<(usize, LineBreak)> {
    let found = first_break(bytes, style);
    spend!(found.map_or(bytes.len(), |(position, _)| position) + 1);
    found
}

fn first_break(bytes: &[u8], style: BreakStyle) -> Option<(usize, LineBreak)> {
    if style == BreakStyle::Cr {
        return memchr(b'\r', bytes).map(|position| (position, LineBreak::Cr));
    }
    let position = memchr(b'\n', bytes)?;
    if position > 0 && bytes[position - 1] == b'\r' {
        Some((position - 1, LineBreak::CrLf))
    } else {
        Some((position, LineBreak::Lf))
    }
}

/// Returns the byte whose count is the number of breaks.
pub(crate) fn break_byte(style: BreakStyle) -> u8 {
    if style == BreakStyle::Cr {
        b'\r'
    } else {
        b'\n'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_told_apart() {
        let cases: [(&[u8], BreakStyle); 8] = [
            (b"", BreakStyle::None),
            (b"a", BreakStyle::None),
            (b"a\nb", BreakStyle::Lf),
            (b"50%\r60%\nok\n", BreakStyle::Lf),
            (b"a\r\nb\r\n", BreakStyle::CrLf),
            (b"a\r\nb\n", BreakStyle::Mixed),
            (b"c\rd\r", BreakStyle::Cr),
            (b"\x0c\x0b\xc2\x85\n", BreakStyle::Lf),
        ];
        for (bytes, style) in cases {
            assert_eq!(
                BreakCounts::from_bytes(bytes).style(),
                style,
                "{}",
                bytes.escape_ascii()
            );
        }
    }

    #[test]
    fn lines_end_where_breaks_are() {
        let lines: Vec<_> = split_lines(b"a\r\n\nb\rc\r\r\nd", BreakStyle::Mixed).collect();
        let expected = [
            (&b"a"[..], Some(LineBreak::CrLf)),
            (b"", Some(LineBreak::Lf)),
            (b"b\rc\r", Some(LineBreak::CrLf)),
            (b"d", None),
        ];
        let found: Vec<_> = lines
            .iter()
            .map(|line| (line.text, line.line_break))
            .collect();
        assert_eq!(found, expected);
    }
}
