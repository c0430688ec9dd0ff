//! The screen: history that is printed once, a live region below it that is redrawn, views on the
//! alternate screen, and the thread that writes everything.
//!
//! - [`Screen`]: computes the bytes that change what is shown, without I/O
//! - [`HistoryItem`]: printed once; from then on it belongs to the terminal
//! - [`ViewScreen`], [`Scroller`]: a full-screen view for reading long texts
//! - [`FramePace`]: decides when to draw
//! - [`FrameWriter`]: prints history in order, shows only the latest live region, and writes each
//!   frame in one piece

mod frame_pacing;
mod history;
mod main_screen;
mod scroller;
mod view;
mod writer;

pub use frame_pacing::FramePace;
pub use history::HistoryItem;
pub use main_screen::Screen;
pub use scroller::{ScrollCommand, ScrollText, Scroller};
pub use view::ViewScreen;
pub use writer::{FrameWriter, WriterEvent};

use crate::text::TextLine;

/// The size of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenSize {
    /// The number of cells in a row.
    pub columns: u16,
    /// The number of rows.
    pub rows: u16,
}

impl ScreenSize {
    /// Creates a size; zero becomes one.
    pub fn new(columns: u16, rows: u16) -> Self {
        Self {
            columns: columns.max(1),
            rows: rows.max(1),
        }
    }

    /// Returns the maximum width of a live row: one cell less than the columns, so that the row
    /// never wraps.
    pub fn row_width(self) -> usize {
        usize::from(self.columns).saturating_sub(1).max(1)
    }

    /// Returns the number of rows that a live region should not exceed: 60 % of the screen, or all
    /// but two while a question is open.
    pub fn region_rows(self, is_asking: bool) -> usize {
        let rows = usize::from(self.rows);
        let most = if is_asking {
            rows.saturating_sub(2)
        } else {
            rows * 6 / 10
        };
        most.max(1)
    }
}

/// The region below the history, which may change at any time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveRegion {
    /// Its rows from the top. Rows that are too wide are cut; if there are too many, the last ones
    /// are shown.
    pub rows: Vec<TextLine>,
    /// The position of the cursor. Without one the cursor is hidden, and no part of the region can
    /// get into the scrollback when the terminal becomes lower.
    pub caret: Option<Caret>,
    /// A number chosen by the caller, which is reported when the region was written.
    pub stamp: u64,
}

/// A position in a live region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caret {
    /// The index of the row.
    pub row: usize,
    /// The byte offset in the text of the row.
    pub offset: usize,
}
