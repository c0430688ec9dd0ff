//! Colours and width, where the reader has them.

use std::{
    io::{self, IsTerminal},
    os::fd::AsFd,
};

use super::wants_colours;

/// With colours or without, and how wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    colours: bool,
    width: usize,
}

/// Where nobody says how wide the reader's screen is.
const USUAL_WIDTH: usize = 80;

impl Style {
    pub(crate) fn of_stdout() -> Self {
        Self::of(&io::stdout())
    }

    pub(crate) fn of_stderr() -> Self {
        Self::of(&io::stderr())
    }

    fn of(stream: &(impl IsTerminal + AsFd)) -> Self {
        let size = terminal_size::terminal_size_of(stream);
        Self {
            colours: wants_colours(stream),
            width: size.map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0)),
        }
    }

    #[cfg(test)]
    pub(super) fn fixed(colours: bool, width: usize) -> Self {
        Self { colours, width }
    }

    pub(super) fn width(self) -> usize {
        self.width
    }

    pub(crate) fn has_colours(self) -> bool {
        self.colours
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(super) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(super) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
