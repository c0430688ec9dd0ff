//! The screen: history that is printed once, a live region below it that is redrawn, views on the
//! alternate screen, and the thread that writes it all.
//!
//! - [`Screen`]: from what is shown to the bytes that change it; pure
//! - [`HistoryItem`]: what is printed once and belongs to the terminal from then on
//! - [`ViewScreen`], [`Scroller`]: a screen of its own to read long texts in
//! - [`FramePace`]: when to draw
//! - [`FrameWriter`]: history in order, live regions latest wins, each frame one write

mod history;
mod main_screen;
mod pace;
mod scroller;
mod view;
mod writer;

pub use history::HistoryItem;
pub use main_screen::Screen;
pub use pace::FramePace;
pub use scroller::{ScrollCommand, ScrollText, Scroller};
pub use view::ViewScreen;
pub use writer::{FrameWriter, WriterEvent};

use crate::text::TextLine;

/// Columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenSize {
    /// Cells in a row.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

impl ScreenSize {
    /// At most this many of each; at least one.
    pub fn new(columns: u16, rows: u16) -> Self {
        Self {
            columns: columns.max(1),
            rows: rows.max(1),
        }
    }

    /// What a live row may take: one cell less than there are, so that it never wraps.
    pub fn row_width(self) -> usize {
        usize::from(self.columns).saturating_sub(1).max(1)
    }

    /// Rows that a live region should keep to: 60 of a hundred; all but two while something is asked.
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

/// What is below the history and may change at any time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveRegion {
    /// Its rows from the top. What is too wide is cut; of too many, the last are shown.
    pub rows: Vec<TextLine>,
    /// Where the cursor is. Without one it is hidden, and nothing of the region can get into the scrollback when the
    /// terminal becomes lower.
    pub caret: Option<Caret>,
    /// A number of the caller's, reported when the region was written.
    pub stamp: u64,
}

/// A place in a live region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caret {
    /// Which row.
    pub row: usize,
    /// Behind this many bytes of its text.
    pub offset: usize,
}
