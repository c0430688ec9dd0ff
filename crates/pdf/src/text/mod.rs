//! Extracts the text of a page in reading order.
//!
//! - `interpret`: executes the content of the page and records each character with its position
//! - `font`: maps codes to text; `encoding`, `glyph_names`, `font_program`, `metrics`: used if the
//!   font has no mapping
//! - `lines`: joins characters to lines; `columns`: puts lines in order; `direction`: text that is
//!   read from right to left
//! - `matrix`: transformations of positions

mod columns;
mod direction;
mod encoding;
mod font;
mod font_program;
mod glyph_names;
mod interpret;
mod lines;
mod matrix;
mod metrics;

use hayro_syntax::{
    object::{Array, Dict},
    page::Resources,
};

use crate::tree::ListedPage;
use interpret::{PageWalk, ShownGlyph};
use matrix::Matrix;

pub(crate) use interpret::FontCache;

/// The characters for 0x80 to 0x9E in strings outside pages (PDFDocEncoding). 0xA0 is the euro
/// sign; the other codes are read as Latin-1.
const DOCUMENT_ENCODING: &str = "•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž";

/// Returns the text of a page, given its decoded content.
pub(crate) fn page_text(page: &ListedPage<'_>, content: &[u8], fonts: &mut FontCache) -> String {
    let resources = Resources::new(page.resources.clone());
    let mut walk = PageWalk::new(fonts, Matrix::rotation(page.quarters));
    walk.execute(content, &resources);
    let annotations = page.dict.as_ref();
    let annotations = annotations.and_then(|page| page.get::<Array<'_>>("Annots"));
    for annotation in annotations.iter().flat_map(|list| list.iter::<Dict<'_>>()) {
        walk.annotation(&annotation, &resources);
    }
    // Rotated text, such as labels of a drawing, is read separately, after the rest.
    let mut texts = Vec::new();
    for turn in [0, 1, 3, 2] {
        let upright: Vec<ShownGlyph> = walk
            .glyphs
            .iter()
            .filter(|glyph| quarter(glyph) == turn)
            .map(|glyph| turned(glyph, turn))
            .collect();
        let text = columns::text_in_order(lines::build_lines(&upright));
        if !text.is_empty() {
            texts.push(text);
        }
    }
    texts.join("\n\n")
}

/// Returns the number of clockwise quarter turns after which the glyph runs to the right.
fn quarter(glyph: &ShownGlyph) -> i32 {
    let (x, y) = (glyph.end.0 - glyph.origin.0, glyph.end.1 - glyph.origin.1);
    let is_upright = x.abs() >= y.abs();
    match (glyph.is_vertical, is_upright) {
        // Vertical text: each column is treated as a line.
        (true, _) => 0,
        (false, true) if x >= 0.0 => 0,
        (false, true) => 2,
        (false, false) if y > 0.0 => 1,
        (false, false) => 3,
    }
}

fn turned(glyph: &ShownGlyph, quarters: i32) -> ShownGlyph {
    let matrix = Matrix::rotation(quarters);
    ShownGlyph {
        origin: matrix.apply(glyph.origin.0, glyph.origin.1),
        end: matrix.apply(glyph.end.0, glyph.end.1),
        ..glyph.clone()
    }
}

/// Decodes a text string, as in an outline.
pub(crate) fn string_text(bytes: &[u8]) -> String {
    if let Some(units) = bytes.strip_prefix(b"\xfe\xff") {
        let units: Vec<u16> = units
            .chunks_exact(2)
            .map(|unit| u16::from_be_bytes([unit[0], unit[1]]))
            .collect();
        return String::from_utf16_lossy(&units);
    }
    if let Some(text) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return String::from_utf8_lossy(text).into_owned();
    }
    let character = |byte: &u8| match byte {
        0x80..0xa0 => DOCUMENT_ENCODING.chars().nth(usize::from(byte - 0x80)),
        0xa0 => Some('€'),
        _ => Some(char::from(*byte)),
    };
    bytes.iter().filter_map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_text_in_three_encodings() {
        assert_eq!(
            string_text(b"\xfe\xff\x00A\x20\xac\xd8\x3d\xde\x00"),
            "A€😀"
        );
        assert_eq!(string_text(b"\xef\xbb\xbf\xc3\xa4"), "ä");
        assert_eq!(string_text(b"\xe4 \x85 \x80 \x9e"), "ä – • ž");
    }
}
