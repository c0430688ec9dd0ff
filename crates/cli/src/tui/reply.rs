//! The model's reply while it streams in.

use haft_models::ModelEvent;
use haft_terminal::{HistoryItem, MarkdownCommitter, MarkdownLook, TextLine};

use super::{cards::one_line, ui_style::UiStyle};

/// The number of bytes to which the thinking text is trimmed. One row shows its end.
const THOUGHT: usize = 400;

/// The reply that streams in.
pub(crate) struct ReplyView {
    committer: MarkdownCommitter,
    /// The end of the current thinking text.
    thought: Option<String>,
    /// The Markdown source of the current reply, for copying.
    source: String,
    /// Replies in Markdown, the newest last.
    pub(crate) answers: Vec<String>,
}

/// The maximum number of replies that can be copied.
const MAX_ANSWERS: usize = 20;

impl ReplyView {
    pub(crate) fn new(look: &UiStyle) -> Self {
        Self {
            committer: MarkdownCommitter::new(markdown(look)),
            thought: None,
            source: String::new(),
            answers: Vec::new(),
        }
    }

    /// Starts the reply to a new message.
    pub(crate) fn begin(&mut self, look: &UiStyle) {
        if self.committer.is_empty() {
            self.committer = MarkdownCommitter::new(markdown(look));
        }
    }

    pub(crate) fn set_look(&mut self, look: &UiStyle) {
        self.committer.set_look(markdown(look));
    }

    /// Handles a model event. Returns the finished items.
    pub(crate) fn on_event(&mut self, event: &ModelEvent, look: &UiStyle) -> Vec<HistoryItem> {
        match event {
            ModelEvent::Text { text, .. } => {
                self.thought = None;
                self.source.push_str(text);
                self.committer.push(text)
            }
            ModelEvent::Thinking { text, .. } => {
                let thought = self.thought.get_or_insert_default();
                thought.push_str(text);
                if thought.len() > 2 * THOUGHT {
                    let mut from = thought.len() - THOUGHT;
                    while !thought.is_char_boundary(from) {
                        from += 1;
                    }
                    thought.drain(..from);
                }
                Vec::new()
            }
            ModelEvent::BlockStop { .. } => {
                self.thought = None;
                self.finish()
            }
            ModelEvent::Discard => {
                self.thought = None;
                self.source.clear();
                match self.committer.discard() {
                    true => vec![remark("- trying again", look)],
                    false => Vec::new(),
                }
            }
            ModelEvent::Retry {
                attempt,
                max_retries,
                delay,
                error,
            } => {
                let seconds = delay.as_secs_f64().ceil();
                let text =
                    format!("! {error}, try {attempt} of {max_retries} in {seconds}s (Esc stops)");
                vec![warning(&text, look)]
            }
            ModelEvent::Fallback { from, to, error } => {
                vec![warning(&format!("! {error}; {to} replaces {from}"), look)]
            }
            _ => Vec::new(),
        }
    }

    /// Finishes the open block, because it or the run has ended.
    pub(crate) fn finish(&mut self) -> Vec<HistoryItem> {
        let source = std::mem::take(&mut self.source);
        if !source.trim().is_empty() {
            if self.answers.len() == MAX_ANSWERS {
                self.answers.remove(0);
            }
            self.answers.push(source);
        }
        self.committer.finish()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.committer.is_empty() && self.thought.is_none()
    }

    /// Returns the last rows of the open block.
    pub(crate) fn rows(&self, look: &UiStyle, most: usize) -> Vec<TextLine> {
        if most == 0 {
            return Vec::new();
        }
        if let Some(thought) = &self.thought {
            let thought = one_line(thought.trim());
            let width = look.size.row_width();
            let mut line = TextLine::styled("  ", look.theme.faint);
            let text = TextLine::styled(&thought, look.theme.faint);
            // Shows the end of the thinking text, which is its newest part.
            let mut from = 0;
            while text.slice(from..text.text().len()).width() + 2 > width {
                from += text.text()[from..].chars().next().map_or(1, char::len_utf8);
            }
            line.append(&text.slice(from..text.text().len()));
            return vec![line];
        }
        self.committer.open_rows(look.size.row_width(), most)
    }
}

fn markdown(look: &UiStyle) -> MarkdownLook {
    MarkdownLook {
        theme: look.theme.clone(),
        hyperlinks: look.hyperlinks,
        unicode: look.unicode,
        columns: usize::from(look.size.columns),
    }
}

/// Returns a remark in secondary text.
pub(crate) fn remark(text: &str, look: &UiStyle) -> HistoryItem {
    HistoryItem::Prose {
        line: TextLine::styled(text, look.theme.faint),
        indent: 2,
    }
}

/// Returns a warning.
pub(crate) fn warning(text: &str, look: &UiStyle) -> HistoryItem {
    HistoryItem::Prose {
        line: TextLine::styled(text, look.theme.warning),
        indent: 2,
    }
}
