//! Makes text from files, models, servers and the clipboard safe to print on a terminal.
//!
//! Control characters become their Unicode symbols (`␛`). Characters that reorder or join text, or
//! that are not drawn, become their code points (`<U+202E>`). Clean text stays unchanged, so
//! cleaning a text twice is the same as cleaning it once.

use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

/// The maximum number of combining marks on a letter. No language needs more; a taller stack would
/// cover the lines above.
const MAX_MARKS: usize = 4;

/// Joins several emoji into one, as in a family (zero-width joiner).
const JOINER: char = '\u{200d}';

/// The placeholder character over which Kitty draws an image. Only haft's own images may use it.
pub(crate) const PLACEHOLDER: char = '\u{10eeee}';

/// Returns the text with unsafe characters made visible: those that control the terminal, and those
/// that are not drawn. Line ends and tabs stay.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    clean_into(&mut cleaned, text, |cleaned, character| {
        if matches!(character, '\n' | '\t') {
            cleaned.push(character);
            return true;
        }
        false
    });
    cleaned
}

/// Cleans the text as a single line: line ends become symbols, and the caller handles tabs.
pub(crate) fn clean_line(cleaned: &mut String, text: &str, mut tab: impl FnMut(&mut String)) {
    clean_into(cleaned, text, |cleaned, character| {
        if character == '\t' {
            tab(cleaned);
            return true;
        }
        false
    });
}

fn clean_into(
    cleaned: &mut String,
    text: &str,
    mut special: impl FnMut(&mut String, char) -> bool,
) {
    // The fast path for nearly all text: printable ASCII.
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        cleaned.push_str(text);
        return;
    }
    let mut cleaner = TextCleaner::default();
    let mut characters = text.chars().peekable();
    while let Some(next) = characters.next() {
        let passes = cleaner.is_printable(next, characters.peek().copied());
        if special(cleaned, next) {
            continue;
        }
        if passes {
            cleaned.push(next);
        } else {
            push_visible(cleaned, next);
        }
    }
}

/// Checks a text character by character, for callers that build the cleaned text themselves.
#[derive(Debug, Default)]
pub struct TextCleaner {
    preceding: Option<char>,
    /// The number of combining marks on the last letter so far.
    marks: usize,
}

impl TextCleaner {
    /// Returns whether the next character of a text may be sent to a terminal unchanged. `following`
    /// is the character after it, if known.
    pub fn is_printable(&mut self, next: char, following: Option<char>) -> bool {
        let preceding = self.preceding.replace(next);
        let is_mark = !next.is_ascii() && next.width() == Some(0);
        self.marks = if is_mark { self.marks + 1 } else { 0 };
        match next {
            // A variation selector chooses how an emoji is drawn. After any other character, or
            // alone, it would be hidden data.
            '\u{fe0e}' | '\u{fe0f}' => preceding.is_some_and(takes_a_selector),
            JOINER => {
                preceding.is_some_and(|preceding| is_emoji(preceding) || preceding == '\u{fe0f}')
                    && following.is_some_and(is_emoji)
            }
            _ => is_plain(next) && self.marks <= MAX_MARKS,
        }
    }
}

/// Adds a character that must not be printed unchanged, in a readable form.
pub fn push_visible(text: &mut String, character: char) {
    match character {
        '\u{0}'..='\u{1f}' => {
            text.push(char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'));
        }
        '\u{7f}' => text.push('\u{2421}'),
        odd => push_code_point(text, odd),
    }
}

/// Adds the code point of a character, for example `<U+202E>`.
pub fn push_code_point(text: &mut String, character: char) {
    let _ = write!(text, "<U+{:04X}>", u32::from(character));
}

/// Returns whether a character is drawn as itself and does not affect its neighbours.
pub fn is_plain(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    !matches!(
        u32::from(character),
        0x80..=0x9f
            | 0xad
            | 0x34f
            | 0x600..=0x605
            | 0x61c
            | 0x6dd
            | 0x70f
            | 0x890..=0x891
            | 0x8e2
            | 0x115f..=0x1160
            | 0x17b4..=0x17b5
            | 0x180b..=0x180f
            | 0x200b..=0x200f
            | 0x2028..=0x202e
            | 0x2060..=0x206f
            | 0x2800
            | 0x3164
            | 0xfdd0..=0xfdef
            | 0xfe00..=0xfe0f
            | 0xfeff
            | 0xffa0
            | 0xfff0..=0xfffb
            | 0x110bd
            | 0x110cd
            | 0x13430..=0x1343f
            | 0x1bca0..=0x1bca3
            | 0x1d173..=0x1d17a
            | 0xe0000..=0xe0fff
            | 0x10_eeee
    ) && u32::from(character) & 0xfffe != 0xfffe
}

/// Returns whether a character is a symbol that can be drawn as text or as an emoji, or a skin tone
/// modifier.
pub fn is_emoji(character: char) -> bool {
    matches!(
        character,
        '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}'
            | '\u{25a0}'..='\u{27bf}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{1f000}'..='\u{1faff}'
    )
}

/// Returns whether a variation selector may follow a character: an emoji, or for example a digit,
/// which it turns into a keycap.
fn takes_a_selector(character: char) -> bool {
    is_emoji(character)
        || matches!(
            character,
            '0'..='9' | '#' | '*' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
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
            ("\x1b[2J\x1b]52;c;eA==\x07", "␛[2J␛]52;c;eA==␇"),
            ("a\rb\x08\x7f", "a␍b␈␡"),
            ("\u{9b}2J", "<U+009B>2J"),
            ("\u{202e}gnp.exe", "<U+202E>gnp.exe"),
            ("x\u{e0041}\u{e007f}", "x<U+E0041><U+E007F>"),
            ("a\u{2028}b\u{2029}", "a<U+2028>b<U+2029>"),
            ("a\u{fe0f} \u{fe00}", "a<U+FE0F> <U+FE00>"),
            ("⚠\u{fe0f}\u{fe0f}", "⚠\u{fe0f}<U+FE0F>"),
            ("\u{10eeee}\u{305}", "<U+10EEEE>\u{305}"),
            ("é 漢 🦀 שלום", "é 漢 🦀 שלום"),
            (
                "👩\u{200d}👧 a\u{200d}b 👩\u{200d}",
                "👩\u{200d}👧 a<U+200D>b 👩<U+200D>",
            ),
            ("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥"),
            (
                "a\u{300}\u{301}\u{302}\u{303}\u{304}b\u{300}",
                "a\u{300}\u{301}\u{302}\u{303}<U+0304>b\u{300}",
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(clean(given), expected);
            assert_eq!(clean(expected), expected, "twice");
        }
    }

    #[test]
    fn no_character_of_unicode_is_a_control_afterwards() {
        for character in (0..=0x10_ffff).filter_map(char::from_u32) {
            let cleaned = clean(&format!("a{character}b"));
            let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
            assert!(!cleaned.contains(acts), "{character:?}");
        }
    }
}
