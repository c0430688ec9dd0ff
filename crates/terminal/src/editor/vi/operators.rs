//! The effects of operators and single-letter commands on the draft.

use std::ops::Range;

use super::{super::motion, super::undo::EditKind, PendingKey, ViMode, ViState, YankRegister};
use crate::editor::Editor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Delete,
    Change,
    Yank,
    Indent,
    Outdent,
}

impl Operator {
    pub(super) fn from_char(letter: char) -> Option<Self> {
        Some(match letter {
            'd' => Self::Delete,
            'c' => Self::Change,
            'y' => Self::Yank,
            '>' => Self::Indent,
            '<' => Self::Outdent,
            _ => return None,
        })
    }
}

const INDENT: &str = "    ";

impl ViState {
    pub(super) fn operator_key(&mut self, operator: Operator, editor: &mut Editor) {
        if let Some(selection) = self.selection(&editor.buffer) {
            let is_linewise = self.mode == ViMode::VisualLine;
            let selection = match is_linewise {
                // The range excludes the last line end, because `operate` handles it.
                true => {
                    let (_, last) = self.ends(&editor.buffer);
                    selection.start..motion::line(editor.buffer.text(), last).end
                }
                false => selection,
            };
            self.mode = ViMode::Normal;
            return self.operate(operator, selection, is_linewise, editor);
        }
        match self.operator {
            // An operator that is typed twice applies to whole lines.
            Some((before, _)) if before == operator => {
                let count = self.take_count();
                let (text, caret) = (editor.buffer.text(), editor.buffer.caret());
                let first = motion::line(text, caret);
                let last = (1..count).fold(first.clone(), |line, _| {
                    if line.end < text.len() {
                        motion::line(text, line.end + 1)
                    } else {
                        line
                    }
                });
                self.operate(operator, first.start..last.end, true, editor);
            }
            Some(_) => self.clear(),
            None => self.operator = Some((operator, std::mem::take(&mut self.count))),
        }
    }

    pub(super) fn operate(
        &mut self,
        operator: Operator,
        range: Range<usize>,
        is_linewise: bool,
        editor: &mut Editor,
    ) {
        self.clear();
        editor.on_caret_moved();
        if matches!(operator, Operator::Indent | Operator::Outdent) {
            return self.shift_lines(operator, &range, editor);
        }
        self.register = YankRegister {
            text: editor.buffer.text()[range.clone()].to_owned(),
            is_linewise,
        };
        match operator {
            Operator::Yank => {
                editor.buffer.set_caret(range.start);
                return;
            }
            Operator::Change => {
                self.enter_insert(editor);
                editor.buffer.delete(range.clone());
                editor.buffer.set_caret(range.start);
            }
            _ => {
                editor.buffer.begin(EditKind::Other);
                let text = editor.buffer.text();
                // A line is deleted with its line end, the last line with the line end before it.
                let range = match is_linewise {
                    true if range.end < text.len() => range.start..range.end + 1,
                    true => range.start.saturating_sub(1)..range.end,
                    false => range,
                };
                editor.buffer.delete(range);
                if is_linewise {
                    let line = motion::line(editor.buffer.text(), editor.buffer.caret());
                    let first = motion::first_word(editor.buffer.text(), line);
                    editor.buffer.set_caret(first);
                }
            }
        }
        self.has_changed = true;
    }

    fn shift_lines(&mut self, operator: Operator, range: &Range<usize>, editor: &mut Editor) {
        let text = editor.buffer.text();
        let (start, end) = (
            motion::line(text, range.start).start,
            motion::line(text, range.end).end,
        );
        let shifted: Vec<String> = text[start..end]
            .split('\n')
            .map(|line| match operator {
                Operator::Indent if !line.is_empty() => format!("{INDENT}{line}"),
                Operator::Outdent => {
                    let blanks = line
                        .bytes()
                        .take(INDENT.len())
                        .take_while(|byte| *byte == b' ')
                        .count();
                    line[blanks..].to_owned()
                }
                _ => line.to_owned(),
            })
            .collect();
        editor.buffer.begin(EditKind::Other);
        editor.buffer.replace(start..end, &shifted.join("\n"));
        let line = motion::line(editor.buffer.text(), start);
        let first = motion::first_word(editor.buffer.text(), line);
        editor.buffer.set_caret(first);
        self.has_changed = true;
    }

    pub(super) fn normal_command(&mut self, letter: char, count: usize, editor: &mut Editor) {
        let (text, caret) = (editor.buffer.text(), editor.buffer.caret());
        let line = motion::line(text, caret);
        let forward = || {
            (0..count)
                .fold(caret, |at, _| motion::next(text, at))
                .min(line.end)
        };
        let backward = || {
            (0..count)
                .fold(caret, |at, _| motion::previous(text, at))
                .max(line.start)
        };
        match letter {
            'i' => self.insert_at(caret, editor),
            'a' => self.insert_at(motion::next(text, caret).min(line.end), editor),
            'I' => self.insert_at(motion::first_word(text, line), editor),
            'A' => self.insert_at(line.end, editor),
            'o' => self.open_line(line.end, line.end + 1, editor),
            'O' => self.open_line(line.start, line.start, editor),
            'v' | 'V' => {
                self.anchor = caret;
                self.mode = if letter == 'v' {
                    ViMode::Visual
                } else {
                    ViMode::VisualLine
                };
                self.clear();
            }
            'x' => self.operate(Operator::Delete, caret..forward(), false, editor),
            'X' => self.operate(Operator::Delete, backward()..caret, false, editor),
            'D' => self.operate(Operator::Delete, caret..line.end, false, editor),
            'C' => self.operate(Operator::Change, caret..line.end, false, editor),
            'S' => self.operate(Operator::Change, line, true, editor),
            's' => self.operate(Operator::Change, caret..forward(), false, editor),
            'Y' => self.operate(Operator::Yank, line, true, editor),
            'r' => {
                self.count = count;
                self.pending_key = PendingKey::Replacement;
            }
            '~' => self.swap_case(caret..forward(), true, editor),
            'J' => self.join_lines(count, editor),
            'p' | 'P' => self.paste(letter == 'p', count, editor),
            'u' => {
                for _ in 0..count {
                    editor.buffer.undo();
                }
                editor.on_caret_moved();
                self.clear();
            }
            '.' => self.repeat(editor),
            _ => self.clear(),
        }
    }

    pub(super) fn visual_command(&mut self, letter: char, editor: &mut Editor) {
        let Some(selection) = self.selection(&editor.buffer) else {
            return self.clear();
        };
        match letter {
            'x' | 'X' | 'D' => self.operator_key(Operator::Delete, editor),
            's' | 'S' | 'C' => self.operator_key(Operator::Change, editor),
            'Y' => self.operator_key(Operator::Yank, editor),
            '~' => {
                self.mode = ViMode::Normal;
                self.swap_case(selection, false, editor);
            }
            'J' => {
                self.mode = ViMode::Normal;
                let lines = editor.buffer.text()[selection.clone()]
                    .trim_end_matches('\n')
                    .matches('\n')
                    .count()
                    + 1;
                editor.buffer.set_caret(selection.start);
                self.join_lines(lines.max(2), editor);
            }
            'p' | 'P' => {
                let register = self.register.clone();
                self.operator_key(Operator::Delete, editor);
                let removed = std::mem::replace(&mut self.register, register);
                self.paste(false, 1, editor);
                self.register = removed;
            }
            'o' => {
                let caret = editor.buffer.caret();
                editor.buffer.set_caret(self.anchor);
                self.anchor = caret;
                self.clear();
            }
            'v' | 'V' => {
                let wanted = if letter == 'v' {
                    ViMode::Visual
                } else {
                    ViMode::VisualLine
                };
                self.mode = if self.mode == wanted {
                    ViMode::Normal
                } else {
                    wanted
                };
                self.clear();
            }
            _ => self.clear(),
        }
    }

    fn insert_at(&mut self, place: usize, editor: &mut Editor) {
        editor.buffer.set_caret(place);
        editor.on_caret_moved();
        self.enter_insert(editor);
    }

    fn open_line(&mut self, at: usize, caret: usize, editor: &mut Editor) {
        editor.buffer.set_caret(at);
        self.enter_insert(editor);
        editor.buffer.insert("\n");
        editor.buffer.set_caret(caret);
        editor.on_caret_moved();
    }

    pub(super) fn replace_letters(&mut self, letter: char, editor: &mut Editor) {
        let count = self.take_count();
        let (text, caret) = (editor.buffer.text(), editor.buffer.caret());
        let line = motion::line(text, caret);
        let end = (0..count).fold(caret, |at, _| motion::next(text, at));
        self.clear();
        let letters = motion::clusters(&text[caret..line.end]);
        if letters < count {
            return;
        }
        let new = super::super::chip::without_chips(&letter.to_string().repeat(count));
        editor.buffer.begin(EditKind::Other);
        editor.buffer.replace(caret..end, &new);
        let on_last = motion::previous(editor.buffer.text(), editor.buffer.caret());
        editor.buffer.set_caret(on_last);
        editor.on_caret_moved();
        self.has_changed = true;
    }

    fn swap_case(&mut self, range: Range<usize>, moves: bool, editor: &mut Editor) {
        let swapped: String = editor.buffer.text()[range.clone()]
            .chars()
            .flat_map(|letter| -> Vec<char> {
                match letter.is_lowercase() {
                    true => letter.to_uppercase().collect(),
                    false => letter.to_lowercase().collect(),
                }
            })
            .collect();
        editor.buffer.begin(EditKind::Other);
        editor.buffer.replace(range.clone(), &swapped);
        if !moves {
            editor.buffer.set_caret(range.start);
        }
        editor.on_caret_moved();
        self.clear();
        self.has_changed = true;
    }

    /// Joins `count` lines into one.
    fn join_lines(&mut self, count: usize, editor: &mut Editor) {
        editor.buffer.begin(EditKind::Other);
        editor.buffer.hold_undo();
        for _ in 0..count.max(2) - 1 {
            let text = editor.buffer.text();
            let end = motion::line(text, editor.buffer.caret()).end;
            if end >= text.len() {
                break;
            }
            let rest = &text[end + 1..];
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            let next_is_empty = rest[blanks..].starts_with('\n') || rest[blanks..].is_empty();
            let ends_blank = text[..end].ends_with(' ');
            let glue = if next_is_empty || ends_blank { "" } else { " " };
            editor.buffer.replace(end..end + 1 + blanks, glue);
            editor.buffer.set_caret(end);
        }
        editor.buffer.release_undo();
        editor.on_caret_moved();
        self.clear();
        self.has_changed = true;
    }

    fn paste(&mut self, behind: bool, count: usize, editor: &mut Editor) {
        self.clear();
        let YankRegister {
            text: register,
            is_linewise,
        } = self.register.clone();
        if register.is_empty() && !is_linewise {
            return;
        }
        editor.buffer.begin(EditKind::Other);
        let (text, caret) = (editor.buffer.text(), editor.buffer.caret());
        let line = motion::line(text, caret);
        if is_linewise {
            let lines = vec![register.as_str(); count].join("\n");
            let (at, new, first) = match behind {
                true => (line.end, format!("\n{lines}"), line.end + 1),
                false => (line.start, format!("{lines}\n"), line.start),
            };
            editor.buffer.replace(at..at, &new);
            let line = motion::line(editor.buffer.text(), first);
            let first = motion::first_word(editor.buffer.text(), line);
            editor.buffer.set_caret(first);
        } else {
            let at = if behind {
                motion::next(text, caret).min(line.end)
            } else {
                caret
            };
            editor.buffer.replace(at..at, &register.repeat(count));
            let on_last = motion::previous(editor.buffer.text(), editor.buffer.caret());
            editor.buffer.set_caret(on_last);
        }
        editor.on_caret_moved();
        self.has_changed = true;
    }

    /// Handles `.`: replays the keys of the last change.
    fn repeat(&mut self, editor: &mut Editor) {
        self.clear();
        if self.is_repeating {
            return;
        }
        self.is_repeating = true;
        for key in self.last_change.clone() {
            self.key(key, editor);
        }
        self.is_repeating = false;
        // The recorded keys stay those of the change, not the dot.
        self.has_changed = false;
    }
}
