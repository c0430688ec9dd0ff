//! What a person types, pastes and focuses, and what the terminal answers.
//!
//! - [`InputParser`]: bytes to events, the same however they are split
//! - [`RawMode`]: keys as they come, and the terminal as it was
//! - [`InputReader`]: the thread that reads
//! - [`TimedParser`]: the same by the clock: an ESC that nothing follows is a key
//! - [`AnswerGate`]: whether a key was meant as an answer
//!
//! Time is the caller's: it passes each read with the time it came to [`TimedParser::read`], and calls
//! [`TimedParser::expire`] when [`TimedParser::due`] says.

mod answer_gate;
mod event;
mod keys;
mod parser;
mod paste;
mod raw_mode;
mod reader;
mod reply;
mod timed;

pub use answer_gate::AnswerGate;
pub use event::{InputEvent, Key, KeyCode, KeyModifiers, PasteResult, TerminalReply};
pub use parser::{InputParser, ParserWait};
pub use paste::MOST_PASTED;
pub use raw_mode::{RawMode, SavedModes, terminal_size};
pub use reader::{InputChunk, InputReader};
pub use timed::TimedParser;

/// The events of one read, where the terminal sends no paste brackets: a carriage return with a key behind
/// it in the same read came from a paste and is a line end; as the last key it sends.
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
