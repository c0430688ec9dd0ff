//! `'…'`, `"…"` and `$'…'`.

use super::words::{PlacedPart, QuoteContext, WordPieces};
use super::{ParseResult, Parser};
use crate::ast::PartKind;

impl Parser<'_> {
    /// Parses `'…'`.
    pub(super) fn single_quoted(&mut self, pieces: &mut WordPieces) -> ParseResult<()> {
        let start = self.at;
        let inner = start + 1;
        let Some(length) = self.source.text[inner..].find('\'') else {
            return Err(self.error(start, inner, "a single quote without its end"));
        };
        self.at = inner + length + 1;
        pieces.push(PlacedPart {
            start,
            end: self.at,
            quoted: true,
            kind: PartKind::Text(self.source.text[inner..inner + length].to_owned()),
        });
        Ok(())
    }

    /// Parses `"…"` at the cursor; `start` is the start of its first piece.
    pub(super) fn double_quoted(
        &mut self,
        start: usize,
        pieces: &mut WordPieces,
    ) -> ParseResult<()> {
        let quote = self.at;
        let first = pieces.list.len();
        pieces.close();
        self.at += 1;
        self.in_double_quotes += 1;
        loop {
            match self.peek() {
                None => {
                    return Err(self.error(quote, quote + 1, "a double quote without its end"));
                }
                Some(b'"') => break,
                Some(b'$') => self.dollar(QuoteContext::Double, pieces)?,
                Some(b'`') => self.backquoted(QuoteContext::Double, pieces)?,
                Some(b'\\') => self.double_quoted_escape(b"$`\"\\", pieces)?,
                Some(_) => self.plain_run(b"\"$`\\", pieces),
            }
        }
        self.at += 1;
        self.in_double_quotes -= 1;
        match pieces.list.get_mut(first) {
            Some(piece) => piece.start = start,
            None => pieces.push(PlacedPart {
                start,
                end: self.at,
                quoted: true,
                kind: PartKind::Text(String::new()),
            }),
        }
        if let Some(last) = pieces.list.last_mut() {
            last.end = self.at;
        }
        pieces.close();
        Ok(())
    }

    /// Parses a backslash that quotes only some characters and is otherwise literal.
    pub(super) fn double_quoted_escape(
        &mut self,
        special: &[u8],
        pieces: &mut WordPieces,
    ) -> ParseResult<()> {
        let start = self.at;
        let Some(next) = self.byte(start + 1) else {
            return Err(self.error(start, start + 1, "a backslash at the end of the text"));
        };
        self.at = self.character_end(start + 1);
        let from = start + usize::from(special.contains(&next));
        pieces.text(start, self.at, true, &self.source.text[from..self.at]);
        Ok(())
    }

    /// Reads quoted text up to any of these bytes.
    pub(super) fn plain_run(&mut self, until: &[u8], pieces: &mut WordPieces) {
        let start = self.at;
        let bytes = self.source.text.as_bytes();
        let length = bytes[start..]
            .iter()
            .position(|byte| until.contains(byte))
            .unwrap_or(bytes.len() - start);
        self.at = start + length;
        pieces.text(start, self.at, true, &self.source.text[start..self.at]);
    }

    /// Parses `'…'` after the `$` at `start`.
    pub(super) fn ansi_quoted(&mut self, start: usize, pieces: &mut WordPieces) -> ParseResult<()> {
        let inner = self.at + 1;
        let bytes = self.source.text.as_bytes();
        let mut end = inner;
        loop {
            match bytes.get(end) {
                None => return Err(self.error(start, inner, "a `$'` without its end")),
                Some(b'\'') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        let Some(decoded) =
            decode(&bytes[inner..end]).and_then(|text| String::from_utf8(text).ok())
        else {
            return Err(self.error(
                start,
                end + 1,
                "an escape in `$'…'` whose meaning is not certain",
            ));
        };
        // When bash prints such a quote, it adds a backslash before it.
        if self.in_substituted_list && decoded.contains('\'') {
            let message = "a single quote in a list inside a substitution";
            return Err(self.error(start, end + 1, message));
        }
        self.at = end + 1;
        pieces.push(PlacedPart {
            start,
            end: self.at,
            quoted: true,
            kind: PartKind::Text(decoded),
        });
        Ok(())
    }
}

/// Returns the bytes that `$'…'` represents. Returns `None` if bash would truncate them, or if they
/// depend on more than the text.
fn decode(escaped: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'\\' {
            text.push(*byte);
            continue;
        }
        let [escape, tail @ ..] = rest else {
            return None;
        };
        rest = tail;
        match escape {
            b'a' => text.push(0x07),
            b'b' => text.push(0x08),
            b'e' | b'E' => text.push(0x1b),
            b'f' => text.push(0x0c),
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'v' => text.push(0x0b),
            b'\\' | b'\'' | b'"' | b'?' => text.push(*escape),
            b'0'..=b'7' => {
                rest = &escaped[escaped.len() - rest.len() - 1..];
                let (value, length) = number(rest, 8, 3);
                rest = &rest[length..];
                text.push(u8::try_from(value & 0xff).ok()?);
            }
            b'x' => {
                let (value, length) = number(rest, 16, 2);
                if length == 0 {
                    return None;
                }
                rest = &rest[length..];
                text.push(u8::try_from(value).ok()?);
            }
            b'u' | b'U' => {
                let (value, length) = number(rest, 16, if *escape == b'u' { 4 } else { 8 });
                if length == 0 {
                    return None;
                }
                rest = &rest[length..];
                let character = char::from_u32(value)?;
                text.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            b'c' => {
                let [control, tail @ ..] = rest else {
                    return None;
                };
                rest = tail;
                match control {
                    b'a'..=b'z' | b'A'..=b'Z' | b'[' | b']' | b'^' | b'_' => {
                        text.push(control & 0x1f);
                    }
                    _ => return None,
                }
            }
            other => text.extend([b'\\', *other]),
        }
    }
    let held = |byte: &u8| matches!(byte, 0 | 0x01 | 0x7f);
    (!text.iter().any(held)).then_some(text)
}

/// Returns the number at the start of the text, and how many digits it has.
fn number(text: &[u8], radix: u32, most: usize) -> (u32, usize) {
    let mut value = 0_u32;
    let mut length = 0;
    for byte in text.iter().take(most) {
        let Some(digit) = char::from(*byte).to_digit(radix) else {
            break;
        };
        value = value.wrapping_mul(radix).wrapping_add(digit);
        length += 1;
    }
    (value, length)
}
