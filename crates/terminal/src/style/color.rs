//! Colours, and their conversion for terminals with fewer colours.

use std::fmt::Write;

/// A colour with its red, green and blue parts, 0 to 255 each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    /// Returns the perceived brightness, 0 to 1 (WCAG relative luminance).
    pub fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            match part <= 0.04045 {
                true => part / 12.92,
                false => ((part + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// Returns whether text on this background should be dark.
    pub fn is_light(self) -> bool {
        self.luminance() > 0.18
    }

    /// Returns this colour mixed with a share (0 to 1) of another.
    #[must_use]
    pub fn mixed(self, other: Self, share: f64) -> Self {
        let mix = |one: u8, two: u8| {
            let value = f64::from(one) + (f64::from(two) - f64::from(one)) * share;
            // In range, because both inputs are.
            value.round().clamp(0.0, 255.0) as u8
        };
        Self(
            mix(self.0, other.0),
            mix(self.1, other.1),
            mix(self.2, other.2),
        )
    }

    fn distance(self, other: Self) -> u32 {
        let square = |one: u8, two: u8| u32::from(one.abs_diff(two)).pow(2);
        // The eye is most sensitive to green.
        2 * square(self.0, other.0) + 4 * square(self.1, other.1) + 3 * square(self.2, other.2)
    }
}

/// Returns the contrast of two colours, 1 to 21 (WCAG). Text is easy to read from 4.5 on.
pub fn contrast(one: Rgb, two: Rgb) -> f64 {
    let (one, two) = (one.luminance(), two.luminance());
    (one.max(two) + 0.05) / (one.min(two) + 0.05)
}

/// A requested colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextColor {
    /// An entry of the terminal's 16 colours, which the user may have configured.
    Ansi(u8),
    /// An entry of the fixed palette of 256 colours.
    Indexed(u8),
    /// Exactly this colour.
    Rgb(Rgb),
}

/// The number of colours that a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ColorLevel {
    /// No colours; bold, faint, reverse and underline stay.
    None,
    /// The terminal's 16 colours.
    #[default]
    Ansi16,
    /// The palette of 256 colours.
    Ansi256,
    /// All colours (24 bit).
    TrueColor,
}

impl TextColor {
    /// Appends the SGR parameters. `base` is 30 for the foreground and 40 for the background.
    pub(super) fn write_sgr(self, level: ColorLevel, base: u8, out: &mut Vec<u8>) {
        let mut text = String::new();
        let _ = match (self.nearest_in(level), level) {
            (_, ColorLevel::None) => Ok(()),
            (Self::Ansi(color @ 0..8), _) => write!(text, ";{}", base + color),
            (Self::Ansi(color), _) => write!(text, ";{}", base + 60 + (color & 7)),
            (Self::Indexed(color), _) => write!(text, ";{};5;{color}", base + 8),
            (Self::Rgb(Rgb(red, green, blue)), _) => {
                write!(text, ";{};2;{red};{green};{blue}", base + 8)
            }
        };
        out.extend_from_slice(text.as_bytes());
    }

    /// Returns the nearest colour that the level has.
    fn nearest_in(self, level: ColorLevel) -> Self {
        match (self, level) {
            (Self::Rgb(color), ColorLevel::Ansi256) => Self::Indexed(nearest_of_256(color)),
            (Self::Rgb(color), ColorLevel::Ansi16) => Self::Ansi(nearest_of_16(color)),
            (Self::Indexed(index), ColorLevel::Ansi16) => match index {
                0..16 => Self::Ansi(index),
                _ => Self::Ansi(nearest_of_16(palette_color(index))),
            },
            (same, _) => same,
        }
    }
}

const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// Returns the colour of a palette index from 16 on; the first 16 depend on the terminal.
fn palette_color(index: u8) -> Rgb {
    match index {
        232.. => {
            let grey = 8 + (index - 232) * 10;
            Rgb(grey, grey, grey)
        }
        _ => {
            let index = usize::from(index.saturating_sub(16));
            Rgb(STEPS[index / 36], STEPS[index / 6 % 6], STEPS[index % 6])
        }
    }
}

pub(crate) fn nearest_of_256(color: Rgb) -> u8 {
    let best = (16..=255).min_by_key(|index| palette_color(*index).distance(color));
    best.unwrap_or(16)
}

/// The 16 colours as most terminals draw them; the actual colours are unknown.
const USUAL: [Rgb; 16] = [
    Rgb(0, 0, 0),
    Rgb(205, 0, 0),
    Rgb(0, 205, 0),
    Rgb(205, 205, 0),
    Rgb(0, 0, 238),
    Rgb(205, 0, 205),
    Rgb(0, 205, 205),
    Rgb(229, 229, 229),
    Rgb(127, 127, 127),
    Rgb(255, 0, 0),
    Rgb(0, 255, 0),
    Rgb(255, 255, 0),
    Rgb(92, 92, 255),
    Rgb(255, 0, 255),
    Rgb(0, 255, 255),
    Rgb(255, 255, 255),
];

fn nearest_of_16(color: Rgb) -> u8 {
    let best = (0..16u8).min_by_key(|index| USUAL[usize::from(*index)].distance(color));
    best.unwrap_or(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn palette_colours_are_found_again() {
        for index in 16..=255 {
            let found = nearest_of_256(palette_color(index));
            assert_eq!(palette_color(found), palette_color(index), "{index}");
        }
    }

    #[test]
    fn contrast_is_that_of_the_guidelines() {
        assert!((contrast(Rgb(0, 0, 0), Rgb(255, 255, 255)) - 21.0).abs() < 0.01);
        assert!((contrast(Rgb(9, 9, 9), Rgb(9, 9, 9)) - 1.0).abs() < 0.01);
    }
}
