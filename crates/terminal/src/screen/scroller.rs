//! A pager for a long text: its scroll position and search.
//!
//! The text is requested line by line, so it may be on disk; only visible lines are wrapped.

use crate::{
    input::{Key, KeyCode},
    style::TextStyle,
    text::TextLine,
    wrap::wrap,
};

/// A text that can be read line by line.
pub trait ScrollText {
    /// Returns the number of lines.
    fn len(&self) -> usize;

    /// Returns a line.
    fn line(&self, number: usize) -> TextLine;

    /// Returns whether the text is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether a section starts at this line, for jumps between sections.
    fn is_section(&self, _number: usize) -> bool {
        false
    }
}

impl ScrollText for Vec<TextLine> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn line(&self, number: usize) -> TextLine {
        self.get(number).cloned().unwrap_or_default()
    }
}

/// A command of the pager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ScrollCommand {
    RowDown,
    RowUp,
    PageDown,
    PageUp,
    First,
    Last,
    NextMatch,
    PreviousMatch,
    NextSection,
    PreviousSection,
}

impl ScrollCommand {
    /// Returns the command of a key, with the bindings of common pagers.
    pub fn from_key(key: Key) -> Option<Self> {
        Some(match key.code {
            KeyCode::Down => Self::RowDown,
            KeyCode::Up => Self::RowUp,
            KeyCode::PageDown => Self::PageDown,
            KeyCode::PageUp => Self::PageUp,
            KeyCode::Home => Self::First,
            KeyCode::End => Self::Last,
            _ => match key.typed()? {
                'j' => Self::RowDown,
                'k' => Self::RowUp,
                ' ' => Self::PageDown,
                'b' => Self::PageUp,
                'g' => Self::First,
                'G' => Self::Last,
                'n' => Self::NextMatch,
                'N' => Self::PreviousMatch,
                '}' => Self::NextSection,
                '{' => Self::PreviousSection,
                _ => return None,
            },
        })
    }
}

/// The visible part of a text.
#[derive(Debug, Clone, Default)]
pub struct Scroller {
    width: usize,
    rows: usize,
    /// The line of the first visible row, and the index of that row within the line.
    top: (usize, usize),
    query: String,
    /// True if the end was ever shown.
    end_was_shown: bool,
}

impl Scroller {
    /// Creates a pager at the start of a text, with this size.
    pub fn new(width: usize, rows: usize) -> Self {
        Self {
            width: width.max(1),
            rows: rows.max(1),
            ..Self::default()
        }
    }

    /// Changes the size; the line at the top stays there.
    pub fn resize(&mut self, width: usize, rows: usize) {
        (self.width, self.rows) = (width.max(1), rows.max(1));
        self.top.1 = 0;
    }

    /// Sets the search query, which ignores case. An empty query matches nothing.
    pub fn search_for(&mut self, query: &str) {
        self.query = query.to_lowercase();
    }

    /// Returns whether the end of the text has ever been visible.
    pub fn end_was_shown(&self) -> bool {
        self.end_was_shown
    }

    /// Returns the line at the top.
    pub fn top_line(&self) -> usize {
        self.top.0
    }

    /// Shows a line at the top.
    pub fn go_to(&mut self, line: usize) {
        self.top = (line, 0);
    }

    /// Moves the view. Returns `false` if it did not move.
    pub fn scroll(&mut self, command: ScrollCommand, text: &dyn ScrollText) -> bool {
        let before = self.top;
        match command {
            ScrollCommand::RowDown => self.down(1, text),
            ScrollCommand::RowUp => self.up(1, text),
            ScrollCommand::PageDown => self.down(self.rows.saturating_sub(1).max(1), text),
            ScrollCommand::PageUp => self.up(self.rows.saturating_sub(1).max(1), text),
            ScrollCommand::First => self.top = (0, 0),
            ScrollCommand::Last => {
                self.top = (text.len(), 0);
                self.up(self.rows, text);
            }
            ScrollCommand::NextMatch => self.seek(self.top.0 + 1..text.len(), text, false),
            ScrollCommand::PreviousMatch => self.seek(0..self.top.0, text, true),
            ScrollCommand::NextSection => {
                let next = (self.top.0 + 1..text.len()).find(|line| text.is_section(*line));
                self.top = next.map_or(self.top, |line| (line, 0));
            }
            ScrollCommand::PreviousSection => {
                let previous = (0..self.top.0).rev().find(|line| text.is_section(*line));
                self.top = previous.map_or(self.top, |line| (line, 0));
            }
        }
        self.top != before
    }

    fn seek(&mut self, lines: std::ops::Range<usize>, text: &dyn ScrollText, backwards: bool) {
        if self.query.is_empty() {
            return;
        }
        let matches = |line: &usize| text.line(*line).text().to_lowercase().contains(&self.query);
        let found = match backwards {
            true => lines.rev().find(matches),
            false => { lines }.find(matches),
        };
        self.top = found.map_or(self.top, |line| (line, 0));
    }

    fn height(&self, line: usize, text: &dyn ScrollText) -> usize {
        wrap(&text.line(line), self.width).len()
    }

    fn down(&mut self, rows: usize, text: &dyn ScrollText) {
        for _ in 0..rows {
            if self.shows_end(text) {
                return;
            }
            self.top.1 += 1;
            if self.top.1 >= self.height(self.top.0, text) {
                self.top = (self.top.0 + 1, 0);
            }
        }
    }

    fn up(&mut self, rows: usize, text: &dyn ScrollText) {
        for _ in 0..rows {
            match self.top {
                (0, 0) => return,
                (line, 0) => self.top = (line - 1, self.height(line - 1, text) - 1),
                (line, row) => self.top = (line, row - 1),
            }
        }
    }

    fn shows_end(&self, text: &dyn ScrollText) -> bool {
        let mut rows = 0;
        for line in self.top.0..text.len() {
            let height = self.height(line, text);
            rows += if line == self.top.0 {
                height.saturating_sub(self.top.1)
            } else {
                height
            };
            if rows > self.rows {
                return false;
            }
        }
        true
    }

    /// Returns the visible rows; matches of the search are shown in reverse.
    pub fn rows(&mut self, text: &dyn ScrollText) -> Vec<TextLine> {
        // The text may have become shorter.
        if self.top.0 >= text.len() {
            self.top = (text.len().saturating_sub(1), 0);
        }
        let mut rows = Vec::new();
        let mut skip = self.top.1;
        for number in self.top.0..text.len() {
            if rows.len() >= self.rows {
                break;
            }
            let line = self.marked(text.line(number));
            rows.extend(wrap(&line, self.width).into_iter().skip(skip));
            skip = 0;
        }
        self.end_was_shown |= self.shows_end(text);
        rows.truncate(self.rows);
        rows
    }

    fn marked(&self, line: TextLine) -> TextLine {
        let lower = line.text().to_lowercase();
        // If lower-casing changes the length, positions do not correspond.
        if self.query.is_empty() || lower.len() != line.text().len() {
            return line;
        }
        let mut marked = TextLine::new();
        let mut from = 0;
        for (at, found) in lower.match_indices(&self.query) {
            let end = at + found.len();
            if !line.text().is_char_boundary(at) || !line.text().is_char_boundary(end) {
                continue;
            }
            marked.append(&line.slice(from..at));
            let part = line.slice(at..end);
            marked.append(&part.restyled(|style| style.and(TextStyle::new().reverse())));
            from = end;
        }
        marked.append(&line.slice(from..line.text().len()));
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize) -> Vec<TextLine> {
        (0..count)
            .map(|n| TextLine::plain(&format!("line {n}")))
            .collect()
    }

    fn shown(scroller: &mut Scroller, text: &Vec<TextLine>) -> Vec<String> {
        scroller
            .rows(text)
            .iter()
            .map(|row| row.text().to_owned())
            .collect()
    }

    #[test]
    fn moves_stay_inside_the_text() {
        let text = numbered(10);
        let mut scroller = Scroller::new(20, 3);
        assert!(!scroller.scroll(ScrollCommand::RowUp, &text));
        assert!(scroller.scroll(ScrollCommand::PageDown, &text));
        assert_eq!(shown(&mut scroller, &text), ["line 2", "line 3", "line 4"]);
        assert!(!scroller.end_was_shown());
        scroller.scroll(ScrollCommand::Last, &text);
        assert_eq!(shown(&mut scroller, &text), ["line 7", "line 8", "line 9"]);
        assert!(scroller.end_was_shown());
        assert!(!scroller.scroll(ScrollCommand::RowDown, &text));
    }

    #[test]
    fn long_lines_are_scrolled_by_rows() {
        let text = vec![TextLine::plain("aaa bbb ccc"), TextLine::plain("end")];
        let mut scroller = Scroller::new(3, 2);
        scroller.scroll(ScrollCommand::RowDown, &text);
        assert_eq!(shown(&mut scroller, &text), ["bbb", "ccc"]);
        scroller.scroll(ScrollCommand::RowUp, &text);
        assert_eq!(shown(&mut scroller, &text), ["aaa", "bbb"]);
    }

    #[test]
    fn matches_are_found_and_marked() {
        let text = numbered(30);
        let mut scroller = Scroller::new(20, 3);
        scroller.search_for("LINE 2");
        assert!(scroller.scroll(ScrollCommand::NextMatch, &text));
        assert_eq!(scroller.top_line(), 2);
        scroller.scroll(ScrollCommand::NextMatch, &text);
        assert_eq!(scroller.top_line(), 20);
        scroller.scroll(ScrollCommand::PreviousMatch, &text);
        assert_eq!(scroller.top_line(), 2);
        let expected = TextLine::styled("line 2", TextStyle::new().reverse());
        assert_eq!(scroller.rows(&text)[0], expected);
    }

    #[test]
    fn a_text_that_became_shorter_is_shown_all_the_same() {
        let mut scroller = Scroller::new(20, 3);
        scroller.go_to(50);
        assert_eq!(shown(&mut scroller, &numbered(2)), ["line 1"]);
        assert_eq!(shown(&mut scroller, &Vec::new()), [""; 0]);
    }
}
