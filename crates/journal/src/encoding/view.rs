//! The text of a file as UTF-8, with a mapping to the bytes of the file.
//!
//! If the file's bytes are (nearly) UTF-8, or their encoding is not certain, they are used as the
//! text. Otherwise the text is decoded, character by character one to one; a part that cannot be
//! decoded becomes a byte 0xFF, which no typed text contains.

use std::borrow::Cow;
use std::ops::Range;

use super::{CodePage, units};
use crate::text::{ContentKind, Encoding, detect};

/// The interval of checkpoints, in bytes of text.
const INTERVAL: usize = 512;
const UNDECODABLE: u8 = 0xff;
const MARK: &str = "\u{feff}";

pub(crate) struct DecodedView<'a> {
    source: &'a [u8],
    /// The text. A byte order mark is included as U+FEFF.
    pub(crate) text: Cow<'a, [u8]>,
    pub(crate) encoding: Encoding,
    /// The length of the mark in `text`.
    pub(crate) mark_length: usize,
    /// Offsets of the same character in text and source, ascending; empty if text and source are
    /// identical.
    checkpoints: Vec<(usize, usize)>,
}

impl<'a> DecodedView<'a> {
    /// Detects the encoding and decodes; `None` for a binary file.
    pub(crate) fn decode(source: &'a [u8]) -> Option<Self> {
        match detect(source) {
            ContentKind::Binary => None,
            ContentKind::Text {
                encoding,
                mark_length,
            } => Some(Self::with(source, encoding, mark_length)),
        }
    }

    /// Decodes with an encoding that is already known.
    pub(crate) fn with(source: &'a [u8], encoding: Encoding, mark_length: usize) -> Self {
        let mut view = Self {
            source,
            text: Cow::Borrowed(source),
            encoding,
            mark_length,
            checkpoints: Vec::new(),
        };
        match encoding {
            Encoding::Utf8 | Encoding::BrokenUtf8 | Encoding::Legacy { .. } => {}
            Encoding::CodePage(CodePage(page)) => {
                let decoded = page.decode_without_bom_handling_and_without_replacement(source);
                match decoded {
                    Some(text) if view.map(text.as_bytes()) => {
                        view.text = Cow::Owned(text.into_owned().into_bytes());
                    }
                    // These bytes do not decode in the guessed page: use them undecoded.
                    _ => {
                        view.encoding = Encoding::Legacy {
                            likely: page.name(),
                        }
                    }
                }
            }
            _ => view.decode_wide(),
        }
        view
    }

    /// Returns whether the text is identical to the bytes of the file.
    pub(crate) fn is_source(&self) -> bool {
        self.checkpoints.is_empty()
    }

    pub(crate) fn source(&self) -> &'a [u8] {
        self.source
    }

    /// Returns the bytes of the file that a range of the text corresponds to; its ends must be
    /// character boundaries.
    pub(crate) fn source_range(&self, range: &Range<usize>) -> Range<usize> {
        self.source_offset(range.start)..self.source_offset(range.end)
    }

    fn source_offset(&self, offset: usize) -> usize {
        let before = self
            .checkpoints
            .partition_point(|(text, _)| *text <= offset);
        let Some(&(mut text, mut source)) = before
            .checked_sub(1)
            .and_then(|at| self.checkpoints.get(at))
        else {
            return offset;
        };
        while text < offset {
            text += character_length(self.text[text]);
            source += units::length(self.encoding, &self.source[source..]);
        }
        source
    }

    fn decode_wide(&mut self) {
        let mut text = Vec::with_capacity(self.source.len());
        let mut position = self.mark_length;
        if self.mark_length > 0 {
            text.extend_from_slice(MARK.as_bytes());
        }
        self.checkpoints.push((0, 0));
        self.checkpoints.push((text.len(), position));
        self.mark_length = text.len();
        let mut next = INTERVAL;
        while position < self.source.len() {
            if text.len() >= next {
                self.checkpoints.push((text.len(), position));
                next = text.len() + INTERVAL;
            }
            let length = units::length(self.encoding, &self.source[position..]);
            match decode_one(self.encoding, &self.source[position..position + length]) {
                Some(character) => {
                    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                None => text.push(UNDECODABLE),
            }
            position += length;
        }
        self.text = Cow::Owned(text);
    }

    /// Walks through text and bytes in parallel to build the checkpoints. Returns `false` if they
    /// do not end together.
    fn map(&mut self, decoded: &[u8]) -> bool {
        let (mut text, mut source) = (0, 0);
        let mut checkpoints = vec![(0, 0)];
        let mut next = INTERVAL;
        while source < self.source.len() && text < decoded.len() {
            if text >= next {
                checkpoints.push((text, source));
                next = text + INTERVAL;
            }
            text += character_length(decoded[text]);
            source += units::length(self.encoding, &self.source[source..]);
        }
        let in_step = (text, source) == (decoded.len(), self.source.len());
        if in_step {
            self.checkpoints = checkpoints;
        }
        in_step
    }
}

fn decode_one(encoding: Encoding, unit: &[u8]) -> Option<char> {
    let value = |little: bool| {
        let join = |value, byte: &u8| value << 8 | u32::from(*byte);
        if little {
            unit.iter().rev().fold(0, join)
        } else {
            unit.iter().fold(0, join)
        }
    };
    let pair = |high: u32, low: u32| 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
    let value = match (encoding, unit.len()) {
        (Encoding::Utf16Le, 2) | (Encoding::Utf32Le, 4) => value(true),
        (Encoding::Utf16Be, 2) | (Encoding::Utf32Be, 4) => value(false),
        (Encoding::Utf16Le, 4) => pair(value(true) & 0xffff, value(true) >> 16),
        (Encoding::Utf16Be, 4) => pair(value(false) >> 16, value(false) & 0xffff),
        _ => return None, // the file ends inside a character
    };
    char::from_u32(value)
}

/// Returns the length of the character that begins with this byte.
fn character_length(first: u8) -> usize {
    match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{BIG5, EUC_JP, EUC_KR, GB18030, GBK, SHIFT_JIS, WINDOWS_1252};

    fn shown(source: &[u8]) -> String {
        let view = DecodedView::decode(source).unwrap();
        String::from_utf8_lossy(&view.text[view.mark_length..]).into_owned()
    }

    #[test]
    fn wide_encodings_are_decoded() {
        let cases: [(&[u8], &str); 5] = [
            (b"\xff\xfea\0\xf1\0", "añ"),
            (b"\xfe\xff\xd8\x3d\xde\x00", "😀"),
            (b"\xff\xfe\x00\xd8a\0", "\u{fffd}a"),
            (b"\xff\xfe\0\0a\0\0\0", "a"),
            (b"\0\0\xfe\xff\0\0\0ab", "a\u{fffd}"),
        ];
        for (source, text) in cases {
            assert_eq!(shown(source), text, "{}", source.escape_ascii());
        }
    }

    /// Every border of a character in the text must be the same border in the bytes.
    #[track_caller]
    fn check_map(view: &DecodedView<'_>, encode: impl Fn(&str) -> Vec<u8>) {
        let text = std::str::from_utf8(&view.text).unwrap();
        for (position, character) in text.char_indices().skip(usize::from(view.mark_length > 0)) {
            let range = view.source_range(&(position..position + character.len_utf8()));
            assert_eq!(
                view.source()[range],
                encode(character.encode_utf8(&mut [0; 4])),
                "{position}"
            );
        }
    }

    #[test]
    fn every_character_knows_its_bytes() {
        let unit = "a日本語のテキスト、カタカナ。\r\n\tb漢字 ";
        let text = unit.repeat(100);
        for page in [SHIFT_JIS, EUC_JP, GBK, GB18030, BIG5, EUC_KR, WINDOWS_1252] {
            let text: String = text
                .chars()
                .filter(|character| !page.encode(&character.to_string()).2)
                .collect();
            let bytes = page.encode(&text).0;
            let view = DecodedView::with(&bytes, Encoding::CodePage(CodePage(page)), 0);
            assert_eq!(view.text, text.as_bytes(), "{}", page.name());
            check_map(&view, |piece| page.encode(piece).0.into_owned());
        }
        let text = format!("\u{feff}{}", "x😀ñ\n".repeat(300));
        let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        check_map(&DecodedView::decode(&utf16).unwrap(), |piece| {
            piece.encode_utf16().flat_map(u16::to_be_bytes).collect()
        });
        let utf32: Vec<u8> = text
            .chars()
            .flat_map(|character| u32::from(character).to_le_bytes())
            .collect();
        check_map(&DecodedView::decode(&utf32).unwrap(), |piece| {
            piece
                .chars()
                .flat_map(|character| u32::from(character).to_le_bytes())
                .collect()
        });
    }

    #[test]
    fn characters_of_four_bytes_and_half_width_ones_keep_the_map_right() {
        let text = "中€\u{1f600}é文".repeat(50);
        let bytes = GB18030.encode(&text).0;
        let view = DecodedView::with(&bytes, Encoding::CodePage(CodePage(GB18030)), 0);
        check_map(&view, |piece| GB18030.encode(piece).0.into_owned());
        let text = "€8中€€12文".repeat(50);
        let bytes = GBK.encode(&text).0;
        let view = DecodedView::with(&bytes, Encoding::CodePage(CodePage(GBK)), 0);
        assert!(!view.is_source());
        check_map(&view, |piece| GBK.encode(piece).0.into_owned());
        let text = "ｶﾅ\\漢字~ｱ".repeat(50);
        let bytes = SHIFT_JIS.encode(&text).0;
        let view = DecodedView::with(&bytes, Encoding::CodePage(CodePage(SHIFT_JIS)), 0);
        check_map(&view, |piece| SHIFT_JIS.encode(piece).0.into_owned());
    }
}
