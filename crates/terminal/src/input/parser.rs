//! Bytes to events. However the bytes are split, the events are the same.

use std::time::Duration;

use super::{
    event::{InputEvent, Key, KeyCode},
    keys::{self, Parameters},
    paste::PasteBuffer,
    reply,
};

/// Answers are short. What is longer is no answer, and is dropped to its end.
const LONGEST_SEQUENCE: usize = 4096;

/// Reads what a terminal sends.
#[derive(Debug, Clone, Default)]
pub struct InputParser {
    state: ParserState,
}

#[derive(Debug, Clone, Default)]
enum ParserState {
    #[default]
    Ground,
    /// Some bytes of a character of several.
    Character(Vec<u8>),
    /// ESC came.
    Escape,
    /// `CSI` and what followed.
    Csi(Vec<u8>),
    /// `SS3`.
    SingleShift,
    /// `OSC`, `DCS`, `APC`, `PM`, `SOS`: the byte that introduced it, the body, and whether ESC came last.
    String {
        introducer: u8,
        body: Vec<u8>,
        escaped: bool,
    },
    /// An old mouse report: this many bytes are still to come.
    Mouse(u8),
    Paste(PasteBuffer),
}

/// What is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParserWait {
    /// An ESC that may be a key or the beginning of something.
    Escape,
    /// A sequence whose end has not come.
    Sequence,
    /// A paste whose end has not come.
    Paste,
}

impl ParserWait {
    /// How long to wait for more before [`InputParser::expire`] is called. Over a network an ESC and what
    /// belongs to it may arrive apart.
    pub fn patience(self, is_remote: bool) -> Duration {
        match (self, is_remote) {
            (Self::Escape, false) => Duration::from_millis(25),
            (Self::Escape, true) => Duration::from_millis(100),
            (Self::Sequence, _) => Duration::from_secs(1),
            (Self::Paste, _) => Duration::from_secs(10),
        }
    }
}

impl InputParser {
    /// Nothing came yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The events that these bytes complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<InputEvent> {
        let mut events = Vec::new();
        for byte in bytes {
            self.byte(*byte, &mut events);
        }
        events
    }

    /// Is something unfinished?
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

    /// Nothing more came in time: an ESC was the key, ESC and a letter were Alt with it; the rest is
    /// dropped, but not the text of a paste.
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
                let none = Parameters::default();
                match keys::by_letter(byte, &none).or_else(|| keys::of_keypad(byte)) {
                    Some(key) => events.push(InputEvent::Key(key)),
                    // It was Alt-O, and this is the next key.
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
            0..=0x1f | 0x7f => keys::of_control(byte),
            0x20..=0x7e => Key::char(char::from(byte)),
            0xc2..=0xf4 => {
                // With Alt, ESC is before it; such letters are rare enough to be taken without.
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
            // It goes on.
            Err(error) if error.error_len().is_none() => {}
            Err(_) => {
                self.state = ParserState::Ground;
                events.push(InputEvent::Key(Key::char('\u{fffd}')));
                // The byte that does not belong to it begins something of its own.
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
                if bytes.len() > LONGEST_SEQUENCE {
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
            // Broken off: what comes is a key of its own. With nothing in between it was Alt and the bracket.
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
        let parameters = Parameters::parse(numbers);
        let key = match (private, intermediate, last) {
            (Some(b'?'), ..) => {
                let reply = reply::of_csi(&parameters, intermediate, last);
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
            (None, [], b'~') => keys::by_number(&parameters),
            (None, [], b'u') => keys::by_report(&parameters),
            (None, [], _) => keys::by_letter(last, &parameters),
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
                let reply = match body.len() <= LONGEST_SEQUENCE {
                    true => reply::of_string(introducer, body),
                    false => None,
                };
                self.state = ParserState::Ground;
                events.extend(reply.map(InputEvent::Reply));
            }
            (false, 0x1b) => *escaped = true,
            // ESC and not its end: something new begins. With nothing in between it was Alt and a letter.
            (true, _) => {
                if body.is_empty() {
                    events.push(InputEvent::Key(
                        Key::char(char::from(introducer)).with_alt(),
                    ));
                }
                self.state = ParserState::Escape;
                self.escape(byte, events);
            }
            // No answer holds control characters: a person presses keys, and the answer was cut off.
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
                if body.len() <= LONGEST_SEQUENCE {
                    body.push(byte);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;
