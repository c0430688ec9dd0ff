//! Two pixels per cell: the upper pixel is the foreground of a half block, the lower one its
//! background.

use super::{RgbaPixels, scale::scaled};
use crate::{
    style::{Rgb, TextColor, TextStyle},
    text::TextLine,
};

/// Pixels with a lower opacity are not drawn.
const VISIBLE: u8 = 64;

pub(super) fn rows(pixels: &RgbaPixels, columns: usize, rows: usize) -> Vec<TextLine> {
    let small = scaled(pixels, columns, rows * 2);
    let color = |column, row| {
        let [red, green, blue, opacity] = small.pixel(column, row);
        (opacity >= VISIBLE).then_some(TextColor::Rgb(Rgb(red, green, blue)))
    };
    let line = |row: usize| {
        let mut line = TextLine::new();
        for column in 0..columns {
            let style = TextStyle::new();
            match (color(column, row * 2), color(column, row * 2 + 1)) {
                (None, None) => line.push_made(" ", style),
                (Some(upper), None) => line.push_made("▀", style.fg(upper)),
                (None, Some(lower)) => line.push_made("▄", style.fg(lower)),
                (Some(upper), Some(lower)) => line.push_made("▀", style.fg(upper).bg(lower)),
            }
        }
        line
    };
    (0..rows).map(line).collect()
}
