//! What is printed once: logical lines, which the terminal wraps, reflows and copies as one.

use crate::{
    image::TerminalImage,
    paint::{PromptMark, TerminalControl, movement, paint_line},
    style::ColorLevel,
    text::TextLine,
    width::is_certain,
    wrap::wrap_with_indent,
};

/// A part of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryItem {
    /// Code, a command, a path, an address: printed as it is, and the terminal wraps it.
    Verbatim(TextLine),
    /// Prose: broken at words. Each row is filled with blanks to the edge instead of a line end, so that
    /// to the terminal the paragraph is one line: copying joins it and a resize reflows it.
    Prose {
        /// The text.
        line: TextLine,
        /// Blanks before the rows behind the first, as for the text of a list entry.
        indent: usize,
    },
    /// A picture.
    Image(TerminalImage),
    /// A place to jump to.
    Mark(PromptMark),
}

impl HistoryItem {
    /// Prose without an indent.
    pub fn prose(line: TextLine) -> Self {
        Self::Prose { line, indent: 0 }
    }

    /// Adds its bytes: from the beginning of an empty row to the beginning of the next.
    pub(crate) fn write(&self, columns: usize, level: ColorLevel, out: &mut Vec<u8>) {
        match self {
            Self::Verbatim(line) => {
                paint_line(line, level, out);
                out.extend_from_slice(movement::NEXT_LINE);
            }
            Self::Prose { line, indent } => write_prose(line, *indent, columns, level, out),
            Self::Image(image) => image.write(level, out),
            Self::Mark(mark) => TerminalControl::Mark(*mark).write(out),
        }
    }
}

fn write_prose(
    line: &TextLine,
    indent: usize,
    columns: usize,
    level: ColorLevel,
    out: &mut Vec<u8>,
) {
    // One cell stays free, so that there is a blank between the last word of a row and the next.
    let width = columns.saturating_sub(1).max(1);
    // An indent that leaves no room for words is none.
    let indent = if indent * 2 > width { 0 } else { indent };
    let rows = wrap_with_indent(line, width, width - indent);
    let last = rows.len().saturating_sub(1);
    for (number, row) in rows.iter().enumerate() {
        let before = if number == 0 { 0 } else { indent };
        blanks(before, out);
        paint_line(row, level, out);
        if number < last && is_certain(row.text()) {
            blanks(columns.saturating_sub(before + row.width()), out);
        } else {
            // Where terminals disagree about the width, blanks would end at another column.
            out.extend_from_slice(movement::NEXT_LINE);
        }
    }
}

fn blanks(count: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + count, b' ');
}
