//! Text as the bytes of an encoding.

use super::CodePage;
use crate::text::Encoding;

/// Returns the bytes of `text` (without a mark), or the first character that the encoding lacks.
///
/// In a file of an unknown code page only ASCII has known bytes.
pub(crate) fn encode(text: &str, encoding: Encoding) -> Result<Vec<u8>, char> {
    match encoding {
        Encoding::Utf8 | Encoding::BrokenUtf8 => Ok(text.as_bytes().to_vec()),
        Encoding::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        Encoding::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        Encoding::Utf32Le => Ok(utf32(text, u32::to_le_bytes)),
        Encoding::Utf32Be => Ok(utf32(text, u32::to_be_bytes)),
        Encoding::CodePage(page) => encode_in(page, text),
        Encoding::Legacy { .. } => match text.chars().find(|character| !character.is_ascii()) {
            Some(character) => Err(character),
            None => Ok(text.as_bytes().to_vec()),
        },
    }
}

fn utf32(text: &str, bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
    text.chars()
        .flat_map(|character| bytes(character.into()))
        .collect()
}

fn encode_in(CodePage(page): CodePage, text: &str) -> Result<Vec<u8>, char> {
    // Some encoders replace a missing character by a similar one (`¥` by a backslash in Shift_JIS),
    // so the result is used only if it decodes to the same text.
    let exact = |text: &str| {
        let (bytes, _, lacking) = page.encode(text);
        let read = page.decode_without_bom_handling_and_without_replacement(&bytes);
        (!lacking && read.as_deref() == Some(text)).then(|| bytes.to_vec())
    };
    exact(text).ok_or_else(|| {
        let lacking = |character: &char| exact(character.encode_utf8(&mut [0; 4])).is_none();
        text.chars()
            .find(lacking)
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{SHIFT_JIS, WINDOWS_1252};

    #[test]
    #[expect(clippy::type_complexity, reason = "rows of tables are tuples")]
    fn only_exact_bytes_are_given() {
        let western = Encoding::CodePage(CodePage(WINDOWS_1252));
        let japanese = Encoding::CodePage(CodePage(SHIFT_JIS));
        let unsure = Encoding::Legacy { likely: "any" };
        let cases: [(&str, Encoding, Result<&[u8], char>); 9] = [
            ("é€", western, Ok(b"\xe9\x80")),
            ("é→", western, Err('→')),
            ("ソ", japanese, Ok(b"\x83\x5c")),
            ("a¥", japanese, Err('¥')),
            ("a", unsure, Ok(b"a")),
            ("é", unsure, Err('é')),
            ("ñ", Encoding::Utf16Le, Ok(b"\xf1\0")),
            ("😀", Encoding::Utf16Be, Ok(b"\xd8\x3d\xde\0")),
            ("ñ", Encoding::Utf32Be, Ok(b"\0\0\0\xf1")),
        ];
        for (text, encoding, expected) in cases {
            assert_eq!(
                encode(text, encoding).as_deref(),
                expected.as_ref().map(|bytes| *bytes),
                "{text}"
            );
        }
    }
}
