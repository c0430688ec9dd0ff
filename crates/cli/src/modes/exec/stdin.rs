//! Lines of stdin, read one at a time when asked for.
//!
//! A thread of its own does the waiting. It reads only on demand, so that while a call runs no one
//! else takes what a person types into a question.

use std::{
    io::{self, BufRead, BufReader},
    sync::mpsc,
    thread,
};

/// Longer lines are passed over without being kept.
pub(crate) const LONGEST: usize = 32 << 20;

/// What came.
#[derive(Debug)]
pub(crate) enum InputLine {
    /// A line, without its end.
    Text(Vec<u8>),
    /// A line no one could want.
    TooLong { bytes: u64 },
    /// Nothing more can be read.
    Failed(io::Error),
}

pub(crate) struct Lines {
    ask: mpsc::Sender<()>,
    lines: tokio::sync::mpsc::UnboundedReceiver<InputLine>,
    asked: bool,
}

impl Lines {
    pub(crate) fn of_stdin() -> Self {
        Self::of(BufReader::with_capacity(64 << 10, io::stdin()))
    }

    pub(super) fn of(mut input: impl BufRead + Send + 'static) -> Self {
        let (ask, asked) = mpsc::channel();
        let (sender, lines) = tokio::sync::mpsc::unbounded_channel();
        thread::spawn(move || {
            while asked.recv().is_ok() {
                let Some(line) = read_line(&mut input, LONGEST) else {
                    return;
                };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            ask,
            lines,
            asked: false,
        }
    }

    /// The next line; `None` at the end. May be dropped while it waits: the line then comes next
    /// time.
    pub(crate) async fn next(&mut self) -> Option<InputLine> {
        if !self.asked {
            self.asked = self.ask.send(()).is_ok();
        }
        let line = self.lines.recv().await;
        self.asked = false;
        line
    }
}

/// Reads up to the next line end, keeping no more than `longest` bytes.
fn read_line(input: &mut impl BufRead, longest: usize) -> Option<InputLine> {
    let mut line = Vec::new();
    let mut bytes: u64 = 0;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Some(InputLine::Failed(error)),
        };
        let end_of_input = available.is_empty();
        let line_end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..line_end.unwrap_or(available.len())];
        bytes += part.len() as u64;
        if line.len() + part.len() <= longest {
            line.extend_from_slice(part);
        } else {
            // Give the memory back at once; the rest is only counted.
            line = Vec::new();
            line.shrink_to_fit();
        }
        let used = part.len() + usize::from(line_end.is_some());
        input.consume(used);
        if line_end.is_none() && !end_of_input {
            continue;
        }
        return match bytes {
            0 if end_of_input => None,
            too_long if too_long > longest as u64 => Some(InputLine::TooLong { bytes: too_long }),
            _ => Some(InputLine::Text(line)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_line_ends_and_long_ones_only_counted() {
        // A tiny buffer, so that lines and their ends fall on its borders.
        let text = "one\n\nlonger than ten\nlast";
        let mut input = BufReader::with_capacity(4, text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut input, 10) {
            lines.push(match line {
                InputLine::Text(text) => String::from_utf8(text).unwrap(),
                InputLine::TooLong { bytes } => format!("{bytes} bytes"),
                InputLine::Failed(error) => panic!("{error}"),
            });
        }
        assert_eq!(lines, ["one", "", "15 bytes", "last"]);
    }
}
