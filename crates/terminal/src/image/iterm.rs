//! OSC 1337: a PNG inside an escape sequence.

use super::{
    CELL, RgbaPixels, TerminalImage,
    encode::{base64, png},
    scale::scaled,
};

pub(super) fn image(pixels: &RgbaPixels, columns: usize, rows: usize) -> TerminalImage {
    let small = scaled(
        pixels,
        pixels.width.min(columns * CELL.0),
        pixels.height.min(rows * CELL.1),
    );
    let file = png(small.width, small.height, &small.bytes);
    let sequence = format!(
        "\x1b]1337;File=inline=1;size={};width={columns};height={rows};preserveAspectRatio=1:{}\x07",
        file.len(),
        base64(&file)
    );
    TerminalImage {
        sequence: sequence.into_bytes(),
        rows: Vec::new(),
    }
}
