//! A parser with timeouts: decides when unfinished input is complete. The caller owns the clock.

use std::time::Instant;

use super::{InputEvent, InputParser, split_line_ends};

/// Converts bytes to events, taking into account when the bytes were read.
#[derive(Debug, Clone)]
pub struct TimedParser {
    parser: InputParser,
    is_remote: bool,
    due: Option<Instant>,
}

impl TimedParser {
    /// Creates a parser. `is_remote` allows longer gaps within a sequence.
    pub fn new(is_remote: bool) -> Self {
        Self {
            parser: InputParser::new(),
            is_remote,
            due: None,
        }
    }

    /// Returns the events of one read. Unfinished input whose timeout passed before the read is
    /// completed first, even if [`TimedParser::expire`] was not called in time.
    pub fn read(&mut self, bytes: &[u8], at: Instant) -> Vec<InputEvent> {
        let mut events = self.expire(at);
        let mut now = self.parser.feed(bytes);
        split_line_ends(&mut now);
        events.append(&mut now);
        let wait = self.parser.wait();
        self.due = wait.map(|wait| at + wait.timeout(self.is_remote));
        events
    }

    /// Returns the time to call [`TimedParser::expire`]; `None` without unfinished input.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the events of unfinished input whose timeout has passed.
    pub fn expire(&mut self, now: Instant) -> Vec<InputEvent> {
        if self.due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.due = None;
        self.parser.expire()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::input::Key;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn vector_22_escape_is_a_key_by_itself_soon_at_home_and_later_over_a_network() {
        let start = Instant::now();
        let mut local = TimedParser::new(false);
        assert_eq!(local.read(b"\x1b", start), []);
        assert_eq!(local.expire(start + ms(24)), []);
        let due = local.due().unwrap();
        assert!(due <= start + ms(40), "stopped within 40 ms");
        assert_eq!(local.expire(due), [InputEvent::Key(Key::ESCAPE)]);
        assert_eq!(local.due(), None);

        let mut remote = TimedParser::new(true);
        assert_eq!(remote.read(b"\x1b", start), []);
        assert_eq!(remote.expire(start + ms(59)), []);
        let alt_enter = InputEvent::Key(Key::RETURN.with_alt());
        assert_eq!(remote.read(b"\r", start + ms(60)), [alt_enter]);
        assert_eq!(remote.due(), None);
    }

    #[test]
    fn a_caller_who_was_busy_sees_the_same_keys() {
        let start = Instant::now();
        let mut parser = TimedParser::new(false);
        assert_eq!(parser.read(b"\x1b", start), []);
        // No one looked at the clock in between.
        let keys = [Key::ESCAPE, Key::RETURN].map(InputEvent::Key);
        assert_eq!(parser.read(b"\r", start + ms(60)), keys);
    }
}
