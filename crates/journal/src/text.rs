//! Text detection: the encoding of a file, and its text for display.
//!
//! Detection: byte order mark → a NUL in the first 8 KiB or the signature of a binary format
//! (binary) → strict UTF-8 → UTF-8 with stray bytes → a legacy code page, certain or only likely.
//! Decoding is for searching and showing; edits splice the bytes themselves.
//!
//! A file that is UTF-8 apart from stray bytes is edited as UTF-8, also with text outside ASCII:
//! its readers treat it as UTF-8. The stray bytes, which no typed text matches, stay. A file with
//! only some UTF-8 in it (fewer than 8 characters for each broken one) is treated as a legacy file
//! of unknown code page.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;

use crate::encoding::{self, CodePage, CodePageGuess, DecodedView};
use crate::lines::BreakStyle;
use crate::magic;

pub(crate) const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// A NUL byte in the first 8 KiB means binary (unless a byte order mark says otherwise).
pub(crate) const BINARY_PROBE: usize = 8 << 10;

/// The encoding of a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-8 with a few stray bytes, which are preserved.
    BrokenUtf8,
    /// UTF-16, little endian.
    Utf16Le,
    /// UTF-16, big endian.
    Utf16Be,
    /// UTF-32, little endian.
    Utf32Le,
    /// UTF-32, big endian.
    Utf32Be,
    /// This legacy code page, for certain (as defined in `encoding::guess`).
    CodePage(CodePage),
    /// A single- or double-byte code page that is not certain. `likely` is empty if the file is too
    /// large to guess.
    Legacy {
        /// The most likely page.
        likely: &'static str,
    },
}

#[cfg(test)]
impl Encoding {
    pub(crate) fn code_page(page: &'static encoding_rs::Encoding) -> Self {
        Self::CodePage(CodePage::new(page))
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Utf8 => "UTF-8",
            Self::BrokenUtf8 => "UTF-8 with some broken bytes",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Utf32Le => "UTF-32LE",
            Self::Utf32Be => "UTF-32BE",
            Self::CodePage(page) => page.name(),
            // Only parts of the file were read, so the page was not guessed.
            Self::Legacy { likely: "" } => "not UTF-8",
            Self::Legacy { likely } => {
                return write!(
                    formatter,
                    "not UTF-8 (a legacy code page, likely {likely}, but that is not certain)"
                );
            }
        })
    }
}

/// Facts about the text of a file, for its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFacts {
    /// The encoding.
    pub encoding: Encoding,
    /// It begins with a byte order mark.
    pub bom: bool,
    /// The style of its line breaks.
    pub breaks: BreakStyle,
    /// Whether it ends with a line break; `None` if the file was not read to its end.
    pub final_newline: Option<bool>,
    /// Some bytes could not be decoded and are shown as U+FFFD.
    pub lossy: bool,
}

/// Returns the encoding that a byte order mark declares, and the length of the mark.
pub(crate) fn byte_order_mark(head: &[u8]) -> Option<(Encoding, usize)> {
    // UTF-32LE comes first: its mark begins with that of UTF-16LE.
    let marks: [(&[u8], Encoding); 5] = [
        (UTF8_BOM, Encoding::Utf8),
        (b"\xff\xfe\0\0", Encoding::Utf32Le),
        (b"\0\0\xfe\xff", Encoding::Utf32Be),
        (b"\xff\xfe", Encoding::Utf16Le),
        (b"\xfe\xff", Encoding::Utf16Be),
    ];
    marks
        .into_iter()
        .find(|(mark, _)| head.starts_with(mark))
        .map(|(mark, encoding)| (encoding, mark.len()))
}

/// Returns whether a file that begins like this must not be treated as text.
pub(crate) fn is_binary(head: &[u8]) -> bool {
    if byte_order_mark(head).is_some() {
        return false;
    }
    let probe = &head[..head.len().min(BINARY_PROBE)];
    memchr(0, probe).is_some() || magic::is_never_text(probe)
}

/// The result of detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentKind {
    Binary,
    Text {
        encoding: Encoding,
        mark_length: usize,
    },
}

pub(crate) fn detect(content: &[u8]) -> ContentKind {
    if let Some((encoding, mark_length)) = byte_order_mark(content) {
        let body = &content[mark_length..];
        // A UTF-8 mark can be verified, and edits rely on it.
        let encoding = match encoding {
            Encoding::Utf8 if std::str::from_utf8(body).is_err() => Encoding::BrokenUtf8,
            encoding => encoding,
        };
        return ContentKind::Text {
            encoding,
            mark_length,
        };
    }
    if is_binary(content) {
        return ContentKind::Binary;
    }
    let encoding = if std::str::from_utf8(content).is_ok() {
        Encoding::Utf8
    } else if encoding::is_broken_utf8(content) {
        Encoding::BrokenUtf8
    } else {
        match encoding::guess(content) {
            CodePageGuess::Certain(page) => Encoding::CodePage(page),
            CodePageGuess::Unsure(page) => Encoding::Legacy {
                likely: page.name(),
            },
        }
    };
    ContentKind::Text {
        encoding,
        mark_length: 0,
    }
}

/// Returns the text of two states of one file for comparing and showing, without byte order marks.
/// Both are decoded with the encoding of the first (if it is empty, of the second).
pub(crate) fn readable<'a>(old: &'a [u8], new: &'a [u8]) -> (Cow<'a, [u8]>, Cow<'a, [u8]>) {
    match detect(if old.is_empty() { new } else { old }) {
        ContentKind::Text { encoding, .. } if !is_shown_raw(encoding) => {
            let read = |content: &'a [u8]| {
                let mark_length = byte_order_mark(content)
                    .filter(|(found, _)| *found == encoding)
                    .map_or(0, |(_, length)| length);
                let view = DecodedView::with(content, encoding, mark_length);
                match view.text {
                    Cow::Owned(text) => Cow::Owned(text[view.mark_length..].to_vec()),
                    raw => raw,
                }
            };
            (read(old), read(new))
        }
        _ => (Cow::Borrowed(old), Cow::Borrowed(new)),
    }
}

/// Returns whether the bytes of a file in this encoding are used as its text.
fn is_shown_raw(encoding: Encoding) -> bool {
    matches!(
        encoding,
        Encoding::Utf8 | Encoding::BrokenUtf8 | Encoding::Legacy { .. }
    )
}

/// Returns the text of a whole content in its own encoding, without byte order mark; undecodable
/// parts become U+FFFD. For display only.
pub fn readable_text(content: &[u8]) -> String {
    match DecodedView::decode(content) {
        Some(view) => String::from_utf8_lossy(&view.text[view.mark_length..]).into_owned(),
        None => String::from_utf8_lossy(content).into_owned(),
    }
}

/// The text of a whole content, for writing it back: unchanged parts keep their exact bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText {
    /// The text without its byte order mark.
    pub text: String,
    encoding: Encoding,
    mark: Vec<u8>,
}

impl DecodedText {
    /// Decodes a content. Returns `None` if it is not text, or if encoding the text again does not
    /// give the same bytes.
    pub fn decode(content: &[u8]) -> Option<Self> {
        let ContentKind::Text {
            encoding,
            mark_length,
        } = detect(content)
        else {
            return None;
        };
        let view = DecodedView::with(content, encoding, mark_length);
        let text = std::str::from_utf8(&view.text[view.mark_length..]).ok()?;
        let decoded = Self {
            text: text.to_owned(),
            encoding: view.encoding,
            mark: content[..mark_length].to_vec(),
        };
        let is_exact = decoded.encoded(text).is_ok_and(|again| again == content);
        is_exact.then_some(decoded)
    }

    /// Returns the bytes of another text in the same encoding, or the first character that the
    /// encoding lacks.
    pub fn encoded(&self, text: &str) -> Result<Vec<u8>, char> {
        let bytes = encoding::encode(text, self.encoding)?;
        Ok([self.mark.as_slice(), &bytes].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decoded_can_be_written_back() {
        let utf16: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain("gr\u{fc}n\r\n".encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        for content in [b"plain\n".as_slice(), b"\xef\xbb\xbfx\r\n", &utf16] {
            let decoded = DecodedText::decode(content).unwrap();
            assert!(!decoded.text.starts_with('\u{feff}'));
            assert_eq!(decoded.encoded(&decoded.text).unwrap(), content);
        }
        let decoded = DecodedText::decode(&utf16).unwrap();
        assert_eq!(decoded.text, "gr\u{fc}n\r\n");
        let changed = decoded.encoded("a\r\n").unwrap();
        assert_eq!(changed, b"\xff\xfea\0\r\0\n\0");
        assert_eq!(DecodedText::decode(b"a\0b"), None);
        assert_eq!(DecodedText::decode(b"a\xffb and more text"), None);
    }

    #[test]
    fn encodings_are_detected_in_the_order_of_the_contract() {
        let text = |encoding, mark_length| ContentKind::Text {
            encoding,
            mark_length,
        };
        let cases: [(&[u8], ContentKind); 11] = [
            (b"plain", text(Encoding::Utf8, 0)),
            ("gr\u{fc}n".as_bytes(), text(Encoding::Utf8, 0)),
            (b"\xef\xbb\xbfx", text(Encoding::Utf8, 3)),
            (b"\xef\xbb\xbfx\xe9", text(Encoding::BrokenUtf8, 3)),
            (b"\xff\xfea\0", text(Encoding::Utf16Le, 2)),
            (b"\xfe\xff\0a", text(Encoding::Utf16Be, 2)),
            (b"\xff\xfe\0\0a\0\0\0", text(Encoding::Utf32Le, 4)),
            (b"\0\0\xfe\xff\0\0\0a", text(Encoding::Utf32Be, 4)),
            (b"a\0b", ContentKind::Binary),
            (b"%PDF-1.7\n", ContentKind::Binary),
            (
                b"caf\xe9",
                text(
                    Encoding::Legacy {
                        likely: "windows-1252",
                    },
                    0,
                ),
            ),
        ];
        for (content, kind) in cases {
            assert_eq!(detect(content), kind, "{}", content.escape_ascii());
        }
    }
}
