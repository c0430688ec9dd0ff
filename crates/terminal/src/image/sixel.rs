//! Sixel: a palette, then bands of six rows, one colour after the other.

use std::io::Write;

use color_quant::NeuQuant;

use super::{CELL, RgbaPixels, TerminalImage, scale::scaled};

/// The number of colours in the palette; all Sixel terminals support at least as many.
const COLORS: usize = 128;

/// Pixels with a lower opacity are not drawn.
const VISIBLE: u8 = 64;

pub(super) fn image(pixels: &RgbaPixels, columns: usize, rows: usize) -> TerminalImage {
    let small = scaled(
        pixels,
        pixels.width.min(columns * CELL.0),
        pixels.height.min(rows * CELL.1),
    );
    let palette = NeuQuant::new(10, COLORS, &small.bytes);
    let index = |column, row| {
        let pixel = small.pixel(column, row);
        (pixel[3] >= VISIBLE).then(|| palette.index_of(&pixel))
    };
    // Pixels that are not drawn keep the colour that the terminal shows there.
    let mut out = b"\x1bP0;1q".to_vec();
    let _ = write!(out, "\"1;1;{};{}", small.width, small.height);
    for (number, color) in palette.color_map_rgb().chunks(3).enumerate() {
        let percent = |part: u8| u32::from(part) * 100 / 255;
        let (red, green, blue) = (percent(color[0]), percent(color[1]), percent(color[2]));
        let _ = write!(out, "#{number};2;{red};{green};{blue}");
    }
    for top in (0..small.height).step_by(6) {
        // For each colour of the band, a bit mask of the six pixels per column that have it.
        let mut bits = vec![Vec::new(); COLORS];
        for row in top..small.height.min(top + 6) {
            for column in 0..small.width {
                if let Some(color) = index(column, row) {
                    let color: &mut Vec<u8> = &mut bits[color];
                    color.resize(small.width, 0);
                    color[column] |= 1 << (row - top);
                }
            }
        }
        for (color, columns) in bits
            .iter()
            .enumerate()
            .filter(|(_, columns)| !columns.is_empty())
        {
            let _ = write!(out, "#{color}");
            run_lengths(columns, &mut out);
            out.push(b'$');
        }
        out.push(b'-');
    }
    out.extend_from_slice(b"\x1b\\");
    TerminalImage {
        sequence: out,
        rows: Vec::new(),
    }
}

fn run_lengths(columns: &[u8], out: &mut Vec<u8>) {
    for run in columns.chunk_by(|one, two| one == two) {
        let letter = run[0] + 0x3f;
        match run.len() {
            length @ 4.. => {
                let _ = write!(out, "!{length}");
                out.push(letter);
            }
            length => out.resize(out.len() + length, letter),
        }
    }
}
