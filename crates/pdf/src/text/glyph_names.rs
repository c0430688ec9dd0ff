//! Maps the name of a glyph to its text: `Aacute`, `fi`, `uni20AC`, `f_f.alt`.
//!
//! Names follow Adobe's conventions. Accented letters are not listed: they are composed from the
//! letter and the accent in their name.

use unicode_normalization::char::compose;

/// The names of glyphs that are not composed of a letter and an accent, each with its text.
const NAMES: &str = "\
    space:\u{20} exclam:! quotedbl:\" numbersign:# dollar:$ percent:% ampersand:& quotesingle:' parenleft:( \
    parenright:) asterisk:* plus:+ comma:, hyphen:- period:. slash:/ zero:0 one:1 two:2 three:3 four:4 \
    five:5 six:6 seven:7 eight:8 nine:9 colon:: semicolon:; less:< equal:= greater:> question:? at:@ \
    bracketleft:[ backslash:\\ bracketright:] asciicircum:^ underscore:_ grave:` braceleft:{ bar:| \
    braceright:} asciitilde:~ exclamdown:¡ cent:¢ sterling:£ currency:¤ yen:¥ brokenbar:¦ section:§ \
    dieresis:¨ copyright:© ordfeminine:ª guillemotleft:« logicalnot:¬ sfthyphen:\u{ad} softhyphen:\u{ad} \
    registered:® macron:¯ overscore:¯ degree:° plusminus:± twosuperior:² threesuperior:³ acute:´ mu:µ \
    mu1:µ paragraph:¶ periodcentered:· middot:· cedilla:¸ onesuperior:¹ ordmasculine:º guillemotright:» \
    onequarter:¼ onehalf:½ threequarters:¾ questiondown:¿ AE:Æ Eth:Ð multiply:× Oslash:Ø Thorn:Þ \
    germandbls:ß ae:æ eth:ð divide:÷ oslash:ø thorn:þ Dcroat:Đ Dslash:Đ dcroat:đ dslash:đ Hbar:Ħ hbar:ħ \
    dotlessi:ı IJ:Ĳ ij:ĳ kgreenlandic:ĸ Ldot:Ŀ ldot:ŀ Lslash:Ł lslash:ł napostrophe:ŉ quoteleftn:ŉ Eng:Ŋ \
    eng:ŋ OE:Œ oe:œ Tbar:Ŧ tbar:ŧ longs:ſ florin:ƒ Ohorn:Ơ ohorn:ơ Uhorn:Ư uhorn:ư schwa:ə Germandbls:ẞ \
    dotlessj:ȷ circumflex:ˆ caron:ˇ breve:˘ dotaccent:˙ ring:˚ ogonek:˛ tilde:˜ hungarumlaut:˝ \
    Alpha:Α Beta:Β Gamma:Γ Delta:Δ Epsilon:Ε Zeta:Ζ Eta:Η Theta:Θ Iota:Ι Kappa:Κ Lambda:Λ Mu:Μ Nu:Ν Xi:Ξ \
    Omicron:Ο Pi:Π Rho:Ρ Sigma:Σ Tau:Τ Upsilon:Υ Phi:Φ Chi:Χ Psi:Ψ Omega:Ω alpha:α beta:β gamma:γ \
    delta:δ epsilon:ε epsilon1:ϵ zeta:ζ eta:η theta:θ theta1:ϑ iota:ι kappa:κ lambda:λ nu:ν xi:ξ \
    omicron:ο pi:π pi1:ϖ omega1:ϖ rho:ρ rho1:ϱ sigma:σ sigma1:ς tau:τ upsilon:υ phi:φ phi1:ϕ chi:χ psi:ψ \
    omega:ω Upsilon1:ϒ Alphatonos:Ά Epsilontonos:Έ Etatonos:Ή Iotatonos:Ί Omicrontonos:Ό Upsilontonos:Ύ \
    Omegatonos:Ώ alphatonos:ά epsilontonos:έ etatonos:ή iotatonos:ί omicrontonos:ό upsilontonos:ύ \
    omegatonos:ώ iotadieresis:ϊ upsilondieresis:ϋ endash:– emdash:— horizontalbar:― underscoredbl:‗ \
    quoteleft:‘ quoteright:’ quotesinglbase:‚ quotereversed:‛ quotedblleft:“ quotedblright:” \
    quotedblbase:„ dagger:† daggerdbl:‡ bullet:• onedotenleader:․ twodotenleader:‥ ellipsis:… \
    perthousand:‰ minute:′ prime:′ second:″ guilsinglleft:‹ guilsinglright:› exclamdbl:‼ fraction:⁄ \
    zerosuperior:⁰ foursuperior:⁴ fivesuperior:⁵ sixsuperior:⁶ sevensuperior:⁷ eightsuperior:⁸ \
    ninesuperior:⁹ nsuperior:ⁿ zeroinferior:₀ oneinferior:₁ twoinferior:₂ threeinferior:₃ fourinferior:₄ \
    fiveinferior:₅ sixinferior:₆ seveninferior:₇ eightinferior:₈ nineinferior:₉ colonmonetary:₡ franc:₣ \
    lira:₤ peseta:₧ dong:₫ Euro:€ euro:€ Ifraktur:ℑ weierstrass:℘ Rfraktur:ℜ prescription:℞ trademark:™ \
    estimated:℮ aleph:ℵ onethird:⅓ twothirds:⅔ oneeighth:⅛ threeeighths:⅜ fiveeighths:⅝ seveneighths:⅞ \
    arrowleft:← arrowup:↑ arrowright:→ arrowdown:↓ arrowboth:↔ arrowupdn:↕ carriagereturn:↵ \
    arrowdblleft:⇐ arrowdblup:⇑ arrowdblright:⇒ arrowdbldown:⇓ arrowdblboth:⇔ universal:∀ partialdiff:∂ \
    existential:∃ emptyset:∅ increment:∆ gradient:∇ nabla:∇ element:∈ notelement:∉ suchthat:∋ \
    product:∏ summation:∑ minus:− asteriskmath:∗ bulletoperator:∙ radical:√ proportional:∝ infinity:∞ \
    orthogonal:∟ angle:∠ logicaland:∧ logicalor:∨ intersection:∩ union:∪ integral:∫ therefore:∴ \
    similar:∼ congruent:≅ approxequal:≈ notequal:≠ equivalence:≡ lessequal:≤ greaterequal:≥ \
    propersubset:⊂ propersuperset:⊃ notsubset:⊄ reflexsubset:⊆ reflexsuperset:⊇ circleplus:⊕ \
    circlemultiply:⊗ perpendicular:⊥ dotmath:⋅ house:⌂ integraltp:⌠ integralbt:⌡ angleleft:〈 \
    angleright:〉 blacksquare:■ filledbox:■ H22073:□ H18543:▪ H18551:▫ filledrect:▬ triagup:▲ triagrt:► \
    triagdn:▼ triaglf:◄ lozenge:◊ circle:○ H18533:● invbullet:◘ invcircle:◙ openbullet:◦ smileface:☺ \
    invsmileface:☻ sun:☼ female:♀ male:♂ spade:♠ club:♣ heart:♥ diamond:♦ musicalnote:♪ musicalnotedbl:♫ \
    ff:ff fi:fi fl:fl ffi:ffi ffl:ffl visiblespace:\u{20} nbspace:\u{a0} nonbreakingspace:\u{a0} \
    hyphenchar:- commaaccent:, afii61352:№ afii10023:Ё afii10071:ё negationslash:\u{338} mapsto:↦ \
    lscript:ℓ afii61289:ℓ braceleftbig:{ bracerightbig:} parenleftbig:( parenrightbig:) check:✓ \
    star:⋆ arrownortheast:↗ arrowsoutheast:↘ lessmuch:≪ greatermuch:≫ precedes:≺ follows:≻ logicalxor:⊻ \
    dotlessjmath:ȷ vector:\u{20d7} flat:♭ natural:♮ sharp:♯ slurbelow:⌣ slurabove:⌢ openface:□ perp:⊥ \
    periodcentered1:· Omegainv:℧ circledot:⊙ circleminus:⊖ circledivide:⊘ diamondmath:⋄ bardbl:‖";

/// The suffixes of glyph names that mean an accent, with the combining character.
const ACCENTS: [(&str, char); 16] = [
    ("grave", '\u{300}'),
    ("acute", '\u{301}'),
    ("circumflex", '\u{302}'),
    ("tilde", '\u{303}'),
    ("macron", '\u{304}'),
    ("breve", '\u{306}'),
    ("dotaccent", '\u{307}'),
    ("dot", '\u{307}'),
    ("dieresis", '\u{308}'),
    ("ring", '\u{30a}'),
    ("hungarumlaut", '\u{30b}'),
    ("caron", '\u{30c}'),
    ("commaaccent", '\u{327}'),
    ("cedilla", '\u{327}'),
    ("ogonek", '\u{328}'),
    ("dotbelow", '\u{323}'),
];

/// Returns the text of a glyph with this name, which may be several characters.
pub(super) fn glyph_text(name: &str) -> Option<String> {
    // The text after the first dot names a variant of the same character.
    let name = match name.split_once('.') {
        Some(("", _)) => return None,
        Some((name, _)) => name,
        None => name,
    };
    let parts: Option<Vec<String>> = name.split('_').map(part).collect();
    Some(parts?.concat()).filter(|text| !text.is_empty())
}

fn part(name: &str) -> Option<String> {
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Some(letter.to_string());
    }
    listed(name)
        .map(str::to_owned)
        .or_else(|| accented(name).map(String::from))
        .or_else(|| numbered(name))
}

fn listed(name: &str) -> Option<&'static str> {
    // A space cannot be listed, because spaces separate the entries of the list.
    if matches!(name, "space" | "visiblespace") {
        return Some(" ");
    }
    NAMES.split(' ').find_map(|entry| {
        let (listed, text) = entry.split_once(':')?;
        (listed == name).then_some(text)
    })
}

fn accented(name: &str) -> Option<char> {
    ACCENTS.into_iter().find_map(|(accent, mark)| {
        let base = name.strip_suffix(accent)?;
        let mut letters = base.chars();
        let (Some(letter), None) = (letters.next(), letters.next()) else {
            return None;
        };
        // Some languages use a comma below where others use a cedilla.
        compose(letter, mark).or_else(|| compose(letter, '\u{326}').filter(|_| mark == '\u{327}'))
    })
}

/// Maps `uni20AC`, `uni00660069`, `u1F600`, and the numbered names of Cyrillic and Hebrew letters.
fn numbered(name: &str) -> Option<String> {
    let hex = |digits: &str| {
        let value = u32::from_str_radix(digits, 16).ok()?;
        char::from_u32(value).filter(|character| !character.is_control())
    };
    if let Some(digits) = name.strip_prefix("uni")
        && digits.len() >= 4
        && digits.len().is_multiple_of(4)
        && digits.is_ascii()
    {
        let units = digits.as_bytes().chunks(4);
        return units.map(|unit| hex(str::from_utf8(unit).ok()?)).collect();
    }
    if let Some(digits) = name.strip_prefix('u')
        && (4..=6).contains(&digits.len())
        && let Some(character) = hex(digits)
    {
        return Some(character.to_string());
    }
    let number: u32 = name.strip_prefix("afii")?.parse().ok()?;
    let value = match number {
        10_017..=10_022 => 0x410 + number - 10_017,
        10_024..=10_049 => 0x416 + number - 10_024,
        10_065..=10_070 => 0x430 + number - 10_065,
        10_072..=10_097 => 0x436 + number - 10_072,
        57_664..=57_690 => 0x5d0 + number - 57_664,
        _ => return None,
    };
    char::from_u32(value).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_their_parts_mean() {
        let cases = [
            ("A", Some("A")),
            ("space", Some(" ")),
            ("colon", Some(":")),
            ("Aacute", Some("Á")),
            ("udieresis", Some("ü")),
            ("scommaaccent", Some("ş")),
            ("germandbls", Some("ß")),
            ("quoteright", Some("’")),
            ("fi", Some("fi")),
            ("f_f_i.alt", Some("ffi")),
            ("uni20AC", Some("€")),
            ("uni00660069", Some("fi")),
            ("u1F600", Some("😀")),
            ("afii10017", Some("А")),
            ("afii10097", Some("я")),
            ("Omega", Some("Ω")),
            (".notdef", None),
            ("g123", None),
            ("uniZZZZ", None),
        ];
        for (name, expected) in cases {
            assert_eq!(glyph_text(name).as_deref(), expected, "{name}");
        }
    }
}
