//! Offsets at which an edit would cut a character if the guess of the code page is wrong.
//!
//! A guess that is marked certain can still be wrong. So no change may begin or end inside a
//! character of another plausible page. A page is plausible if the whole file has its byte pattern:
//! every byte that can begin a double-byte character is followed by one that can end it. Text in a
//! single-byte page breaks that pattern at the first accented letter before a space, so this check
//! rarely rejects an edit there.

use super::{CodePage, units};
use crate::text::Encoding;
use encoding_rs::SHIFT_JIS;

/// A function that returns the length of the character at the start of some bytes in a family of
/// pages; `None` if no character of that family begins like this.
type CharacterShape = fn(&[u8]) -> Option<usize>;

/// Big5, GBK, GB18030, EUC-KR and their extensions.
fn double_byte(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0..=0x7f, ..] => Some(1),
        [0x81..=0xfe, 0x40..=0x7e | 0x80..=0xfe, ..] => Some(2),
        [0x81..=0xfe, b'0'..=b'9', 0x81..=0xfe, b'0'..=b'9', ..] => Some(4),
        _ => None,
    }
}

fn shift_jis(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0..=0x7f | 0xa1..=0xdf, ..] => Some(1),
        [0x81..=0x9f | 0xe0..=0xfc, 0x40..=0x7e | 0x80..=0xfc, ..] => Some(2),
        _ => None,
    }
}

/// Returns the offsets that begin a character in `page` but are inside one in another page whose
/// byte pattern fits. Ascending.
pub(crate) fn contested_offsets(page: CodePage, bytes: &[u8]) -> Vec<usize> {
    // Two-byte pages agree on boundaries with each other. Shift_JIS does not: its katakana are
    // single bytes, so almost any Chinese text has its byte pattern.
    let rivals: &[CharacterShape] = match units::is_multi_byte(page) {
        true if page.0 == SHIFT_JIS => &[double_byte],
        true => &[],
        false => &[double_byte, shift_jis],
    };
    let mut contested = Vec::new();
    for rival in rivals {
        contested.extend(contested_by(*rival, page, bytes).unwrap_or_default());
    }
    contested.sort_unstable();
    contested.dedup();
    contested
}

fn contested_by(rival: CharacterShape, page: CodePage, bytes: &[u8]) -> Option<Vec<usize>> {
    let mut contested = Vec::new();
    let (mut own, mut other) = (0, 0);
    while other < bytes.len() {
        let end = other + rival(&bytes[other..])?;
        while own < end {
            if own > other {
                contested.push(own);
            }
            own += units::length(Encoding::CodePage(page), &bytes[own..]);
        }
        other = end;
    }
    Some(contested)
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{BIG5, GBK, WINDOWS_1252};

    #[test]
    fn only_files_of_the_shape_have_contested_borders() {
        let chinese = BIG5.encode("這是一個簡單的功能檔案。\n許功蓋\n").0;
        let contested = contested_offsets(CodePage(WINDOWS_1252), &chinese);
        let inside = |offset: &usize| {
            let before = &chinese[..*offset];
            BIG5.decode_without_bom_handling_and_without_replacement(before)
                .is_none()
        };
        let halves: Vec<usize> = (1..chinese.len()).filter(inside).collect();
        assert!(halves.iter().all(|half| contested.contains(half)));
        for (page, text) in [
            (CodePage(BIG5), &chinese[..]),
            (CodePage(GBK), &chinese),
            (CodePage(WINDOWS_1252), b"L'\xe9t\xe9 dernier, c\xf4t\xe9\n"),
        ] {
            assert_eq!(contested_offsets(page, text), [0; 0], "{page:?}");
        }
    }
}
