//! Marks confusable characters in permission questions.
//!
//! A user who approves `config` must not unknowingly approve a similar name that contains a
//! Cyrillic letter or a separate combining accent. Questions show words unchanged only if they have
//! the usual form: NFC-normalized, in one script, and not readable as an ASCII word. In any other
//! word, every character beyond ASCII is shown as its code point.

use crate::clean::{clean, is_emoji, is_plain, push_code_point};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark, is_nfc};

/// Letters that look like ASCII letters, mostly Cyrillic and Greek. A word whose letters beyond
/// ASCII are all in this list could be mistaken for an ASCII word.
const LOOK_LATIN: &str =
    "ıȷавеіјкмнорсстуухьѕԁԛԝһԍѵАВЕЗІЈКМНОРСТУХЅԌԚԜҮүІЇїӀӏαβγικνορτυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹ";

/// Returns the text for a question: cleaned, and with the code points of every word that could be
/// mistaken for another one. Line ends and tabs stay.
pub fn distinct(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if ends_word(next) {
            shown += &clean(&rest[..next.len_utf8()]);
            rest = &rest[next.len_utf8()..];
            continue;
        }
        let word = &rest[..rest.find(ends_word).unwrap_or(rest.len())];
        rest = &rest[word.len()..];
        // The text was truncated here by haft.
        let (word, cut) = match word.strip_suffix('…').filter(|_| rest.is_empty()) {
            Some(word) => (word, "…"),
            None => (word, ""),
        };
        if is_usual(word) {
            shown += word;
        } else {
            for character in word.chars() {
                match character.is_ascii() {
                    true => shown.push(character),
                    false => push_code_point(&mut shown, character),
                }
            }
        }
        shown += cut;
    }
    shown
}

/// Like [`distinct`], but in one line: line ends and tabs become visible symbols.
pub fn distinct_line(text: &str) -> String {
    distinct(text).replace('\n', "␊ ").replace('\t', "␉")
}

/// Returns whether a character is a word boundary: any ASCII character except letters and digits,
/// for example a slash, a dot or a space.
fn ends_word(character: char) -> bool {
    character.is_ascii() && !character.is_ascii_alphanumeric()
}

fn is_usual(word: &str) -> bool {
    if word.is_ascii() {
        return true;
    }
    let starts_with_mark = word.chars().next().is_some_and(is_combining_mark);
    if starts_with_mark || !is_nfc(word) {
        return false;
    }
    let mut script = None;
    let mut before = UnicodeScript::None;
    let mut beyond = 0_usize;
    let mut alike = 0_usize;
    for character in word.chars() {
        let Some(found) = UnicodeScript::from_char(character) else {
            return false;
        };
        // A letter may have at most one combining mark that is not composed into it.
        if found == UnicodeScript::Mark && before == UnicodeScript::Mark {
            return false;
        }
        before = found;
        if matches!(found, UnicodeScript::None | UnicodeScript::Mark) {
            continue;
        }
        beyond += usize::from(!character.is_ascii());
        alike += usize::from(LOOK_LATIN.contains(character));
        match script {
            None => script = Some(found),
            Some(script) if found.can_mix_with(script) => {}
            Some(_) => return false,
        }
    }
    beyond == 0 || alike < beyond
}

/// The script of a character, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnicodeScript {
    /// Digits and emoji, which may appear in any word.
    None,
    /// A combining mark, which may follow a letter of any script.
    Mark,
    Latin,
    /// Chinese, Japanese and Korean. They may be mixed with each other and with Latin letters,
    /// which they do not resemble.
    EastAsian,
    /// Any other script, identified by the number.
    Other(u32),
}

impl UnicodeScript {
    /// Returns `None` for a character that does not belong in an ordinary word or looks like
    /// another one.
    fn from_char(character: char) -> Option<Self> {
        let code = u32::from(character);
        if character.is_ascii_alphabetic() {
            return Some(Self::Latin);
        }
        if character.is_ascii_digit() {
            return Some(Self::None);
        }
        // Full-width letters, ligatures and mathematical letters are variants of plain letters.
        let means_another = !std::iter::once(character).nfkc().eq([character]);
        if means_another || !is_plain(character) {
            return None;
        }
        match code {
            // Click letters, and other letters that look like symbols or like different letters.
            0x138 | 0x149 | 0x17f..=0x19f | 0x1a2..=0x1ae | 0x1b1..=0x1cc => None,
            0x00d7 | 0x00f7 => None,
            0x00c0..=0x024f | 0x1e00..=0x1eff => Some(Self::Latin),
            0x0300..=0x036f => Some(Self::Mark),
            0x0370..=0x03ff | 0x1f00..=0x1fff => Self::letter(character, 0x0370),
            0x0400..=0x052f => Self::letter(character, 0x0400),
            // Hebrew and Arabic, then the scripts of India and its neighbours, one block each.
            0x0591..=0x05f4 => Self::letter(character, 0x0590),
            0x0600..=0x077f => Self::letter(character, 0x0600),
            0x0900..=0x0fff => Self::letter(character, code & !0x7f),
            0x10d0..=0x10ff => Self::letter(character, 0x10a0),
            0x1200..=0x139f => Self::letter(character, 0x1200),
            0x1780..=0x17ff => Self::letter(character, 0x1780),
            0x3001..=0x3003 | 0x3005..=0x3007 | 0x300c..=0x300f => Some(Self::EastAsian),
            0x3041..=0x3096 | 0x30a1..=0x30fe | 0x3400..=0x4dbf => Some(Self::EastAsian),
            0x4e00..=0x9fff | 0xac00..=0xd7a3 | 0x20000..=0x323af => Some(Self::EastAsian),
            _ if is_emoji(character) => Some(Self::None),
            _ => None,
        }
    }

    fn letter(character: char, script: u32) -> Option<Self> {
        let counts = character.is_alphanumeric() || is_combining_mark(character);
        counts.then_some(Self::Other(script))
    }

    fn can_mix_with(self, other: Self) -> bool {
        let east = |one| matches!(one, Self::EastAsian | Self::Latin);
        self == other || (east(self) && east(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_words_of_many_languages_are_shown_as_they_are() {
        for text in [
            "rm -rf build && echo 'done' > out.txt",
            "/home/müller/Übung/café.txt",
            "/home/иван/проект/файл.rs",
            "Ελλάδα/αρχείο.txt",
            "日本語ファイル.txt 한국어 中文file2",
            "שלום/مرحبا/नमस्ते/ไทย",
            "Hà-Nội şğıİöç łódź",
            "🦀.rs ✔ ⚠",
            "cut short…",
            "",
        ] {
            assert_eq!(distinct(text), text);
        }
    }

    #[test]
    fn names_that_look_alike_are_told_apart() {
        let cases = [
            ("decomposed", "cafe\u{301}.txt", "cafe<U+0301>.txt"),
            ("one Cyrillic letter", "p\u{430}ypal.sh", "p<U+0430>ypal.sh"),
            (
                "all Cyrillic, all Latin to the eye",
                "\u{441}\u{43e}\u{440}\u{443}",
                "<U+0441><U+043E><U+0440><U+0443>",
            ),
            ("Greek", "\u{3bf}pt", "<U+03BF>pt"),
            ("Greek in Cyrillic", "д\u{3bf}м", "<U+0434><U+03BF><U+043C>"),
            ("full-width", "\u{ff52}m", "<U+FF52>m"),
            ("mathematical", "\u{1d41a}bc", "<U+1D41A>bc"),
            ("Kelvin", "\u{212a}eys", "<U+212A>eys"),
            ("ligature", "con\u{fb01}g", "con<U+FB01>g"),
            ("Cherokee", "\u{13aa}o", "<U+13AA>o"),
            ("Armenian", "\u{585}\u{57d}", "<U+0585><U+057D>"),
            ("script g", "\u{261}it", "<U+0261>it"),
            ("hyphen", "rm \u{2010}rf", "rm <U+2010>rf"),
            ("slash", "a\u{2215}b\u{2044}c", "a<U+2215>b<U+2044>c"),
            ("colon", "a\u{a789}b", "a<U+A789>b"),
            ("quote", "\u{2018}a\u{2019}", "<U+2018>a<U+2019>"),
            ("click", "rm x\u{1c3}", "rm x<U+01C3>"),
            ("blank", "a\u{a0}b\u{3000}c", "a<U+00A0>b<U+3000>c"),
            ("dots", "\u{2026}/a\u{2026}", "<U+2026>/a…"),
            ("invisible", "a\u{200b}b\u{ad}c", "a<U+200B>b<U+00AD>c"),
            ("tags", "a\u{e0041}", "a<U+E0041>"),
            ("dotless", "f\u{131}le", "f<U+0131>le"),
            ("a tower of marks", "q\u{300}\u{301}", "q<U+0300><U+0301>"),
            ("mark on a sign", "=\u{338}", "=<U+0338>"),
            ("private", "a\u{e0b0}", "a<U+E0B0>"),
            ("control", "a\u{1b}[31m", "a␛[31m"),
        ];
        for (what, given, expected) in cases {
            assert_eq!(distinct(given), expected, "{what}");
        }
        assert_eq!(distinct_line("a\nrm b\tc"), "a␊ rm b␉c");
    }

    /// Whatever normal form a name is in, no other form of it is shown the same.
    #[test]
    fn no_two_normal_forms_are_shown_alike() {
        for character in (0x80..=0x2_ffff).filter_map(char::from_u32) {
            if std::iter::once(character).nfkd().eq([character]) {
                continue;
            }
            let name = format!("a{character}b");
            let shown = distinct(&name);
            for other in [
                name.nfc().collect::<String>(),
                name.nfd().collect(),
                name.nfkc().collect(),
                name.nfkd().collect(),
            ] {
                assert!(
                    other == name || distinct(&other) != shown,
                    "{:04X} {shown}",
                    u32::from(character)
                );
            }
        }
    }
}
