//! The editor's commands, and the keys they are bound to.

use std::ops::Range;

use super::{EditOutcome, Editor, is_new_line, motion, undo::EditKind};
use crate::input::{Key, KeyCode};

/// A command of the editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum EditCommand {
    Insert(char),
    NewLine,
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
    Up,
    Down,
    DeleteBack,
    DeleteForward,
    KillWordBack,
    KillWordForward,
    /// Back to the previous whitespace.
    KillBlankWordBack,
    KillToLineEnd,
    KillToLineStart,
    Yank,
    /// Replaces the text that was just yanked by the kill before it.
    YankPop,
    Uppercase,
    Lowercase,
    Capitalize,
    Undo,
    Redo,
}

impl EditCommand {
    /// Returns the command of a key, with the bindings of Emacs and shells.
    pub fn from_key(key: Key) -> Option<Self> {
        if is_new_line(key) {
            return Some(Self::NewLine);
        }
        let held = key.modifiers;
        if held.command {
            return None;
        }
        match (key.code, held.control, held.alt) {
            (KeyCode::Char(letter), false, false) => Some(Self::Insert(letter)),
            (KeyCode::Char(letter), true, false) => Self::from_control(letter),
            (KeyCode::Char(letter), false, true) => Self::from_alt(letter),
            (KeyCode::Left, true, _) | (KeyCode::Left, _, true) => Some(Self::WordLeft),
            (KeyCode::Right, true, _) | (KeyCode::Right, _, true) => Some(Self::WordRight),
            (KeyCode::Left, ..) => Some(Self::Left),
            (KeyCode::Right, ..) => Some(Self::Right),
            (KeyCode::Up, false, false) => Some(Self::Up),
            (KeyCode::Down, false, false) => Some(Self::Down),
            (KeyCode::Home, true, _) => Some(Self::TextStart),
            (KeyCode::End, true, _) => Some(Self::TextEnd),
            (KeyCode::Home, ..) => Some(Self::LineStart),
            (KeyCode::End, ..) => Some(Self::LineEnd),
            (KeyCode::Backspace, false, false) => Some(Self::DeleteBack),
            (KeyCode::Backspace, ..) => Some(Self::KillWordBack),
            (KeyCode::Delete, false, false) => Some(Self::DeleteForward),
            (KeyCode::Delete, ..) => Some(Self::KillWordForward),
            _ => None,
        }
    }

    fn from_control(letter: char) -> Option<Self> {
        Some(match letter {
            'a' => Self::LineStart,
            'e' => Self::LineEnd,
            'b' => Self::Left,
            'f' => Self::Right,
            'p' => Self::Up,
            'n' => Self::Down,
            'h' => Self::DeleteBack,
            'd' => Self::DeleteForward,
            'w' => Self::KillBlankWordBack,
            'k' => Self::KillToLineEnd,
            'u' => Self::KillToLineStart,
            'y' => Self::Yank,
            '_' => Self::Undo,
            _ => return None,
        })
    }

    fn from_alt(letter: char) -> Option<Self> {
        Some(match letter {
            'b' => Self::WordLeft,
            'f' => Self::WordRight,
            'd' => Self::KillWordForward,
            'y' => Self::YankPop,
            'u' => Self::Uppercase,
            'l' => Self::Lowercase,
            'c' => Self::Capitalize,
            '_' => Self::Redo,
            '<' => Self::TextStart,
            '>' => Self::TextEnd,
            _ => return None,
        })
    }
}

pub(super) fn perform(editor: &mut Editor, command: EditCommand) -> EditOutcome {
    use EditCommand as Command;
    let text = editor.buffer.text();
    let caret = editor.buffer.caret();
    let line = motion::line(text, caret);
    match command {
        Command::Up => return editor.vertical(false),
        Command::Down => return editor.vertical(true),
        Command::Insert(letter) => {
            let letter = super::chip::without_chips(letter.encode_utf8(&mut [0; 4]));
            editor
                .buffer
                .begin_typing(letter.chars().next().unwrap_or(' '));
            editor.buffer.insert(&letter);
        }
        Command::NewLine => {
            editor.buffer.begin(EditKind::Other);
            editor.buffer.insert("\n");
        }
        Command::Left => move_caret(editor, motion::previous(text, caret)),
        Command::Right => move_caret(editor, motion::next(text, caret)),
        Command::WordLeft => move_caret(editor, motion::word_start(text, caret)),
        Command::WordRight => move_caret(editor, motion::word_end(text, caret)),
        Command::LineStart => move_caret(editor, line.start),
        Command::LineEnd => move_caret(editor, line.end),
        Command::TextStart => move_caret(editor, 0),
        Command::TextEnd => move_caret(editor, text.len()),
        Command::DeleteBack => delete(editor, motion::previous(text, caret)..caret),
        Command::DeleteForward => delete(editor, caret..motion::next(text, caret)),
        Command::KillWordBack => {
            return kill(editor, motion::word_start(text, caret)..caret, false);
        }
        Command::KillWordForward => {
            return kill(editor, caret..motion::word_end(text, caret), true);
        }
        Command::KillBlankWordBack => {
            return kill(editor, motion::blank_word_start(text, caret)..caret, false);
        }
        Command::KillToLineEnd => {
            // At the end of a line, kill the line end itself.
            let end = if caret == line.end {
                motion::next(text, caret)
            } else {
                line.end
            };
            return kill(editor, caret..end, true);
        }
        Command::KillToLineStart => {
            let start = if caret == line.start {
                motion::previous(text, caret)
            } else {
                line.start
            };
            return kill(editor, start..caret, false);
        }
        Command::Yank => return yank(editor),
        Command::YankPop => return yank_pop(editor),
        Command::Uppercase => change_word(editor, |word| word.to_uppercase()),
        Command::Lowercase => change_word(editor, |word| word.to_lowercase()),
        Command::Capitalize => change_word(editor, |word| {
            let first = word.find(char::is_alphanumeric).unwrap_or(0);
            let mut letters = word[first..].chars();
            let capital: String = letters
                .next()
                .into_iter()
                .flat_map(char::to_uppercase)
                .collect();
            word[..first].to_owned() + &capital + &letters.as_str().to_lowercase()
        }),
        Command::Undo => {
            editor.buffer.undo();
        }
        Command::Redo => {
            editor.buffer.redo();
        }
    }
    editor.on_caret_moved();
    EditOutcome::Done
}

fn move_caret(editor: &mut Editor, place: usize) {
    editor.buffer.set_caret(place);
}

fn delete(editor: &mut Editor, range: Range<usize>) {
    editor.buffer.begin(EditKind::Deleting);
    editor.buffer.delete(range);
}

fn kill(editor: &mut Editor, range: Range<usize>, forward: bool) -> EditOutcome {
    let killed = editor.buffer.text()[range.clone()].to_owned();
    editor.kills.kill(&killed, forward);
    editor.buffer.begin(EditKind::Other);
    editor.buffer.delete(range);
    editor.goal = None;
    EditOutcome::Done
}

fn yank(editor: &mut Editor) -> EditOutcome {
    if let Some(text) = editor.kills.yank(editor.buffer.caret()) {
        editor.buffer.begin(EditKind::Other);
        editor.buffer.insert(&text);
    }
    editor.goal = None;
    EditOutcome::Done
}

fn yank_pop(editor: &mut Editor) -> EditOutcome {
    if let Some((place, text)) = editor.kills.yank_pop() {
        editor.buffer.begin(EditKind::Other);
        editor.buffer.replace(place, &text);
    }
    EditOutcome::Done
}

fn change_word(editor: &mut Editor, change: impl FnOnce(&str) -> String) {
    let (text, caret) = (editor.buffer.text(), editor.buffer.caret());
    let end = motion::word_end(text, caret);
    let changed = change(&text[caret..end]);
    editor.buffer.begin(EditKind::Other);
    editor.buffer.replace(caret..end, &changed);
}
