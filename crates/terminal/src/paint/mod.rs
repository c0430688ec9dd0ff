//! Converts lines to bytes: styles, links and relative movement.
//!
//! - [`paint_line`]: paints a line with its styles and resets the style at the end
//! - `movement`: the few sequences used to draw on the main screen
//! - [`TerminalControl`]: all other sequences: modes, title, bell, clipboard, queries

mod control;
pub(crate) mod movement;

pub use control::{MAX_FOR_CLIPBOARD, NotifyChannel, ProgressState, PromptMark, TerminalControl};

use crate::{
    style::{ColorLevel, TextStyle},
    text::TextLine,
};

/// Appends the bytes of a line. After it the style is the terminal's default and no link is open.
pub fn paint_line(line: &TextLine, level: ColorLevel, out: &mut Vec<u8>) {
    let mut current = TextStyle::default();
    let mut is_plain = true;
    let mut open_link = None;
    for (text, style, link) in line.runs() {
        if link != open_link {
            open_link = link;
            write_link(link.map_or("", |link| link), out);
        }
        if style != current {
            current = style;
            match (style.is_default(level), is_plain) {
                (true, true) => {}
                (true, false) => {
                    out.extend_from_slice(b"\x1b[0m");
                    is_plain = true;
                }
                (false, _) => {
                    style.write_sgr(level, out);
                    is_plain = false;
                }
            }
        }
        out.extend_from_slice(text.as_bytes());
    }
    if open_link.is_some() {
        write_link("", out);
    }
    if !is_plain {
        out.extend_from_slice(b"\x1b[0m");
    }
}

fn write_link(address: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b]8;;");
    out.extend_from_slice(address.as_bytes());
    out.extend_from_slice(b"\x1b\\");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::TextColor;

    fn painted(line: &TextLine, level: ColorLevel) -> String {
        let mut out = Vec::new();
        paint_line(line, level, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn styles_and_links_are_closed() {
        let mut line = TextLine::plain("a ");
        line.push("b", TextStyle::new().bold());
        line.push_link("c", "https://example.com", TextStyle::new());
        assert_eq!(
            painted(&line, ColorLevel::Ansi16),
            "a \x1b[0;1mb\x1b]8;;https://example.com\x1b\\\x1b[0mc\x1b]8;;\x1b\\"
        );
    }

    #[test]
    fn no_colour_means_no_sequence() {
        let line = TextLine::styled("red", TextStyle::new().fg(TextColor::Ansi(1)));
        assert_eq!(painted(&line, ColorLevel::None), "red");
        assert_eq!(painted(&line, ColorLevel::Ansi16), "\x1b[0;31mred\x1b[0m");
    }
}
