//! Text from files and models, made harmless for a terminal.

/// The text with everything visible that would otherwise act on the terminal: control characters as
/// their pictures, characters that reorder or hide text as their code points. Line ends and tabs
/// stay.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => cleaned.push(character),
            '\u{0}'..='\u{1f}' => {
                cleaned.push(char::from_u32(0x2400 + character as u32).unwrap_or('\u{fffd}'));
            }
            '\u{7f}' => cleaned.push('\u{2421}'),
            '\u{80}'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => cleaned.push_str(&format!("<U+{:04X}>", character as u32)),
            plain => cleaned.push(plain),
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
            ("é 漢 🦀", "é 漢 🦀"),
        ];
        for (given, expected) in cases {
            assert_eq!(clean(given), expected);
        }
    }
}
