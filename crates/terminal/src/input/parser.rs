//! Converts bytes to events. The events do not depend on how the bytes are split.

use std::time::Duration;

use super::{
    event::{InputEvent, Key, KeyCode},
    keys::{self, CsiParameters},
    paste::PasteBuffer,
    reply,
};

/// The maximum length of a sequence in bytes. Replies are short; a longer sequence is dropped to
/// its end.
const MAX_SEQUENCE: usize = 4096;

/// A parser for what a terminal sends.
#[derive(Debug, Clone, Default)]
pub struct InputParser {
    state: ParserState,
}

#[derive(Debug, Clone, Default)]
enum ParserState {
    #[default]
    Ground,
    /// The first bytes of a multi-byte character.
    Character(Vec<u8>),
    /// After ESC.
    Escape,
    /// After `CSI`, with the bytes since then.
    Csi(Vec<u8>),
    /// After `SS3`.
    SingleShift,
    /// Inside `OSC`, `DCS`, `APC`, `PM` or `SOS`: the byte that introduced it, the body, and
    /// whether the last byte was ESC.
    String {
        introducer: u8,
        body: Vec<u8>,
        escaped: bool,
    },
    /// Inside an old mouse report: the number of bytes still to come.
    Mouse(u8),
    Paste(PasteBuffer),
}

/// The kind of unfinished input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParserWait {
    /// An ESC that may be a key or the start of a sequence.
    Escape,
    /// An incomplete sequence.
    Sequence,
    /// An incomplete paste.
    Paste,
}

impl ParserWait {
    /// Returns the time to wait for more before [`InputParser::expire`] is called. Over a network
    /// an ESC and the rest of its sequence may arrive separately.
    pub fn timeout(self, is_remote: bool) -> Duration {
        match (self, is_remote) {
            (Self::Escape, false) => Duration::from_millis(25),
            (Self::Escape, true) => Duration::from_millis(100),
            (Self::Sequence, _) => Duration::from_secs(1),
            (Self::Paste, _) => Duration::from_secs(10),
        }
    }
}

impl InputParser {
    /// Creates a parser without pending input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the events that these bytes complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<InputEvent> {
        let mut events = Vec::new();
        for byte in bytes {
            self.byte(*byte, &mut events);
        }
        events
    }

    /// Returns the kind of unfinished input, if any.
    pub fn wait(&self) -> Option<ParserWait> {
        match &self.state {
            ParserState::Ground => None,
            ParserState::Escape | ParserState::SingleShift => Some(ParserWait::Escape),
            ParserState::Csi(bytes) if bytes.is_empty() => Some(ParserWait::Escape),
            ParserState::String { body, escaped, .. } if body.is_empty() && !escaped => {
                Some(ParserWait::Escape)
            }
            ParserState::Paste(_) => Some(ParserWait::Paste),
            _ => Some(ParserWait::Sequence),
        }
    }

    /// Ends unfinished input after a timeout: an ESC becomes the key, and ESC with a letter becomes
    /// Alt with that letter. The rest is dropped, except for the text of a paste.
    pub fn expire(&mut self) -> Vec<InputEvent> {
        let alt = |byte: u8| vec![InputEvent::Key(Key::char(char::from(byte)).with_alt())];
        match std::mem::take(&mut self.state) {
            ParserState::Escape => vec![InputEvent::Key(Key::ESCAPE)],
            ParserState::SingleShift => alt(b'O'),
            ParserState::Csi(bytes) if bytes.is_empty() => alt(b'['),
            ParserState::String {
                introducer,
                body,
                escaped,
            } if body.is_empty() && !escaped => alt(introducer),
            ParserState::Paste(mut paste) => vec![InputEvent::Paste(paste.take())],
            ParserState::Character(_) => vec![InputEvent::Key(Key::char('\u{fffd}'))],
            _ => Vec::new(),
        }
    }

    fn byte(&mut self, byte: u8, events: &mut Vec<InputEvent>) {
        match &mut self.state {
            ParserState::Ground => self.ground(byte, false, events),
            ParserState::Character(_) => self.character(byte, events),
            ParserState::Escape => self.escape(byte, events),
            ParserState::Csi(_) => self.csi(byte, events),
            ParserState::SingleShift => {
                self.state = ParserState::Ground;
                let none = CsiParameters::default();
                match keys::decode_letter(byte, &none).or_else(|| keys::decode_keypad(byte)) {
                    Some(key) => events.push(InputEvent::Key(key)),
                    // The sequence was Alt-O, and this is the next key.
                    None => {
                        events.push(InputEvent::Key(Key::char('O').with_alt()));
                        self.ground(byte, false, events);
                    }
                }
            }
            ParserState::String { .. } => self.string(byte, events),
            ParserState::Mouse(left) => {
                *left -= 1;
                if *left == 0 {
                    self.state = ParserState::Ground;
                }
            }
            ParserState::Paste(paste) => {
                if let Some(pasted) = paste.push(byte) {
                    self.state = ParserState::Ground;
                    events.push(InputEvent::Paste(pasted));
                }
            }
        }
    }

    fn ground(&mut self, byte: u8, alt: bool, events: &mut Vec<InputEvent>) {
        let key = match byte {
            0x1b => {
                self.state = ParserState::Escape;
                return;
            }
            0..=0x1f | 0x7f => keys::decode_control(byte),
            0x20..=0x7e => Key::char(char::from(byte)),
            0xc2..=0xf4 => {
                // With Alt, an ESC comes first. Non-ASCII letters with Alt are rare, so the Alt is
                // ignored.
                self.state = ParserState::Character(vec![byte]);
                return;
            }
            _ => Key::char('\u{fffd}'),
        };
        let key = if alt { key.with_alt() } else { key };
        events.push(InputEvent::Key(key));
    }

    fn character(&mut self, byte: u8, events: &mut Vec<InputEvent>) {
        let ParserState::Character(bytes) = &mut self.state else {
            return;
        };
        bytes.push(byte);
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                let letter = text.chars().next().filter(|letter| !letter.is_control());
                let letter = letter.unwrap_or('\u{fffd}');
                self.state = ParserState::Ground;
                events.push(InputEvent::Key(Key::char(letter)));
            }
            // The character is still incomplete.
            Err(error) if error.error_len().is_none() => {}
            Err(_) => {
                self.state = ParserState::Ground;
                events.push(InputEvent::Key(Key::char('\u{fffd}')));
                // The byte that does not belong to the character starts a new event.
                if !(0x80..0xc2).contains(&byte) {
                    self.ground(byte, false, events);
                }
            }
        }
    }

    fn escape(&mut self, byte: u8, events: &mut Vec<InputEvent>) {
        self.state = match byte {
            b'[' => ParserState::Csi(Vec::new()),
            b'O' => ParserState::SingleShift,
            b']' | b'P' | b'_' | b'^' | b'X' => ParserState::String {
                introducer: byte,
                body: Vec::new(),
                escaped: false,
            },
            0x1b => {
                events.push(InputEvent::Key(Key::ESCAPE));
                ParserState::Escape
            }
            _ => {
                self.state = ParserState::Ground;
                return self.ground(byte, true, events);
            }
        };
    }

    fn csi(&mut self, byte: u8, events: &mut Vec<InputEvent>) {
        let ParserState::Csi(bytes) = &mut self.state else {
            return;
        };
        match byte {
            0x20..=0x3f => {
                bytes.push(byte);
                if bytes.len() > MAX_SEQUENCE {
                    self.state = ParserState::Ground;
                }
            }
            // The Linux console sends `CSI [ A` for F1.
            b'[' if bytes.is_empty() => bytes.push(byte),
            b'A'..=b'E' if bytes.as_slice() == b"[" => {
                self.state = ParserState::Ground;
                events.push(InputEvent::Key(Key::plain(KeyCode::Function(
                    byte - b'A' + 1,
                ))));
            }
            0x40..=0x7e => {
                let bytes = std::mem::take(bytes);
                self.state = ParserState::Ground;
                self.sequence(&bytes, byte, events);
            }
            // The sequence is incomplete, and this byte is a new key. If nothing came in between,
            // the sequence was Alt with the bracket.
            _ => {
                if bytes.is_empty() {
                    events.push(InputEvent::Key(Key::char('[').with_alt()));
                }
                self.state = ParserState::Ground;
                self.ground(byte, false, events);
            }
        }
    }

    fn sequence(&mut self, bytes: &[u8], last: u8, events: &mut Vec<InputEvent>) {
        let private = bytes
            .first()
            .copied()
            .filter(|byte| (b'<'..=b'?').contains(byte));
        let rest = &bytes[usize::from(private.is_some())..];
        let numbers = rest
            .iter()
            .take_while(|byte| (b'0'..=b';').contains(byte))
            .count();
        let (numbers, intermediate) = rest.split_at(numbers);
        let parameters = CsiParameters::parse(numbers);
        let key = match (private, intermediate, last) {
            (Some(b'?'), ..) => {
                let reply = reply::decode_csi(&parameters, intermediate, last);
                events.extend(reply.map(InputEvent::Reply));
                return;
            }
            (Some(_), ..) => return,
            (None, [], b'~') if parameters.get(0) == 200 => {
                self.state = ParserState::Paste(PasteBuffer::default());
                return;
            }
            (None, [], b'M') if bytes.is_empty() => {
                self.state = ParserState::Mouse(3);
                return;
            }
            (None, [], b'I' | b'O') if bytes.is_empty() => {
                events.push(InputEvent::Focus(last == b'I'));
                return;
            }
            (None, [], b'~') => keys::decode_number(&parameters),
            (None, [], b'u') => keys::decode_report(&parameters),
            (None, [], _) => keys::decode_letter(last, &parameters),
            _ => None,
        };
        events.extend(key.map(InputEvent::Key));
    }

    fn string(&mut self, byte: u8, events: &mut Vec<InputEvent>) {
        let ParserState::String {
            introducer,
            body,
            escaped,
        } = &mut self.state
        else {
            return;
        };
        let introducer = *introducer;
        match (std::mem::take(escaped), byte) {
            (true, b'\\') | (false, 0x07) => {
                let reply = match body.len() <= MAX_SEQUENCE {
                    true => reply::decode_string(introducer, body),
                    false => None,
                };
                self.state = ParserState::Ground;
                events.extend(reply.map(InputEvent::Reply));
            }
            (false, 0x1b) => *escaped = true,
            // ESC without the end of the string starts a new event. If the body is empty, the
            // string was Alt with a letter.
            (true, _) => {
                if body.is_empty() {
                    events.push(InputEvent::Key(
                        Key::char(char::from(introducer)).with_alt(),
                    ));
                }
                self.state = ParserState::Escape;
                self.escape(byte, events);
            }
            // No reply contains control characters: the user presses keys, and the reply was cut
            // off.
            (false, 0..=0x1f) => {
                if body.is_empty() {
                    events.push(InputEvent::Key(
                        Key::char(char::from(introducer)).with_alt(),
                    ));
                }
                self.state = ParserState::Ground;
                self.ground(byte, false, events);
            }
            _ => {
                if body.len() <= MAX_SEQUENCE {
                    body.push(byte);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;
