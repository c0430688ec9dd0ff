//! Parses text that a program coloured, such as the output of a status line command. Colours and
//! links are preserved; all other escape sequences are dropped.

use super::{Rgb, TextColor, TextStyle};
use crate::text::TextLine;

/// Returns the lines of a coloured text.
pub fn parse_ansi(text: &str) -> Vec<TextLine> {
    let mut reader = AnsiReader::default();
    let mut lines = Vec::new();
    for line in text.lines() {
        reader.read(line);
        lines.push(std::mem::take(&mut reader.line));
    }
    lines
}

#[derive(Default)]
struct AnsiReader {
    line: TextLine,
    style: TextStyle,
    link: String,
}

impl AnsiReader {
    fn read(&mut self, mut rest: &str) {
        while let Some(at) = rest.find('\x1b') {
            self.push(&rest[..at]);
            rest = self.sequence(&rest[at + 1..]);
        }
        self.push(rest);
    }

    fn push(&mut self, text: &str) {
        match self.link.is_empty() {
            true => self.line.push(text, self.style),
            false => self.line.push_link(text, &self.link, self.style),
        }
    }

    /// Reads the sequence after an ESC and returns the text after it.
    fn sequence<'a>(&mut self, rest: &'a str) -> &'a str {
        if let Some(body) = rest.strip_prefix('[') {
            let Some(end) = body.find(|c: char| ('@'..='~').contains(&c)) else {
                return "";
            };
            if body[end..].starts_with('m') {
                self.select(&body[..end]);
            }
            return &body[end + 1..];
        }
        if let Some(body) = rest.strip_prefix([']', 'P', '_', '^', 'X']) {
            let bell = body.find('\x07').map(|at| (at, 1));
            let end = body.find("\x1b\\").map(|at| (at, 2));
            let Some((end, length)) = [bell, end].into_iter().flatten().min() else {
                return "";
            };
            if let Some(link) = rest.strip_prefix("]8;").map(|_| &body[2..end]) {
                self.link = link
                    .split_once(';')
                    .map_or("", |(_, address)| address)
                    .to_owned();
            }
            return &body[end + length..];
        }
        // ESC and a letter, or with intermediate characters, as for a character set.
        let skipped = rest.chars().take_while(|c| (' '..='/').contains(c)).count();
        let rest = &rest[skipped..];
        &rest[rest.chars().next().map_or(0, char::len_utf8)..]
    }

    fn select(&mut self, parameters: &str) {
        let mut numbers = parameters
            .split([';', ':'])
            .map(|number| number.parse::<u16>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            let style = self.style;
            self.style = match number {
                0 => TextStyle::new(),
                1 => style.bold(),
                2 => style.faint(),
                3 => style.italic(),
                4 => style.underline(),
                7 => style.reverse(),
                9 => style.strike(),
                22 => style.without_weight(),
                30..=37 => style.fg(ansi(number - 30)),
                90..=97 => style.fg(ansi(number - 82)),
                40..=47 => style.bg(ansi(number - 40)),
                100..=107 => style.bg(ansi(number - 92)),
                38 => color(&mut numbers).map_or(style, |color| style.fg(color)),
                48 => color(&mut numbers).map_or(style, |color| style.bg(color)),
                39 => TextStyle {
                    foreground: None,
                    ..style
                },
                49 => TextStyle {
                    background: None,
                    ..style
                },
                _ => style,
            };
        }
    }
}

fn ansi(number: u16) -> TextColor {
    TextColor::Ansi(u8::try_from(number).unwrap_or(0))
}

fn color(numbers: &mut impl Iterator<Item = u16>) -> Option<TextColor> {
    let kind = numbers.next()?;
    let mut part = || u8::try_from(numbers.next()?).ok();
    match kind {
        5 => part().map(TextColor::Indexed),
        2 => Some(TextColor::Rgb(Rgb(part()?, part()?, part()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{paint::paint_line, style::ColorLevel};

    fn painted(text: &str) -> Vec<String> {
        let paint = |line: &TextLine| {
            let mut out = Vec::new();
            paint_line(line, ColorLevel::TrueColor, &mut out);
            String::from_utf8(out).unwrap()
        };
        parse_ansi(text).iter().map(paint).collect()
    }

    #[test]
    fn colours_and_links_are_kept_and_nothing_else() {
        let cases = [
            ("plain", "plain"),
            ("\x1b[1;31mred\x1b[0m x", "\x1b[0;1;31mred\x1b[0m x"),
            (
                "\x1b[38;5;196ma\x1b[48;2;1;2;3mb",
                "\x1b[0;38;5;196ma\x1b[0;38;5;196;48;2;1;2;3mb\x1b[0m",
            ),
            (
                "\x1b]8;;https://e.x\x1b\\link\x1b]8;;\x1b\\",
                "\x1b]8;;https://e.x\x1b\\link\x1b]8;;\x1b\\",
            ),
            ("a\x1b[2Jb\x1b]52;c;eA==\x07c\x1b[?1049hd\x1b(0e", "abcde"),
            ("a\x1b]0;never ended", "a"),
            ("a\x1b[", "a"),
            ("a\x1b", "a"),
            ("\x1b[92mx\x1b[39my", "\x1b[0;92mx\x1b[0my"),
        ];
        for (given, expected) in cases {
            assert_eq!(painted(given), [expected], "{given:?}");
        }
        assert_eq!(
            painted("\x1b[1ma\nb"),
            ["\x1b[0;1ma\x1b[0m", "\x1b[0;1mb\x1b[0m"]
        );
    }
}
