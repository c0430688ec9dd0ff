//! When to draw: keys at once, everything else every 16 ms at most, resizes when they have come to rest. With
//! nothing to draw there is no timer.

use std::time::{Duration, Instant};

/// Between two frames, unless a key was pressed.
const BETWEEN_FRAMES: Duration = Duration::from_millis(16);
/// A resize is over when nothing more came for this long.
const QUIET: Duration = Duration::from_millis(50);
/// But no longer than this is waited for.
const LONGEST_RESIZE: Duration = Duration::from_millis(200);

/// Says when the next frame is due.
#[derive(Debug, Clone, Default)]
pub struct FramePace {
    last_frame: Option<Instant>,
    due: Option<Instant>,
    /// The first and the last change of size that was not drawn.
    resize: Option<(Instant, Instant)>,
}

impl FramePace {
    /// Nothing to draw.
    pub fn new() -> Self {
        Self::default()
    }

    /// A key changed something: it is drawn at once.
    pub fn key(&mut self, now: Instant) {
        self.due = Some(now);
    }

    /// Something else changed.
    pub fn change(&mut self, now: Instant) {
        let due = self
            .last_frame
            .map_or(now, |last| now.max(last + BETWEEN_FRAMES));
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    /// The terminal has another size. Nothing is drawn until that is over.
    pub fn resize(&mut self, now: Instant) {
        let first = self.resize.map_or(now, |(first, _)| first);
        self.resize = Some((first, now));
        self.due = Some(self.due.unwrap_or(now));
    }

    /// When to draw next; `None`: when something changes.
    pub fn due(&self) -> Option<Instant> {
        let due = self.due?;
        Some(match self.resize {
            Some((first, last)) => due.max((last + QUIET).min(first + LONGEST_RESIZE)),
            None => due,
        })
    }

    /// It was drawn.
    pub fn drawn(&mut self, now: Instant) {
        *self = Self {
            last_frame: Some(now),
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_drawn_at_once_and_the_rest_every_16_ms() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut pace = FramePace::new();
        assert_eq!(pace.due(), None, "idle: no timer");
        pace.change(start);
        assert_eq!(pace.due(), Some(start));
        pace.drawn(start);
        assert_eq!(pace.due(), None);
        pace.change(after(3));
        assert_eq!(pace.due(), Some(after(16)));
        pace.key(after(5));
        assert_eq!(pace.due(), Some(after(5)));
    }

    #[test]
    fn a_resize_is_drawn_when_it_is_over() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut pace = FramePace::new();
        pace.resize(start);
        pace.resize(after(40));
        pace.key(after(41));
        assert_eq!(pace.due(), Some(after(90)));
        for ms in (50..=300).step_by(20) {
            pace.resize(after(ms));
        }
        assert_eq!(pace.due(), Some(after(200)), "it may go on for ever");
    }
}
