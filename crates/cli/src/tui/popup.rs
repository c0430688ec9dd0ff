//! Completions below the editor, requested at every key and found in the background.

use haft_terminal::{Editor, Key, KeyCode, TextLine, TextStyle};

use super::{
    app::{App, AppEffect},
    cards::one_line,
    complete::{CompletionEntry, CompletionQuery, completion_query},
    ui_style::UiStyle,
};

/// The current query and its completions.
#[derive(Debug, Default)]
pub(crate) struct CompletionPopup {
    query: Option<CompletionQuery>,
    found: Vec<CompletionEntry>,
    chosen: usize,
    /// The number of the current query. Answers to older queries are dropped.
    number: u64,
    /// Whether the current query has been answered.
    is_answered: bool,
    /// Tab was pressed before the answer: the first completion is inserted when it arrives.
    takes_first: bool,
    /// The user closed the list. It stays closed until the word ends.
    is_closed: bool,
}

impl CompletionPopup {
    pub(crate) fn is_open(&self) -> bool {
        !self.found.is_empty() && !self.is_closed
    }

    pub(crate) fn rows(&self, look: &UiStyle) -> Vec<TextLine> {
        if !self.is_open() {
            return Vec::new();
        }
        let widest = self.found.iter().map(|one| {
            TextLine::plain(&one.label).width() + TextLine::plain(&one.hint).width() + 1
        });
        let widest = widest.max().unwrap_or_default().min(40);
        let mut rows = Vec::new();
        for (at, one) in self.found.iter().enumerate() {
            let mark = match at == self.chosen {
                true => look.angle(),
                false => " ",
            };
            let style = match at == self.chosen {
                true => look.theme.accent,
                false => TextStyle::new(),
            };
            let mut line = TextLine::styled(&format!(" {mark} "), look.theme.accent);
            line.push(&one.label, style);
            if !one.hint.is_empty() {
                line.push(&format!(" {}", one.hint), look.theme.faint);
            }
            if !one.description.is_empty() && !look.is_narrow() {
                let column = line.width();
                line.push_blanks((widest + 5).saturating_sub(column).max(2));
                line.push(&one_line(&one.description), look.theme.faint);
            }
            rows.push(line.truncated(look.size.row_width()));
        }
        rows
    }
}

/// Returns the completion query for the draft. Chips are not part of it.
fn query(editor: &Editor) -> Option<CompletionQuery> {
    let line = editor.line_before_caret();
    match editor.caret() == line.len() {
        true => completion_query(line, line.len()),
        // On later lines a slash does not begin a command.
        false => {
            let text = format!("\n{line}");
            completion_query(&text, text.len())
        }
    }
}

impl App {
    /// Requests completions after the draft or the caret has changed.
    pub(super) fn request_completions(&mut self) {
        let asked = query(&self.editor);
        if asked == self.popup.query {
            return;
        }
        self.popup.query.clone_from(&asked);
        self.popup.number += 1;
        self.popup.takes_first = false;
        self.popup.is_answered = false;
        match asked {
            Some(query) => {
                let number = self.popup.number;
                self.effect(AppEffect::Complete { query, number });
            }
            None => {
                self.popup.found.clear();
                self.popup.is_closed = false;
            }
        }
    }

    /// Sets the completions that were found in the background.
    pub(super) fn completions(&mut self, number: u64, found: Vec<CompletionEntry>) {
        if number != self.popup.number || self.popup.query.is_none() {
            return;
        }
        self.popup.found = found;
        self.popup.is_answered = true;
        self.popup.chosen = 0;
        if std::mem::take(&mut self.popup.takes_first) {
            self.take_completion();
        }
    }

    /// Handles a key while there is a query. Returns whether it was used.
    pub(super) fn popup_key(&mut self, key: Key) -> bool {
        let popup = &mut self.popup;
        if popup.query.is_none() || popup.is_closed {
            return false;
        }
        let last = popup.found.len().saturating_sub(1);
        match key.code {
            KeyCode::Tab if key == Key::plain(KeyCode::Tab) => {
                if popup.found.is_empty() && popup.is_answered {
                    return false;
                }
                match popup.found.is_empty() {
                    true => popup.takes_first = true,
                    false => self.take_completion(),
                }
                true
            }
            KeyCode::Up if popup.is_open() => {
                popup.chosen = popup.chosen.checked_sub(1).unwrap_or(last);
                true
            }
            KeyCode::Down if popup.is_open() => {
                popup.chosen = if popup.chosen == last {
                    0
                } else {
                    popup.chosen + 1
                };
                true
            }
            KeyCode::Escape if popup.is_open() => {
                popup.is_closed = true;
                true
            }
            _ => false,
        }
    }

    fn take_completion(&mut self) {
        let Some(one) = self.popup.found.get(self.popup.chosen).cloned() else {
            return;
        };
        self.editor.replace_before_caret(one.replaces, &one.insert);
        self.popup.found.clear();
        self.request_completions();
    }
}
