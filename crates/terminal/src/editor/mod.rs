//! A multi-line editor with grapheme clusters, chips, undo, a kill ring, Emacs keys and vi keys.
//!
//! - [`Editor`]: the draft, and its response to keys; [`EditCommand`]: the commands bound to keys
//! - [`DraftChip`]: a paste or an image, moved over as one unit
//! - `vi`: normal, insert and visual mode
//! - [`EditorView`]: the draft as rows, with the caret
//! - [`InputHistory`], [`HistorySearch`]: earlier inputs
//!
//! The editor handles only editing keys. Any other key returns [`EditOutcome::Unused`]. Enter and
//! moves beyond the ends of the draft are reported too, because the program decides what happens
//! then.

mod buffer;
mod chip;
mod commands;
mod history;
mod kill_ring;
mod layout;
mod motion;
mod undo;
mod vi;

pub use chip::{ChipId, DraftChip, DraftPart};
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

/// The outcome of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditOutcome {
    /// The draft, the caret or the mode changed, or could not change any further.
    Done,
    /// Enter was pressed: submit the draft.
    Submit,
    /// The caret was to move up from the first row.
    Above,
    /// The caret was to move down from the last row.
    Below,
    /// Search the history (`/` in vi).
    Search,
    /// The editor does not handle this key.
    Unused,
}

/// A draft with its caret.
#[derive(Debug, Clone)]
pub struct Editor {
    buffer: TextBuffer,
    chips: ChipTable,
    kills: KillRing,
    vi: Option<ViState>,
    /// The column that the caret returns to while it moves up and down.
    goal: Option<usize>,
    width: usize,
}

impl Default for Editor {
    fn default() -> Self {
        Self::new()
    }
}

impl Editor {
    /// Creates an empty draft with Emacs keys.
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

    /// Sets the number of cells in a row of the draft; up and down move by rows.
    pub fn set_width(&mut self, cells: usize) {
        self.width = cells.max(2);
    }

    /// Turns vi keys on or off. The key sequences in `escapes`, such as `jj`, act as Escape in
    /// insert mode.
    pub fn set_vi(&mut self, is_on: bool, escapes: &[&str]) {
        self.vi = is_on.then(|| ViState::new(escapes));
    }

    /// Returns the current vi mode, or `None` with Emacs keys.
    pub fn vi_mode(&self) -> Option<ViMode> {
        self.vi.as_ref().map(ViState::mode)
    }

    /// Returns the draft with every chip replaced by its content.
    pub fn text(&self) -> String {
        self.chips.unfold(self.buffer.text())
    }

    /// Returns the parts of the draft in order, with chips as separate parts.
    pub fn parts(&self) -> Vec<DraftPart> {
        self.chips.parts(self.buffer.text())
    }

    /// Returns a chip by its number.
    pub fn chip(&self, id: ChipId) -> Option<&DraftChip> {
        self.chips.get(id)
    }

    /// Drops the content of the chips in these parts, because they were sent. Undo may restore the
    /// chips, but not their content.
    pub fn clear_sent_chips(&mut self, parts: &[DraftPart]) {
        for part in parts {
            if let DraftPart::Chip(id) = part {
                self.chips.clear_text(*id);
            }
        }
    }

    /// Returns whether the draft is empty.
    pub fn is_empty(&self) -> bool {
        self.buffer.text().is_empty()
    }

    /// Returns the byte offset of the caret in the draft. Each chip is one character there.
    pub fn caret(&self) -> usize {
        self.buffer.caret()
    }

    /// Returns the text before the caret on its line, with chips as single characters: the input of
    /// a completion.
    pub fn line_before_caret(&self) -> &str {
        let before = &self.buffer.text()[..self.buffer.caret()];
        &before[before.rfind('\n').map_or(0, |at| at + 1)..]
    }

    /// Replaces the last `bytes` bytes before the caret by `text`, to apply a completion.
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

    /// Inserts text at the caret, or replaces what vi keys have selected, as one undo step.
    pub fn insert(&mut self, text: &str) {
        self.insert_here(&chip::without_chips(text));
    }

    fn insert_here(&mut self, text: &str) {
        let caret = self.buffer.caret();
        let place = self.leave_visual().unwrap_or(caret..caret);
        self.buffer.begin(EditKind::Other);
        self.buffer.replace(place, text);
        self.on_caret_moved();
    }

    /// Inserts a chip where [`insert`](Self::insert) would insert text.
    pub fn insert_chip(&mut self, chip: DraftChip) -> ChipId {
        let (id, character) = self.chips.add(chip);
        self.insert_here(character.encode_utf8(&mut [0; 4]));
        id
    }

    /// Replaces the whole draft as one undo step; the caret moves to the end.
    pub fn set_text(&mut self, text: &str) {
        self.leave_visual();
        self.buffer.begin(EditKind::Other);
        let all = 0..self.buffer.text().len();
        self.buffer.replace(all, &chip::without_chips(text));
        self.on_caret_moved();
    }

    /// Removes the draft and returns it; undo can restore it.
    pub fn take(&mut self) -> Vec<DraftPart> {
        let parts = self.parts();
        self.set_text("");
        parts
    }

    /// Inserts parts that were removed earlier before the current draft, separated by a line end.
    pub fn restore_parts(&mut self, parts: &[DraftPart]) {
        self.leave_visual();
        self.buffer.begin(EditKind::Other);
        let mut text = self.chips.fold(parts);
        if !self.is_empty() {
            text.push('\n');
        }
        let caret = self.buffer.caret() + text.len();
        self.buffer.replace(0..0, &text);
        self.buffer.set_caret(caret);
        self.on_caret_moved();
    }

    /// Replaces the chip before or after the caret by its text. Returns whether a chip was replaced.
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
                let chip = self.chips.get(ChipId::from_char(character)?)?;
                chip.unfolds
                    .then(|| (at..at + character.len_utf8(), chip.text.clone()))
            });
        let Some((range, text)) = found else {
            return false;
        };
        self.leave_visual();
        self.buffer.begin(EditKind::Other);
        self.buffer.replace(range, &chip::without_chips(&text));
        self.on_caret_moved();
        true
    }

    /// Handles a key.
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
            // A backslash before Enter makes a new line, for terminals that send the same for Enter
            // and Shift-Enter.
            return match self.buffer.text()[..self.buffer.caret()].ends_with('\\') {
                true => {
                    self.buffer.begin(EditKind::Other);
                    let caret = self.buffer.caret();
                    self.buffer.replace(caret - 1..caret, "\n");
                    self.on_caret_moved();
                    EditOutcome::Done
                }
                false => EditOutcome::Submit,
            };
        }
        match EditCommand::from_key(key) {
            Some(command) => self.perform(command),
            None => EditOutcome::Unused,
        }
    }

    /// Performs a command.
    pub fn perform(&mut self, command: EditCommand) -> EditOutcome {
        commands::perform(self, command)
    }

    /// Returns the draft as at most `most_rows` rows around the caret.
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

    /// Ends the vi selection, because the draft changes, and returns the selected range.
    fn leave_visual(&mut self) -> Option<Range<usize>> {
        let vi = self.vi.as_mut()?;
        vi.leave_visual(&self.buffer)
    }

    /// Called when the caret moved in another way than up or down.
    fn on_caret_moved(&mut self) {
        self.goal = None;
        self.kills.interrupt();
    }

    /// Moves the caret by one row.
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

/// Returns whether a key starts a new line of the draft, in every encoding that terminals use.
pub fn is_new_line(key: Key) -> bool {
    let held = key.modifiers;
    key == Key::LINE_FEED
        || (key.code == KeyCode::Enter && (held.shift || held.alt || held.control))
}

#[cfg(test)]
#[path = "editor_tests.rs"]
mod tests;
