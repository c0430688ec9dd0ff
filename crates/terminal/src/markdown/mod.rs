//! A reply in Markdown, as it streams in: what is finished is committed once, the rest is shown as it is.
//!
//! The unit of commit is a paragraph, a heading, a list entry, a quote, a whole table, and one line of code.
//! Before that it is the open block, in which only the last word may change: marks that are open are drawn as
//! if they were closed, a link by its text.
//!
//! - [`MarkdownCommitter`]: text in, history out; `blocks` decides what begins and ends
//! - `inline`: one block by pulldown-cmark; `open`: one that is not finished
//! - `table`: columns, or `head: value` where there is no room

mod blocks;
mod inline;
mod open;
mod table;

use crate::{
    screen::HistoryItem,
    style::{TextStyle, Theme},
    text::TextLine,
    wrap::wrap_with_indent,
};
use blocks::{LineKind, OpenBlock, classify};

/// How a reply looks.
#[derive(Debug, Clone, Default)]
pub struct MarkdownLook {
    /// Its colours.
    pub theme: Theme,
    /// Does the terminal know links? Else the address stands behind the text.
    pub hyperlinks: bool,
    /// May it be drawn with more than ASCII?
    pub unicode: bool,
    /// How wide tables may be.
    pub columns: usize,
}

/// Takes a reply as it streams in and gives out what is finished.
#[derive(Debug, Clone)]
pub struct MarkdownCommitter {
    look: MarkdownLook,
    /// The line that is not ended yet.
    pending: String,
    open: OpenBlock,
    /// Where the text of the list entries begins that a line may belong to, outermost first.
    levels: Vec<usize>,
    /// There was an empty line: the next block has one before it.
    has_gap: bool,
    has_printed: bool,
}

/// More of an open paragraph than this is not drawn: it is far more than fits.
const MOST_SHOWN: usize = 8 * 1024;

impl MarkdownCommitter {
    /// At the beginning of a reply.
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

    /// Another look, from the next commit on.
    pub fn set_look(&mut self, look: MarkdownLook) {
        self.look = look;
    }

    /// More of the reply; what it finishes.
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

    /// The reply is over: what was open is finished.
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

    /// The reply is asked for again: what is open is dropped. `true` if something of it was printed.
    pub fn discard(&mut self) -> bool {
        let had_printed = self.has_printed;
        *self = Self::new(self.look.clone());
        had_printed
    }

    /// Is nothing open?
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && matches!(self.open, OpenBlock::None)
    }

    /// The open block as rows of this width; its last ones if there are more than fit.
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

    /// Keeps as much of an open text as can be seen.
    fn shorten(&mut self) {
        if let Some(text) = self.open.text_mut() {
            shorten(text);
        }
        shorten(&mut self.pending);
    }

    /// Takes one whole line.
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

    /// A line of prose: goes on with what is open, or begins a paragraph.
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

    /// How far what begins here is indented: by the list entry it belongs to.
    fn level_of(&mut self, line: &str) -> usize {
        let column = blocks::indent_of(line);
        // An entry's text may be indented less than its marker is wide.
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
        // By the source's own width: that is what the lines below refer to.
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

    /// Commits what is open.
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

    /// Lines with something before the first, and blanks of the same width before the others.
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
    if text.len() > MOST_SHOWN {
        let mut from = text.len() - MOST_SHOWN;
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

/// The last words of what a model thinks, as one faint row.
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
