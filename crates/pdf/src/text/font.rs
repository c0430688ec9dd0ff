//! The parts of a font that text extraction needs: the text and the advance width of its codes.

use std::collections::HashMap;

use hayro_cmap::{BfString, CMap, CMapName, WritingMode, load_embedded};
use hayro_syntax::object::{Array, Dict, Name, Object, Stream, String as PdfString};

use super::{
    encoding::BaseEncoding,
    font_program::{self, CodeMap},
    glyph_names, metrics,
};

/// A code of a shown string.
pub(super) struct ShownCode {
    /// The text; empty if it is unknown.
    pub(super) text: String,
    /// The advance width at font size 1.
    pub(super) advance: f32,
    /// Whether this is the single-byte code 32, to which word spacing applies.
    pub(super) is_blank: bool,
}

/// A loaded font.
pub(super) struct TextFont {
    to_unicode: Option<CMap>,
    kind: FontKind,
    pub(super) is_vertical: bool,
}

enum FontKind {
    /// A simple font: one byte per code.
    Simple {
        meanings: Box<CodeMap>,
        advances: Box<[f32; 256]>,
    },
    /// A composite font: the encoding determines the number of bytes per code.
    Composite {
        encoding: Box<CMap>,
        /// Maps a character's id (CID) in its collection to Unicode.
        collection: Option<Box<CMap>>,
        advances: HashMap<u32, f32>,
        default_advance: f32,
    },
}

impl TextFont {
    pub(super) fn load(font: &Dict<'_>) -> Self {
        let to_unicode = match font.get::<Object<'_>>("ToUnicode") {
            Some(Object::Stream(stream)) => {
                let bytes = stream.decoded_data().ok();
                bytes.and_then(|bytes| CMap::parse(&bytes, load_embedded))
            }
            _ => None,
        };
        let is_composite = font
            .get::<Name<'_>>("Subtype")
            .is_some_and(|subtype| subtype.as_ref() == b"Type0");
        let descendant = font
            .get::<Array<'_>>("DescendantFonts")
            .and_then(|fonts| fonts.iter::<Dict<'_>>().next());
        match descendant {
            Some(descendant) if is_composite => composite(font, &descendant, to_unicode),
            _ => simple(font, to_unicode),
        }
    }

    /// Decodes a shown string.
    pub(super) fn decode(&self, bytes: &[u8]) -> Vec<ShownCode> {
        match &self.kind {
            FontKind::Simple { meanings, advances } => bytes
                .iter()
                .map(|code| {
                    let index = usize::from(*code);
                    let text = self.by_table(u32::from(*code));
                    let text = text.or_else(|| meanings[index].clone());
                    ShownCode {
                        text: text.unwrap_or_default(),
                        advance: advances[index],
                        is_blank: *code == b' ',
                    }
                })
                .collect(),
            FontKind::Composite {
                encoding,
                collection,
                advances,
                default_advance,
            } => split(bytes, encoding)
                .into_iter()
                .map(|(code, length, character)| {
                    let text = self.by_table(code);
                    let text = text.or_else(|| {
                        let found = collection.as_ref()?.lookup_bf_string(character)?;
                        Some(bf_string_text(found))
                    });
                    ShownCode {
                        text: text.unwrap_or_default(),
                        advance: *advances.get(&character).unwrap_or(default_advance),
                        is_blank: length == 1 && code == 32,
                    }
                })
                .collect(),
        }
    }

    /// Returns the text from the font's own `ToUnicode` table, unless it maps the code to nothing.
    fn by_table(&self, code: u32) -> Option<String> {
        let text = bf_string_text(self.to_unicode.as_ref()?.lookup_bf_string(code)?);
        let is_nothing = |character: char| matches!(character, '\0' | '\u{fffd}' | '\u{ffff}');
        (!text.is_empty() && !text.chars().all(is_nothing)).then_some(text)
    }
}

fn bf_string_text(found: BfString) -> String {
    match found {
        BfString::Char(character) => expanded(character),
        BfString::String(text) => text.chars().map(expanded).collect(),
    }
}

/// Splits a string into codes. Returns each code with its length in bytes and the id of its
/// character.
fn split(bytes: &[u8], encoding: &CMap) -> Vec<(u32, usize, u32)> {
    let mut codes = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let code_of = |length: usize| {
            let bytes = rest.get(..length)?;
            Some(
                bytes
                    .iter()
                    .fold(0_u32, |code, byte| code << 8 | u32::from(*byte)),
            )
        };
        let found = (1..=4_u8).find_map(|length| {
            let code = code_of(length.into())?;
            let character = encoding.lookup_cid_code(code, length)?;
            Some((code, usize::from(length), character))
        });
        let length = rest.len().min(2);
        let found = found.unwrap_or((code_of(length).unwrap_or(0), length, 0));
        codes.push(found);
        rest = &rest[found.1..];
    }
    codes
}

fn composite(font: &Dict<'_>, descendant: &Dict<'_>, to_unicode: Option<CMap>) -> TextFont {
    let encoding = match font.get::<Object<'_>>("Encoding") {
        Some(Object::Name(name)) => match name.as_ref() {
            b"Identity-V" => Some(CMap::identity_v()),
            name => predefined(name),
        },
        Some(Object::Stream(stream)) => {
            let bytes = stream.decoded_data().ok();
            bytes.and_then(|bytes| CMap::parse(&bytes, load_embedded))
        }
        _ => None,
    };
    let encoding = encoding.unwrap_or_else(CMap::identity_h);
    let system = descendant.get::<Dict<'_>>("CIDSystemInfo");
    let ordering = system.and_then(|system| system.get::<PdfString<'_>>("Ordering"));
    let collection = ordering.and_then(|ordering| {
        let ordering = ordering.as_bytes();
        matches!(ordering, b"Japan1" | b"GB1" | b"CNS1" | b"Korea1")
            .then(|| predefined(&[b"Adobe-", ordering, b"-UCS2"].concat()))?
    });
    let is_vertical = encoding.metadata().writing_mode == Some(WritingMode::Vertical);
    let default_width = descendant.get::<f32>("DW").unwrap_or(1_000.0);
    TextFont {
        to_unicode,
        kind: FontKind::Composite {
            encoding: Box::new(encoding),
            collection: collection.map(Box::new),
            advances: match is_vertical {
                true => HashMap::new(),
                false => composite_advances(descendant),
            },
            // Vertical text advances by about the height of a line.
            default_advance: if is_vertical {
                1.0
            } else {
                default_width / 1_000.0
            },
        },
        is_vertical,
    }
}

fn predefined(name: &[u8]) -> Option<CMap> {
    let bytes = load_embedded(CMapName::from_bytes(name))?;
    CMap::parse(bytes, load_embedded)
}

/// Parses the widths: `[first [w w w] first last w …]`.
fn composite_advances(font: &Dict<'_>) -> HashMap<u32, f32> {
    let mut advances = HashMap::new();
    let Some(array) = font.get::<Array<'_>>("W") else {
        return advances;
    };
    let mut items = array.iter::<Object<'_>>();
    let integer = |object: Object<'_>| {
        object
            .into_i32()
            .and_then(|value| u32::try_from(value).ok())
    };
    while let Some(first) = items.next().and_then(integer) {
        match items.next() {
            Some(Object::Array(widths)) => {
                for (character, width) in (first..).zip(widths.iter::<f32>()) {
                    advances.insert(character, width / 1_000.0);
                }
            }
            Some(last) => {
                let Some(width) = items.next().and_then(Object::into_f32) else {
                    break;
                };
                // The id of a character has two bytes.
                let last = integer(last).unwrap_or(0).min(0xffff);
                for character in first..=last {
                    advances.insert(character, width / 1_000.0);
                }
            }
            None => break,
        }
    }
    advances
}

fn simple(font: &Dict<'_>, to_unicode: Option<CMap>) -> TextFont {
    let base_font = font.get::<Name<'_>>("BaseFont");
    let name = base_font.as_ref().map_or("", |name| name.as_str());
    let descriptor = font.get::<Dict<'_>>("FontDescriptor").unwrap_or_default();
    let meanings = simple_meanings(font, &descriptor, name);
    let advances = simple_advances(font, &descriptor, name, &meanings);
    TextFont {
        to_unicode,
        kind: FontKind::Simple {
            meanings: Box::new(meanings),
            advances: Box::new(advances),
        },
        is_vertical: false,
    }
}

fn simple_meanings(font: &Dict<'_>, descriptor: &Dict<'_>, name: &str) -> CodeMap {
    let encoding = font.get::<Object<'_>>("Encoding");
    let (base, differences) = match encoding {
        Some(Object::Name(name)) => (BaseEncoding::named(&name), None),
        Some(Object::Dict(encoding)) => {
            let base = encoding.get::<Name<'_>>("BaseEncoding");
            (
                base.and_then(|base| BaseEncoding::named(&base)),
                encoding.get::<Array<'_>>("Differences"),
            )
        }
        _ => (None, None),
    };
    let own = match base {
        Some(_) => None,
        None => program_meanings(descriptor),
    };
    let mut meanings = own.unwrap_or_else(|| {
        let base = base.unwrap_or(match name {
            name if name.contains("Symbol") => BaseEncoding::Symbol,
            name if name.contains("Dingbats") => BaseEncoding::Dingbats,
            _ => BaseEncoding::Standard,
        });
        let mut meanings = font_program::NO_MEANINGS;
        for (code, meaning) in (0_u8..=255).zip(&mut meanings) {
            *meaning = base.character(code).map(expanded);
        }
        meanings
    });
    let mut code = 0_usize;
    for item in differences
        .iter()
        .flat_map(|items| items.iter::<Object<'_>>())
    {
        match item {
            Object::Number(number) => code = usize::try_from(number.as_i64()).unwrap_or(256),
            Object::Name(name) => {
                if let Some(meaning) = meanings.get_mut(code) {
                    let found = glyph_names::glyph_text(name.as_str());
                    // An unknown name does not change the default meaning of a printable code.
                    *meaning = found.or_else(|| printable(code));
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    meanings
}

fn printable(code: usize) -> Option<String> {
    let code = u8::try_from(code).ok().filter(u8::is_ascii_graphic)?;
    Some(char::from(code).to_string())
}

/// Expands ligatures to letters.
fn expanded(character: char) -> String {
    match character {
        'ﬀ' => "ff".to_owned(),
        'ﬁ' => "fi".to_owned(),
        'ﬂ' => "fl".to_owned(),
        'ﬃ' => "ffi".to_owned(),
        'ﬄ' => "ffl".to_owned(),
        'ﬅ' | 'ﬆ' => "st".to_owned(),
        other => other.to_string(),
    }
}

fn program_meanings(descriptor: &Dict<'_>) -> Option<CodeMap> {
    if let Some(program) = descriptor.get::<Stream<'_>>("FontFile") {
        return font_program::parse_type1_encoding(&program.decoded_data().ok()?);
    }
    let program = descriptor.get::<Stream<'_>>("FontFile3")?;
    font_program::parse_cff_encoding(&program.decoded_data().ok()?)
}

fn simple_advances(
    font: &Dict<'_>,
    descriptor: &Dict<'_>,
    name: &str,
    meanings: &CodeMap,
) -> [f32; 256] {
    // A Type 3 font, whose glyphs are drawn by the PDF, defines its own unit.
    let matrix = font.get::<Array<'_>>("FontMatrix");
    let unit = matrix.and_then(|matrix| matrix.iter::<f32>().next());
    let unit = unit.filter(|unit| *unit > 0.0).unwrap_or(0.001);
    let Some(widths) = font.get::<Array<'_>>("Widths") else {
        return std::array::from_fn(|code| {
            let text = meanings[code].as_deref().unwrap_or_default();
            let character = text.chars().next().unwrap_or('n');
            metrics::width(name, character) / 1_000.0
        });
    };
    let missing = descriptor.get::<f32>("MissingWidth").unwrap_or(0.0);
    let mut advances = [missing * unit; 256];
    let first = font.get::<i32>("FirstChar").unwrap_or(0);
    let first = usize::try_from(first).unwrap_or(0).min(256);
    for (advance, width) in advances[first..].iter_mut().zip(widths.iter::<f32>()) {
        *advance = width * unit;
    }
    advances
}
