//! Events.

use crate::style::Rgb;

/// What came from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputEvent {
    /// A key.
    Key(Key),
    /// A paste, as a whole.
    Paste(PasteResult),
    /// The window was focused, or not any more.
    Focus(bool),
    /// An answer, or a report that was asked for.
    Reply(TerminalReply),
}

/// A paste, or that it was too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasteResult {
    /// The text: line ends are line feeds, control characters visible.
    Text(String),
    /// It was longer than [`super::MOST_PASTED`] and is refused as a whole, never cut.
    TooLong {
        /// At most this many bytes came.
        bytes: usize,
    },
}

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Which key.
    pub code: KeyCode,
    /// What was held.
    pub modifiers: KeyModifiers,
}

/// Which key. Letters are as typed: `A` is `Char('A')` without shift.
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

/// What was held with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KeyModifiers {
    /// Shift. Of letters it is in the letter.
    pub shift: bool,
    /// Alt, or Escape before.
    pub alt: bool,
    /// Control.
    pub control: bool,
    /// The key of the window system.
    pub command: bool,
}

impl KeyModifiers {
    /// Nothing was held.
    pub const NONE: Self = Self {
        shift: false,
        alt: false,
        control: false,
        command: false,
    };

    /// From the number that xterm and Kitty send: one more than the sum of 1, 2, 4, 8.
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
    /// Enter, as a carriage return or a report.
    pub const RETURN: Self = Self::plain(KeyCode::Enter);
    /// Ctrl-J, which is also a line feed in a paste without brackets.
    pub const LINE_FEED: Self = Self::control('j');
    /// Escape.
    pub const ESCAPE: Self = Self::plain(KeyCode::Escape);

    /// A key alone.
    pub const fn plain(code: KeyCode) -> Self {
        Self {
            code,
            modifiers: KeyModifiers::NONE,
        }
    }

    /// A letter alone.
    pub const fn char(letter: char) -> Self {
        Self::plain(KeyCode::Char(letter))
    }

    /// A letter with Control.
    pub const fn control(letter: char) -> Self {
        Self {
            code: KeyCode::Char(letter),
            modifiers: KeyModifiers {
                control: true,
                ..KeyModifiers::NONE
            },
        }
    }

    /// The same key with Alt.
    #[must_use]
    pub const fn with_alt(mut self) -> Self {
        self.modifiers.alt = true;
        self
    }

    /// The same key with Shift.
    #[must_use]
    pub const fn with_shift(mut self) -> Self {
        self.modifiers.shift = true;
        self
    }

    /// The letter, if it is one that writes itself.
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

/// What a terminal says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalReply {
    /// The colour behind the text (OSC 11).
    Background(Rgb),
    /// Name and version (XTVERSION).
    Version(String),
    /// Can it show Kitty graphics?
    Graphics(bool),
    /// Device attributes (DA1): what it can do, as numbers. Asked for last.
    Attributes(Vec<u32>),
    /// Which Kitty keyboard reports are on.
    KeyboardFlags(u32),
    /// Its owner changed between light and dark (mode 2031): is it dark now?
    ThemeChanged {
        /// Dark, not light.
        is_dark: bool,
    },
}
