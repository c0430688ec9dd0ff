//! vi keys: a state machine that turns keys into changes of the buffer.
//!
//! A command is read key by key: `[count] operator [count] motion`. The keys of the last change are
//! recorded, and `.` replays them.

mod motions;
mod objects;
mod operators;

use std::ops::Range;

use super::{EditOutcome, Editor, buffer::TextBuffer, motion};
use crate::input::{Key, KeyCode};
use motions::{FindMotion, Motion, MotionKind};
use operators::Operator;

/// The mode of the vi keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViMode {
    /// Keys are commands.
    Normal,
    /// Keys insert text.
    Insert,
    /// A selection of characters.
    Visual,
    /// A selection of lines.
    VisualLine,
}

/// The part of a command that the next key completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingKey {
    Nothing,
    /// `g`
    Prefix,
    /// `f F t T`
    Letter(FindMotion),
    /// `r`
    Replacement,
    /// `i` or `a` after an operator
    Object {
        around: bool,
    },
}

/// A text that was deleted or yanked.
#[derive(Debug, Clone, Default)]
pub(super) struct YankRegister {
    text: String,
    is_linewise: bool,
}

/// The maximum number of repetitions.
const MAX_COUNT: usize = 9999;

#[derive(Debug, Clone)]
pub(super) struct ViState {
    mode: ViMode,
    count: usize,
    operator: Option<(Operator, usize)>,
    pending_key: PendingKey,
    register: YankRegister,
    last_find: Option<(FindMotion, char)>,
    /// The start of the selection.
    anchor: usize,
    escapes: Vec<String>,
    /// The keys of the command in progress, and those of the last command that changed the text.
    typed: Vec<Key>,
    last_change: Vec<Key>,
    is_repeating: bool,
    has_changed: bool,
}

impl ViState {
    pub(super) fn new(escapes: &[&str]) -> Self {
        Self {
            mode: ViMode::Insert,
            count: 0,
            operator: None,
            pending_key: PendingKey::Nothing,
            register: YankRegister::default(),
            last_find: None,
            anchor: 0,
            escapes: escapes.iter().map(|&keys| keys.to_owned()).collect(),
            typed: Vec::new(),
            last_change: Vec::new(),
            is_repeating: false,
            has_changed: false,
        }
    }

    pub(super) fn mode(&self) -> ViMode {
        self.mode
    }

    /// Returns the selected byte range.
    pub(super) fn selection(&self, buffer: &TextBuffer) -> Option<Range<usize>> {
        let text = buffer.text();
        let (from, to) = self.ends(buffer);
        match self.mode {
            ViMode::Visual => Some(from..motion::next(text, to).max(to)),
            ViMode::VisualLine => {
                let end = motion::line(text, to).end;
                Some(motion::line(text, from).start..(end + 1).min(text.len().max(end)))
            }
            _ => None,
        }
    }

    /// Returns the start of the selection, and the start of its last character. The draft may have
    /// changed since the selection began, so the anchor may now be inside a character or past the
    /// end; it is moved to a valid position.
    fn ends(&self, buffer: &TextBuffer) -> (usize, usize) {
        let anchor = motion::cluster_start(buffer.text(), self.anchor);
        (anchor.min(buffer.caret()), anchor.max(buffer.caret()))
    }

    /// Ends a selection because the draft is changed by other means than a key. Returns the selected
    /// range, without the line end of its last line.
    pub(super) fn leave_visual(&mut self, buffer: &TextBuffer) -> Option<Range<usize>> {
        let mut selected = self.selection(buffer)?;
        if self.mode == ViMode::VisualLine {
            selected.end = motion::line(buffer.text(), self.ends(buffer).1).end;
        }
        self.mode = ViMode::Normal;
        self.clear();
        Some(selected)
    }

    fn is_idle(&self) -> bool {
        self.mode == ViMode::Normal
            && self.count == 0
            && self.operator.is_none()
            && self.pending_key == PendingKey::Nothing
    }

    pub(super) fn key(&mut self, key: Key, editor: &mut Editor) -> EditOutcome {
        // Escape and a letter in quick succession arrive as Alt with the letter.
        if let (true, KeyCode::Char(letter)) = (key.modifiers.alt, key.code) {
            self.key(Key::ESCAPE, editor);
            return self.key(Key::char(letter), editor);
        }
        if self.is_idle() {
            self.typed.clear();
            self.has_changed = false;
        }
        self.typed.push(key);
        let outcome = match self.mode {
            ViMode::Insert => self.insert_key(key, editor),
            _ => self.command_key(key, editor),
        };
        if self.is_idle() {
            if self.has_changed && !self.is_repeating {
                self.last_change = std::mem::take(&mut self.typed);
            }
            stay_on_line(editor);
        }
        outcome
    }

    fn insert_key(&mut self, key: Key, editor: &mut Editor) -> EditOutcome {
        if key == Key::ESCAPE {
            self.leave_insert(editor);
            return EditOutcome::Done;
        }
        let outcome = editor.emacs_key(key);
        if let (Some(letter), false) = (key.typed(), self.is_repeating) {
            let before = &editor.buffer.text()[..editor.buffer.caret()];
            let escape = self
                .escapes
                .iter()
                .find(|keys| keys.ends_with(letter) && before.ends_with(&***keys));
            if let Some((length, letters)) = escape.map(|keys| (keys.len(), keys.chars().count())) {
                let caret = editor.buffer.caret();
                editor.buffer.delete(caret - length..caret);
                self.typed
                    .truncate(self.typed.len().saturating_sub(letters));
                self.typed.push(Key::ESCAPE);
                self.leave_insert(editor);
            }
        }
        outcome
    }

    fn leave_insert(&mut self, editor: &mut Editor) {
        self.mode = ViMode::Normal;
        editor.buffer.release_undo();
        let (text, caret) = (editor.buffer.text(), editor.buffer.caret());
        if caret > motion::line(text, caret).start {
            let back = motion::previous(text, caret);
            editor.buffer.set_caret(back);
        }
        editor.on_caret_moved();
        self.clear();
    }

    fn enter_insert(&mut self, editor: &mut Editor) {
        self.mode = ViMode::Insert;
        self.has_changed = true;
        editor.buffer.hold_undo();
        self.clear();
    }

    /// Resets the command in progress.
    fn clear(&mut self) {
        self.count = 0;
        self.operator = None;
        self.pending_key = PendingKey::Nothing;
    }

    fn take_count(&mut self) -> usize {
        let own = std::mem::take(&mut self.count).max(1);
        let of_operator = self.operator.map_or(1, |(_, count)| count.max(1));
        (own * of_operator).min(MAX_COUNT)
    }

    fn command_key(&mut self, key: Key, editor: &mut Editor) -> EditOutcome {
        if key == Key::ESCAPE {
            let was_idle = self.is_idle();
            self.clear();
            self.mode = ViMode::Normal;
            // In normal mode, Escape is left to the program.
            return if was_idle {
                EditOutcome::Unused
            } else {
                EditOutcome::Done
            };
        }
        match std::mem::replace(&mut self.pending_key, PendingKey::Nothing) {
            PendingKey::Nothing => self.first_key(key, editor),
            awaiting => {
                let Some(letter) = key.typed() else {
                    self.clear();
                    return EditOutcome::Done;
                };
                self.complete_pending(awaiting, letter, editor);
                EditOutcome::Done
            }
        }
    }

    fn complete_pending(&mut self, awaiting: PendingKey, letter: char, editor: &mut Editor) {
        match awaiting {
            PendingKey::Prefix if letter == 'g' => {
                let line = std::mem::take(&mut self.count).max(1);
                self.apply_motion(Some(Motion::to_line(editor.buffer.text(), line)), editor);
            }
            PendingKey::Letter(find) => {
                self.last_find = Some((find, letter));
                let count = self.take_count();
                let found = motions::find(
                    editor.buffer.text(),
                    editor.buffer.caret(),
                    find,
                    letter,
                    count,
                    false,
                );
                self.apply_motion(found, editor);
            }
            PendingKey::Replacement => self.replace_letters(letter, editor),
            PendingKey::Object { around } => {
                let range =
                    objects::find(editor.buffer.text(), editor.buffer.caret(), letter, around);
                match (range, self.operator, self.mode) {
                    (Some(range), Some((operator, _)), _) => {
                        self.operate(operator, range, false, editor);
                    }
                    (Some(range), None, ViMode::Visual | ViMode::VisualLine) => {
                        self.anchor = range.start;
                        let last = motion::previous(editor.buffer.text(), range.end);
                        editor.buffer.set_caret(last.max(range.start));
                        self.clear();
                    }
                    _ => self.clear(),
                }
            }
            _ => self.clear(),
        }
    }

    fn first_key(&mut self, key: Key, editor: &mut Editor) -> EditOutcome {
        let letter = match (key.typed(), key.code) {
            (Some(letter), _) => letter,
            (None, KeyCode::Enter) => return editor.emacs_key(key),
            (None, KeyCode::Left | KeyCode::Backspace) => 'h',
            (None, KeyCode::Right) => 'l',
            (None, KeyCode::Up) => 'k',
            (None, KeyCode::Down) => 'j',
            (None, KeyCode::Home) => '0',
            (None, KeyCode::End) => '$',
            (None, KeyCode::Delete) => 'x',
            _ if key == Key::control('r') => {
                self.clear();
                editor.buffer.redo();
                editor.on_caret_moved();
                return EditOutcome::Done;
            }
            _ => {
                self.clear();
                return EditOutcome::Unused;
            }
        };
        if letter.is_ascii_digit() && (letter != '0' || self.count > 0) {
            let digit = letter.to_digit(10).unwrap_or(0) as usize;
            self.count = (self.count * 10 + digit).min(MAX_COUNT);
            return EditOutcome::Done;
        }
        if let Some(outcome) = self.edge_key(letter, editor) {
            return outcome;
        }
        self.letter(letter, editor);
        EditOutcome::Done
    }

    /// Handles up, down and search, which may reach beyond the draft.
    fn edge_key(&mut self, letter: char, editor: &mut Editor) -> Option<EditOutcome> {
        if letter == '/' && self.is_idle() {
            return Some(EditOutcome::Search);
        }
        if !matches!(letter, 'j' | 'k') || self.operator.is_some() {
            return None;
        }
        let mut outcome = EditOutcome::Done;
        for _ in 0..self.take_count() {
            outcome = editor.vertical(letter == 'j');
            if outcome != EditOutcome::Done {
                break;
            }
        }
        self.clear();
        Some(outcome)
    }

    fn letter(&mut self, letter: char, editor: &mut Editor) {
        let is_visual = matches!(self.mode, ViMode::Visual | ViMode::VisualLine);
        if let Some(operator) = Operator::from_char(letter) {
            return self.operator_key(operator, editor);
        }
        match letter {
            'g' => self.pending_key = PendingKey::Prefix,
            'f' => self.pending_key = PendingKey::Letter(FindMotion::To),
            'F' => self.pending_key = PendingKey::Letter(FindMotion::BackTo),
            't' => self.pending_key = PendingKey::Letter(FindMotion::Till),
            'T' => self.pending_key = PendingKey::Letter(FindMotion::BackTill),
            ';' | ',' => {
                let count = self.take_count();
                let found = self.last_find.and_then(|(find, letter_found)| {
                    let find = if letter == ',' { find.reversed() } else { find };
                    motions::find(
                        editor.buffer.text(),
                        editor.buffer.caret(),
                        find,
                        letter_found,
                        count,
                        true,
                    )
                });
                self.apply_motion(found, editor);
            }
            'i' | 'a' if is_visual || self.operator.is_some() => {
                self.pending_key = PendingKey::Object {
                    around: letter == 'a',
                };
            }
            _ => {
                let has_count = self.count > 0;
                let count = self.take_count();
                let (text, caret) = (editor.buffer.text(), editor.buffer.caret());
                let changes_word = self
                    .operator
                    .is_some_and(|(operator, _)| operator == Operator::Change);
                match motions::by_letter(text, caret, letter, count, has_count, changes_word) {
                    Some(motion) => self.apply_motion(Some(motion), editor),
                    None if self.operator.is_some() => self.clear(),
                    None if is_visual => self.visual_command(letter, editor),
                    None => self.normal_command(letter, count, editor),
                }
            }
        }
    }

    fn apply_motion(&mut self, motion: Option<Motion>, editor: &mut Editor) {
        let Some(motion) = motion else {
            return self.clear();
        };
        let Some((operator, _)) = self.operator else {
            editor.buffer.set_caret(motion.to);
            editor.on_caret_moved();
            self.count = 0;
            return;
        };
        let (text, caret) = (editor.buffer.text(), editor.buffer.caret());
        let (from, to) = (caret.min(motion.to), caret.max(motion.to));
        match motion.kind {
            MotionKind::Exclusive => self.operate(operator, from..to, false, editor),
            MotionKind::Inclusive => {
                let end = motion::next(text, to);
                self.operate(operator, from..end, false, editor);
            }
            MotionKind::Linewise => {
                let range = motion::line(text, from).start..motion::line(text, to).end;
                self.operate(operator, range, true, editor);
            }
        }
    }
}

/// Moves a caret at the end of a line onto the last character. In normal mode the caret is always
/// on a character, unless the line is empty.
fn stay_on_line(editor: &mut Editor) {
    let (text, caret) = (editor.buffer.text(), editor.buffer.caret());
    let line = motion::line(text, caret);
    if caret == line.end && caret > line.start {
        let on = motion::previous(text, caret);
        editor.buffer.set_caret(on);
    }
}

#[cfg(test)]
#[path = "../vi_tests.rs"]
mod tests;
