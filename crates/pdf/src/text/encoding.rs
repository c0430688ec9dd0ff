//! The encodings of simple fonts (one byte per code), used if a font does not map each code itself.

use encoding_rs::{Encoding, MACINTOSH, WINDOWS_1252};

/// The encodings that a PDF can name, and the built-in encodings of the symbol fonts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BaseEncoding {
    Standard,
    WinAnsi,
    MacRoman,
    Symbol,
    Dingbats,
}

/// The upper half of Adobe's standard encoding: each character with its code.
const STANDARD: &str = "\
    ¡161 ¢162 £163 ⁄164 ¥165 ƒ166 §167 ¤168 '169 “170 «171 ‹172 ›173 ﬁ174 ﬂ175 –177 †178 ‡179 ·180 \
    ¶182 •183 ‚184 „185 ”186 »187 …188 ‰189 ¿191 `193 ´194 ˆ195 ˜196 ¯197 ˘198 ˙199 ¨200 ˚202 ¸203 \
    ˝205 ˛206 ˇ207 —208 Æ225 ª227 Ł232 Ø233 Œ234 º235 æ241 ı245 ł248 ø249 œ250 ß251";

/// The Symbol font from code 0x20 and from code 0xA0; a space marks an undefined code.
const SYMBOL_LOW: &str = " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼";
const SYMBOL_HIGH: &str = "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ 〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭";

impl BaseEncoding {
    /// Returns the encoding with this name in a PDF.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"StandardEncoding" => Some(Self::Standard),
            b"WinAnsiEncoding" => Some(Self::WinAnsi),
            b"MacRomanEncoding" => Some(Self::MacRoman),
            _ => None,
        }
    }

    /// Returns the character of a code.
    pub(super) fn character(self, code: u8) -> Option<char> {
        match self {
            Self::Standard => standard(code),
            Self::WinAnsi => single(WINDOWS_1252, code),
            Self::MacRoman => single(MACINTOSH, code),
            Self::Symbol => symbol(code),
            Self::Dingbats => dingbat(code),
        }
    }
}

fn standard(code: u8) -> Option<char> {
    match code {
        b'\'' => Some('\u{2019}'),
        b'`' => Some('\u{2018}'),
        b' '..=b'~' => Some(code.into()),
        _ => STANDARD.split(' ').find_map(|entry| {
            let character = entry.chars().next()?;
            let number = entry.get(character.len_utf8()..)?;
            (number.parse() == Ok(code)).then_some(character)
        }),
    }
}

fn single(encoding: &'static Encoding, code: u8) -> Option<char> {
    let bytes = [code];
    let text = encoding.decode_without_bom_handling(&bytes).0;
    text.chars().next().filter(|found| !found.is_control())
}

fn symbol(code: u8) -> Option<char> {
    let found = match code {
        0x20..0x7f => SYMBOL_LOW.chars().nth(usize::from(code) - 0x20),
        0xa0.. => SYMBOL_HIGH.chars().nth(usize::from(code) - 0xa0),
        _ => None,
    };
    found.filter(|found| *found != ' ' || code == 0x20)
}

/// Unicode has the dingbats in the same order, except those that it already had.
fn dingbat(code: u8) -> Option<char> {
    let value = match code {
        0x20 => 0x20,
        0x25 => 0x260e,
        0x2a => 0x261b,
        0x2b => 0x261e,
        0x48 => 0x2605,
        0x6c => 0x25cf,
        0x6e => 0x25a0,
        0x73 => 0x25b2,
        0x74 => 0x25bc,
        0x75 => 0x25c6,
        0x77 => 0x25d7,
        0xa8 => 0x2663,
        0xa9 => 0x2666,
        0xaa => 0x2665,
        0xab => 0x2660,
        0xac..=0xb5 => 0x2460 + u32::from(code) - 0xac,
        0xd5 => 0x2192,
        0xd6 => 0x2194,
        0xd7 => 0x2195,
        0x21..=0x7e => 0x2700 + u32::from(code) - 0x20,
        0xa1..=0xfe => 0x2700 + u32::from(code) - 0x40,
        _ => return None,
    };
    char::from_u32(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_what_the_tables_of_the_standard_say() {
        use BaseEncoding::{Dingbats, MacRoman, Standard, Symbol, WinAnsi};
        let cases = [
            (Standard, b'A', Some('A')),
            (Standard, b'\'', Some('\u{2019}')),
            (Standard, 0xae, Some('ﬁ')),
            (Standard, 0xfb, Some('ß')),
            (Standard, 0xff, None),
            (WinAnsi, 0x80, Some('€')),
            (WinAnsi, 0xe4, Some('ä')),
            (WinAnsi, 0x81, None),
            (MacRoman, 0x8a, Some('ä')),
            (Symbol, b'a', Some('α')),
            (Symbol, 0xa3, Some('≤')),
            (Symbol, 0xb3, Some('≥')),
            (Symbol, 0xf2, Some('∫')),
            (Symbol, 0xfe, Some('⎭')),
            (Dingbats, b'4', Some('✔')),
            (Dingbats, 0xd4, Some('➔')),
        ];
        for (encoding, code, expected) in cases {
            assert_eq!(encoding.character(code), expected, "{encoding:?} {code}");
        }
    }
}
