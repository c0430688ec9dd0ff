//! How things are drawn: colours, marks, what moves.

use haft_terminal::{ScreenSize, Theme};

/// What everything that draws must know.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(crate) theme: Theme,
    /// The terminal is written to in UTF-8; else marks are ASCII.
    pub(crate) unicode: bool,
    /// It knows links.
    pub(crate) hyperlinks: bool,
    /// No spinner, and all times are 0 s: for pictures and tests.
    pub(crate) is_still: bool,
    /// Nothing moves by itself.
    pub(crate) has_reduced_motion: bool,
    /// Cards are shown nearly whole.
    pub(crate) verbose: bool,
    pub(crate) size: ScreenSize,
}

impl Look {
    /// Before something that worked, or that is in a list.
    pub(crate) fn bullet(&self) -> &'static str {
        if self.unicode { "●" } else { "*" }
    }

    /// Before something that failed.
    pub(crate) fn cross(&self) -> &'static str {
        if self.unicode { "✗" } else { "x" }
    }

    /// Before what a person says, and before what is chosen.
    pub(crate) fn angle(&self) -> &'static str {
        if self.unicode { "›" } else { ">" }
    }

    /// Between the parts of the status row.
    pub(crate) fn dot(&self) -> &'static str {
        if self.unicode { "·" } else { "." }
    }

    pub(crate) fn ellipsis(&self) -> &'static str {
        if self.unicode { "…" } else { "..." }
    }

    /// Something is under way; `step` counts quarters of a second.
    pub(crate) fn spinner(&self, step: usize) -> &'static str {
        const TURNING: [&str; 4] = ["◐", "◓", "◑", "◒"];
        const TURNING_ASCII: [&str; 4] = ["|", "/", "-", "\\"];
        let step = if self.moves() { step % 4 } else { 0 };
        match self.unicode {
            true => TURNING[step],
            false => TURNING_ASCII[step],
        }
    }

    /// May something move without a reason?
    pub(crate) fn moves(&self) -> bool {
        !self.is_still && !self.has_reduced_motion
    }

    /// Is there only room for the first words?
    pub(crate) fn is_narrow(&self) -> bool {
        self.size.columns < 60
    }
}
