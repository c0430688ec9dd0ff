//! Input: what the user types and pastes, focus changes, and replies of the terminal.
//!
//! - [`InputParser`]: bytes to events, independent of how the bytes are split
//! - [`RawMode`]: raw mode, and the saved terminal modes
//! - [`InputReader`]: the thread that reads
//! - [`TimedParser`]: a parser with timeouts: an ESC that nothing follows is a key
//! - [`AnswerGate`]: decides whether a key is an answer
//!
//! The caller owns the clock: it passes each read with its time to [`TimedParser::read`], and calls
//! [`TimedParser::expire`] at the time that [`TimedParser::due`] returns.

mod answer_gate;
mod event;
mod keys;
mod parser;
mod paste;
mod raw_mode;
mod reader;
mod reply;
mod timed_parser;

pub use answer_gate::AnswerGate;
pub use event::{InputEvent, Key, KeyCode, KeyModifiers, PasteResult, TerminalReply};
pub use parser::{InputParser, ParserWait};
pub use paste::MAX_PASTED;
pub use raw_mode::{RawMode, SavedModes, terminal_size};
pub use reader::{InputChunk, InputReader};
pub use timed_parser::TimedParser;

/// Converts carriage returns in the events of one read, for terminals without bracketed paste. A
/// carriage return that is followed by another key in the same read comes from a paste and becomes
/// a line end. As the last key it is Enter.
pub fn split_line_ends(events: &mut Vec<InputEvent>) {
    let is_key = |event: &InputEvent| matches!(event, InputEvent::Key(_) | InputEvent::Paste(_));
    let Some(last) = events.iter().rposition(is_key) else {
        return;
    };
    let enter = InputEvent::Key(Key::RETURN);
    let line_feed = InputEvent::Key(Key::LINE_FEED);
    for at in (0..last).rev() {
        if events[at] != enter {
            continue;
        }
        match events[at + 1] == line_feed {
            // CR LF is one line end.
            true => drop(events.remove(at)),
            false => events[at] = line_feed.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<InputEvent> {
        let mut events = InputParser::new().feed(bytes);
        split_line_ends(&mut events);
        events
    }

    fn text(events: &[InputEvent]) -> String {
        let show = |event: &InputEvent| match event {
            InputEvent::Key(Key::RETURN) => '!',
            InputEvent::Key(Key::LINE_FEED) => '|',
            InputEvent::Key(Key {
                code: KeyCode::Char(c),
                ..
            }) => *c,
            _ => '?',
        };
        events.iter().map(show).collect()
    }

    #[test]
    fn a_return_with_keys_behind_it_is_a_line_end() {
        let cases = [
            (&b"a\rb\r"[..], "a|b!"),
            (b"a\r", "a!"),
            (b"a\r\nb", "a|b"),
            (b"\r\r", "|!"),
            (b"a\r\x1b[I", "a!?"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(text(&read(bytes)), expected, "{bytes:?}");
        }
    }
}
