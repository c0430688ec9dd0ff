//! The number of bytes of the character at the start of some bytes.
//!
//! Code pages are used only for bytes that decode without error, so the first byte (in GB18030 also
//! the second) decides.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, GB18030, GBK, SHIFT_JIS};

use super::CodePage;
use crate::text::Encoding;

/// Returns the length, at least 1 and at most `bytes.len()`; `bytes` must not be empty.
pub(super) fn length(encoding: Encoding, bytes: &[u8]) -> usize {
    let length = match encoding {
        Encoding::Utf16Le => utf16(bytes, u16::from_le_bytes),
        Encoding::Utf16Be => utf16(bytes, u16::from_be_bytes),
        Encoding::Utf32Le | Encoding::Utf32Be => 4,
        Encoding::CodePage(page) => code_page(page, bytes),
        Encoding::Utf8 | Encoding::BrokenUtf8 | Encoding::Legacy { .. } => 1,
    };
    length.min(bytes.len())
}

fn utf16(bytes: &[u8], join: fn([u8; 2]) -> u16) -> usize {
    match bytes {
        [a, b, c, d, ..]
            if (0xd800..0xdc00).contains(&join([*a, *b]))
                && (0xdc00..0xe000).contains(&join([*c, *d])) =>
        {
            4
        }
        _ => 2,
    }
}

fn code_page(page: CodePage, bytes: &[u8]) -> usize {
    let (first, second) = (bytes[0], bytes.get(1).copied().unwrap_or(0));
    if first < 0x80 || !is_multi_byte(page) {
        return 1;
    }
    let page = page.0;
    if page == SHIFT_JIS {
        match first {
            0x81..=0x9f | 0xe0..=0xfc => 2,
            _ => 1, // half-width katakana
        }
    } else if page == EUC_JP && first == 0x8f {
        3
    } else if first == 0x80 || first == 0xff {
        1 // 0x80 alone is the euro sign in GBK, also before a digit
    } else if (page == GBK || page == GB18030) && second.is_ascii_digit() {
        4
    } else {
        2
    }
}

pub(super) fn is_multi_byte(page: CodePage) -> bool {
    [SHIFT_JIS, EUC_JP, EUC_KR, BIG5, GBK, GB18030].contains(&page.0)
}
