//! A view on the alternate screen: rows are addressed by position, and only changed rows are
//! written. Nothing remains after the view is left.

use std::io::Write;

use super::ScreenSize;
use crate::{
    paint::{movement, paint_line},
    style::ColorLevel,
    text::TextLine,
};

/// The contents of the alternate screen.
#[derive(Debug, Clone)]
pub struct ViewScreen {
    size: ScreenSize,
    level: ColorLevel,
    /// `None` for a row with unknown contents.
    drawn: Vec<Option<TextLine>>,
    is_entered: bool,
}

impl ViewScreen {
    /// Creates a view that is not on the screen yet.
    pub fn new(size: ScreenSize, level: ColorLevel) -> Self {
        Self {
            size,
            level,
            drawn: vec![None; usize::from(size.rows)],
            is_entered: false,
        }
    }

    /// Changes the size.
    pub fn resize(&mut self, size: ScreenSize) {
        if size != self.size {
            self.size = size;
            self.drawn = vec![None; usize::from(size.rows)];
        }
    }

    /// Returns the frame that shows these rows from the top, or `None` if they are already shown.
    pub fn frame(&mut self, rows: &[TextLine]) -> Option<Vec<u8>> {
        let mut out = movement::BEGIN_FRAME.to_vec();
        let nothing = out.len();
        if !self.is_entered {
            self.is_entered = true;
            out.extend_from_slice(b"\x1b[?1049h\x1b[2J");
            out.extend_from_slice(movement::HIDE_CURSOR);
        }
        let width = self.size.row_width();
        let empty = TextLine::new();
        for (number, drawn) in self.drawn.iter_mut().enumerate() {
            let row = rows.get(number).unwrap_or(&empty).truncated(width);
            if drawn.as_ref() == Some(&row) {
                continue;
            }
            let _ = write!(out, "\x1b[{};1H", number + 1);
            paint_line(&row, self.level, &mut out);
            out.extend_from_slice(movement::ERASE_REST_OF_ROW);
            *drawn = Some(row);
        }
        if out.len() == nothing {
            return None;
        }
        out.extend_from_slice(movement::END_FRAME);
        Some(out)
    }

    /// Returns the bytes that leave the alternate screen; the terminal then shows the unchanged
    /// main screen.
    pub fn leave(&mut self) -> Vec<u8> {
        self.drawn.fill(None);
        match std::mem::take(&mut self.is_entered) {
            true => [b"\x1b[?1049l", movement::SHOW_CURSOR].concat(),
            false => Vec::new(),
        }
    }
}
