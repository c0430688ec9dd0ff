//! Images in a terminal. The caller decodes them; this module turns pixels into cells.
//!
//! - `kitty`: transmitted once, shown by placeholders that scroll and reflow like text
//! - `iterm`: a PNG inside an escape sequence (OSC 1337)
//! - `sixel`: a palette of 128 colours, drawn in bands of six rows
//! - `half_blocks`: two pixels per cell, which every terminal with 256 colours can show

mod encode;
mod half_blocks;
mod iterm;
mod kitty;
mod scale;
mod sixel;

pub(crate) use encode::base64;

use crate::{paint::movement, paint::paint_line, style::ColorLevel, text::TextLine};

/// The maximum width of an image in cells.
pub const MAX_COLUMNS: usize = 40;
/// The maximum height of an image in rows.
pub const MAX_ROWS: usize = 12;

/// The way a terminal shows images, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImageProtocol {
    /// No image: only its name and size.
    Name,
    /// Two pixels per cell.
    HalfBlocks,
    /// Sixel.
    Sixel,
    /// OSC 1337.
    Iterm,
    /// Kitty graphics with Unicode placeholders.
    Kitty,
}

impl ImageProtocol {
    /// Returns the best method that needs only text in the colours of this level.
    pub fn for_level(level: ColorLevel) -> Self {
        match level >= ColorLevel::Ansi256 {
            true => Self::HalfBlocks,
            false => Self::Name,
        }
    }
}

/// Pixels with red, green, blue and opacity, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RgbaPixels {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

impl RgbaPixels {
    /// Creates an image from its pixels. Returns `None` if the length does not match the size, or
    /// if the image is empty.
    pub fn new(width: usize, height: usize, bytes: Vec<u8>) -> Option<Self> {
        let expected = width.checked_mul(height)?.checked_mul(4)?;
        (expected > 0 && bytes.len() == expected).then_some(Self {
            width,
            height,
            bytes,
        })
    }

    fn pixel(&self, column: usize, row: usize) -> [u8; 4] {
        let at = (row * self.width + column) * 4;
        let mut pixel = [0; 4];
        pixel.copy_from_slice(&self.bytes[at..at + 4]);
        pixel
    }
}

/// An image as bytes for a terminal; created only from pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalImage {
    /// The bytes sent before the rows, or instead of them.
    sequence: Vec<u8>,
    rows: Vec<TextLine>,
}

/// The assumed size of a cell in pixels: twice as high as wide.
const CELL: (usize, usize) = (10, 20);

impl TerminalImage {
    /// Creates an image for this terminal. `id` identifies it to the terminal; `name` is shown if
    /// the terminal cannot show images.
    pub fn new(protocol: ImageProtocol, pixels: &RgbaPixels, id: u32, name: &str) -> Self {
        let (columns, rows) = cells(pixels);
        match protocol {
            ImageProtocol::Kitty => kitty::image(pixels, id, columns, rows),
            ImageProtocol::Iterm => iterm::image(pixels, columns, rows),
            ImageProtocol::Sixel => sixel::image(pixels, columns, rows),
            ImageProtocol::HalfBlocks => Self {
                sequence: Vec::new(),
                rows: half_blocks::rows(pixels, columns, rows),
            },
            ImageProtocol::Name => {
                let text = format!("[{name} {}x{}]", pixels.width, pixels.height);
                Self {
                    sequence: Vec::new(),
                    rows: vec![TextLine::plain(&text)],
                }
            }
        }
    }

    /// Returns its rows as lines if it consists of text. Returns no rows if the terminal draws it.
    pub fn rows(&self) -> &[TextLine] {
        &self.rows
    }

    pub(crate) fn write(&self, level: ColorLevel, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.sequence);
        for row in &self.rows {
            paint_line(row, level, out);
            out.extend_from_slice(movement::NEXT_LINE);
        }
        if self.rows.is_empty() {
            out.extend_from_slice(movement::NEXT_LINE);
        }
    }
}

/// Returns the size in columns and rows. Keeps the proportions of the image and never enlarges it.
fn cells(pixels: &RgbaPixels) -> (usize, usize) {
    let (width, height) = (pixels.width, pixels.height);
    let columns = width.div_ceil(CELL.0).min(MAX_COLUMNS);
    let rows = (columns * CELL.0 * height).div_ceil(width * CELL.1).max(1);
    if rows <= MAX_ROWS {
        return (columns.max(1), rows);
    }
    let columns = (MAX_ROWS * CELL.1 * width) / (height * CELL.0);
    (columns.clamp(1, MAX_COLUMNS), MAX_ROWS)
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
