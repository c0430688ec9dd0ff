//! Decides when to draw: after a key immediately, after other changes at most every 16 ms, and
//! after a resize when it has finished. Without pending changes no timer runs.

use std::time::{Duration, Instant};

/// The minimum time between two frames, unless a key was pressed.
const BETWEEN_FRAMES: Duration = Duration::from_millis(16);
/// The time without another resize after which a resize has finished.
const QUIET: Duration = Duration::from_millis(50);
/// The maximum delay of a frame after the first resize.
const MAX_RESIZE: Duration = Duration::from_millis(200);

/// Computes when the next frame is due.
#[derive(Debug, Clone, Default)]
pub struct FramePace {
    last_frame: Option<Instant>,
    due: Option<Instant>,
    /// The times of the first and the last resize that were not drawn yet.
    resize: Option<(Instant, Instant)>,
}

impl FramePace {
    /// Creates a pace without pending changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a change by a key: it is drawn immediately.
    pub fn key(&mut self, now: Instant) {
        self.due = Some(now);
    }

    /// Records any other change.
    pub fn change(&mut self, now: Instant) {
        let due = self
            .last_frame
            .map_or(now, |last| now.max(last + BETWEEN_FRAMES));
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    /// Records a resize. Nothing is drawn until the resizing has finished.
    pub fn resize(&mut self, now: Instant) {
        let first = self.resize.map_or(now, |(first, _)| first);
        self.resize = Some((first, now));
        self.due = Some(self.due.unwrap_or(now));
    }

    /// Returns when to draw next; `None` without pending changes.
    pub fn due(&self) -> Option<Instant> {
        let due = self.due?;
        Some(match self.resize {
            Some((first, last)) => due.max((last + QUIET).min(first + MAX_RESIZE)),
            None => due,
        })
    }

    /// Records that a frame was drawn.
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
