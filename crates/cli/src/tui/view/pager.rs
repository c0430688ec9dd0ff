//! A pager with the usual keys, and a search that is typed into the last row.

use haft_terminal::{
    Key, KeyCode, Scroller, TextLine,
    screen::{ScrollCommand, ScrollText},
};

use super::{body_rows, close, footer, stay};
use crate::tui::{
    overlay::{FullScreenView, ViewEffect, ViewOutcome},
    ui_style::UiStyle,
};

/// The scroll position and the search.
#[derive(Debug)]
pub(super) struct Pager {
    pub(super) scroller: Scroller,
    size: (usize, usize),
    /// The text that is being typed after `/`.
    typing: Option<String>,
    pub(super) query: String,
}

/// The outcome of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PagerStep {
    Done,
    /// The search text has changed: go to the first match.
    Search,
    /// Go to the next or previous match.
    Match {
        backwards: bool,
    },
    Close,
    /// The key is not a pager key.
    Other,
}

impl Pager {
    pub(super) fn new() -> Self {
        Self {
            scroller: Scroller::new(80, 23),
            size: (80, 23),
            typing: None,
            query: String::new(),
        }
    }

    /// Handles a key. The caller performs searches, because the text may be on disk.
    pub(super) fn key(&mut self, key: Key, text: &dyn ScrollText) -> PagerStep {
        if let Some(typed) = &mut self.typing {
            match key.code {
                KeyCode::Enter => {
                    self.query = std::mem::take(typed);
                    self.typing = None;
                    self.scroller.search_for(&self.query);
                    return PagerStep::Search;
                }
                KeyCode::Escape => self.typing = None,
                KeyCode::Backspace if typed.is_empty() => self.typing = None,
                KeyCode::Backspace => {
                    typed.pop();
                }
                _ => typed.extend(key.typed()),
            }
            return PagerStep::Done;
        }
        match ScrollCommand::from_key(key) {
            Some(ScrollCommand::NextMatch) => PagerStep::Match { backwards: false },
            Some(ScrollCommand::PreviousMatch) => PagerStep::Match { backwards: true },
            Some(command) => {
                self.scroller.scroll(command, text);
                PagerStep::Done
            }
            None if key == Key::char('/') => {
                self.typing = Some(String::new());
                PagerStep::Done
            }
            None if is_leaving(key) => PagerStep::Close,
            None => PagerStep::Other,
        }
    }

    /// Performs a search in a text that is in memory.
    pub(super) fn search(&mut self, step: &PagerStep, text: &dyn ScrollText) {
        let command = match step {
            PagerStep::Search => {
                // The search begins at the first visible line.
                let top = self.scroller.top_line();
                let query = self.query.to_lowercase();
                if !query.is_empty() && text.line(top).text().to_lowercase().contains(&query) {
                    return;
                }
                ScrollCommand::NextMatch
            }
            PagerStep::Match { backwards: false } => ScrollCommand::NextMatch,
            PagerStep::Match { backwards: true } => ScrollCommand::PreviousMatch,
            _ => return,
        };
        self.scroller.scroll(command, text);
    }

    pub(super) fn fit(&mut self, look: &UiStyle) {
        let size = (look.size.row_width(), body_rows(look));
        if size != self.size {
            self.size = size;
            self.scroller.resize(size.0, size.1);
        }
    }

    pub(super) fn rows(
        &mut self,
        text: &dyn ScrollText,
        look: &UiStyle,
        hint: &str,
    ) -> Vec<TextLine> {
        self.fit(look);
        let mut rows = self.scroller.rows(text);
        rows.resize(body_rows(look), TextLine::new());
        rows.push(self.footer(hint, look));
        rows
    }

    fn footer(&self, hint: &str, look: &UiStyle) -> TextLine {
        match &self.typing {
            Some(typed) => footer(&format!("/{typed}"), look),
            None => footer(hint, look),
        }
    }
}

pub(super) fn is_leaving(key: Key) -> bool {
    key == Key::char('q') || key == Key::ESCAPE || key == Key::control('c')
}

/// A text in memory.
pub(crate) struct TextView {
    title: String,
    lines: Vec<TextLine>,
    pager: Pager,
}

impl TextView {
    pub(crate) fn new(title: &str, lines: Vec<TextLine>) -> Self {
        Self {
            title: title.to_owned(),
            lines,
            pager: Pager::new(),
        }
    }

    fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(TextLine::text).collect();
        lines.join("\n")
    }
}

impl FullScreenView for TextView {
    fn rows(&mut self, look: &UiStyle) -> Vec<TextLine> {
        let hint = format!(
            " {}  j k Space b g G  / n N  y copy  v editor  q",
            self.title
        );
        self.pager.rows(&self.lines, look, &hint)
    }

    fn key(&mut self, key: Key) -> ViewOutcome {
        let step = self.pager.key(key, &self.lines);
        match step {
            PagerStep::Close => close(),
            PagerStep::Other if key == Key::char('y') => {
                ViewOutcome::Stay(vec![ViewEffect::Copy(self.text())])
            }
            PagerStep::Other if key == Key::char('v') => {
                ViewOutcome::Stay(vec![ViewEffect::Edit(self.text())])
            }
            step => {
                self.pager.search(&step, &self.lines);
                stay()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::view::test_screen::{keys, shown, test_style};

    #[test]
    fn a_text_is_read_and_searched() {
        let lines = (1..=50)
            .map(|n| TextLine::plain(&format!("line {n}")))
            .collect();
        let mut view = TextView::new("Whole command", lines);
        let look = test_style(80, 5);
        assert_eq!(
            shown(&mut view, &look),
            "line 1\nline 2\nline 3\nline 4\n Whole command  j k Space b g G  / n N  y copy  v editor  q"
        );
        keys(&mut view, "/line 3");
        assert!(shown(&mut view, &look).ends_with("\n/line 3"));
        view.key(Key::RETURN);
        assert!(shown(&mut view, &look).starts_with("line 3\n"));
        keys(&mut view, "n");
        assert!(shown(&mut view, &look).starts_with("line 30\n"));
        keys(&mut view, "N");
        assert!(shown(&mut view, &look).starts_with("line 3\n"));
        keys(&mut view, "G");
        assert!(shown(&mut view, &look).contains("line 50\n"));
        let ViewOutcome::Stay(effects) = view.key(Key::char('y')) else {
            panic!("it closed")
        };
        assert!(matches!(&effects[..], [ViewEffect::Copy(text)] if text.starts_with("line 1\n")));
        assert!(matches!(view.key(Key::ESCAPE), ViewOutcome::Close(_)));
    }
}
