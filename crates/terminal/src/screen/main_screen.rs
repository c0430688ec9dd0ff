//! History and live region on the main screen, by relative movement only.
//!
//! The cursor is always in the live region. A frame goes up to the region's first row, prints what is new
//! of the history over it, prints the region below and puts the cursor back: one buffer, one write. What is
//! not known (where on the screen the region is) is never needed.
//!
//! One thing no program can help: a terminal that becomes narrower may move rows into its scrollback although
//! there are empty rows below. On a nearly empty screen these may be rows of the region, and stay there.

use super::{Caret, HistoryItem, LiveRegion, ScreenSize};
use crate::{
    paint::{movement, paint_line},
    style::ColorLevel,
    text::TextLine,
};

/// More than this is written in several frames.
const LARGEST_FRAME: usize = 64 * 1024;

/// What is on the main screen, and how to change it.
#[derive(Debug, Clone)]
pub struct Screen {
    size: ScreenSize,
    level: ColorLevel,
    reflows: bool,
    drawn: Drawn,
    /// The terminal may show something else than `drawn` says: everything is drawn again.
    is_stale: bool,
}

/// What the last frame left behind.
#[derive(Debug, Clone, Default)]
struct Drawn {
    rows: Vec<TextLine>,
    caret: Option<Caret>,
    /// Which row the cursor is on, and behind how many cells.
    cursor_row: usize,
    cursor_column: usize,
    /// `None`: not known.
    cursor_is_shown: Option<bool>,
}

impl Screen {
    /// A screen on which nothing is drawn yet; the cursor is at the beginning of an empty row.
    pub fn new(size: ScreenSize, level: ColorLevel) -> Self {
        Self {
            size,
            level,
            reflows: false,
            drawn: Drawn::default(),
            is_stale: true,
        }
    }

    /// Its colours.
    pub fn level(&self) -> ColorLevel {
        self.level
    }

    /// Its size.
    pub fn size(&self) -> ScreenSize {
        self.size
    }

    /// Does the terminal break rows anew when its width changes?
    pub fn set_reflows(&mut self, reflows: bool) {
        self.reflows = reflows;
    }

    /// Shows other colours from the next frame on. Rows are painted again, history is not.
    pub fn set_level(&mut self, level: ColorLevel) {
        self.is_stale |= level != self.level;
        self.level = level;
    }

    /// The terminal has another size. The next frame draws everything anew; history is never printed again.
    pub fn resize(&mut self, size: ScreenSize) {
        self.is_stale |= size != self.size;
        self.size = size;
    }

    /// The next frame draws everything: another program was on the screen and left the cursor where it was.
    pub fn redraw(&mut self) {
        self.is_stale = true;
    }

    /// Nothing of ours is on the screen any more, and the cursor is at the beginning of an empty row.
    pub fn forget(&mut self) {
        self.drawn = Drawn::default();
        self.is_stale = true;
    }

    /// Lets everything that is visible scroll up into the history of the terminal; the next frame begins on an
    /// empty screen.
    pub fn scroll_away(&mut self) -> Vec<u8> {
        let mut out = movement::BEGIN_FRAME.to_vec();
        let (up, all) = self.extent();
        let rows = usize::from(self.size.rows);
        movement::up(up, &mut out);
        out.push(b'\r');
        movement::erase_rows(all, &mut out);
        // To the last row, wherever that is, and as many line ends as there are rows.
        movement::down(rows, &mut out);
        out.resize(out.len() + rows, b'\n');
        movement::up(rows, &mut out);
        out.extend_from_slice(movement::END_FRAME);
        self.forget();
        out
    }

    /// How far the cursor is below the first row of the region, and how many rows the region takes.
    pub fn extent(&self) -> (usize, usize) {
        let above = &self.drawn.rows[..self.drawn.cursor_row.min(self.drawn.rows.len())];
        let columns = usize::from(self.size.columns);
        let mut up = above.iter().map(|row| self.height(row)).sum();
        if self.reflows {
            // Behind the last letter of a row that ends exactly at the edge the cursor stays on that row.
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

    /// Rows that the terminal needs for a row of ours at its width now.
    fn height(&self, row: &TextLine) -> usize {
        match self.reflows {
            true => row.width().div_ceil(usize::from(self.size.columns)).max(1),
            false => 1,
        }
    }

    /// The frames that print history and show this region: one, or several if there is much history; none if
    /// nothing changed. Each is to be written at once.
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
                if from > 0 && printed.len() > LARGEST_FRAME {
                    // It does not fit any more, and begins the next frame.
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

    /// The rows as they are drawn: none wider than the screen, no more than it has.
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

    /// Everything drawn anew, below what is printed of the history.
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
        // A line of its own may be longer than a frame: it is handed over in parts.
        let mut parts = printed.chunks(LARGEST_FRAME);
        out.extend_from_slice(parts.next().unwrap_or_default());
        for part in parts {
            frames.push(std::mem::replace(
                &mut out,
                Vec::with_capacity(LARGEST_FRAME),
            ));
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
        // Also after another program, which may have left it hidden.
        self.drawn.cursor_is_shown = None;
        self.is_stale = false;
        self.place_cursor(caret, true, &mut out);
        out.extend_from_slice(movement::END_FRAME);
        frames.push(out);
    }

    /// Only the rows that changed.
    fn changed_rows(&mut self, rows: Vec<TextLine>, caret: Option<Caret>) -> Option<Vec<u8>> {
        if rows == self.drawn.rows && caret == self.drawn.caret {
            return None;
        }
        let mut out = movement::BEGIN_FRAME.to_vec();
        let old = std::mem::take(&mut self.drawn.rows);
        // A screen without rows still has the one the cursor is on.
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

    /// Puts the cursor to the caret; without one to the first row of the region: a terminal that becomes lower drops the
    /// rows below the cursor and moves those above it into its scrollback, where they would stay. Behind text that terminals draw at different widths the beginning of
    /// the row is printed again: the terminal's own widths count.
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
