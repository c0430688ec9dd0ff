//! Colours, where the reader has them.

use std::io;

use super::wants_colours;

/// With colours or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    colours: bool,
}

impl Style {
    pub(crate) fn of_stdout() -> Self {
        Self {
            colours: wants_colours(&io::stdout()),
        }
    }

    pub(crate) fn of_stderr() -> Self {
        Self {
            colours: wants_colours(&io::stderr()),
        }
    }

    #[cfg(test)]
    pub(super) fn fixed(colours: bool) -> Self {
        Self { colours }
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
