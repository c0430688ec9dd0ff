//! Scales an image down: each pixel is the mean of the pixels it replaces.

use super::RgbaPixels;

/// Returns the image at another size. Transparency is preserved; the terminal blends it with the
/// background.
pub(super) fn scaled(pixels: &RgbaPixels, width: usize, height: usize) -> RgbaPixels {
    let (width, height) = (width.max(1), height.max(1));
    let mut bytes = Vec::with_capacity(width * height * 4);
    for row in 0..height {
        for column in 0..width {
            bytes.extend_from_slice(&mean(pixels, (column, width), (row, height)));
        }
    }
    RgbaPixels {
        width,
        height,
        bytes,
    }
}

fn mean(pixels: &RgbaPixels, column: (usize, usize), row: (usize, usize)) -> [u8; 4] {
    let range = |(at, of): (usize, usize), length: usize| {
        let from = at * length / of;
        from..((at + 1) * length / of).max(from + 1).min(length)
    };
    let mut sums = [0u64; 4];
    let mut count = 0;
    for y in range(row, pixels.height) {
        for x in range(column, pixels.width) {
            let pixel = pixels.pixel(x, y);
            let opacity = u64::from(pixel[3]);
            for part in 0..3 {
                sums[part] += u64::from(pixel[part]) * opacity;
            }
            sums[3] += opacity;
            count += 1;
        }
    }
    let part = |sum: u64| u8::try_from(sum / sums[3].max(1)).unwrap_or(u8::MAX);
    let opacity = u8::try_from(sums[3] / count.max(1)).unwrap_or(u8::MAX);
    [part(sums[0]), part(sums[1]), part(sums[2]), opacity]
}
