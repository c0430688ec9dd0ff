//! History and live region on the main screen, drawn with relative movement only.
//!
//! The cursor is always in the live region. A frame moves up to the region's first row, prints the
//! new history over it, prints the region below and puts the cursor back: one buffer, one write.
//! The absolute position of the region on the screen is unknown and never needed.
//!
//! One problem cannot be solved by a program: when a terminal becomes narrower, it may move rows
//! into its scrollback although there are empty rows below. On a nearly empty screen these may be
//! rows of the region, and they stay there.

use super::{Caret, HistoryItem, LiveRegion, ScreenSize};
use crate::{
    paint::{movement, paint_line},
    style::ColorLevel,
    text::TextLine,
};

/// The size in bytes above which output is split into several frames.
const MAX_FRAME: usize = 64 * 1024;

/// The contents of the main screen, and how to change them.
#[derive(Debug, Clone)]
pub struct Screen {
    size: ScreenSize,
    level: ColorLevel,
    reflows: bool,
    drawn: DrawnFrame,
    /// True if the terminal may show other rows than `drawn`, so that the whole region must be
    /// drawn again.
    is_stale: bool,
}

/// The result of the last frame.
#[derive(Debug, Clone, Default)]
struct DrawnFrame {
    rows: Vec<TextLine>,
    caret: Option<Caret>,
    /// The row of the cursor, and the number of cells before it.
    cursor_row: usize,
    cursor_column: usize,
    /// `None` if unknown.
    cursor_is_shown: Option<bool>,
}

impl Screen {
    /// Creates an empty screen; the cursor is at the start of an empty row.
    pub fn new(size: ScreenSize, level: ColorLevel) -> Self {
        Self {
            size,
            level,
            reflows: false,
            drawn: DrawnFrame::default(),
            is_stale: true,
        }
    }

    /// Returns the number of colours.
    pub fn level(&self) -> ColorLevel {
        self.level
    }

    /// Returns the size.
    pub fn size(&self) -> ScreenSize {
        self.size
    }

    /// Sets whether the terminal rewraps rows when its width changes.
    pub fn set_reflows(&mut self, reflows: bool) {
        self.reflows = reflows;
    }

    /// Changes the number of colours, starting with the next frame. The region is painted again,
    /// history is not.
    pub fn set_level(&mut self, level: ColorLevel) {
        self.is_stale |= level != self.level;
        self.level = level;
    }

    /// Changes the size. The next frame draws the whole region again; history is never printed
    /// again.
    pub fn resize(&mut self, size: ScreenSize) {
        self.is_stale |= size != self.size;
        self.size = size;
    }

    /// Makes the next frame draw the whole region, because another program used the screen. The
    /// cursor must be where it was before.
    pub fn redraw(&mut self) {
        self.is_stale = true;
    }

    /// Records that the region was erased from the screen and the cursor is at the start of an empty
    /// row.
    pub fn clear_region(&mut self) {
        self.drawn = DrawnFrame::default();
        self.is_stale = true;
    }

    /// Returns the bytes that scroll everything visible up into the terminal's scrollback. The next
    /// frame starts on an empty screen.
    pub fn scroll_away(&mut self) -> Vec<u8> {
        let mut out = movement::BEGIN_FRAME.to_vec();
        let (up, all) = self.extent();
        let rows = usize::from(self.size.rows);
        movement::up(up, &mut out);
        out.push(b'\r');
        movement::erase_rows(all, &mut out);
        // Move down: the cursor stops at the last row. Then print as many line ends as there are rows.
        movement::down(rows, &mut out);
        out.resize(out.len() + rows, b'\n');
        movement::up(rows, &mut out);
        out.extend_from_slice(movement::END_FRAME);
        self.clear_region();
        out
    }

    /// Returns how far the cursor is below the first row of the region, and how many rows the
    /// region takes.
    pub fn extent(&self) -> (usize, usize) {
        let above = &self.drawn.rows[..self.drawn.cursor_row.min(self.drawn.rows.len())];
        let columns = usize::from(self.size.columns);
        let mut up = above.iter().map(|row| self.height(row)).sum();
        if self.reflows {
            // If a row ends exactly at the edge, the cursor after its last letter stays on that
            // row.
            let row = self.drawn.rows.get(self.drawn.cursor_row);
            let is_at_end = row.is_none_or(|row| row.width() <= self.drawn.cursor_column);
            up += self
                .drawn
                .cursor_column
                .saturating_sub(usize::from(is_at_end))
                / columns;
        }
        let all = self.drawn.rows.iter().map(|row| self.height(row)).sum();
        (up, all)
    }

    /// Returns the number of rows that the terminal needs for a region row at the current width.
    fn height(&self, row: &TextLine) -> usize {
        match self.reflows {
            true => row.width().div_ceil(usize::from(self.size.columns)).max(1),
            false => 1,
        }
    }

    /// Returns the frames that print history and show this region: one, several if there is much
    /// history, or none if nothing changed. Each frame must be written in one piece.
    pub fn frames(&mut self, history: &[HistoryItem], region: &LiveRegion) -> Vec<Vec<u8>> {
        let (rows, caret) = self.fitting(region);
        if history.is_empty() && !self.is_stale {
            return self.changed_rows(rows, caret).into_iter().collect();
        }
        let mut frames = Vec::new();
        let mut printed = Vec::new();
        let mut items = history.iter().peekable();
        loop {
            while let Some(item) = items.peek() {
                let from = printed.len();
                item.write(usize::from(self.size.columns), self.level, &mut printed);
                if from > 0 && printed.len() > MAX_FRAME {
                    // The item does not fit and starts the next frame.
                    printed.truncate(from);
                    break;
                }
                items.next();
            }
            self.whole_frame(&printed, &rows, caret, &mut frames);
            printed.clear();
            if items.peek().is_none() {
                return frames;
            }
        }
    }

    /// Returns the rows to draw, cut to the width and the height of the screen.
    fn fitting(&self, region: &LiveRegion) -> (Vec<TextLine>, Option<Caret>) {
        let width = self.size.row_width();
        let most = usize::from(self.size.rows);
        let skipped = region.rows.len().saturating_sub(most);
        let rows = region.rows[skipped..].iter();
        let rows: Vec<TextLine> = rows.map(|row| row.truncated(width)).collect();
        let caret = region.caret.and_then(|caret| {
            let row = caret.row.checked_sub(skipped)?;
            let text = rows.get(row)?.text();
            let mut offset = caret.offset.min(text.len());
            while !text.is_char_boundary(offset) {
                offset -= 1;
            }
            Some(Caret { row, offset })
        });
        (rows, caret)
    }

    /// Draws the whole region below the newly printed history.
    fn whole_frame(
        &mut self,
        printed: &[u8],
        rows: &[TextLine],
        caret: Option<Caret>,
        frames: &mut Vec<Vec<u8>>,
    ) {
        let mut out = movement::BEGIN_FRAME.to_vec();
        let (up, all) = self.extent();
        movement::up(up, &mut out);
        out.push(b'\r');
        movement::erase_rows(all, &mut out);
        // A single item may be longer than a frame: it is split.
        let mut parts = printed.chunks(MAX_FRAME);
        out.extend_from_slice(parts.next().unwrap_or_default());
        for part in parts {
            frames.push(std::mem::replace(&mut out, Vec::with_capacity(MAX_FRAME)));
            out.extend_from_slice(part);
        }
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                out.extend_from_slice(movement::NEXT_LINE);
            }
            paint_line(row, self.level, &mut out);
            out.extend_from_slice(movement::ERASE_REST_OF_ROW);
        }
        self.drawn.rows = rows.to_vec();
        self.drawn.cursor_row = rows.len().saturating_sub(1);
        // Another program may have left the cursor hidden.
        self.drawn.cursor_is_shown = None;
        self.is_stale = false;
        self.place_cursor(caret, true, &mut out);
        out.extend_from_slice(movement::END_FRAME);
        frames.push(out);
    }

    /// Draws only the rows that changed.
    fn changed_rows(&mut self, rows: Vec<TextLine>, caret: Option<Caret>) -> Option<Vec<u8>> {
        if rows == self.drawn.rows && caret == self.drawn.caret {
            return None;
        }
        let mut out = movement::BEGIN_FRAME.to_vec();
        let old = std::mem::take(&mut self.drawn.rows);
        // Even an empty region has the row that the cursor is on.
        let mut on_screen = old.len().max(1);
        let mut has_moved = false;
        for number in 0..old.len().max(rows.len()) {
            let (before, now) = (old.get(number), rows.get(number));
            if before == now {
                continue;
            }
            if number < on_screen {
                self.move_to_row(number, &mut out);
                out.push(b'\r');
            } else {
                self.move_to_row(on_screen - 1, &mut out);
                out.extend_from_slice(movement::NEXT_LINE);
                on_screen += 1;
                self.drawn.cursor_row = number;
            }
            if let Some(row) = now {
                paint_line(row, self.level, &mut out);
            }
            out.extend_from_slice(movement::ERASE_REST_OF_ROW);
            has_moved = true;
        }
        self.drawn.rows = rows;
        self.place_cursor(caret, has_moved, &mut out);
        out.extend_from_slice(movement::END_FRAME);
        Some(out)
    }

    fn move_to_row(&mut self, row: usize, out: &mut Vec<u8>) {
        let from = self.drawn.cursor_row;
        movement::up(from.saturating_sub(row), out);
        movement::down(row.saturating_sub(from), out);
        self.drawn.cursor_row = row;
    }

    /// Moves the cursor to the caret, or without a caret to the first row of the region. When a
    /// terminal becomes lower, it drops the rows below the cursor and moves those above into its
    /// scrollback, where they would stay. After text that terminals draw at different widths, the
    /// start of the row is printed again, so that the terminal's own widths apply.
    fn place_cursor(&mut self, caret: Option<Caret>, has_moved: bool, out: &mut Vec<u8>) {
        let is_shown = caret.is_some() || self.drawn.rows.is_empty();
        if self.drawn.cursor_is_shown.replace(is_shown) != Some(is_shown) {
            let sequence = [movement::HIDE_CURSOR, movement::SHOW_CURSOR][usize::from(is_shown)];
            out.extend_from_slice(sequence);
        }
        if has_moved || caret != self.drawn.caret {
            let Caret { row, offset } = caret.unwrap_or(Caret { row: 0, offset: 0 });
            self.move_to_row(row, out);
            out.push(b'\r');
            let before = match self.drawn.rows.get(row) {
                Some(line) => line.slice(0..offset),
                None => TextLine::new(),
            };
            match before.text().is_ascii() {
                true => movement::right(before.text().len(), out),
                false => paint_line(&before, self.level, out),
            }
            self.drawn.cursor_column = before.width();
        }
        self.drawn.caret = caret;
    }
}
