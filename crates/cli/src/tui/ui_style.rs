//! The appearance of the user interface: colours, marks, animations.

use haft_terminal::{ScreenSize, Theme};

/// Parameters that all drawing code needs.
#[derive(Debug, Clone)]
pub(crate) struct UiStyle {
    pub(crate) theme: Theme,
    /// Whether the terminal uses UTF-8. If not, marks are ASCII.
    pub(crate) unicode: bool,
    /// Whether the terminal supports hyperlinks.
    pub(crate) hyperlinks: bool,
    /// No spinner, and all times show 0 s; for screenshots and tests.
    pub(crate) is_still: bool,
    /// Whether animations are disabled.
    pub(crate) has_reduced_motion: bool,
    /// Whether cards are shown almost completely.
    pub(crate) verbose: bool,
    pub(crate) size: ScreenSize,
}

impl UiStyle {
    /// The mark of a successful call or a list item.
    pub(crate) fn bullet(&self) -> &'static str {
        if self.unicode { "●" } else { "*" }
    }

    /// The mark of a failed call.
    pub(crate) fn cross(&self) -> &'static str {
        if self.unicode { "✗" } else { "x" }
    }

    /// The mark of a user message and of the selected row.
    pub(crate) fn angle(&self) -> &'static str {
        if self.unicode { "›" } else { ">" }
    }

    /// The separator in the status line.
    pub(crate) fn dot(&self) -> &'static str {
        if self.unicode { "·" } else { "." }
    }

    pub(crate) fn ellipsis(&self) -> &'static str {
        if self.unicode { "…" } else { "..." }
    }

    /// The activity indicator; `step` counts quarters of a second.
    pub(crate) fn spinner(&self, step: usize) -> &'static str {
        const TURNING: [&str; 4] = ["◐", "◓", "◑", "◒"];
        const TURNING_ASCII: [&str; 4] = ["|", "/", "-", "\\"];
        let step = if self.moves() { step % 4 } else { 0 };
        match self.unicode {
            true => TURNING[step],
            false => TURNING_ASCII[step],
        }
    }

    /// Returns whether animations are enabled.
    pub(crate) fn moves(&self) -> bool {
        !self.is_still && !self.has_reduced_motion
    }

    /// Returns whether the terminal has fewer than 60 columns.
    pub(crate) fn is_narrow(&self) -> bool {
        self.size.columns < 60
    }
}
