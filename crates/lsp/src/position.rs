//! Positions in a text. Servers number lines from 0 and columns in code units; users number both
//! from 1, and columns in characters.

use crate::types::{LspPosition, LspRange};

/// The unit in which a server counts columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PositionEncoding {
    /// Bytes of UTF-8.
    Utf8,
    /// Units of UTF-16, the default of the protocol.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

/// A position as users see it: line and character, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub character: usize,
}

impl PositionEncoding {
    /// Parses the name of an encoding in the protocol.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "utf-8" => Some(Self::Utf8),
            "utf-16" => Some(Self::Utf16),
            "utf-32" => Some(Self::Utf32),
            _ => None,
        }
    }

    fn units(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// Converts a position to the server's units. A line after the end of the text is treated as
    /// empty; a character after the end of its line gives the line's end.
    pub fn to_server(self, text: &str, place: TextPosition) -> LspPosition {
        let row = place.line.saturating_sub(1);
        let line = lines(text).nth(row).unwrap_or_default();
        let before = line.chars().take(place.character.saturating_sub(1));
        LspPosition {
            line: u32::try_from(row).unwrap_or(u32::MAX),
            character: u32::try_from(before.map(|one| self.units(one)).sum::<usize>())
                .unwrap_or(u32::MAX),
        }
    }

    /// Converts a position from the server's units. A unit in the middle of a character gives that
    /// character.
    pub fn from_server(self, text: &str, place: LspPosition) -> TextPosition {
        let line = lines(text).nth(place.line as usize).unwrap_or_default();
        let mut units = 0;
        let mut characters = 0;
        for character in line.chars() {
            units += self.units(character);
            if units > place.character as usize {
                break;
            }
            characters += 1;
        }
        TextPosition {
            line: place.line as usize + 1,
            character: characters + 1,
        }
    }

    /// Returns the byte offset of a position, or `None` if it is beyond the end of the text.
    pub fn offset(self, text: &str, place: LspPosition) -> Option<usize> {
        let mut start = 0;
        for _ in 0..place.line {
            start += line_length(text.get(start..)?)?;
        }
        let rest = text.get(start..)?;
        let line = lines(rest).next().unwrap_or_default();
        let mut units = 0;
        for (at, character) in line.char_indices() {
            if units >= place.character as usize {
                return Some(start + at);
            }
            units += self.units(character);
        }
        // Servers may send a column after the end of a line, which means its end.
        Some(start + line.len())
    }

    /// Returns the byte range of a range, if it is inside this text.
    pub fn bytes(self, text: &str, range: LspRange) -> Option<std::ops::Range<usize>> {
        let start = self.offset(text, range.start)?;
        let end = self.offset(text, range.end)?;
        (start <= end).then_some(start..end)
    }
}

/// Returns the lines of a text by the rules of the protocol: ended by `\n`, `\r\n` or `\r`, without
/// the line ends.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        match line_length(text) {
            Some(length) => {
                rest = text.get(length..);
                Some(text[..length].trim_end_matches(['\r', '\n']))
            }
            None => {
                rest = None;
                Some(text)
            }
        }
    })
}

/// Returns the length of the first line with its end, or `None` if it is the last line.
fn line_length(text: &str) -> Option<usize> {
    let at = text.find(['\n', '\r'])?;
    Some(at + if text[at..].starts_with("\r\n") { 2 } else { 1 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn characters_beyond_the_first_plane_count_as_servers_count() {
        let text = "const s=\"é𝔘\"; greet(s)\r\nx";
        let place = TextPosition {
            line: 1,
            character: 15,
        };
        let cases = [
            (PositionEncoding::Utf16, 15),
            (PositionEncoding::Utf8, 18),
            (PositionEncoding::Utf32, 14),
        ];
        for (encoding, column) in cases {
            let there = encoding.to_server(text, place);
            assert_eq!((there.line, there.character), (0, column), "{encoding:?}");
            assert_eq!(encoding.from_server(text, there), place);
            let at = encoding.offset(text, there).unwrap();
            assert!(text[at..].starts_with("greet"), "{encoding:?}");
        }
    }

    #[test]
    fn ends_of_lines_and_texts() {
        let utf16 = PositionEncoding::Utf16;
        let at = |line, character| utf16.offset("ab\r\nc\n", LspPosition { line, character });
        assert_eq!(at(0, 9), Some(2));
        assert_eq!(at(1, 1), Some(5));
        assert_eq!(at(2, 0), Some(6));
        assert_eq!(at(3, 0), None);
        assert_eq!(
            lines("a\r\nb\rc\n").collect::<Vec<_>>(),
            ["a", "b", "c", ""]
        );
    }

    proptest! {
        #[test]
        fn a_place_comes_back(text in "(a|é|𝔘|\n|\r\n){0,30}", line in 1_usize..9, character in 1_usize..9) {
            for encoding in [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32] {
                let there = encoding.to_server(&text, TextPosition { line, character });
                let back = encoding.from_server(&text, there);
                prop_assert!(back.line == line && back.character <= character);
                if let Some(at) = encoding.offset(&text, there) {
                    prop_assert!(text.is_char_boundary(at));
                }
            }
        }
    }
}
