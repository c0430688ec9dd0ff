//! Parses key names for `Input.dispatchKeyEvent`.

use crate::error::{Result, unusable};

/// A key with its modifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyPress {
    pub(crate) key: String,
    pub(crate) code: String,
    pub(crate) number: u32,
    /// The text that the key types, if any.
    pub(crate) text: Option<String>,
    pub(crate) modifiers: u32,
}

const NAMED: [(&str, u32, Option<&str>); 29] = [
    ("Enter", 13, Some("\r")),
    ("Tab", 9, None),
    ("Escape", 27, None),
    ("Backspace", 8, None),
    ("Delete", 46, None),
    ("Insert", 45, None),
    ("ArrowLeft", 37, None),
    ("ArrowUp", 38, None),
    ("ArrowRight", 39, None),
    ("ArrowDown", 40, None),
    ("Home", 36, None),
    ("End", 35, None),
    ("PageUp", 33, None),
    ("PageDown", 34, None),
    ("Space", 32, Some(" ")),
    ("ContextMenu", 93, None),
    ("F1", 112, None),
    ("F2", 113, None),
    ("F3", 114, None),
    ("F4", 115, None),
    ("F5", 116, None),
    ("F6", 117, None),
    ("F7", 118, None),
    ("F8", 119, None),
    ("F9", 120, None),
    ("F10", 121, None),
    ("F11", 122, None),
    ("F12", 123, None),
    ("CapsLock", 20, None),
];

/// Parses a key such as `Enter`, `a` or `Control+Shift+ArrowLeft`.
pub(crate) fn parse(text: &str) -> Result<KeyPress> {
    let wrong = || {
        unusable(format!(
            "\"{}\" is not a key. Use one character, or Enter, Tab, Escape, Backspace, Delete, ArrowDown, Home, End, \
             PageDown, F1 …, with Control+, Shift+, Alt+ or Meta+ before it.",
            crate::text::one_line(text, 40)
        ))
    };
    let mut modifiers = 0;
    let mut rest = text.trim();
    while let Some((held, more)) = rest
        .split_once('+')
        .filter(|(held, more)| !held.is_empty() && !more.is_empty())
    {
        modifiers |= match held.to_ascii_lowercase().as_str() {
            "alt" | "option" => 1,
            "control" | "ctrl" | "controlormeta" => 2,
            "meta" | "cmd" | "command" => 4,
            "shift" => 8,
            _ => return Err(wrong()),
        };
        rest = more;
    }
    let same = |name: &str| name.eq_ignore_ascii_case(rest);
    let alias = match rest.to_ascii_lowercase().as_str() {
        "esc" => "Escape",
        "return" => "Enter",
        "left" => "ArrowLeft",
        "right" => "ArrowRight",
        "up" => "ArrowUp",
        "down" => "ArrowDown",
        " " => "Space",
        _ => rest,
    };
    let named = NAMED.iter().find(|(name, ..)| same(name) || *name == alias);
    if let Some(&(name, number, types)) = named {
        let key = if name == "Space" { " " } else { name };
        return Ok(KeyPress {
            key: key.to_owned(),
            code: name.to_owned(),
            number,
            text: types.filter(|_| modifiers & 7 == 0).map(str::to_owned),
            modifiers,
        });
    }
    let mut characters = rest.chars();
    let (Some(character), None) = (characters.next(), characters.next()) else {
        return Err(wrong());
    };
    if character.is_control() {
        return Err(wrong());
    }
    let typed = match modifiers {
        held if held & 8 != 0 => character.to_ascii_uppercase(),
        // `Control+A` is a common notation for the key without Shift.
        held if held != 0 => character.to_ascii_lowercase(),
        _ => character,
    };
    let upper = character.to_ascii_uppercase();
    let (code, number) = match upper {
        'A'..='Z' => (format!("Key{upper}"), u32::from(upper)),
        '0'..='9' => (format!("Digit{upper}"), u32::from(upper)),
        _ => (String::new(), 0),
    };
    Ok(KeyPress {
        key: typed.to_string(),
        code,
        number,
        text: (modifiers & 7 == 0).then(|| typed.to_string()),
        modifiers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_by_name() {
        let enter = parse("Enter").unwrap();
        assert_eq!((enter.number, enter.text.as_deref()), (13, Some("\r")));
        let all = parse("Control+A").unwrap();
        assert_eq!(
            (all.code.as_str(), all.modifiers, all.text),
            ("KeyA", 2, None)
        );
        assert_eq!(parse("shift+a").unwrap().text.as_deref(), Some("A"));
        assert_eq!(parse("+").unwrap().key, "+");
        assert_eq!(parse("Control++").unwrap().key, "+");
        assert_eq!(parse("esc").unwrap().key, "Escape");
        assert_eq!(parse("ż").unwrap().text.as_deref(), Some("ż"));
        for wrong in ["", "Foo", "Hyper+a", "ab", "\n"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
