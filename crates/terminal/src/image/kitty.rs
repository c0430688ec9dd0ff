//! Kitty graphics: the pixels are sent once. Placeholder characters mark the area of the image;
//! they scroll, reflow and are erased like any text. Their colour encodes the image number, and
//! their combining marks encode row and column.

use std::io::Write;

use super::{CELL, RgbaPixels, TerminalImage, encode::base64, scale::scaled};
use crate::clean::PLACEHOLDER;

/// The maximum number of characters of data in one sequence.
const MAX_PART: usize = 4096;

/// The combining marks that encode 0, 1, 2, …
const MARKS: [char; super::MAX_COLUMNS] = [
    '\u{305}', '\u{30d}', '\u{30e}', '\u{310}', '\u{312}', '\u{33d}', '\u{33e}', '\u{33f}',
    '\u{346}', '\u{34a}', '\u{34b}', '\u{34c}', '\u{350}', '\u{351}', '\u{352}', '\u{357}',
    '\u{35b}', '\u{363}', '\u{364}', '\u{365}', '\u{366}', '\u{367}', '\u{368}', '\u{369}',
    '\u{36a}', '\u{36b}', '\u{36c}', '\u{36d}', '\u{36e}', '\u{36f}', '\u{483}', '\u{484}',
    '\u{485}', '\u{486}', '\u{487}', '\u{592}', '\u{593}', '\u{594}', '\u{595}', '\u{597}',
];

pub(super) fn image(pixels: &RgbaPixels, id: u32, columns: usize, rows: usize) -> TerminalImage {
    // The image number is encoded as the colour of the placeholders: three bytes.
    let id = id & 0x00ff_ffff;
    let small = scaled(
        pixels,
        pixels.width.min(columns * CELL.0),
        pixels.height.min(rows * CELL.1),
    );
    let data = base64(&small.bytes);
    let mut sequence = Vec::new();
    let mut parts = data.as_bytes().chunks(MAX_PART).peekable();
    let mut is_first = true;
    while let Some(part) = parts.next() {
        let more = u8::from(parts.peek().is_some());
        let _ = match std::mem::take(&mut is_first) {
            true => write!(
                sequence,
                "\x1b_Ga=T,U=1,q=2,f=32,i={id},s={},v={},c={columns},r={rows},m={more};",
                small.width, small.height
            ),
            false => write!(sequence, "\x1b_Gm={more};"),
        };
        sequence.extend_from_slice(part);
        sequence.extend_from_slice(b"\x1b\\");
    }
    // Here the colour encodes a number, so it is sent regardless of the colour level.
    let [_, red, green, blue] = id.to_be_bytes();
    for (number, row) in MARKS.iter().take(rows).enumerate() {
        let end = if number > 0 { "\r\n" } else { "" };
        let _ = write!(sequence, "{end}\x1b[38;2;{red};{green};{blue}m");
        for column in MARKS.iter().take(columns) {
            let _ = write!(sequence, "{PLACEHOLDER}{row}{column}");
        }
        sequence.extend_from_slice(b"\x1b[39m");
    }
    TerminalImage {
        sequence,
        rows: Vec::new(),
    }
}
