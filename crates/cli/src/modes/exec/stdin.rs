//! Reads lines from stdin on demand, and the JSON texts in them, which are one line each or
//! indented over several lines.
//!
//! A dedicated thread does the blocking reads. It reads only on demand, so that it never consumes
//! the user's answer to a question while a call runs.

use std::{
    io::{self, BufRead, BufReader},
    sync::mpsc,
    thread,
};

/// The maximum length of a line in bytes. Longer lines are skipped without being stored.
pub(crate) const MAX_LENGTH: usize = 32 << 20;

/// The next item of the input.
#[derive(Debug)]
pub(crate) enum InputLine {
    /// A line without its line end.
    Text(Vec<u8>),
    /// A line above the length limit, with its length.
    TooLong { bytes: u64 },
    /// The read failed, so nothing more can be read.
    Failed(io::Error),
}

pub(crate) struct StdinLines {
    ask: mpsc::Sender<()>,
    lines: tokio::sync::mpsc::UnboundedReceiver<InputLine>,
    asked: bool,
}

impl StdinLines {
    pub(crate) fn from_stdin() -> Self {
        Self::from_reader(BufReader::with_capacity(64 << 10, io::stdin()))
    }

    fn from_reader(mut input: impl BufRead + Send + 'static) -> Self {
        let (ask, asked) = mpsc::channel();
        let (sender, lines) = tokio::sync::mpsc::unbounded_channel();
        thread::spawn(move || {
            while asked.recv().is_ok() {
                let Some(line) = read_line(&mut input, MAX_LENGTH) else {
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

    /// Returns the next line, or `None` at the end. Cancel-safe: after a drop, the next call
    /// returns the line.
    pub(crate) async fn next(&mut self) -> Option<InputLine> {
        if !self.asked {
            self.asked = self.ask.send(()).is_ok();
        }
        let line = self.lines.recv().await;
        self.asked = false;
        line
    }
}

/// Reads up to the next line end and keeps at most `longest` bytes.
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
            // Frees the memory immediately; the rest of the line is only counted.
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

/// Splits lines into JSON texts.
pub(super) struct JsonDocuments {
    lines: StdinLines,
    /// The lines of a text that is not complete yet.
    begun: Vec<u8>,
    /// A line that has been read and begins the next text.
    ahead: Option<Vec<u8>>,
}

impl JsonDocuments {
    pub(super) fn new(lines: StdinLines) -> Self {
        Self {
            lines,
            begun: Vec::new(),
            ahead: None,
        }
    }

    /// Returns the next text, or `None` at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<InputLine> {
        loop {
            let line = match self.ahead.take() {
                Some(line) => line,
                None => match self.lines.next().await {
                    Some(InputLine::Text(line)) => line,
                    other if self.begun.is_empty() => return other,
                    // The incomplete text is returned, so that the JSON parser reports the problem.
                    _ => return Some(self.take_document()),
                },
            };
            if self.begun.is_empty() {
                if !begins(&line) {
                    return Some(InputLine::Text(line));
                }
                self.begun = line;
                continue;
            }
            // Inside indented JSON, no line begins with an opening bracket at column 0, so this
            // line begins a new text.
            if line.starts_with(b"{") || line.starts_with(b"[") {
                self.ahead = Some(line);
                return Some(self.take_document());
            }
            self.begun.push(b'\n');
            self.begun.extend_from_slice(&line);
            if self.begun.len() > MAX_LENGTH {
                let bytes = self.begun.len() as u64;
                self.begun = Vec::new();
                return Some(InputLine::TooLong { bytes });
            }
            if line.starts_with(b"}") || line.starts_with(b"]") {
                return Some(self.take_document());
            }
        }
    }

    fn take_document(&mut self) -> InputLine {
        InputLine::Text(std::mem::take(&mut self.begun))
    }
}

/// Returns whether this line begins a JSON text that continues on the next line.
fn begins(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let opens = line.starts_with(b"{") || line.starts_with(b"[");
    let goes_on = line.ends_with(b"{") || line.ends_with(b"[") || line.ends_with(b",");
    opens && goes_on
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

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

    async fn read(text: &str) -> Vec<String> {
        let lines = StdinLines::from_reader(Cursor::new(text.to_owned().into_bytes()));
        let mut documents = JsonDocuments::new(lines);
        let mut found = Vec::new();
        while let Some(line) = documents.next().await {
            let InputLine::Text(line) = line else {
                panic!()
            };
            found.push(String::from_utf8(line).unwrap());
        }
        found
    }

    #[tokio::test]
    async fn a_line_each_or_indented() {
        let indented =
            "{\n  \"name\": \"LS\",\n  \"input\": {\n    \"a\": [\n      {}\n    ]\n  }\n}";
        let text = format!("{{\"a\": 1}}\n{indented}\n[\n  1\n]\n{{\"b\": 2}}");
        let found = read(&text).await;
        assert_eq!(found, ["{\"a\": 1}", indented, "[\n  1\n]", "{\"b\": 2}"]);
    }

    #[tokio::test]
    async fn one_that_is_broken_costs_no_other() {
        let found = read("{\"a\":\n{\n  \"b\":\n{\"c\": 3}\n{").await;
        assert_eq!(found, ["{\"a\":", "{\n  \"b\":", "{\"c\": 3}", "{"]);
    }
}
