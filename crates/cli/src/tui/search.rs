//! History search (Ctrl-R).

use haft_terminal::{
    Key, KeyCode, TextLine, TextStyle,
    editor::{HistorySearch, InputHistory},
};

use super::{
    app::App,
    cards::one_line,
    history_file::{HistoryScope, MAX_ENTRIES, PromptHistoryEntry, history_texts},
};

/// The maximum number of bytes of text that are searched.
const MAX_BYTES: usize = 16 << 20;

/// A search in progress.
pub(crate) struct HistorySearchState {
    search: HistorySearch,
    scope: HistoryScope,
    texts: Vec<String>,
}

impl App {
    /// Sets the history of this and other sessions that was loaded from the file.
    pub(super) fn set_prompt_history(&mut self, entries: Vec<PromptHistoryEntry>) {
        // Prompts that were sent since the start are newer than those in the file.
        let newer = std::mem::replace(&mut self.prompt_history, entries);
        self.prompt_history.extend(newer);
        let texts = self.prompt_history_texts(HistoryScope::Project);
        self.inputs = InputHistory::new(texts);
    }

    /// Adds a prompt to the history. Removes the oldest ones if there are too many.
    pub(super) fn add_to_prompt_history(&mut self, entry: PromptHistoryEntry) {
        self.prompt_history.push(entry);
        let mut bytes = 0;
        let newest = self.prompt_history.iter().rev().take_while(|entry| {
            bytes += entry.text.len();
            bytes <= MAX_BYTES
        });
        let kept = newest.count().clamp(1, MAX_ENTRIES);
        self.prompt_history
            .drain(..self.prompt_history.len() - kept);
    }

    fn prompt_history_texts(&self, scope: HistoryScope) -> Vec<String> {
        let session = self.status.session.as_deref().unwrap_or_default();
        history_texts(&self.prompt_history, scope, &self.cwd, session)
    }

    pub(super) fn begin_search(&mut self) {
        let scope = HistoryScope::Project;
        self.search = Some(HistorySearchState {
            search: HistorySearch::new(),
            scope,
            texts: self.prompt_history_texts(scope),
        });
    }

    /// Handles a key during a search. Returns whether it was used.
    pub(super) fn search_key(&mut self, key: Key, now: std::time::Instant) -> bool {
        let Some(search) = &mut self.search else {
            return false;
        };
        if key == Key::control('r') {
            search.search.older(&search.texts);
        } else if key == Key::control('s') {
            let scope = search.scope.next();
            let texts = self.prompt_history_texts(scope);
            if let Some(search) = &mut self.search {
                (search.scope, search.texts) = (scope, texts);
            }
        } else if key == Key::plain(KeyCode::Backspace) || key == Key::control('h') {
            search.search.pop();
        } else if key == Key::ESCAPE || key == Key::control('c') || key == Key::control('g') {
            self.search = None;
        } else if key == Key::plain(KeyCode::Tab) || key == Key::RETURN {
            let found = search.search.found(&search.texts);
            let found = found.map(str::to_owned);
            self.search = None;
            if let Some(text) = found {
                self.editor.set_text(&text);
                if key == Key::RETURN {
                    self.submit(now);
                }
            }
        } else if let Some(letter) = key.typed() {
            search.search.push(letter);
        }
        true
    }

    pub(super) fn search_rows(&self) -> Vec<TextLine> {
        let Some(search) = &self.search else {
            return Vec::new();
        };
        let look = &self.look;
        let mut line = TextLine::styled(
            &format!(" search {}: ", search.scope.name()),
            look.theme.accent,
        );
        line.push(search.search.query(), TextStyle::new().bold());
        let mut rows = vec![line];
        match search.search.found(&search.texts) {
            Some(text) => {
                rows.push(TextLine::plain(&format!("   {}", one_line(text))));
            }
            None => rows.push(TextLine::styled("   nothing found", look.theme.faint)),
        }
        let hint = " Ctrl-R older, Ctrl-S scope, Tab take, Enter send, Esc leave";
        rows.push(TextLine::styled(hint, look.theme.faint));
        rows
    }
}
