//! Translation of ECMAScript regular expressions, which JSON Schema uses, for our regex engine.

use fancy_regex::Regex;

/// The characters of `\s` in ECMAScript, inside a class.
const SPACES: &str = r"\t\n\x0B\f\r \u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF";

pub(super) fn compiled(pattern: &str) -> Result<Regex, String> {
    let translated = translated(pattern)
        .ok_or_else(|| format!("`{pattern}` is not a regular expression of ECMAScript"))?;
    Regex::new(&translated)
        .map_err(|error| format!("`{pattern}` is not a regular expression: {error}"))
}

/// Returns whether the regex matches; `false` if matching takes too long.
pub(super) fn matches(regex: &Regex, text: &str) -> bool {
    regex.is_match(text).unwrap_or(false)
}

fn translated(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    // Whether the position is inside a character class.
    let mut class = false;
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        rest = tail;
        match c {
            '\\' => rest = escape(tail, class, &mut out)?,
            '[' if class => out.push_str(r"\["),
            '[' => {
                class = true;
                // ECMAScript allows the empty class `[]`, and `[^]`, which matches everything.
                if let Some(after) = tail.strip_prefix("^]") {
                    (rest, class) = (after, false);
                    out.push_str(r"(?s:.)");
                } else if let Some(after) = tail.strip_prefix(']') {
                    (rest, class) = (after, false);
                    out.push_str(r"(?!)");
                } else if let Some(after) = tail.strip_prefix('^') {
                    rest = after;
                    out.push_str("[^");
                } else {
                    out.push('[');
                }
            }
            ']' if class => {
                class = false;
                out.push(']');
            }
            '(' if !class && !group_is_known(tail) => return None,
            // Two of these in a row are operators in the classes of our engine.
            '&' | '~' | '#' | ' ' if class => {
                out.push('\\');
                out.push(c);
            }
            '-' if class && tail.starts_with('-') => out.push_str(r"\-"),
            // ECMAScript has more line ends than `\n`.
            '.' if !class => out.push_str(r"[^\n\r\u2028\u2029]"),
            c => out.push(c),
        }
    }
    (!class).then_some(out)
}

/// Returns whether ECMAScript has this kind of group: it has no comment groups and only one syntax
/// for names.
fn group_is_known(tail: &str) -> bool {
    match tail.strip_prefix('?') {
        None => true,
        Some(kind) => {
            kind.starts_with([':', '=', '!', '<'])
                // ECMAScript has flags for a group since 2025.
                || kind
                    .trim_start_matches(['i', 'm', 's', '-'])
                    .starts_with(':')
        }
    }
}

/// Translates an escape sequence after its backslash.
fn escape<'p>(tail: &'p str, class: bool, out: &mut String) -> Option<&'p str> {
    let c = tail.chars().next()?;
    let rest = &tail[c.len_utf8()..];
    let set = |out: &mut String, inner: &str, negated: bool| match (class, negated) {
        (true, false) => out.push_str(inner),
        (_, false) => out.push_str(&format!("[{inner}]")),
        (_, true) => out.push_str(&format!("[^{inner}]")),
    };
    match c {
        'd' => set(out, "0-9", false),
        'D' => set(out, "0-9", true),
        'w' => set(out, "A-Za-z0-9_", false),
        'W' => set(out, "A-Za-z0-9_", true),
        's' => set(out, SPACES, false),
        'S' => set(out, SPACES, true),
        'b' if class => out.push_str(r"\x08"),
        'b' => out.push_str(r"(?-u:\b)"),
        'B' => out.push_str(r"(?-u:\B)"),
        'c' => {
            let letter = rest.chars().next().filter(char::is_ascii_alphabetic)?;
            out.push_str(&format!(r"\x{:02X}", letter as u32 % 32));
            return Some(&rest[1..]);
        }
        'v' => out.push_str(r"\x0B"),
        '0' if !rest.starts_with(|next: char| next.is_ascii_digit()) => out.push_str(r"\x00"),
        'u' => return unicode(rest, out),
        'p' | 'P' => {
            let (name, after) = rest.strip_prefix('{')?.split_once('}')?;
            let name = name
                .strip_prefix("General_Category=")
                .or_else(|| name.strip_prefix("gc="))
                .unwrap_or(name);
            out.push_str(&format!(r"\{c}{{{name}}}"));
            return Some(after);
        }
        't' | 'n' | 'r' | 'f' | 'x' | 'k' | '1'..='9' => {
            out.push('\\');
            out.push(c);
        }
        // ECMAScript defines no other letters, and some of them have another meaning in our engine.
        c if c.is_ascii_alphabetic() => return None,
        c if c.is_ascii_punctuation() => {
            out.push('\\');
            out.push(c);
        }
        c => out.push(c),
    }
    Some(rest)
}

/// Translates `\u0041`, `\u{41}`, or a surrogate pair.
fn unicode<'p>(rest: &'p str, out: &mut String) -> Option<&'p str> {
    let four = |text: &'p str| {
        let digits = text.get(..4)?;
        let code = u32::from_str_radix(digits, 16).ok()?;
        Some((code, &text[4..]))
    };
    let (code, rest) = match rest.strip_prefix('{') {
        Some(braced) => {
            let (digits, after) = braced.split_once('}')?;
            (u32::from_str_radix(digits, 16).ok()?, after)
        }
        None => {
            let (high, after) = four(rest)?;
            match after.strip_prefix(r"\u").and_then(four) {
                Some((low, end)) if (0xD800..0xDC00).contains(&high) && low >= 0xDC00 => {
                    (0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), end)
                }
                _ => (high, after),
            }
        }
    };
    char::from_u32(code)?;
    out.push_str(&format!(r"\x{{{code:X}}}"));
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_in_ecmascript() {
        for (pattern, text, wanted) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "٣", false),
            (r"^\w$", "é", false),
            (r"^\s$", "\u{feff}", true),
            (r"^[\w-]+$", "a-b", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[[a]+$", "[a", true),
            (r"^\cI$", "\t", true),
            (r"^\u{1F600}$", "😀", true),
            (r"^\uD83D\uDE00$", "😀", true),
            (r"^(?!no)", "not", false),
            (r"^a.c$", "a\rc", false),
            (r"^a$", "a\n", false),
            (r"^[^]$", "\n", true),
            (r"\/path", "a/path", true),
            (r"^\p{Letter}+$", "éß", true),
            (r"(?<x>a)\k<x>", "aa", true),
        ] {
            let regex = compiled(pattern).unwrap();
            assert_eq!(matches(&regex, text), wanted, "{pattern} on {text:?}");
        }
        for wrong in [
            "(", "[", r"\Z", r"\a", r"a\", "a**", "(?i)a", "(?P<x>a)", "(?#a)",
        ] {
            assert!(compiled(wrong).is_err(), "{wrong}");
        }
    }
}
