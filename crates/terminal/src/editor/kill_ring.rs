//! The kill ring: killed texts that can be yanked.

use std::ops::Range;

/// The maximum number of kills to store.
const MAX_COUNT: usize = 60;

#[derive(Debug, Clone, Default)]
pub(super) struct KillRing {
    kills: Vec<String>,
    /// True if the last command was a kill: the next kill is joined to it.
    joins: bool,
    /// Set if the last command was a yank: the range of the yanked text, and the number of the kill
    /// counted from the newest.
    yanked: Option<(Range<usize>, usize)>,
}

impl KillRing {
    /// Stores a killed text. `forward` is true if the text was after the caret.
    pub(super) fn kill(&mut self, text: &str, forward: bool) {
        self.yanked = None;
        if text.is_empty() {
            return;
        }
        match self.kills.last_mut().filter(|_| self.joins) {
            Some(last) if forward => last.push_str(text),
            Some(last) => last.insert_str(0, text),
            None => {
                self.kills.push(text.to_owned());
                if self.kills.len() > MAX_COUNT {
                    self.kills.remove(0);
                }
            }
        }
        self.joins = true;
    }

    /// Records that a command other than a kill or a yank was performed.
    pub(super) fn interrupt(&mut self) {
        self.joins = false;
        self.yanked = None;
    }

    /// Returns the last kill, which the caller inserts at this position.
    pub(super) fn yank(&mut self, at: usize) -> Option<String> {
        self.joins = false;
        let text = self.kills.last()?.clone();
        self.yanked = Some((at..at + text.len(), 0));
        Some(text)
    }

    /// After a yank: returns the range to replace, and the next older kill to put there.
    pub(super) fn yank_pop(&mut self) -> Option<(Range<usize>, String)> {
        let (place, number) = self.yanked.take()?;
        let number = (number + 1) % self.kills.len();
        let text = self.kills[self.kills.len() - 1 - number].clone();
        self.yanked = Some((place.start..place.start + text.len(), number));
        Some((place, text))
    }
}
