//! The look of text: styles, colours at the level of the terminal, and themes.
//!
//! - [`TextStyle`], [`TextColor`]: the requested look
//! - [`ColorLevel`]: the colours that the terminal can show; colours are reduced to it when they
//!   are painted
//! - [`parse_ansi`]: parses text that a program coloured
//! - [`theme`]: named themes, and tints of the terminal's real background

mod ansi;
mod color;
pub mod theme;

pub use ansi::parse_ansi;
pub use color::{ColorLevel, Rgb, TextColor, contrast};
pub use theme::{Theme, ThemeName};

/// The look of a piece of text. The default is the terminal's own foreground and background.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TextStyle {
    /// The text colour; `None` for the terminal's own.
    pub foreground: Option<TextColor>,
    /// The background colour; `None` for the terminal's own.
    pub background: Option<TextColor>,
    bits: u8,
}

const BOLD: u8 = 1;
const FAINT: u8 = 1 << 1;
const ITALIC: u8 = 1 << 2;
const UNDERLINE: u8 = 1 << 3;
const REVERSE: u8 = 1 << 4;
const STRIKE: u8 = 1 << 5;

/// Each attribute with its SGR parameter.
const ATTRIBUTES: [(u8, &str); 6] = [
    (BOLD, "1"),
    (FAINT, "2"),
    (ITALIC, "3"),
    (UNDERLINE, "4"),
    (REVERSE, "7"),
    (STRIKE, "9"),
];

impl TextStyle {
    /// Returns the terminal's default style.
    pub const fn new() -> Self {
        Self {
            foreground: None,
            background: None,
            bits: 0,
        }
    }

    const fn with(mut self, bit: u8) -> Self {
        self.bits |= bit;
        self
    }

    /// Returns the style in bold.
    #[must_use]
    pub const fn bold(self) -> Self {
        self.with(BOLD)
    }

    /// Returns the style for secondary text.
    #[must_use]
    pub const fn faint(self) -> Self {
        self.with(FAINT)
    }

    /// Returns the style in italics.
    #[must_use]
    pub const fn italic(self) -> Self {
        self.with(ITALIC)
    }

    /// Returns the style underlined.
    #[must_use]
    pub const fn underline(self) -> Self {
        self.with(UNDERLINE)
    }

    /// Returns the style with foreground and background exchanged.
    #[must_use]
    pub const fn reverse(self) -> Self {
        self.with(REVERSE)
    }

    /// Returns the style struck through.
    #[must_use]
    pub const fn strike(self) -> Self {
        self.with(STRIKE)
    }

    /// Returns the style with this text colour.
    #[must_use]
    pub const fn fg(mut self, color: TextColor) -> Self {
        self.foreground = Some(color);
        self
    }

    /// Returns the style with this background colour.
    #[must_use]
    pub const fn bg(mut self, color: TextColor) -> Self {
        self.background = Some(color);
        self
    }

    /// Returns the style without bold and faint.
    pub(crate) const fn without_weight(mut self) -> Self {
        self.bits &= !(BOLD | FAINT);
        self
    }

    /// Combines this style with another; the other's colours take precedence.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            foreground: other.foreground.or(self.foreground),
            background: other.background.or(self.background),
            bits: self.bits | other.bits,
        }
    }

    /// Appends the sequence that selects exactly this style, regardless of the current one.
    pub(crate) fn write_sgr(self, level: ColorLevel, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b[0");
        for (bit, parameter) in ATTRIBUTES {
            if self.bits & bit != 0 {
                out.push(b';');
                out.extend_from_slice(parameter.as_bytes());
            }
        }
        if let Some(color) = self.foreground {
            color.write_sgr(level, 30, out);
        }
        if let Some(color) = self.background {
            color.write_sgr(level, 40, out);
        }
        out.push(b'm');
    }

    /// Returns whether the style looks like the default at this level.
    pub(crate) fn is_default(self, level: ColorLevel) -> bool {
        self.bits == 0
            && (level == ColorLevel::None
                || (self.foreground.is_none() && self.background.is_none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sgr(style: TextStyle, level: ColorLevel) -> String {
        let mut out = Vec::new();
        style.write_sgr(level, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn colours_are_brought_down_to_what_the_terminal_has() {
        let style = TextStyle::new()
            .bold()
            .fg(TextColor::Rgb(Rgb(255, 0, 0)))
            .bg(TextColor::Ansi(4));
        let cases = [
            (ColorLevel::None, "\x1b[0;1m"),
            (ColorLevel::Ansi16, "\x1b[0;1;91;44m"),
            (ColorLevel::Ansi256, "\x1b[0;1;38;5;196;44m"),
            (ColorLevel::TrueColor, "\x1b[0;1;38;2;255;0;0;44m"),
        ];
        for (level, expected) in cases {
            assert_eq!(sgr(style, level), expected, "{level:?}");
        }
    }

    #[test]
    fn without_colours_attributes_stay() {
        let style = TextStyle::new().reverse().underline();
        assert_eq!(sgr(style, ColorLevel::None), "\x1b[0;4;7m");
        assert!(
            TextStyle::new()
                .fg(TextColor::Ansi(1))
                .is_default(ColorLevel::None)
        );
    }
}
