//! Renders a Markdown reply while it streams in: finished blocks are committed once, and the
//! unfinished rest is shown as a preview.
//!
//! The unit of commit is a paragraph, a heading, a list item, a quote, a whole table, or one line
//! of code. Until then the text is the open block. Only its last word may change: open
//! emphasis marks are drawn as if they were closed, and an unfinished link is drawn as its text.
//!
//! - [`MarkdownCommitter`]: takes text and returns history items; `blocks` decides where blocks
//!   start and end
//! - `inline`: renders one block with pulldown-cmark; `open_block`: prepares an unfinished block
//! - `table`: columns, or `head: value` if there is not enough room

mod blocks;
mod inline;
mod open_block;
mod table;

use crate::{
    screen::HistoryItem,
    style::{TextStyle, Theme},
    text::TextLine,
    wrap::wrap_with_indent,
};
use blocks::{LineKind, OpenBlock, classify};

/// The appearance of a reply.
#[derive(Debug, Clone, Default)]
pub struct MarkdownLook {
    /// The colours.
    pub theme: Theme,
    /// True if the terminal supports hyperlinks. Otherwise the address is printed after the text.
    pub hyperlinks: bool,
    /// True if characters beyond ASCII may be used.
    pub unicode: bool,
    /// The maximum width of tables.
    pub columns: usize,
}

/// Takes a reply while it streams in and returns the finished blocks.
#[derive(Debug, Clone)]
pub struct MarkdownCommitter {
    look: MarkdownLook,
    /// The last line, which has no line end yet.
    pending: String,
    open: OpenBlock,
    /// The start columns of the text of the enclosing list items, outermost first.
    levels: Vec<usize>,
    /// True if an empty line precedes the next block.
    has_gap: bool,
    has_printed: bool,
}

/// The maximum number of bytes of an open paragraph to draw: far more than fits on the screen.
const MAX_SHOWN: usize = 8 * 1024;

impl MarkdownCommitter {
    /// Creates a committer at the start of a reply.
    pub fn new(look: MarkdownLook) -> Self {
        Self {
            look,
            pending: String::new(),
            open: OpenBlock::None,
            levels: Vec::new(),
            has_gap: false,
            has_printed: false,
        }
    }

    /// Changes the appearance, starting with the next commit.
    pub fn set_look(&mut self, look: MarkdownLook) {
        self.look = look;
    }

    /// Adds text of the reply and returns the blocks that it finishes.
    pub fn push(&mut self, text: &str) -> Vec<HistoryItem> {
        let mut done = Vec::new();
        let mut rest = text;
        while let Some((line, behind)) = rest.split_once('\n') {
            self.pending.push_str(line);
            let line = std::mem::take(&mut self.pending);
            self.line(line.trim_end_matches('\r'), &mut done);
            rest = behind;
        }
        self.pending.push_str(rest);
        done
    }

    /// Ends the reply and returns the open block as finished.
    pub fn finish(&mut self) -> Vec<HistoryItem> {
        let mut done = Vec::new();
        let line = std::mem::take(&mut self.pending);
        if !line.is_empty() {
            self.line(&line, &mut done);
        }
        self.close(&mut done);
        self.open = OpenBlock::None;
        self.levels.clear();
        // Another reply may follow.
        self.has_gap = self.has_printed;
        done
    }

    /// Drops the open block, because the reply is requested again. Returns `true` if a part of the
    /// reply was already printed.
    pub fn discard(&mut self) -> bool {
        let had_printed = self.has_printed;
        *self = Self::new(self.look.clone());
        had_printed
    }

    /// Returns whether no block is open.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && matches!(self.open, OpenBlock::None)
    }

    /// Returns the open block as rows of this width; if there are more than `most`, the last ones.
    pub fn open_rows(&self, width: usize, most: usize) -> Vec<TextLine> {
        let mut preview = self.clone();
        preview.shorten();
        let mut items = Vec::new();
        let line = std::mem::take(&mut preview.pending);
        if !blocks::is_only_marks(&line) && !matches!(preview.open, OpenBlock::Table { .. }) {
            preview.line(&line, &mut items);
        }
        preview.open.close_marks();
        preview.close(&mut items);
        let rows = items.iter().flat_map(|item| item_rows(item, width));
        let rows: Vec<TextLine> = rows.collect();
        rows[rows.len().saturating_sub(most)..].to_vec()
    }

    /// Cuts open text to what can be visible.
    fn shorten(&mut self) {
        if let Some(text) = self.open.text_mut() {
            shorten(text);
        }
        shorten(&mut self.pending);
    }

    /// Processes one whole line.
    fn line(&mut self, line: &str, done: &mut Vec<HistoryItem>) {
        if let OpenBlock::Code {
            fence,
            lexer,
            indent,
        } = &mut self.open
        {
            if fence.is_closed_by(line) {
                self.open = OpenBlock::None;
                return;
            }
            let code = blocks::without_indent(line, *indent);
            let mut painted = TextLine::plain(&" ".repeat(*indent));
            painted.append(&lexer.styled(code, &self.look.theme));
            self.commit(HistoryItem::Verbatim(painted), done);
            return;
        }
        let kind = classify(line, &self.open);
        match kind {
            LineKind::Blank => {
                self.close(done);
                self.has_gap = self.has_printed;
            }
            LineKind::Fence(fence, language) => {
                self.close(done);
                let indent = self.level_of(line);
                self.open = OpenBlock::code(fence, &language, indent);
                self.gap(done);
            }
            LineKind::Heading(level, text) => {
                self.close(done);
                self.levels.clear();
                self.heading(level, &text, done);
            }
            LineKind::Underline(level) => {
                if let OpenBlock::Paragraph { text, .. } = std::mem::take(&mut self.open) {
                    self.heading(level, &text, done);
                }
            }
            LineKind::Rule => {
                self.close(done);
                self.levels.clear();
                let mark = if self.look.unicode { "─" } else { "-" };
                let rule = TextLine::styled(&mark.repeat(3), self.look.theme.faint);
                self.commit(HistoryItem::Verbatim(rule), done);
            }
            LineKind::Item {
                column,
                marker,
                text,
            } => {
                self.close(done);
                self.begin_item(column, &marker, text);
            }
            LineKind::Quote(text) => match &mut self.open {
                OpenBlock::Quote { text: open } => blocks::add_line(open, &text),
                _ => {
                    self.close(done);
                    self.open = OpenBlock::Quote { text };
                }
            },
            LineKind::TableStart => {
                if let OpenBlock::Paragraph { text, .. } = &mut self.open {
                    let head = std::mem::take(text);
                    self.open = OpenBlock::Table {
                        text: format!("{head}\n{line}"),
                    };
                }
            }
            LineKind::TableRow => {
                if let OpenBlock::Table { text } = &mut self.open {
                    blocks::add_line(text, line);
                }
            }
            LineKind::IndentedCode if self.levels.is_empty() => {
                self.close(done);
                let code = TextLine::plain(line);
                self.commit(HistoryItem::Verbatim(code), done);
            }
            LineKind::Text | LineKind::IndentedCode => self.text(line, done),
        }
    }

    /// Processes a line of prose: it continues the open block or starts a paragraph.
    fn text(&mut self, line: &str, done: &mut Vec<HistoryItem>) {
        if let OpenBlock::Table { .. } = self.open {
            self.close(done);
        }
        match self.open.text_mut() {
            Some(text) => blocks::add_line(text, line.trim_start()),
            None => {
                let indent = self.level_of(line);
                self.open = OpenBlock::Paragraph {
                    text: line.trim_start().to_owned(),
                    indent,
                };
            }
        }
    }

    /// Returns the indent of a block that starts here, from the list item it belongs to.
    fn level_of(&mut self, line: &str) -> usize {
        let column = blocks::indent_of(line);
        // The text of an item may be indented by one column less than the width of its marker.
        self.levels
            .retain(|level| *level <= column + 1 && column > 0);
        self.levels.last().copied().unwrap_or(0)
    }

    fn begin_item(&mut self, column: usize, marker: &str, text: String) {
        self.levels.retain(|level| *level <= column);
        let indent = self.levels.last().copied().unwrap_or(0);
        let shown = match marker {
            "-" | "*" | "+" if self.look.unicode => "•".to_owned(),
            "-" | "*" | "+" => "-".to_owned(),
            number => number.to_owned(),
        };
        let marker_width = crate::width::text_width(&shown) + 1;
        // Measured in the source, because the indents of the following lines refer to it.
        self.levels.push(column + marker.len() + 1);
        self.open = OpenBlock::Item {
            marker: shown,
            text,
            indent: indent.min(16),
            hang: indent.min(16) + marker_width,
        };
    }

    fn heading(&mut self, level: usize, text: &str, done: &mut Vec<HistoryItem>) {
        self.has_gap |= self.has_printed;
        let style = match level {
            1 => self.look.theme.heading.underline(),
            _ => self.look.theme.heading,
        };
        for line in inline::lines(text, style, &self.look) {
            self.commit(HistoryItem::prose(line), done);
        }
        self.has_gap = true;
    }

    /// Commits the open block.
    fn close(&mut self, done: &mut Vec<HistoryItem>) {
        match std::mem::take(&mut self.open) {
            OpenBlock::None => {}
            code @ OpenBlock::Code { .. } => self.open = code,
            OpenBlock::Paragraph { text, indent } => {
                let lines = inline::lines(&text, TextStyle::new(), &self.look);
                self.prose(lines, &" ".repeat(indent), indent, done);
            }
            OpenBlock::Item {
                marker,
                text,
                indent,
                hang,
            } => {
                let lines = inline::lines(&text, TextStyle::new(), &self.look);
                self.prose(
                    lines,
                    &format!("{}{marker} ", " ".repeat(indent)),
                    hang,
                    done,
                );
            }
            OpenBlock::Quote { text } => {
                let bar = if self.look.unicode { "▎ " } else { "| " };
                let lines = inline::lines(&text, TextStyle::new().italic(), &self.look);
                self.prose(lines, bar, 2, done);
            }
            OpenBlock::Table { text } => {
                for row in table::rows(&text, &self.look) {
                    self.commit(HistoryItem::Verbatim(row), done);
                }
            }
        }
    }

    /// Commits lines with a prefix before the first, and spaces of the same width before the
    /// others.
    fn prose(
        &mut self,
        lines: Vec<TextLine>,
        before: &str,
        hang: usize,
        done: &mut Vec<HistoryItem>,
    ) {
        let lines = if lines.is_empty() {
            vec![TextLine::new()]
        } else {
            lines
        };
        for (number, line) in lines.iter().enumerate() {
            let mut whole = TextLine::new();
            match number {
                0 => whole.push(before, TextStyle::new()),
                _ => whole.push_blanks(hang),
            }
            whole.append(line);
            let item = HistoryItem::Prose {
                line: whole,
                indent: hang,
            };
            self.commit(item, done);
        }
    }

    fn gap(&mut self, done: &mut Vec<HistoryItem>) {
        if std::mem::take(&mut self.has_gap) {
            done.push(HistoryItem::Verbatim(TextLine::new()));
        }
    }

    fn commit(&mut self, item: HistoryItem, done: &mut Vec<HistoryItem>) {
        self.gap(done);
        self.has_printed = true;
        done.push(item);
    }
}

fn shorten(text: &mut String) {
    if text.len() > MAX_SHOWN {
        let mut from = text.len() - MAX_SHOWN;
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text.drain(..from);
    }
}

fn item_rows(item: &HistoryItem, width: usize) -> Vec<TextLine> {
    match item {
        HistoryItem::Verbatim(line) => wrap_with_indent(line, width, width),
        HistoryItem::Prose { line, indent } => {
            let indent = if indent * 2 > width { 0 } else { *indent };
            let rows = wrap_with_indent(line, width, width - indent)
                .into_iter()
                .enumerate();
            rows.map(|(number, row)| {
                let mut whole = TextLine::new();
                whole.push_blanks(if number == 0 { 0 } else { indent });
                whole.append(&row);
                whole
            })
            .collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the end of a model's thinking as one faint row.
pub fn thinking_row(text: &str, width: usize, theme: &Theme) -> TextLine {
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    let plain = TextLine::plain(last.trim());
    let words = plain.text().match_indices(' ').map(|(at, _)| at + 1);
    let starts = std::iter::once(0).chain(words);
    let fits = |start: &usize| crate::width::text_width(&plain.text()[*start..]) <= width;
    let last_word = plain.text().rfind(' ').map_or(0, |at| at + 1);
    let start = { starts }.find(fits).unwrap_or(last_word);
    let row = crate::width::prefix(&plain.text()[start..], width);
    TextLine::styled(row, theme.faint)
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
