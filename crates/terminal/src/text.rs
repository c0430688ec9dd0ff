//! A line of styled text: the only type whose text is ever painted.

use std::{ops::Range, sync::Arc};

use crate::{
    clean::{clean_line, is_plain},
    style::TextStyle,
    width::{self, tab_stop, text_width},
};

/// A line of styled text that cannot control a terminal.
///
/// The text is cleaned when it is added: it contains no control character, no line end and no tab
/// (tabs become spaces). A line cannot store other text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TextLine {
    text: String,
    runs: Vec<StyledRun>,
}

/// A run of text in one style, with its end position.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StyledRun {
    end: usize,
    style: TextStyle,
    link: Option<Arc<str>>,
}

impl TextLine {
    /// Creates an empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a line in the default style.
    pub fn plain(text: &str) -> Self {
        Self::styled(text, TextStyle::default())
    }

    /// Creates a line in one style.
    pub fn styled(text: &str, style: TextStyle) -> Self {
        let mut line = Self::new();
        line.push(text, style);
        line
    }

    /// Splits a text into lines in one style. A final line end adds no line.
    pub fn lines(text: &str, style: TextStyle) -> Vec<Self> {
        let lines = text.lines();
        lines.map(|line| Self::styled(line, style)).collect()
    }

    /// Adds text. Control characters become visible, tabs become spaces.
    pub fn push(&mut self, text: &str, style: TextStyle) {
        let from = self.text.len();
        let mut line_text = std::mem::take(&mut self.text);
        // The width is measured from one tab to the next, because a line may consist of tabs only.
        let (mut measured, mut column) = (0, 0);
        clean_line(&mut line_text, text, |line_text| {
            column += text_width(&line_text[measured..]);
            let blanks = tab_stop(column) - column;
            line_text.extend(std::iter::repeat_n(' ', blanks));
            (measured, column) = (line_text.len(), column + blanks);
        });
        self.text = line_text;
        if self.text.len() > from {
            self.close(style, None);
        }
    }

    /// Adds a link with its text and address. If the address contains invalid characters, only the
    /// text is added.
    pub fn push_link(&mut self, text: &str, address: &str, style: TextStyle) {
        let is_fit = !address.is_empty()
            && address.len() <= 2048
            && address.chars().all(|c| !c.is_whitespace() && is_plain(c));
        let from = self.text.len();
        self.push(text, style);
        if is_fit && self.text.len() > from {
            self.mark_link(from, Arc::from(address));
        }
    }

    fn mark_link(&mut self, from: usize, link: Arc<str>) {
        let style = self.runs.pop().map(|run| run.style).unwrap_or_default();
        // The pushed text may have been joined to a run of the same style.
        let before = self.runs.last().map_or(0, |run| run.end);
        if before < from {
            self.runs.push(StyledRun {
                end: from,
                style,
                link: None,
            });
        }
        self.close(style, Some(link));
    }

    /// Adds text that this crate generated. It needs no cleaning.
    pub(crate) fn push_made(&mut self, text: &str, style: TextStyle) {
        self.text.push_str(text);
        self.close(style, None);
    }

    /// Adds another line.
    pub fn append(&mut self, other: &Self) {
        for (text, style, link) in other.runs() {
            self.text.push_str(text);
            self.close(style, link.cloned());
        }
    }

    /// Adds spaces.
    pub fn push_blanks(&mut self, count: usize) {
        self.push_made(&" ".repeat(count), TextStyle::default());
    }

    fn close(&mut self, style: TextStyle, link: Option<Arc<str>>) {
        let end = self.text.len();
        match self.runs.last_mut() {
            Some(last) if last.style == style && last.link == link => last.end = end,
            Some(last) if last.end == end => {}
            _ if end == 0 => {}
            _ => self.runs.push(StyledRun { end, style, link }),
        }
    }

    /// Returns the text without its styles.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the line is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the width in cells.
    pub fn width(&self) -> usize {
        text_width(&self.text)
    }

    /// Returns the runs: text, style, link.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&str, TextStyle, Option<&Arc<str>>)> {
        let mut from = 0;
        self.runs.iter().map(move |run| {
            let text = &self.text[from..run.end];
            from = run.end;
            (text, run.style, run.link.as_ref())
        })
    }

    /// Returns a part of the line, by a byte range of its text.
    ///
    /// # Panics
    /// If an end of the range is not a character boundary.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let mut part = Self::new();
        let mut from = 0;
        for run in &self.runs {
            let (start, end) = (from.max(range.start), run.end.min(range.end));
            if start < end {
                part.text.push_str(&self.text[start..end]);
                part.close(run.style, run.link.clone());
            }
            from = run.end;
        }
        part
    }

    /// Returns the start of the line that fits into `cells` cells.
    #[must_use]
    pub fn truncated(&self, cells: usize) -> Self {
        if self.text.len() <= cells {
            return self.clone();
        }
        let end = width::prefix(&self.text, cells).len();
        self.slice(0..end)
    }

    /// Returns the same text with the style of each run changed.
    #[must_use]
    pub fn restyled(&self, mut change: impl FnMut(TextStyle) -> TextStyle) -> Self {
        let mut line = Self::new();
        for (text, style, link) in self.runs() {
            line.text.push_str(text);
            line.close(change(style), link.cloned());
        }
        line
    }
}

impl From<&str> for TextLine {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOLD: TextStyle = TextStyle::new().bold();

    #[test]
    fn no_text_in_a_line_can_act() {
        let line = TextLine::plain("a\x1b[2J\nb\tc\u{9b}");
        assert_eq!(line.text(), "a␛[2J␊b c<U+009B>");
    }

    #[test]
    fn pieces_keep_their_styles_through_slices() {
        let mut line = TextLine::plain("one ");
        line.push("two", BOLD);
        line.push_link(" three", "https://example.com/a", TextStyle::default());
        let part = line.slice(2..9);
        let runs: Vec<_> = part
            .runs()
            .map(|(text, style, link)| (text, style == BOLD, link.is_some()))
            .collect();
        assert_eq!(
            runs,
            [
                ("e ", false, false),
                ("two", true, false),
                (" t", false, true)
            ]
        );
        assert_eq!(line.slice(0..0), TextLine::new());
    }

    #[test]
    fn an_address_that_would_act_is_no_link() {
        for address in ["http://a\x1b\\b", "a b", "", "http://a\u{202e}"] {
            let mut line = TextLine::plain("x ");
            line.push_link("text", address, TextStyle::default());
            assert!(
                line.runs().all(|(_, _, link)| link.is_none()),
                "{address:?}"
            );
            assert_eq!(line.text(), "x text");
        }
    }

    #[test]
    fn links_of_the_same_style_as_what_is_before_them_begin_where_they_begin() {
        let mut line = TextLine::plain("see ");
        line.push_link("here", "https://example.com", TextStyle::default());
        line.push(" and", TextStyle::default());
        let runs: Vec<_> = line
            .runs()
            .map(|(text, _, link)| (text, link.is_some()))
            .collect();
        assert_eq!(runs, [("see ", false), ("here", true), (" and", false)]);
    }

    #[test]
    fn tabs_go_to_the_next_column_of_four() {
        let mut line = TextLine::plain("ab");
        line.push("\tc", BOLD);
        assert_eq!(line.text(), "ab  c");
    }
}
