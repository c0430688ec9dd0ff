//! Bytes seen as text: which encoding, and how to show it.
//!
//! Decoding here is for showing only. Nothing that was decoded is ever written
//! back; edits splice the bytes themselves.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;

use crate::lines::BreakStyle;
use crate::magic;

pub(crate) const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// A NUL this early means binary (unless a BOM said otherwise).
pub(crate) const BINARY_PROBE: usize = 8 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
    Utf32Le,
    Utf32Be,
    /// Some single- or double-byte code page; which one is not known.
    Legacy,
}

impl fmt::Display for Encoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Utf32Le => "UTF-32LE",
            Self::Utf32Be => "UTF-32BE",
            Self::Legacy => "not UTF-8 (a legacy code page)",
        })
    }
}

/// What a reader should know about the text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFacts {
    pub encoding: Encoding,
    pub bom: bool,
    pub breaks: BreakStyle,
    /// `None` when the file was not read to its end.
    pub final_newline: Option<bool>,
    /// Some bytes could not be decoded and are shown as U+FFFD.
    pub lossy: bool,
}

/// The encoding a byte order mark declares, and the length of the mark.
pub(crate) fn byte_order_mark(head: &[u8]) -> Option<(Encoding, usize)> {
    // UTF-32LE first: its mark begins with that of UTF-16LE.
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

/// Is this the beginning of a file that must not be treated as text?
pub(crate) fn is_binary(head: &[u8]) -> bool {
    if byte_order_mark(head).is_some() {
        return false;
    }
    let probe = &head[..head.len().min(BINARY_PROBE)];
    memchr(0, probe).is_some() || magic::is_never_text(probe)
}

/// What the whole content of a file turns out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Binary,
    Text {
        encoding: Encoding,
        mark_length: usize,
    },
}

pub(crate) fn detect(content: &[u8]) -> Kind {
    if let Some((encoding, mark_length)) = byte_order_mark(content) {
        let body = &content[mark_length..];
        // A UTF-8 mark is a claim that can be checked, and edits rely on it.
        let encoding = match encoding {
            Encoding::Utf8 if std::str::from_utf8(body).is_err() => Encoding::Legacy,
            encoding => encoding,
        };
        return Kind::Text {
            encoding,
            mark_length,
        };
    }
    if is_binary(content) {
        return Kind::Binary;
    }
    let encoding = match std::str::from_utf8(content) {
        Ok(_) => Encoding::Utf8,
        Err(_) => Encoding::Legacy,
    };
    Kind::Text {
        encoding,
        mark_length: 0,
    }
}

/// Decodes a body without its mark, for showing; the flag says whether it is lossy.
pub(crate) fn decode(body: &[u8], encoding: Encoding) -> (Cow<'_, [u8]>, bool) {
    let (unit, little) = match encoding {
        Encoding::Utf8 => return (Cow::Borrowed(body), false),
        Encoding::Legacy => return (Cow::Borrowed(body), true),
        Encoding::Utf16Le => (2, true),
        Encoding::Utf16Be => (2, false),
        Encoding::Utf32Le => (4, true),
        Encoding::Utf32Be => (4, false),
    };
    let units = body.chunks_exact(unit);
    let mut lossy = !units.remainder().is_empty();
    let values = units.map(|bytes| {
        let join = |value, byte: &u8| value << 8 | u32::from(*byte);
        if little {
            bytes.iter().rev().fold(0, join)
        } else {
            bytes.iter().fold(0, join)
        }
    });
    let mut replace = |character: Option<char>| {
        lossy |= character.is_none();
        character.unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    let mut text: String = if unit == 2 {
        char::decode_utf16(values.map(|value| value as u16))
            .map(|result| replace(result.ok()))
            .collect()
    } else {
        values.map(|value| replace(char::from_u32(value))).collect()
    };
    if lossy && !body.len().is_multiple_of(unit) {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    (Cow::Owned(text.into_bytes()), lossy)
}

/// A guess for messages only: single high bytes between ASCII look like a
/// Western code page, pairs of them like an East Asian one.
pub(crate) fn likely_code_page(content: &[u8]) -> &'static str {
    let (mut single, mut paired) = (0_usize, 0_usize);
    for run in content.split(u8::is_ascii).filter(|run| !run.is_empty()) {
        if run.len() == 1 {
            single += 1
        } else {
            paired += 1
        }
    }
    if single >= paired {
        "windows-1252 or ISO-8859-1"
    } else {
        "Shift-JIS, GBK or another double-byte code page"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_detected_in_the_order_of_the_contract() {
        let text = |encoding, mark_length| Kind::Text {
            encoding,
            mark_length,
        };
        let cases: [(&[u8], Kind); 11] = [
            (b"plain", text(Encoding::Utf8, 0)),
            ("gr\u{fc}n".as_bytes(), text(Encoding::Utf8, 0)),
            (b"\xef\xbb\xbfx", text(Encoding::Utf8, 3)),
            (b"\xef\xbb\xbfx\xe9", text(Encoding::Legacy, 3)),
            (b"\xff\xfea\0", text(Encoding::Utf16Le, 2)),
            (b"\xfe\xff\0a", text(Encoding::Utf16Be, 2)),
            (b"\xff\xfe\0\0a\0\0\0", text(Encoding::Utf32Le, 4)),
            (b"\0\0\xfe\xff\0\0\0a", text(Encoding::Utf32Be, 4)),
            (b"a\0b", Kind::Binary),
            (b"%PDF-1.7\n", Kind::Binary),
            (b"caf\xe9", text(Encoding::Legacy, 0)),
        ];
        for (content, kind) in cases {
            assert_eq!(detect(content), kind, "{}", content.escape_ascii());
        }
    }

    #[test]
    fn wide_encodings_are_decoded_for_showing() {
        let cases: [(&[u8], Encoding, &str, bool); 5] = [
            (b"a\0\xf1\0", Encoding::Utf16Le, "añ", false),
            (b"\xd8\x3d\xde\x00", Encoding::Utf16Be, "😀", false),
            (b"\x00\xd8a\0", Encoding::Utf16Le, "\u{fffd}a", true),
            (b"a\0\0\0", Encoding::Utf32Le, "a", false),
            (b"\0\0\0ab", Encoding::Utf32Be, "a\u{fffd}", true),
        ];
        for (body, encoding, text, lossy) in cases {
            let (decoded, was_lossy) = decode(body, encoding);
            assert_eq!(
                (std::str::from_utf8(&decoded).unwrap(), was_lossy),
                (text, lossy)
            );
        }
    }
}
