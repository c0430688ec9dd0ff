//! Renders a table in columns, or as `head: value` if there is not enough room.

use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd};

use super::{MarkdownLook, inline::InlineWriter};
use crate::{style::TextStyle, text::TextLine, wrap::wrap};

/// The minimum width of a column, unless its cells are narrower.
const NARROWEST: usize = 8;

/// The number of spaces between two columns.
const BETWEEN: usize = 2;

#[derive(Default)]
struct TableCells {
    alignments: Vec<Alignment>,
    /// The first row is the head.
    rows: Vec<Vec<TextLine>>,
}

/// Returns the rows of a table, none wider than `look.columns` allows.
pub(super) fn rows(text: &str, look: &MarkdownLook) -> Vec<TextLine> {
    let table = parse(text, look);
    let width = look.columns.saturating_sub(1).max(1);
    match table.widths(width) {
        Some(widths) => table.columns(&widths, look),
        None => table.entries(width),
    }
}

fn parse(text: &str, look: &MarkdownLook) -> TableCells {
    let mut table = TableCells::default();
    let mut cell: Option<InlineWriter<'_>> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Table(alignments)) => table.alignments = alignments,
            Event::Start(Tag::TableHead | Tag::TableRow) => table.rows.push(Vec::new()),
            Event::Start(Tag::TableCell) => cell = Some(InlineWriter::new(TextStyle::new(), look)),
            Event::End(TagEnd::TableCell) => {
                let lines = cell.take().map(InlineWriter::finish).unwrap_or_default();
                let mut whole = TextLine::new();
                for (number, line) in lines.iter().enumerate() {
                    whole.push_blanks(usize::from(number > 0));
                    whole.append(line);
                }
                if let Some(row) = table.rows.last_mut() {
                    row.push(whole);
                }
            }
            other => {
                if let Some(cell) = &mut cell {
                    cell.event(other);
                }
            }
        }
    }
    table
}

impl TableCells {
    /// Returns the width of each column, or `None` if the columns do not fit.
    fn widths(&self, most: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let mut widths = vec![1; count];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        let gaps = count.saturating_sub(1) * BETWEEN;
        // The widest column is reduced first.
        while widths.iter().sum::<usize>() + gaps > most {
            let widest = widths.iter_mut().max_by_key(|width| **width)?;
            if *widest <= NARROWEST {
                return None;
            }
            *widest -= 1;
        }
        Some(widths)
    }

    fn columns(&self, widths: &[usize], look: &MarkdownLook) -> Vec<TextLine> {
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let is_head = number == 0;
            let cells: Vec<Vec<TextLine>> = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| wrap(cell, *width))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for part in 0..height {
                let mut line = TextLine::new();
                for (column, width) in widths.iter().enumerate() {
                    let empty = TextLine::new();
                    let cell = cells
                        .get(column)
                        .and_then(|cell| cell.get(part))
                        .unwrap_or(&empty);
                    let cell = match is_head {
                        true => cell.restyled(TextStyle::bold),
                        false => cell.clone(),
                    };
                    let free = width.saturating_sub(cell.width());
                    let before = match self.alignments.get(column) {
                        Some(Alignment::Right) => free,
                        Some(Alignment::Center) => free / 2,
                        _ => 0,
                    };
                    line.push_blanks(before);
                    line.append(&cell);
                    if column + 1 < widths.len() {
                        line.push_blanks(free - before + BETWEEN);
                    }
                }
                lines.push(line);
            }
            if is_head {
                lines.push(rule(widths, look));
            }
        }
        lines
    }

    /// Renders the cells of each row, each after the name of its column.
    fn entries(&self, width: usize) -> Vec<TextLine> {
        let Some((head, rows)) = self.rows.split_first() else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                lines.push(TextLine::new());
            }
            for (name, cell) in head.iter().zip(row) {
                let mut line = name.restyled(TextStyle::bold);
                line.push(": ", TextStyle::new().bold());
                line.append(cell);
                lines.extend(wrap(&line, width));
            }
        }
        lines
    }
}

fn rule(widths: &[usize], look: &MarkdownLook) -> TextLine {
    let mark = if look.unicode { "─" } else { "-" };
    let mut line = TextLine::new();
    for (column, width) in widths.iter().enumerate() {
        line.push(&mark.repeat(*width), look.theme.faint);
        if column + 1 < widths.len() {
            line.push_blanks(BETWEEN);
        }
    }
    line
}
