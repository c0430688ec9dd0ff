//! Decides whether a key is the answer to a question. Keys that the user typed into the draft
//! must never answer a question that appears while typing.

use std::time::{Duration, Instant};

/// The time without a key before a question takes the focus.
const QUIET: Duration = Duration::from_millis(1000);
/// The time that a question must have been visible before it can be answered.
const ARMING: Duration = Duration::from_millis(400);
/// Keys that follow each other faster than this come from a paste or a program.
const BURST: Duration = Duration::from_millis(60);

/// The gate of one question. Each question has its own gate.
#[derive(Debug, Clone, Default)]
pub struct AnswerGate {
    has_focus: bool,
    armed_from: Option<Instant>,
    last_key: Option<Instant>,
}

impl AnswerGate {
    /// Creates the gate of a new question. `last_key` is the time of the last key press.
    pub fn new(last_key: Option<Instant>) -> Self {
        Self {
            last_key,
            ..Self::default()
        }
    }

    /// Returns the time when the question takes the focus automatically, if no key comes before. Use
    /// it only while the draft is empty.
    pub fn focus_due(&self, now: Instant) -> Instant {
        self.last_key.map_or(now, |last| last + QUIET)
    }

    /// Sets the focus on the question, automatically or because the user requested it.
    pub fn focus(&mut self) {
        self.has_focus = true;
    }

    /// Returns the focus to the draft; the question stays open.
    pub fn unfocus(&mut self) {
        self.has_focus = false;
        self.armed_from = None;
    }

    /// Returns whether the question has the focus.
    pub fn has_focus(&self) -> bool {
        self.has_focus
    }

    /// Records that the frame that shows the question with the focus was written. Only the first
    /// call has an effect.
    pub fn written(&mut self, at: Instant) {
        if self.has_focus {
            self.armed_from.get_or_insert(at + ARMING);
        }
    }

    /// Returns the time when keys start to answer; until then, options are drawn faint.
    pub fn armed_from(&self) -> Option<Instant> {
        self.armed_from
    }

    /// Returns whether a key answers the question; `keys_in_read` is the number of keys that came
    /// in the same read. If not, the key belongs to the draft.
    pub fn accepts_key(&mut self, read_at: Instant, keys_in_read: usize) -> bool {
        let before = self.last_key.replace(read_at);
        let is_burst = keys_in_read > 1 || before.is_some_and(|before| read_at < before + BURST);
        self.has_focus && !is_burst && self.armed_from.is_some_and(|from| from <= read_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn what_is_being_typed_answers_nothing() {
        // Vector 9.
        let start = Instant::now();
        let mut gate = AnswerGate::new(Some(start));
        assert_eq!(gate.focus_due(start), after(start, 1000));
        for ms in [10, 120, 230] {
            assert!(!gate.accepts_key(after(start, ms), 1));
        }
        assert_eq!(
            gate.focus_due(after(start, 231)),
            after(start, 1230),
            "each key counts"
        );
    }

    #[test]
    fn a_key_answers_some_time_after_the_question_was_seen() {
        // Vector 10.
        let start = Instant::now();
        let mut gate = AnswerGate::new(None);
        assert_eq!(gate.focus_due(start), start);
        gate.focus();
        assert!(
            !gate.accepts_key(after(start, 5), 1),
            "it was not shown yet"
        );
        gate.written(after(start, 10));
        gate.written(after(start, 300));
        assert!(!gate.accepts_key(after(start, 210), 1));
        assert!(gate.accepts_key(after(start, 510), 1));
    }

    #[test]
    fn one_answer_answers_one_question_and_a_burst_none() {
        // Vector 11.
        let start = Instant::now();
        let mut first = AnswerGate::new(None);
        first.focus();
        first.written(start);
        assert!(
            !first.accepts_key(after(start, 500), 2),
            "two keys in one read"
        );
        assert!(
            !first.accepts_key(after(start, 540), 1),
            "too fast behind another"
        );
        assert!(first.accepts_key(after(start, 800), 1));
        let mut second = AnswerGate::new(Some(after(start, 800)));
        second.focus();
        second.written(after(start, 810));
        assert!(
            !second.accepts_key(after(start, 1000), 1),
            "it is armed anew"
        );
        second.unfocus();
        assert!(!second.has_focus() && !second.accepts_key(after(start, 5000), 1));
    }
}
