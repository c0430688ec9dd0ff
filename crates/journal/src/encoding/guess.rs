//! Detection of the code page of a legacy file.
//!
//! A guess is *certain* if all of the following holds; otherwise it is only mentioned in messages:
//!
//! 1. The whole file decodes in the guessed page, and encoding the text again returns the identical
//!    bytes.
//! 2. There is enough evidence: at least 8 letters outside ASCII (16 in a double-byte page), and at
//!    least as many letters as other characters outside ASCII.
//! 3. The text looks like text: no C1 controls, no private-use characters, and no upper-case letter
//!    outside ASCII directly after a lower-case ASCII one. These are typical of DOS and Macintosh
//!    pages, which the detector does not know.
//! 4. No UTF-8 is mixed in: in a single-byte page no sequence of bytes is a valid UTF-8 character.
//! 5. Agreement: guessing only from every other line, and only from the lines between them, gives
//!    pages in which these lines have the same text.
//!
//! A wrong guess would write wrong bytes; an uncertain one only makes an edit fail.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use memchr::memchr_iter;

use super::{CodePage, units};

/// The maximum number of bytes of non-ASCII lines that the detector gets.
const SAMPLE: usize = 256 << 10;
const LETTERS: usize = 8;
const LETTERS_DOUBLE_BYTE: usize = 16;
/// The number of whole characters for each broken sequence that makes a file UTF-8.
const WHOLE_PER_BROKEN: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodePageGuess {
    Certain(CodePage),
    Unsure(CodePage),
}

/// Returns whether the text is UTF-8 with a few stray bytes: at least 8 whole characters outside
/// ASCII for each broken sequence. Text of a code page forms a valid sequence only now and then by
/// chance, so it does not reach 8 for each broken one.
pub(crate) fn is_broken_utf8(body: &[u8]) -> bool {
    let (mut whole, mut broken) = (0, 0);
    for chunk in body.utf8_chunks() {
        let starts = chunk.valid().bytes().filter(|&byte| byte >= 0xc0);
        whole += starts.count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    whole >= WHOLE_PER_BROKEN * broken
}

/// Guesses the code page of `body`, which is not UTF-8.
pub(crate) fn guess(body: &[u8]) -> CodePageGuess {
    let sample = NonAsciiSample::from_body(body);
    let page = detect(sample.lines.iter().copied());
    if is_certain(page, body, &sample) {
        CodePageGuess::Certain(CodePage(page))
    } else {
        CodePageGuess::Unsure(CodePage(page))
    }
}

/// The first lines of a file that are not ASCII.
struct NonAsciiSample<'a> {
    lines: Vec<&'a [u8]>,
}

impl<'a> NonAsciiSample<'a> {
    fn from_body(body: &'a [u8]) -> Self {
        let mut lines = Vec::new();
        let (mut start, mut taken) = (0, 0);
        // In the guessed pages LF is never part of a longer character.
        let ends = memchr_iter(b'\n', body).map(|position| position + 1);
        for end in ends.chain([body.len()]) {
            let line = &body[start..end];
            start = end;
            if !line.is_ascii() {
                taken += line.len();
                // Lines are not cut, because a part might end inside a character.
                if taken > SAMPLE && !lines.is_empty() {
                    break;
                }
                lines.push(line);
            }
        }
        Self { lines }
    }
}

fn detect<'a>(lines: impl Iterator<Item = &'a [u8]>) -> &'static encoding_rs::Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    for line in lines {
        detector.feed(&line[..line.len().min(4 * SAMPLE)], false);
    }
    detector.feed(b"", true);
    detector.guess(None, Utf8Detection::Deny)
}

fn is_certain(
    page: &'static encoding_rs::Encoding,
    body: &[u8],
    sample: &NonAsciiSample<'_>,
) -> bool {
    let Some(text) = page.decode_without_bom_handling_and_without_replacement(body) else {
        return false;
    };
    let (again, _, lacking) = page.encode(&text);
    if lacking || again != body {
        return false;
    }
    let needed = if units::is_multi_byte(CodePage(page)) {
        LETTERS_DOUBLE_BYTE
    } else if body.utf8_chunks().all(|chunk| chunk.valid().is_ascii()) {
        LETTERS
    } else {
        return false;
    };
    reads_like_text(&text, needed) && agrees(page, sample)
}

fn reads_like_text(text: &str, needed: usize) -> bool {
    let (mut letters, mut others) = (0, 0);
    let mut last = ' ';
    for character in text.chars() {
        if !character.is_ascii() {
            let control = ('\u{80}'..='\u{9f}').contains(&character);
            let private = ('\u{e000}'..='\u{f8ff}').contains(&character);
            let odd_case = last.is_ascii_lowercase() && character.is_uppercase();
            if control || private || odd_case {
                return false;
            }
            if character.is_alphabetic() {
                letters += 1;
            } else {
                others += 1;
            }
        }
        last = character;
    }
    letters >= needed && letters >= others
}

fn agrees(page: &'static encoding_rs::Encoding, sample: &NonAsciiSample<'_>) -> bool {
    (0..2).all(|half| {
        let lines = || sample.lines.iter().copied().skip(half).step_by(2);
        let other = detect(lines());
        other == page
            || lines().all(|line| {
                let read = |page: &'static encoding_rs::Encoding| {
                    page.decode_without_bom_handling_and_without_replacement(line)
                };
                read(page) == read(other)
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};

    const FRENCH: &str = "L'été dernier, le garçon a mangé des pâtes.\nÀ côté, une fenêtre était fermée.\nOù était-il passé?\n";
    const RUSSIAN: &str = "Это простой файл с русским текстом.\nВторая строка тоже здесь.\n";
    const JAPANESE: &str =
        "これは日本語の文章です。\n設定ファイルを読み込みます。\n値が正しくありません。\n";
    const CHINESE: &str =
        "这是一个简单的中文文件。\n第二行也是中文,用来测试编码。\n第三行在这里。\n";
    const TAIWANESE: &str =
        "這是一個簡單的中文檔案。\n第二行也是中文,用來測試編碼。\n第三行在這裡。\n";
    const KOREAN: &str = "이것은 간단한 한국어 파일입니다.\n두 번째 줄도 한국어로 되어 있습니다.\n";

    #[test]
    fn texts_of_some_lines_are_certain() {
        let cases: [(&str, &'static Encoding); 7] = [
            (FRENCH, WINDOWS_1252),
            (RUSSIAN, WINDOWS_1251),
            (JAPANESE, SHIFT_JIS),
            (JAPANESE, EUC_JP),
            (CHINESE, GBK),
            (TAIWANESE, BIG5),
            (KOREAN, EUC_KR),
        ];
        for (text, page) in cases {
            let (bytes, _, lacking) = page.encode(text);
            assert!(!lacking, "{}", page.name());
            assert_eq!(guess(&bytes), CodePageGuess::Certain(CodePage(page)));
        }
    }

    #[test]
    fn little_or_odd_evidence_is_unsure() {
        let cases: [(&str, &[u8]); 5] = [
            ("one letter", b"x=1 \xe9\n"),
            ("one kanji", b"\x83\x5c\n"),
            (
                "DOS German",
                b"f\x81r \x94l \x84hnlich h\x81bsch sch\x94n sp\x84t gr\x81n m\x94gen\n",
            ),
            (
                "Macintosh German",
                b"f\x9fr \x9al \x8ahnlich h\x9fbsch sch\x9an sp\x8at gr\x9fn m\x9agen\n",
            ),
            (
                "signs only",
                b"\xa9 \xae \xb0 \xb1 \xb2 \xb3 \xb7 \xbb \xab \xa7\n",
            ),
        ];
        for (what, bytes) in cases {
            assert!(
                matches!(guess(bytes), CodePageGuess::Unsure(_)),
                "{what}: {:?}",
                guess(bytes)
            );
        }
        assert_eq!(
            guess(b"x=1 \xe9\n"),
            CodePageGuess::Unsure(CodePage(WINDOWS_1252))
        );
    }

    #[test]
    fn utf8_with_stray_bytes_is_told_from_code_pages() {
        let stray = [FRENCH.as_bytes(), b"\xe9\n"].concat();
        assert!(is_broken_utf8(&stray));
        assert!(!is_broken_utf8(b"\xc3\xa9 \xe9\n"));
        for (text, page) in [(CHINESE, GBK), (KOREAN, EUC_KR), (FRENCH, WINDOWS_1252)] {
            assert!(!is_broken_utf8(&page.encode(text).0), "{}", page.name());
        }
    }
}
