//! Undo and redo, by what changed.

use std::ops::Range;

/// What an edit belongs to. Letters that are typed one after the other are one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditKind {
    Typing,
    Deleting,
    Other,
}

/// One replacement.
#[derive(Debug, Clone)]
pub(super) struct TextEdit {
    pub(super) at: usize,
    pub(super) removed: String,
    pub(super) inserted: String,
}

#[derive(Debug, Clone)]
struct UndoStep {
    edits: Vec<TextEdit>,
    caret_before: usize,
    caret_after: usize,
}

/// What takes a step back or does it again: replacements in order, and where the caret goes.
#[derive(Debug)]
pub(super) struct Replacements {
    pub(super) edits: Vec<(Range<usize>, String)>,
    pub(super) caret: usize,
}

/// No more steps than this are kept…
const MOST_STEPS: usize = 1000;
/// …nor more text, but for the last step.
const MOST_BYTES: usize = 16 << 20;

impl UndoStep {
    fn bytes(&self) -> usize {
        self.edits.iter().map(TextEdit::bytes).sum()
    }
}

impl TextEdit {
    fn bytes(&self) -> usize {
        self.removed.len() + self.inserted.len()
    }
}

/// What was done, and what was undone.
#[derive(Debug, Clone, Default)]
pub(super) struct UndoLog {
    done: Vec<UndoStep>,
    /// Of the texts in it.
    done_bytes: usize,
    undone: Vec<UndoStep>,
    last: Option<EditKind>,
    /// Everything belongs to one step until it is released: an insertion of vi.
    is_held: bool,
    /// The next edit begins a step, with the caret here.
    pending: Option<usize>,
}

impl UndoLog {
    /// A command of this kind begins. `splits`: a step ends here even if the kind is the same.
    pub(super) fn begin(&mut self, kind: EditKind, splits: bool, caret: usize) {
        let goes_on =
            self.is_held || (!splits && kind != EditKind::Other && self.last == Some(kind));
        self.last = Some(kind);
        if !goes_on {
            self.pending = Some(caret);
        }
    }

    /// The caret moved: what is typed next is a step of its own.
    pub(super) fn interrupt(&mut self) {
        if !self.is_held {
            self.last = None;
        }
    }

    pub(super) fn hold(&mut self, caret: usize) {
        if !self.is_held {
            self.pending = Some(caret);
        }
        self.is_held = true;
    }

    pub(super) fn release(&mut self) {
        self.is_held = false;
        self.last = None;
    }

    pub(super) fn record(&mut self, edit: TextEdit, caret_after: usize) {
        self.undone.clear();
        if let Some(caret_before) = self.pending.take() {
            self.done.push(UndoStep {
                edits: Vec::new(),
                caret_before,
                caret_after,
            });
        }
        if self.done.is_empty() {
            self.done.push(UndoStep {
                edits: Vec::new(),
                caret_before: edit.at,
                caret_after,
            });
        }
        if let Some(step) = self.done.last_mut() {
            self.done_bytes += edit.bytes();
            step.edits.push(edit);
            step.caret_after = caret_after;
        }
        while self.done.len() > MOST_STEPS || (self.done.len() > 1 && self.done_bytes > MOST_BYTES)
        {
            self.done_bytes -= self.done.remove(0).bytes();
        }
    }

    /// Takes the last step back.
    pub(super) fn undo(&mut self) -> Option<Replacements> {
        let step = self.done.pop()?;
        self.done_bytes -= step.bytes();
        let back = step
            .edits
            .iter()
            .rev()
            .map(|edit| (edit.at..edit.at + edit.inserted.len(), edit.removed.clone()));
        let back = Replacements {
            edits: back.collect(),
            caret: step.caret_before,
        };
        self.undone.push(step);
        self.last = None;
        Some(back)
    }

    pub(super) fn redo(&mut self) -> Option<Replacements> {
        let step = self.undone.pop()?;
        let again = step
            .edits
            .iter()
            .map(|edit| (edit.at..edit.at + edit.removed.len(), edit.inserted.clone()));
        let again = Replacements {
            edits: again.collect(),
            caret: step.caret_after,
        };
        self.done_bytes += step.bytes();
        self.done.push(step);
        self.last = None;
        Some(again)
    }
}
