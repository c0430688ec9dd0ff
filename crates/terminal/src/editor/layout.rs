//! Lays out the draft as rows, broken after spaces where possible, with chips shown as their
//! labels.
//!
//! The layout covers only lines near the caret, so that a key press costs the same in a long draft.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::{buffer::TextBuffer, chip::ChipTable, motion};
use crate::{
    screen::Caret,
    style::TextStyle,
    text::TextLine,
    width::{tab_stop, text_width},
};

/// The draft as shown on screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorView {
    /// The rows.
    pub rows: Vec<TextLine>,
    /// The position of the caret in the rows.
    pub caret: Caret,
    /// True if there are hidden rows above.
    pub more_above: bool,
    /// True if there are hidden rows below.
    pub more_below: bool,
}

/// A row: the range of the draft that it shows, and its cells.
struct DraftRow {
    range: Range<usize>,
    cells: Vec<DraftCell>,
}

/// A grapheme cluster of the draft as shown.
struct DraftCell {
    at: usize,
    width: usize,
    shown: String,
    is_chip: bool,
}

/// Lays out one line of the draft.
fn line_rows(text: &str, line: Range<usize>, chips: &ChipTable, width: usize) -> Vec<DraftRow> {
    let mut rows = Vec::new();
    let mut row: Vec<DraftCell> = Vec::new();
    let mut start = line.start;
    let mut column = 0;
    for (at, cluster) in text[line.clone()].grapheme_indices(true) {
        let at = line.start + at;
        let label = cluster.chars().next().and_then(|first| chips.label(first));
        let shown = match (label, cluster) {
            (Some(label), _) => TextLine::plain(label),
            (None, "\t") => TextLine::plain(&" ".repeat(tab_stop(column) - column)),
            (None, cluster) => TextLine::plain(cluster),
        };
        let shown = shown.truncated(width).text().to_owned();
        let cell = DraftCell {
            at,
            width: text_width(&shown),
            shown,
            is_chip: label.is_some(),
        };
        while column + cell.width > width && !row.is_empty() {
            // Break after the last space, if a word starts there.
            let blank = row
                .iter()
                .rposition(|cell| cell.shown.ends_with(' ') && !cell.is_chip);
            let keep = match blank {
                Some(blank) if cluster != " " && blank + 1 < row.len() => blank + 1,
                _ => row.len(),
            };
            let rest = row.split_off(keep);
            let end = rest.first().map_or(at, |cell| cell.at);
            rows.push(DraftRow {
                range: start..end,
                cells: std::mem::replace(&mut row, rest),
            });
            start = end;
            column = row.iter().map(|cell| cell.width).sum();
        }
        column += cell.width;
        row.push(cell);
    }
    rows.push(DraftRow {
        range: start..line.end,
        cells: row,
    });
    rows
}

/// Returns the row of a line that the caret is on. At a break, the caret is at the start of the
/// next row.
fn row_of(rows: &[DraftRow], caret: usize) -> usize {
    let at = rows.iter().rposition(|row| row.range.start <= caret);
    at.unwrap_or(0)
}

impl DraftRow {
    fn column_of(&self, place: usize) -> usize {
        let before = self.cells.iter().take_while(|cell| cell.at < place);
        before.map(|cell| cell.width).sum()
    }

    fn place_at(&self, column: usize, is_last: bool) -> usize {
        let mut at = 0;
        for cell in &self.cells {
            if at + cell.width > column {
                return cell.at;
            }
            at += cell.width;
        }
        match self.cells.last() {
            // The end of a row that is not the last is the start of the next row.
            Some(last) if !is_last => last.at,
            _ => self.range.end,
        }
    }

    fn line(&self, chip_style: TextStyle, selection: Option<&Range<usize>>) -> TextLine {
        let mut line = TextLine::new();
        for cell in &self.cells {
            let mut style = if cell.is_chip {
                chip_style
            } else {
                TextStyle::new()
            };
            if selection.is_some_and(|selection| selection.contains(&cell.at)) {
                style = style.reverse();
            }
            line.push(&cell.shown, style);
        }
        // Makes the selection of an empty line visible.
        if self.cells.is_empty() && selection.is_some_and(|range| range.contains(&self.range.start))
        {
            line.push(" ", TextStyle::new().reverse());
        }
        line
    }

    fn offset_of(&self, place: usize) -> usize {
        let before = self.cells.iter().take_while(|cell| cell.at < place);
        before.map(|cell| cell.shown.len()).sum()
    }
}

pub(super) fn view(
    buffer: &TextBuffer,
    chips: &ChipTable,
    width: usize,
    most: usize,
    chip_style: TextStyle,
    selection: Option<Range<usize>>,
) -> EditorView {
    let (text, caret, most) = (buffer.text(), buffer.caret(), most.max(1));
    let line = motion::line(text, caret);
    let mut rows = line_rows(text, line.clone(), chips, width);
    let mut caret_row = row_of(&rows, caret);
    let (mut first, mut last) = (line.start, line.end);
    while first > 0 && caret_row < most {
        let above = motion::line(text, first - 1);
        first = above.start;
        let mut above = line_rows(text, above, chips, width);
        caret_row += above.len();
        above.append(&mut rows);
        rows = above;
    }
    while last < text.len() && rows.len() - caret_row <= most {
        let below = motion::line(text, last + 1);
        last = below.end;
        rows.append(&mut line_rows(text, below, chips, width));
    }
    // The caret is shown in the middle, unless an end of the draft is closer.
    let top = match rows.len() <= most {
        true => 0,
        false => caret_row.saturating_sub(most / 2).min(rows.len() - most),
    };
    let bottom = rows.len().min(top + most);
    let caret = Caret {
        row: caret_row - top,
        offset: rows[caret_row].offset_of(caret),
    };
    EditorView {
        more_above: first > 0 || top > 0,
        more_below: last < text.len() || bottom < rows.len(),
        rows: rows[top..bottom]
            .iter()
            .map(|row| row.line(chip_style, selection.as_ref()))
            .collect(),
        caret,
    }
}

/// Returns the caret's column in its row.
pub(super) fn column(buffer: &TextBuffer, chips: &ChipTable, width: usize) -> usize {
    let line = motion::line(buffer.text(), buffer.caret());
    let rows = line_rows(buffer.text(), line, chips, width);
    rows[row_of(&rows, buffer.caret())].column_of(buffer.caret())
}

/// Returns the position in the row above or below that is closest to a column.
pub(super) fn row_beside(
    buffer: &TextBuffer,
    chips: &ChipTable,
    width: usize,
    column: usize,
    down: bool,
) -> Option<usize> {
    let (text, caret) = (buffer.text(), buffer.caret());
    let line = motion::line(text, caret);
    let rows = line_rows(text, line.clone(), chips, width);
    let at = row_of(&rows, caret);
    if down && at + 1 < rows.len() {
        return Some(rows[at + 1].place_at(column, at + 2 == rows.len()));
    }
    if !down && at > 0 {
        return Some(rows[at - 1].place_at(column, false));
    }
    let beside = match down {
        true if line.end < text.len() => motion::line(text, line.end + 1),
        false if line.start > 0 => motion::line(text, line.start - 1),
        _ => return None,
    };
    let rows = line_rows(text, beside, chips, width);
    match down {
        true => Some(rows[0].place_at(column, rows.len() == 1)),
        false => rows.last().map(|row| row.place_at(column, true)),
    }
}
