//! Undo and redo, as a log of replacements.

use std::ops::Range;

/// The kind of an edit. Consecutive typed letters form one undo step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditKind {
    Typing,
    Deleting,
    Other,
}

/// One replacement.
#[derive(Debug, Clone)]
pub(super) struct TextEdit {
    pub(super) offset: usize,
    pub(super) removed: String,
    pub(super) inserted: String,
}

#[derive(Debug, Clone)]
struct UndoStep {
    edits: Vec<TextEdit>,
    caret_before: usize,
    caret_after: usize,
}

/// The changes that undo or redo a step: the replacements in order, and the new position of the
/// caret.
#[derive(Debug)]
pub(super) struct UndoReplacements {
    pub(super) edits: Vec<(Range<usize>, String)>,
    pub(super) caret: usize,
}

/// The maximum number of undo steps.
const MAX_STEPS: usize = 1000;
/// The maximum size of all stored texts in bytes. The last step is always stored.
const MAX_BYTES: usize = 16 << 20;

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

/// The steps that were done, and those that were undone.
#[derive(Debug, Clone, Default)]
pub(super) struct UndoLog {
    done: Vec<UndoStep>,
    /// The size of the texts in `done`.
    done_bytes: usize,
    undone: Vec<UndoStep>,
    last: Option<EditKind>,
    /// True while all edits belong to one step, as during an insertion in vi.
    is_held: bool,
    /// Set if the next edit starts a new step; the position of the caret before it.
    pending: Option<usize>,
}

impl UndoLog {
    /// Starts a command of this kind. If `splits` is true, a new step begins even if the kind is
    /// the same.
    pub(super) fn begin(&mut self, kind: EditKind, splits: bool, caret: usize) {
        let goes_on =
            self.is_held || (!splits && kind != EditKind::Other && self.last == Some(kind));
        self.last = Some(kind);
        if !goes_on {
            self.pending = Some(caret);
        }
    }

    /// Called when the caret moved: the next typed text is a new step.
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
                caret_before: edit.offset,
                caret_after,
            });
        }
        if let Some(step) = self.done.last_mut() {
            self.done_bytes += edit.bytes();
            step.edits.push(edit);
            step.caret_after = caret_after;
        }
        while self.done.len() > MAX_STEPS || (self.done.len() > 1 && self.done_bytes > MAX_BYTES) {
            self.done_bytes -= self.done.remove(0).bytes();
        }
    }

    /// Undoes the last step.
    pub(super) fn undo(&mut self) -> Option<UndoReplacements> {
        let step = self.done.pop()?;
        self.done_bytes -= step.bytes();
        let back = step.edits.iter().rev().map(|edit| {
            (
                edit.offset..edit.offset + edit.inserted.len(),
                edit.removed.clone(),
            )
        });
        let back = UndoReplacements {
            edits: back.collect(),
            caret: step.caret_before,
        };
        self.undone.push(step);
        self.last = None;
        Some(back)
    }

    pub(super) fn redo(&mut self) -> Option<UndoReplacements> {
        let step = self.undone.pop()?;
        let again = step.edits.iter().map(|edit| {
            (
                edit.offset..edit.offset + edit.removed.len(),
                edit.inserted.clone(),
            )
        });
        let again = UndoReplacements {
            edits: again.collect(),
            caret: step.caret_after,
        };
        self.done_bytes += step.bytes();
        self.done.push(step);
        self.last = None;
        Some(again)
    }
}
