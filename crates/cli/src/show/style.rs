//! Colours and line width of an output stream.

use std::{io::IsTerminal, os::fd::AsFd};

/// The style of an output stream: whether it gets colours, and its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConsoleStyle {
    colours: bool,
    width: usize,
}

/// The width if it is unknown.
const USUAL_WIDTH: usize = 80;

impl ConsoleStyle {
    pub(super) fn for_stream(stream: &(impl IsTerminal + AsFd)) -> Self {
        let size = terminal_size::terminal_size_of(stream);
        Self {
            colours: wants_colours(stream),
            width: size.map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0)),
        }
    }

    /// Returns the style for an unknown reader: no colours, default width.
    pub(crate) fn plain() -> Self {
        Self {
            colours: false,
            width: USUAL_WIDTH,
        }
    }

    #[cfg(test)]
    pub(crate) fn fixed(colours: bool, width: usize) -> Self {
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

    /// Wraps lines at spaces to the width. Continuation lines keep the indent.
    pub(crate) fn wrap(self, text: &str) -> String {
        self.wrap_to(text, self.width)
    }

    pub(super) fn wrap_to(self, text: &str, width: usize) -> String {
        let width = width.max(20);
        let mut lines = Vec::new();
        for line in text.lines() {
            let indent: String = line.chars().take_while(|c| *c == ' ').collect();
            let mut current = indent.clone();
            for word in line.split_whitespace() {
                let blank = usize::from(current.len() > indent.len());
                if blank == 1 && current.chars().count() + 1 + word.chars().count() > width {
                    lines.push(std::mem::replace(&mut current, indent.clone()));
                } else if blank == 1 {
                    current.push(' ');
                }
                current.push_str(word);
            }
            lines.push(current);
        }
        lines.join("\n")
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

fn wants_colours(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !dumb && !set("NO_COLOR")
}
