//! Cleans text from pages: invisible characters and control characters are written out.

/// Returns at most `most` characters of `text` on one line. Whitespace is collapsed; invisible
/// characters and control characters are written out.
#[must_use]
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most * 2));
    let mut count = 0;
    let mut space = false;
    for character in text.chars() {
        if character.is_whitespace() {
            space = !line.is_empty();
            continue;
        }
        if count + usize::from(space) >= most {
            line.push('…');
            return line;
        }
        if std::mem::take(&mut space) {
            line.push(' ');
            count += 1;
        }
        push_visible(&mut line, character);
        count += 1;
    }
    line
}

/// Like [`one_line`], for text of several lines, which keeps its line breaks and spaces.
#[must_use]
pub fn visible(text: &str, most: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(most * 2));
    for (count, character) in text.chars().enumerate() {
        if count == most {
            shown.push('…');
            break;
        }
        match character {
            '\n' | '\t' => shown.push(character),
            '\r' => {}
            _ => push_visible(&mut shown, character),
        }
    }
    shown
}

fn push_visible(line: &mut String, character: char) {
    if is_invisible(character) {
        line.push_str(&format!("⟨U+{:04X}⟩", u32::from(character)));
    } else {
        line.push(character);
    }
}

/// Returns whether a character is a control character, a bidirectional mark, a zero-width
/// character, a tag or a private-use character.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(u32::from(character),
            0x00ad | 0x034f | 0x061c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
            | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0e | 0xfeff
            | 0xffa0 | 0xfff0..=0xfffb | 0xe000..=0xf8ff | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a
            | 0xe0000..=0xe0fff | 0xf0000..=0x10_ffff)
}

/// Returns the text in quotes, as in a line of a snapshot.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(one_line("  a\n\tb  c ", 100), "a b c");
        assert_eq!(
            one_line("a\u{200b}b\u{202e}c\u{1b}[0m", 100),
            "a⟨U+200B⟩b⟨U+202E⟩c⟨U+001B⟩[0m"
        );
        assert_eq!(one_line("\u{e0041}", 10), "⟨U+E0041⟩");
        assert_eq!(one_line("aaaa bbbb", 6), "aaaa b…");
        assert_eq!(one_line("żółć 漢字 🙂", 100), "żółć 漢字 🙂");
        assert_eq!(visible("a\r\nb\u{0}", 10), "a\nb⟨U+0000⟩");
        assert_eq!(quoted("say \"x\""), "\"say \\\"x\\\"\"");
    }
}
