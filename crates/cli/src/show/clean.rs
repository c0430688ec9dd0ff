//! Makes text from files, models and servers safe for a terminal, as plain text, with colours or as
//! JSON. [`haft_terminal::clean`] alone decides which characters are safe.

use std::fmt::Write;

pub(crate) use haft_terminal::clean::clean;
use haft_terminal::clean::{TextCleaner, push_visible};

/// The escape sequences of our own drawing: reset, bold, dim, underlined and three colours. The
/// help of the command line uses them, too.
const OURS: [&str; 7] = [
    "\u{1b}[0m",
    "\u{1b}[1m",
    "\u{1b}[2m",
    "\u{1b}[4m",
    "\u{1b}[31m",
    "\u{1b}[32m",
    "\u{1b}[33m",
];

/// Cleans a text like [`clean`], but keeps the sequences of `ConsoleStyle`. Data in the text must
/// have been cleaned before. Data that was not cleaned cannot produce any other sequence.
pub(super) fn clean_drawing(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    let mut cleaner = TextCleaner::default();
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        if let Some(ours) = OURS.iter().find(|ours| rest.starts_with(**ours)) {
            cleaned.push_str(ours);
            rest = &rest[ours.len()..];
            characters = rest.chars();
            cleaner = TextCleaner::default();
            continue;
        }
        rest = characters.as_str();
        let passes = cleaner.is_printable(character, rest.chars().next());
        if passes || matches!(character, '\n' | '\t') {
            cleaned.push(character);
        } else {
            push_visible(&mut cleaned, character);
        }
    }
    cleaned
}

/// Returns equivalent JSON in which unsafe characters are escaped. Outside of strings JSON is plain
/// ASCII, so every unsafe character is in a string, where an escape is allowed.
pub(super) fn clean_json(json: &str) -> String {
    let mut cleaned = String::with_capacity(json.len());
    let mut cleaner = TextCleaner::default();
    let mut characters = json.chars();
    while let Some(character) = characters.next() {
        let passes = cleaner.is_printable(character, characters.clone().next());
        if passes || matches!(character, '\n' | '\t') {
            cleaned.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(cleaned, "\\u{unit:04x}");
            }
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_on_a_terminal_gets_through() {
        let cases = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
            ("a\rb\x08\x7f", "a␍b␈␡"),
            ("\u{9b}2J", "<U+009B>2J"),
            ("\u{202e}gnp.exe", "<U+202E>gnp.exe"),
            ("x\u{e0041}\u{e007f}", "x<U+E0041><U+E007F>"),
            ("a\u{2028}b\u{2029}", "a<U+2028>b<U+2029>"),
            ("a\u{fe0f} \u{fe00}", "a<U+FE0F> <U+FE00>"),
            ("⚠\u{fe0f}\u{fe0f} ✔\u{fe0e}", "⚠\u{fe0f}<U+FE0F> ✔\u{fe0e}"),
            ("\u{fdd0}\u{10ffff}", "<U+FDD0><U+10FFFF>"),
            ("é 漢 🦀 שלום", "é 漢 🦀 שלום"),
            (
                "a\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}b\u{300}",
                "a\u{300}\u{301}\u{302}\u{303}<U+0304><U+0305>b\u{300}",
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(clean(given), expected);
            assert_eq!(clean(expected), expected, "twice");
            assert_eq!(clean_drawing(expected), expected, "as a drawing");
        }
    }

    #[test]
    fn a_drawing_keeps_our_own_sequences_and_no_others() {
        let ours = "\x1b[1mbold\x1b[0m \x1b[31mred\x1b[0m";
        assert_eq!(clean_drawing(ours), ours);
        let others = "\x1b[1;31mx\x1b[8mhidden\x1b]0;title\x07\x1b[2J\x1b[";
        assert_eq!(clean_drawing(others), "␛[1;31mx␛[8mhidden␛]0;title␇␛[2J␛[");
    }

    #[test]
    fn json_stays_json_and_says_the_same() {
        let text: String = (0..=0x10_ffff).filter_map(char::from_u32).collect();
        let value = serde_json::json!({ "text": text });
        let cleaned = clean_json(&value.to_string());
        let back: serde_json::Value = serde_json::from_str(&cleaned).unwrap();
        assert_eq!(back, value);
        assert_eq!(clean(&cleaned), cleaned);
        let pretty = "{\n  \"a\": \"\u{7f}\u{9b}\u{e0041}é\"\n}";
        assert_eq!(
            clean_json(pretty),
            "{\n  \"a\": \"\\u007f\\u009b\\udb40\\udc41é\"\n}"
        );
    }

    #[test]
    fn in_whatever_pieces_a_text_comes_nothing_gets_through() {
        let text = "\u{1b}]8;;http://x\u{1b}\\\u{9d}0;t\u{9c}\u{1b}P$q\u{1b}\\\u{1b}_a\u{1b}\\";
        for (at, _) in text.char_indices() {
            let pieces = clean(&text[..at]) + &clean(&text[at..]);
            assert_eq!(pieces, clean(text));
            assert!(!pieces.contains(|next: char| next.is_control()));
        }
    }
}
