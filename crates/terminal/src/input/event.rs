//! Input events.

use crate::style::Rgb;

/// An event from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputEvent {
    /// A key.
    Key(Key),
    /// A whole paste.
    Paste(PasteResult),
    /// The window gained (`true`) or lost the focus.
    Focus(bool),
    /// A reply to a query, or a report.
    Reply(TerminalReply),
}

/// A paste, or the information that it was too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasteResult {
    /// The text, with line feeds as line ends and visible control characters.
    Text(String),
    /// The paste was longer than [`super::MAX_PASTED`]. It is refused as a whole, never cut.
    TooLong {
        /// The number of bytes that arrived.
        bytes: usize,
    },
}

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// The key.
    pub code: KeyCode,
    /// The modifiers that were held.
    pub modifiers: KeyModifiers,
}

/// A key. Letters are as typed: `A` is `Char('A')` without shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of keys say what they are")]
pub enum KeyCode {
    Char(char),
    Enter,
    Tab,
    Backspace,
    Escape,
    Delete,
    Insert,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Function(u8),
}

/// The modifiers that were held with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KeyModifiers {
    /// Shift. For letters it is part of the letter.
    pub shift: bool,
    /// Alt, or a preceding Escape.
    pub alt: bool,
    /// Control.
    pub control: bool,
    /// The key of the window system (Super, Command or Windows).
    pub command: bool,
}

impl KeyModifiers {
    /// No modifiers.
    pub const NONE: Self = Self {
        shift: false,
        alt: false,
        control: false,
        command: false,
    };

    /// Decodes the number that xterm and Kitty send: one more than the sum of 1, 2, 4, 8.
    pub(super) fn from_parameter(parameter: u32) -> Self {
        let bits = parameter.saturating_sub(1);
        Self {
            shift: bits & 1 != 0,
            alt: bits & 2 != 0,
            control: bits & 4 != 0,
            command: bits & 8 != 0,
        }
    }
}

impl Key {
    /// Enter, sent as a carriage return or as a key report.
    pub const RETURN: Self = Self::plain(KeyCode::Enter);
    /// Ctrl-J, which is also a line feed in a paste without brackets.
    pub const LINE_FEED: Self = Self::control('j');
    /// Escape.
    pub const ESCAPE: Self = Self::plain(KeyCode::Escape);

    /// Creates a key without modifiers.
    pub const fn plain(code: KeyCode) -> Self {
        Self {
            code,
            modifiers: KeyModifiers::NONE,
        }
    }

    /// Creates a letter without modifiers.
    pub const fn char(letter: char) -> Self {
        Self::plain(KeyCode::Char(letter))
    }

    /// Creates a letter with Control.
    pub const fn control(letter: char) -> Self {
        Self {
            code: KeyCode::Char(letter),
            modifiers: KeyModifiers {
                control: true,
                ..KeyModifiers::NONE
            },
        }
    }

    /// Returns the same key with Alt.
    #[must_use]
    pub const fn with_alt(mut self) -> Self {
        self.modifiers.alt = true;
        self
    }

    /// Returns the same key with Shift.
    #[must_use]
    pub const fn with_shift(mut self) -> Self {
        self.modifiers.shift = true;
        self
    }

    /// Returns the letter, if the key inserts one.
    pub fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(letter)
                if !self.modifiers.control && !self.modifiers.alt && !self.modifiers.command =>
            {
                Some(letter)
            }
            _ => None,
        }
    }
}

/// A reply of the terminal about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalReply {
    /// The background colour (OSC 11).
    Background(Rgb),
    /// The name and version (XTVERSION).
    Version(String),
    /// True if it can show Kitty graphics.
    Graphics(bool),
    /// Device attributes (DA1): its features as numbers. Queried last.
    Attributes(Vec<u32>),
    /// The Kitty keyboard reports that are enabled.
    KeyboardFlags(u32),
    /// The user switched between a light and a dark theme (mode 2031).
    ThemeChanged {
        /// True for dark.
        is_dark: bool,
    },
}
