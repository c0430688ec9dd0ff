//! A multi-line editor: grapheme clusters, chips that stand for something longer, undo, a kill ring, emacs
//! keys and vi keys.
//!
//! - [`Editor`]: the draft and what keys do to it; [`EditCommand`] is what keys mean
//! - [`Chip`]: a paste or a picture, one unit for every move
//! - `vi`: normal, insert and visual mode
//! - [`EditorView`]: the draft as rows, with the caret
//! - [`InputHistory`], [`HistorySearch`]: earlier inputs
//!
//! It knows no key of a program's own: what it does not use comes back as [`EditOutcome::Unused`], and so
//! do Enter and the ends of the draft, since only the program knows what lies beyond.

mod buffer;
mod chip;
mod commands;
mod history;
mod kill_ring;
mod layout;
mod motion;
mod undo;
mod vi;

pub use chip::{Chip, ChipId, DraftPart};
pub use commands::EditCommand;
pub use history::{HistorySearch, InputHistory};
pub use layout::EditorView;
pub use vi::ViMode;

use std::ops::Range;

use crate::{
    input::{Key, KeyCode},
    style::TextStyle,
};
use buffer::TextBuffer;
use chip::ChipTable;
use kill_ring::KillRing;
use undo::EditKind;
use vi::ViState;

/// What came of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditOutcome {
    /// The draft, the caret or the mode changed, or could not change any further.
    Done,
    /// Enter: the draft is to be sent.
    Submit,
    /// Up from the first row.
    Above,
    /// Down from the last row.
    Below,
    /// The history is to be searched (`/` in vi).
    Search,
    /// The key means nothing to the editor.
    Unused,
}

/// A draft and where the caret is in it.
#[derive(Debug, Clone)]
pub struct Editor {
    buffer: TextBuffer,
    chips: ChipTable,
    kills: KillRing,
    vi: Option<ViState>,
    /// Where the caret wants to be while it moves up and down.
    goal: Option<usize>,
    width: usize,
}

impl Default for Editor {
    fn default() -> Self {
        Self::new()
    }
}

impl Editor {
    /// An empty draft with emacs keys.
    pub fn new() -> Self {
        Self {
            buffer: TextBuffer::default(),
            chips: ChipTable::default(),
            kills: KillRing::default(),
            vi: None,
            goal: None,
            width: 80,
        }
    }

    /// Cells that a row of the draft has; moves up and down go by rows.
    pub fn set_width(&mut self, cells: usize) {
        self.width = cells.max(2);
    }

    /// Switches vi keys on or off. Keys in `escapes`, typed one after the other in insert mode, mean Escape,
    /// as `jj`.
    pub fn set_vi(&mut self, is_on: bool, escapes: &[&str]) {
        self.vi = is_on.then(|| ViState::new(escapes));
    }

    /// Which mode vi is in; `None` with emacs keys.
    pub fn vi_mode(&self) -> Option<ViMode> {
        self.vi.as_ref().map(ViState::mode)
    }

    /// The draft with every chip as what it stands for.
    pub fn text(&self) -> String {
        self.chips.unfold(self.buffer.text())
    }

    /// The draft in order, chips apart.
    pub fn parts(&self) -> Vec<DraftPart> {
        self.chips.parts(self.buffer.text())
    }

    /// A chip by its number.
    pub fn chip(&self, id: ChipId) -> Option<&Chip> {
        self.chips.get(id)
    }

    /// What these parts stood for is not needed any longer: they were sent. Undo may bring their chips back, but
    /// not what those stood for.
    pub fn forget(&mut self, parts: &[DraftPart]) {
        for part in parts {
            if let DraftPart::Chip(id) = part {
                self.chips.forget(*id);
            }
        }
    }

    /// Is there nothing?
    pub fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    /// Where the caret is, by bytes of the text in which chips are one character.
    pub fn caret(&self) -> usize {
        self.buffer.caret()
    }

    /// The text before the caret on its line, as it is shown: what a completion completes.
    pub fn line_before_caret(&self) -> &str {
        let before = &self.buffer.text()[..self.buffer.caret()];
        &before[before.rfind('\n').map_or(0, |at| at + 1)..]
    }

    /// Replaces the end of the text before the caret, this many bytes of it, by another: a completion is taken.
    pub fn replace_before_caret(&mut self, bytes: usize, text: &str) {
        let caret = self.buffer.caret();
        let mut from = caret.saturating_sub(bytes);
        while !self.buffer.text().is_char_boundary(from) {
            from -= 1;
        }
        self.leave_visual();
        self.buffer.begin(EditKind::Other);
        self.buffer.replace(from..caret, &chip::without_chips(text));
        self.goal = None;
    }

    /// Inserts text at the caret or in place of what vi keys have selected, as one step for undo.
    pub fn insert(&mut self, text: &str) {
        self.insert_here(&chip::without_chips(text));
    }

    fn insert_here(&mut self, text: &str) {
        let caret = self.buffer.caret();
        let place = self.leave_visual().unwrap_or(caret..caret);
        self.buffer.begin(EditKind::Other);
        self.buffer.replace(place, text);
        self.moved();
    }

    /// Inserts a chip, where [`insert`](Self::insert) would insert text.
    pub fn insert_chip(&mut self, chip: Chip) -> ChipId {
        let (id, character) = self.chips.add(chip);
        self.insert_here(character.encode_utf8(&mut [0; 4]));
        id
    }

    /// Replaces everything, as one step for undo; the caret is at the end.
    pub fn set_text(&mut self, text: &str) {
        self.leave_visual();
        self.buffer.begin(EditKind::Other);
        let all = 0..self.buffer.text().len();
        self.buffer.replace(all, &chip::without_chips(text));
        self.moved();
    }

    /// Takes the draft away; it can be undone.
    pub fn take(&mut self) -> Vec<DraftPart> {
        let parts = self.parts();
        self.set_text("");
        parts
    }

    /// Puts parts that were taken before the draft, each on a line of its own.
    pub fn put_back(&mut self, parts: &[DraftPart]) {
        self.leave_visual();
        self.buffer.begin(EditKind::Other);
        let mut text = self.chips.fold(parts);
        if !self.is_empty() {
            text.push('\n');
        }
        let caret = self.buffer.caret() + text.len();
        self.buffer.replace(0..0, &text);
        self.buffer.set_caret(caret);
        self.moved();
    }

    /// Replaces the chip before or behind the caret by its text; `false` if there is none that unfolds.
    pub fn unfold(&mut self) -> bool {
        let caret = self.buffer.caret();
        let text = self.buffer.text();
        let before = text[..caret]
            .chars()
            .next_back()
            .map(|c| (caret - c.len_utf8(), c));
        let behind = text[caret..].chars().next().map(|c| (caret, c));
        let found = [before, behind]
            .into_iter()
            .flatten()
            .find_map(|(at, character)| {
                let chip = self.chips.get(ChipId::of(character)?)?;
                chip.unfolds
                    .then(|| (at..at + character.len_utf8(), chip.text.clone()))
            });
        let Some((range, text)) = found else {
            return false;
        };
        self.leave_visual();
        self.buffer.begin(EditKind::Other);
        self.buffer.replace(range, &chip::without_chips(&text));
        self.moved();
        true
    }

    /// What a key does.
    pub fn key(&mut self, key: Key) -> EditOutcome {
        match self.vi.take() {
            Some(mut vi) => {
                let outcome = vi.key(key, self);
                self.vi = Some(vi);
                outcome
            }
            None => self.emacs_key(key),
        }
    }

    fn emacs_key(&mut self, key: Key) -> EditOutcome {
        if key == Key::RETURN {
            // A backslash before Enter means a new line, for terminals that send the same for both.
            return match self.buffer.text()[..self.buffer.caret()].ends_with('\\') {
                true => {
                    self.buffer.begin(EditKind::Other);
                    let caret = self.buffer.caret();
                    self.buffer.replace(caret - 1..caret, "\n");
                    self.moved();
                    EditOutcome::Done
                }
                false => EditOutcome::Submit,
            };
        }
        match EditCommand::of_key(key) {
            Some(command) => self.perform(command),
            None => EditOutcome::Unused,
        }
    }

    /// Does one thing.
    pub fn perform(&mut self, command: EditCommand) -> EditOutcome {
        commands::perform(self, command)
    }

    /// The draft as rows, at most this many, around the caret.
    pub fn view(&self, most_rows: usize, chip_style: TextStyle) -> EditorView {
        let selection = self.vi.as_ref().and_then(|vi| vi.selection(&self.buffer));
        layout::view(
            &self.buffer,
            &self.chips,
            self.width,
            most_rows,
            chip_style,
            selection,
        )
    }

    /// What vi keys have selected, which is not selected any longer: the draft becomes another.
    fn leave_visual(&mut self) -> Option<Range<usize>> {
        let vi = self.vi.as_mut()?;
        vi.leave_visual(&self.buffer)
    }

    /// The caret moved by something else than up and down.
    fn moved(&mut self) {
        self.goal = None;
        self.kills.interrupt();
    }

    /// Moves by rows.
    fn vertical(&mut self, down: bool) -> EditOutcome {
        let column = layout::column(&self.buffer, &self.chips, self.width);
        let goal = *self.goal.get_or_insert(column);
        self.kills.interrupt();
        match layout::row_beside(&self.buffer, &self.chips, self.width, goal, down) {
            Some(place) => {
                self.buffer.set_caret(place);
                EditOutcome::Done
            }
            None if down => EditOutcome::Below,
            None => EditOutcome::Above,
        }
    }
}

/// Keys that begin a new line of the draft, in every spelling terminals have for them.
pub fn is_new_line(key: Key) -> bool {
    let held = key.modifiers;
    key == Key::LINE_FEED
        || (key.code == KeyCode::Enter && (held.shift || held.alt || held.control))
}

#[cfg(test)]
#[path = "editor_tests.rs"]
mod tests;
