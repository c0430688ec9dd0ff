//! What was killed, to be yanked.

use std::ops::Range;

/// No more than this is kept.
const MOST: usize = 60;

#[derive(Debug, Clone, Default)]
pub(super) struct KillRing {
    kills: Vec<String>,
    /// The last command killed: the next kill is joined to it.
    joins: bool,
    /// The last command yanked: to this place, the kill with this number from the end.
    yanked: Option<(Range<usize>, usize)>,
}

impl KillRing {
    /// `forward`: the text was behind the caret.
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
                if self.kills.len() > MOST {
                    self.kills.remove(0);
                }
            }
        }
        self.joins = true;
    }

    /// Another command came in between.
    pub(super) fn interrupt(&mut self) {
        self.joins = false;
        self.yanked = None;
    }

    /// The last kill, which goes to this place.
    pub(super) fn yank(&mut self, at: usize) -> Option<String> {
        self.joins = false;
        let text = self.kills.last()?.clone();
        self.yanked = Some((at..at + text.len(), 0));
        Some(text)
    }

    /// Behind a yank: what to replace, and the kill before it to put there.
    pub(super) fn yank_pop(&mut self) -> Option<(Range<usize>, String)> {
        let (place, number) = self.yanked.take()?;
        let number = (number + 1) % self.kills.len();
        let text = self.kills[self.kills.len() - 1 - number].clone();
        self.yanked = Some((place.start..place.start + text.len(), number));
        Some((place, text))
    }
}
