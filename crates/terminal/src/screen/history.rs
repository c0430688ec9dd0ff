//! History items: logical lines that are printed once. The terminal then wraps, reflows and copies
//! each as one line.

use crate::{
    image::TerminalImage,
    paint::{PromptMark, TerminalControl, movement, paint_line},
    style::ColorLevel,
    text::TextLine,
    width::is_certain,
    wrap::wrap_with_indent,
};

/// An item of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryItem {
    /// Code, a command, a path or an address: printed unchanged, and wrapped by the terminal.
    Verbatim(TextLine),
    /// Prose, wrapped at words. Each row is filled with spaces to the edge and has no line end. So
    /// the terminal treats the paragraph as one line: copying joins its rows, and a resize reflows
    /// them.
    Prose {
        /// The text.
        line: TextLine,
        /// The number of spaces before every row but the first, for example for a list item.
        indent: usize,
    },
    /// An image.
    Image(TerminalImage),
    /// A mark to jump to.
    Mark(PromptMark),
}

impl HistoryItem {
    /// Creates prose without an indent.
    pub fn prose(line: TextLine) -> Self {
        Self::Prose { line, indent: 0 }
    }

    /// Appends the bytes, which go from the start of an empty row to the start of the next.
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
    // One cell stays free, so that there is a space between the last word of a row and the next
    // row.
    let width = columns.saturating_sub(1).max(1);
    // An indent of more than half the width is ignored.
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
            // Terminals disagree about the width of this text, so filling with spaces could end in
            // the wrong column.
            out.extend_from_slice(movement::NEXT_LINE);
        }
    }
}

fn blanks(count: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + count, b' ');
}
