//! Text from files, models and servers, made harmless for a terminal.

use std::fmt::Write;

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::char::is_combining_mark;

/// No language stacks more marks on a letter than this; a tower of them covers the lines above.
const MOST_MARKS: usize = 4;

/// What our own drawing sends to a terminal beside text: bold, dim, underlined and three colours, and
/// back again. It is also what the help of the command line is drawn with.
const OURS: [&str; 7] = [
    "\u{1b}[0m",
    "\u{1b}[1m",
    "\u{1b}[2m",
    "\u{1b}[4m",
    "\u{1b}[31m",
    "\u{1b}[32m",
    "\u{1b}[33m",
];

/// The text with everything visible that would otherwise act on the terminal, or hide: control
/// characters as their pictures, characters that reorder, join or are not drawn as their code points.
/// Line ends and tabs stay. What is clean stays as it is, so cleaning twice does no harm. No character
/// depends on the ones behind it: a text that comes in pieces is cleaned piece by piece.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut before = Before::default();
    for character in text.chars() {
        push(&mut cleaned, character, &mut before);
    }
    cleaned
}

/// What a character follows.
#[derive(Default)]
struct Before {
    character: Option<char>,
    /// So many marks stand on the last letter already.
    marks: usize,
}

impl Before {
    /// May the next character go to a terminal as it is?
    fn lets_through(&mut self, next: char) -> bool {
        let follows = self.character.replace(next);
        self.marks = match is_combining_mark(next) {
            true => self.marks + 1,
            false => 0,
        };
        match next {
            '\n' | '\t' => true,
            // How an emoji is drawn. Behind anything else, or alone, it is only hidden data.
            '\u{fe0e}' | '\u{fe0f}' => follows.is_some_and(is_emoji),
            _ => is_plain(next) && self.marks <= MOST_MARKS,
        }
    }
}

/// The same, but what `Style` draws with stays. Data in such a text must have been cleaned before it
/// was drawn; if that was forgotten, it can still do no more than our own drawing does.
pub(super) fn clean_drawing(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = Before::default();
    while let Some(character) = rest.chars().next() {
        if let Some(ours) = OURS.iter().find(|ours| rest.starts_with(**ours)) {
            cleaned.push_str(ours);
            rest = &rest[ours.len()..];
            before = Before::default();
            continue;
        }
        push(&mut cleaned, character, &mut before);
        rest = &rest[character.len_utf8()..];
    }
    cleaned
}

/// JSON that says the same in characters that are harmless for a terminal. Outside of its strings JSON
/// is plain ASCII, so each such character stands in a string and may be written as an escape.
pub(super) fn clean_json(json: &str) -> String {
    let mut cleaned = String::with_capacity(json.len());
    let mut before = Before::default();
    for character in json.chars() {
        if before.lets_through(character) {
            cleaned.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(cleaned, "\\u{unit:04x}");
            }
        }
    }
    cleaned
}

fn push(cleaned: &mut String, character: char, before: &mut Before) {
    match character {
        _ if before.lets_through(character) => cleaned.push(character),
        '\u{0}'..='\u{1f}' => {
            cleaned.push(char::from_u32(0x2400 + character as u32).unwrap_or('\u{fffd}'));
        }
        '\u{7f}' => cleaned.push('\u{2421}'),
        odd => push_code_point(cleaned, odd),
    }
}

pub(super) fn push_code_point(text: &mut String, character: char) {
    let _ = write!(text, "<U+{:04X}>", u32::from(character));
}

/// It draws itself and nothing else.
pub(super) fn is_plain(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    let acts = matches!(
        get_general_category(character),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::Surrogate
            | GeneralCategory::Unassigned
    );
    !acts && !is_not_drawn(character)
}

/// Letters and marks that Unicode lets a terminal leave out ("default ignorable"), beside the format
/// characters; and the empty pattern of Braille, which draws nothing either.
fn is_not_drawn(character: char) -> bool {
    matches!(
        character,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Symbols that are drawn as a sign or as a picture.
pub(super) fn is_emoji(character: char) -> bool {
    matches!(
        character,
        '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}'
            | '\u{25a0}'..='\u{27bf}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{1f000}'..='\u{1faff}'
    )
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
