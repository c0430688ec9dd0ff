//! The full-screen view of a question that is longer than the live region. It must be scrolled to
//! its end before the question can be allowed.

use haft_terminal::{Key, Scroller, TextLine, screen::ScrollCommand};

use super::{ask::QuestionId, ui_style::UiStyle};

pub(crate) struct FullQuestionView {
    /// The id of the question, if the view shows one.
    pub(crate) question: Option<QuestionId>,
    lines: Vec<TextLine>,
    scroller: Option<Scroller>,
    size: (usize, usize),
}

impl FullQuestionView {
    pub(crate) fn new(question: Option<QuestionId>, lines: Vec<TextLine>) -> Self {
        Self {
            question,
            lines,
            scroller: None,
            size: (0, 0),
        }
    }

    pub(crate) fn end_was_shown(&self) -> bool {
        self.scroller.as_ref().is_some_and(Scroller::end_was_shown)
    }

    /// Handles a key. Returns `false` if the view closes.
    pub(crate) fn key(&mut self, key: Key, look: &UiStyle) -> bool {
        if key == Key::ESCAPE || key == Key::char('q') || key == Key::char('v') {
            return false;
        }
        if let Some(command) = ScrollCommand::from_key(key) {
            self.sized(look);
            if let Some(scroller) = &mut self.scroller {
                scroller.scroll(command, &self.lines);
            }
        }
        true
    }

    pub(crate) fn rows(&mut self, look: &UiStyle) -> Vec<TextLine> {
        self.sized(look);
        let height = text_rows(look);
        let mut rows = match &mut self.scroller {
            Some(scroller) => scroller.rows(&self.lines),
            None => Vec::new(),
        };
        rows.resize(height, TextLine::new());
        let end = match (self.question.is_some(), self.end_was_shown()) {
            (true, false) => "   scroll to the end to allow it",
            _ => "",
        };
        let text = format!(" j k Space b g G   q back{end}");
        rows.push(TextLine::styled(&text, look.theme.faint));
        rows
    }

    fn sized(&mut self, look: &UiStyle) {
        let size = (look.size.row_width(), text_rows(look));
        match &mut self.scroller {
            Some(_) if self.size == size => {}
            Some(scroller) => scroller.resize(size.0, size.1),
            None => self.scroller = Some(Scroller::new(size.0, size.1)),
        }
        self.size = size;
    }
}

fn text_rows(look: &UiStyle) -> usize {
    usize::from(look.size.rows).saturating_sub(1).max(1)
}
