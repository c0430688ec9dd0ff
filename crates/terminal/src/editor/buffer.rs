//! The text of a draft and its caret. Every change goes through [`TextBuffer::replace`], which
//! records it for undo.

use std::ops::Range;

use super::{
    motion,
    undo::{EditKind, TextEdit, UndoLog, UndoReplacements},
};

/// Text with a caret, which is always between two grapheme clusters.
#[derive(Debug, Clone, Default)]
pub(super) struct TextBuffer {
    text: String,
    caret: usize,
    log: UndoLog,
}

impl TextBuffer {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn caret(&self) -> usize {
        self.caret
    }

    /// Moves the caret. A position inside a cluster is moved to the start of that cluster.
    pub(super) fn set_caret(&mut self, caret: usize) {
        let caret = motion::cluster_start(&self.text, caret);
        if caret != self.caret {
            self.log.interrupt();
        }
        self.caret = caret;
    }

    pub(super) fn begin(&mut self, kind: EditKind) {
        self.log.begin(kind, false, self.caret);
    }

    /// Starts the insertion of a typed letter. A new undo step begins at each start of a word.
    pub(super) fn begin_typing(&mut self, letter: char) {
        let behind_blank = self.text[..self.caret].ends_with(char::is_whitespace);
        let splits = behind_blank && !letter.is_whitespace();
        self.log.begin(EditKind::Typing, splits, self.caret);
    }

    pub(super) fn hold_undo(&mut self) {
        self.log.hold(self.caret);
    }

    pub(super) fn release_undo(&mut self) {
        self.log.release();
    }

    pub(super) fn insert(&mut self, text: &str) {
        self.replace(self.caret..self.caret, text);
    }

    pub(super) fn delete(&mut self, range: Range<usize>) {
        self.replace(range, "");
    }

    /// Replaces a range; the caret moves to the end of the new text.
    pub(super) fn replace(&mut self, range: Range<usize>, with: &str) {
        if range.is_empty() && with.is_empty() {
            return;
        }
        let edit = TextEdit {
            offset: range.start,
            removed: self.text[range.clone()].to_owned(),
            inserted: with.to_owned(),
        };
        self.text.replace_range(range.clone(), with);
        // A combining mark that was typed after a letter joins the cluster of that letter.
        self.caret = motion::cluster_end(&self.text, range.start + with.len());
        self.log.record(edit, self.caret);
    }

    pub(super) fn undo(&mut self) -> bool {
        let step = self.log.undo();
        self.apply(step)
    }

    pub(super) fn redo(&mut self) -> bool {
        let step = self.log.redo();
        self.apply(step)
    }

    fn apply(&mut self, step: Option<UndoReplacements>) -> bool {
        let Some(UndoReplacements { edits, caret }) = step else {
            return false;
        };
        for (range, with) in edits {
            self.text.replace_range(range, &with);
        }
        self.caret = motion::cluster_start(&self.text, caret);
        true
    }
}
