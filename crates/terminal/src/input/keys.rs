//! Decodes the escape sequences of keys.

use super::event::{Key, KeyCode, KeyModifiers};

/// The parameters of a sequence: `1;5` is two parameters, and in `97:65;5` the first has two parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CsiParameters {
    groups: Vec<Vec<u32>>,
}

impl CsiParameters {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let number = |part: &[u8]| {
            let digits = part.iter().filter(|byte| byte.is_ascii_digit());
            digits.fold(0u32, |sum, digit| {
                sum.saturating_mul(10)
                    .saturating_add(u32::from(digit - b'0'))
            })
        };
        let groups = bytes.split(|byte| *byte == b';');
        let groups = groups.map(|group| group.split(|byte| *byte == b':').map(number).collect());
        Self {
            groups: groups.collect(),
        }
    }

    /// Returns the first part of a parameter, or 0 if it is absent.
    pub(super) fn get(&self, at: usize) -> u32 {
        let group = self.groups.get(at);
        group.and_then(|group| group.first()).copied().unwrap_or(0)
    }

    fn part(&self, at: usize, part: usize) -> u32 {
        let group = self.groups.get(at);
        group
            .and_then(|group| group.get(part))
            .copied()
            .unwrap_or(0)
    }

    pub(super) fn all(&self) -> Vec<u32> {
        (0..self.groups.len()).map(|at| self.get(at)).collect()
    }
}

/// Decodes a key that ends in a letter: `CSI 1;5A`, `SS3 P`.
pub(super) fn decode_letter(letter: u8, parameters: &CsiParameters) -> Option<Key> {
    let mut modifiers = KeyModifiers::from_parameter(parameters.get(1));
    let code = match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'P' => KeyCode::Function(1),
        b'Q' => KeyCode::Function(2),
        b'R' if parameters.get(0) <= 1 => KeyCode::Function(3),
        b'S' => KeyCode::Function(4),
        b'Z' => {
            modifiers.shift = true;
            KeyCode::Tab
        }
        _ => return None,
    };
    is_press(parameters).then_some(Key { code, modifiers })
}

/// Decodes a key of the numeric keypad in application mode, `SS3 M`.
pub(super) fn decode_keypad(letter: u8) -> Option<Key> {
    let code = match letter {
        b'M' => KeyCode::Enter,
        b'X' => KeyCode::Char('='),
        b'j'..=b'y' => KeyCode::Char(char::from(letter - b'j' + b'*')),
        _ => return None,
    };
    Some(Key::plain(code))
}

/// Decodes `CSI n;m~`.
pub(super) fn decode_number(parameters: &CsiParameters) -> Option<Key> {
    if parameters.get(0) == 27 && parameters.all().len() == 3 {
        return by_code_point(parameters.get(2), parameters.get(1));
    }
    let code = match parameters.get(0) {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        number @ 11..=15 => function(number - 10),
        number @ 17..=21 => function(number - 11),
        number @ 23..=24 => function(number - 12),
        _ => return None,
    };
    let modifiers = KeyModifiers::from_parameter(parameters.get(1));
    is_press(parameters).then_some(Key { code, modifiers })
}

fn function(number: u32) -> KeyCode {
    KeyCode::Function(u8::try_from(number).unwrap_or(0))
}

/// Decodes `CSI c;m u`, the key report of Kitty.
pub(super) fn decode_report(parameters: &CsiParameters) -> Option<Key> {
    if !is_press(parameters) {
        return None;
    }
    by_code_point(parameters.get(0), parameters.get(1))
}

/// Returns whether the event is a key press. Release events are not requested; if one comes
/// nevertheless, it is ignored.
fn is_press(parameters: &CsiParameters) -> bool {
    parameters.part(1, 1) != 3
}

fn by_code_point(code_point: u32, modifiers: u32) -> Option<Key> {
    let mut modifiers = KeyModifiers::from_parameter(modifiers);
    let code = match code_point {
        8 | 127 => KeyCode::Backspace,
        9 => KeyCode::Tab,
        10 if !modifiers.control => {
            modifiers.control = true;
            KeyCode::Char('j')
        }
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Escape,
        57399..=57408 => KeyCode::Char(char::from_digit(code_point - 57399, 10)?),
        57409 => KeyCode::Char('.'),
        57410 => KeyCode::Char('/'),
        57411 => KeyCode::Char('*'),
        57412 => KeyCode::Char('-'),
        57413 => KeyCode::Char('+'),
        57415 => KeyCode::Char('='),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        // Locks, media and modifier keys.
        57344..=63743 => return None,
        other => {
            let letter = char::from_u32(other).filter(|letter| !letter.is_control())?;
            return Some(letter_key(letter, modifiers));
        }
    };
    Some(Key { code, modifiers })
}

/// Returns a letter key as it would be typed: shift is part of the letter, and with Control the
/// letter is lower case.
fn letter_key(letter: char, mut modifiers: KeyModifiers) -> Key {
    let mut code = letter;
    if modifiers.control {
        code = letter.to_lowercase().next().unwrap_or(letter);
    } else if modifiers.shift {
        code = letter.to_uppercase().next().unwrap_or(letter);
        modifiers.shift = false;
    }
    Key {
        code: KeyCode::Char(code),
        modifiers,
    }
}

/// Decodes a single control byte or DEL.
pub(super) fn decode_control(byte: u8) -> Key {
    match byte {
        b'\r' => Key::RETURN,
        b'\t' => Key::plain(KeyCode::Tab),
        0x7f | 0x08 => Key::plain(KeyCode::Backspace),
        0x1b => Key::ESCAPE,
        0 => Key::control(' '),
        1..=26 => Key::control(char::from(byte - 1 + b'a')),
        // Ctrl with \ ] ^ _
        _ => Key::control(char::from(byte + b'@')),
    }
}
