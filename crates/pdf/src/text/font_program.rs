//! The text of a font's codes according to the embedded font program, for PDFs without their own
//! mapping.
//!
//! Only the encoding is parsed: the glyph of each code and the name of that glyph.

use memchr::memmem;

use super::{encoding::BaseEncoding, glyph_names};

/// The text of each code.
pub(super) type CodeMap = [Option<String>; 256];

pub(super) const NO_MEANINGS: CodeMap = [const { None }; 256];

/// Reads the encoding of a Type 1 program. It is PostScript, whose clear-text part contains lines
/// like `dup 65 /A put`.
pub(super) fn parse_type1_encoding(program: &[u8]) -> Option<CodeMap> {
    let start = memmem::find(program, b"/Encoding")?;
    let text = &program[start + b"/Encoding".len()..];
    let words = text.split(|byte| byte.is_ascii_whitespace());
    let mut words = words.filter(|word| !word.is_empty()).take(4_096).peekable();
    let mut meanings = NO_MEANINGS;
    if words.peek() == Some(&&b"StandardEncoding"[..]) {
        return Some(standard());
    }
    while let Some(word) = words.next() {
        match word {
            b"dup" => {
                let code = words.next().and_then(|word| str::from_utf8(word).ok());
                let code = code.and_then(|code| code.parse::<u8>().ok());
                let name = words.next().and_then(|word| word.strip_prefix(b"/"));
                let name = name.and_then(|name| str::from_utf8(name).ok());
                if let (Some(code), Some(name)) = (code, name) {
                    meanings[usize::from(code)] = glyph_names::glyph_text(name);
                }
            }
            b"readonly" | b"def" => break,
            _ => {}
        }
    }
    meanings.iter().any(Option::is_some).then_some(meanings)
}

fn standard() -> CodeMap {
    let mut meanings = NO_MEANINGS;
    for (code, meaning) in (0_u8..=255).zip(&mut meanings) {
        *meaning = BaseEncoding::Standard.character(code).map(String::from);
    }
    meanings
}

/// Reads the encoding of a compact font program (CFF) from its tables of glyphs, names and codes.
pub(super) fn parse_cff_encoding(program: &[u8]) -> Option<CodeMap> {
    let header = usize::from(*program.get(2)?);
    let (_, names_end) = index(program, header)?;
    let (tops, tops_end) = index(program, names_end)?;
    let (strings, _) = index(program, tops_end)?;
    let top = top_dictionary(tops.first()?);
    let count = glyph_count(program, top.char_strings?)?;
    let charset = charset(program, top.charset, count);
    let meaning = |glyph: usize| {
        let string = *charset.get(glyph)?;
        match string.checked_sub(STANDARD_STRINGS) {
            Some(own) => glyph_names::glyph_text(str::from_utf8(strings.get(own)?).ok()?),
            None => standard_string(string),
        }
    };
    match top.encoding {
        0 => Some(standard()),
        1 => None,
        offset => {
            let mut meanings = NO_MEANINGS;
            for (code, glyph) in codes(program, offset)? {
                meanings[usize::from(code)] = meaning(glyph);
            }
            Some(meanings)
        }
    }
}

/// The number of standard strings of CFF.
const STANDARD_STRINGS: usize = 391;
/// The characters of the standard strings from 150 on. The strings before are the characters of the
/// standard encoding, in its order.
const LATER_STRINGS: &str =
    "¹¬µ™Ð½±Þ¼÷¦°þ¾²®−ð×³©ÁÂÄÀÅÃÇÉÊËÈÍÎÏÌÑÓÔÖÒÕŠÚÛÜÙÝŸŽáâäàåãçéêëèíîïìñóôöòõšúûüùýÿž";

fn standard_string(string: usize) -> Option<String> {
    let found = match string {
        0 => None,
        1..150 => (0..=255)
            .filter_map(|code| BaseEncoding::Standard.character(code))
            .nth(string - 1),
        _ => LATER_STRINGS.chars().nth(string - 150),
    };
    found.map(String::from)
}

#[derive(Default)]
struct TopDictionary {
    charset: usize,
    encoding: usize,
    char_strings: Option<usize>,
}

fn top_dictionary(bytes: &[u8]) -> TopDictionary {
    let mut top = TopDictionary::default();
    let mut last = 0_i64;
    let mut rest = bytes.iter().copied();
    while let Some(byte) = rest.next() {
        let mut next = || i64::from(rest.next().unwrap_or(0xff));
        match byte {
            28 => last = next() << 8 | next(),
            29 => last = next() << 24 | next() << 16 | next() << 8 | next(),
            30 => while next() & 0x0f != 0x0f {},
            32..=246 => last = i64::from(byte) - 139,
            247..=250 => last = (i64::from(byte) - 247) * 256 + next() + 108,
            251..=254 => last = -(i64::from(byte) - 251) * 256 - next() - 108,
            operator => {
                let value = usize::try_from(last).unwrap_or(0);
                match operator {
                    12 => _ = next(),
                    15 => top.charset = value,
                    16 => top.encoding = value,
                    17 => top.char_strings = Some(value),
                    _ => {}
                }
            }
        }
    }
    top
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(
        bytes
            .iter()
            .fold(0, |value, byte| value << 8 | usize::from(*byte)),
    )
}

/// Returns the entries of a CFF index and the offset of its end.
fn index(program: &[u8], at: usize) -> Option<(Vec<&[u8]>, usize)> {
    let count = number(program, at, 2)?;
    if count == 0 {
        return Some((Vec::new(), at + 2));
    }
    let size = number(program, at + 2, 1).filter(|size| (1..=4).contains(size))?;
    let offset = |entry: usize| number(program, at + 3 + entry * size, size);
    let data = at + 2 + (count + 1) * size;
    let mut parts = Vec::new();
    for entry in 0..count {
        let (start, end) = (offset(entry)?, offset(entry + 1)?);
        parts.push(program.get(data.checked_add(start)?..data.checked_add(end)?)?);
    }
    Some((parts, data.checked_add(offset(count)?)?))
}

fn glyph_count(program: &[u8], at: usize) -> Option<usize> {
    number(program, at, 2)
}

/// Returns the string number of each glyph's name.
fn charset(program: &[u8], at: usize, count: usize) -> Vec<usize> {
    // There are three predefined charsets; only the first one is simply all standard strings in
    // order.
    if at <= 2 {
        return (0..count).collect();
    }
    let mut names = vec![0];
    let format = number(program, at, 1).unwrap_or(0);
    let mut place = at + 1;
    while names.len() < count {
        let Some(first) = number(program, place, 2) else {
            break;
        };
        let more_size = format.min(2);
        let more = match more_size {
            0 => 0,
            size => number(program, place + 2, size).unwrap_or(0),
        };
        names.extend((first..=first + more).take(count - names.len()));
        place += 2 + more_size;
    }
    names
}

/// Returns the codes with their glyphs.
fn codes(program: &[u8], at: usize) -> Option<Vec<(u8, usize)>> {
    let format = number(program, at, 1)? & 0x7f;
    let count = number(program, at + 1, 1)?;
    let byte = |place: usize| program.get(place).copied();
    let mut codes = Vec::new();
    let mut glyph = 1;
    for entry in 0..count {
        match format {
            0 => {
                codes.push((byte(at + 2 + entry)?, glyph));
                glyph += 1;
            }
            _ => {
                let (first, more) = (byte(at + 2 + 2 * entry)?, byte(at + 3 + 2 * entry)?);
                for code in first..=first.saturating_add(more) {
                    codes.push((code, glyph));
                    glyph += 1;
                }
            }
        }
    }
    Some(codes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type1_program_lists_its_codes() {
        let program = b"%!PS\n/Encoding 256 array\n0 1 255 {1 index exch /.notdef put} for\n\
            dup 1 /fi put\ndup 65 /Aacute put\nreadonly def\ndup 66 /B put";
        let meanings = parse_type1_encoding(program).unwrap();
        assert_eq!(meanings[1].as_deref(), Some("fi"));
        assert_eq!(meanings[65].as_deref(), Some("Á"));
        assert_eq!(meanings[66], None);
        let standard = parse_type1_encoding(b"/Encoding StandardEncoding def").unwrap();
        assert_eq!(standard[65].as_deref(), Some("A"));
        assert!(parse_type1_encoding(b"nothing").is_none());
    }

    #[test]
    fn a_cff_program_has_tables() {
        // One own name, "Euro"; glyph 1 is it, glyph 2 is "A" (string 34); codes 7 and 8.
        let mut program = vec![1, 0, 4, 1];
        program.extend([0, 1, 1, 1, 2, b'X']); // names
        let top = [
            29, 0, 0, 0, 100, 15, 29, 0, 0, 0, 110, 16, 29, 0, 0, 0, 120, 17,
        ];
        program.extend([0, 1, 1, 1, 1 + top.len() as u8]);
        program.extend(top);
        program.extend([0, 1, 1, 1, 5]);
        program.extend(b"Euro");
        program.resize(100, 0);
        program.extend([0, 1, 135, 0, 34]);
        program.resize(110, 0);
        program.extend([0, 2, 7, 8]);
        program.resize(120, 0);
        program.extend([0, 3]);
        let meanings = parse_cff_encoding(&program).unwrap();
        assert_eq!(meanings[7].as_deref(), Some("€"));
        assert_eq!(meanings[8].as_deref(), Some("A"));
        for length in 0..program.len() {
            let _ = parse_cff_encoding(&program[..length]);
        }
    }

    #[test]
    fn shared_strings_are_those_of_the_standard() {
        let cases = [
            (1, " "),
            (34, "A"),
            (109, "ﬁ"),
            (149, "ß"),
            (150, "¹"),
            (228, "ž"),
        ];
        for (string, expected) in cases {
            assert_eq!(
                standard_string(string).as_deref(),
                Some(expected),
                "{string}"
            );
        }
        assert_eq!(standard_string(229), None);
    }
}
