//! Reads the lines of a transcript one at a time with long strings truncated, so that the memory is
//! bounded for any content.
//!
//! Tool results make lines long, and no counted data is in a long string. So each JSON string is
//! truncated while it is read; the rest of the line is still valid JSON.

use std::io::{self, BufRead};

/// The length in bytes after which a string is truncated, at the next unescaped ASCII character.
const MAX_STRING: usize = 1_024;

/// The maximum length of a line after its strings were truncated.
const MAX_LENGTH: usize = 4 << 20;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::transcript) enum ShortLine<'a> {
    /// The bytes of the line with truncated strings.
    Cut(&'a [u8]),
    /// The line is too long even with truncated strings.
    TooLong,
}

/// Reads lines.
pub(in crate::transcript) struct ShortLines<R> {
    input: R,
    line: Vec<u8>,
}

/// The state of the reader within a line.
#[derive(Default)]
struct LineScanState {
    in_text: bool,
    /// The number of bytes of the string that were read.
    read: usize,
    /// The number of bytes of an escape sequence that follow.
    escape: u8,
    /// Whether the rest of the string is dropped.
    dropping: bool,
    too_long: bool,
}

impl<R: BufRead> ShortLines<R> {
    pub(in crate::transcript) fn new(input: R) -> Self {
        let line = Vec::new();
        Self { input, line }
    }

    /// Returns the next line without its end, or `None` at the end of the file.
    pub(in crate::transcript) fn next(&mut self) -> io::Result<Option<ShortLine<'_>>> {
        self.line.clear();
        let mut place = LineScanState::default();
        let mut has_begun = false;
        loop {
            let chunk = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            if chunk.is_empty() {
                if !has_begun {
                    return Ok(None);
                }
                break;
            }
            has_begun = true;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            for byte in part {
                if place.keeps(*byte) {
                    if self.line.len() == MAX_LENGTH {
                        place.too_long = true;
                    }
                    if !place.too_long {
                        self.line.push(*byte);
                    }
                }
            }
            let read = part.len() + usize::from(end.is_some());
            self.input.consume(read);
            if end.is_some() {
                break;
            }
        }
        let line = match place.too_long {
            true => ShortLine::TooLong,
            false => ShortLine::Cut(&self.line),
        };
        Ok(Some(line))
    }
}

impl LineScanState {
    /// Returns whether this byte is part of the truncated line.
    fn keeps(&mut self, byte: u8) -> bool {
        if !self.in_text {
            if byte == b'"' {
                *self = Self {
                    in_text: true,
                    too_long: self.too_long,
                    ..Self::default()
                };
            }
            return true;
        }
        self.read += 1;
        if self.escape > 0 {
            // `\u` is followed by four digits.
            self.escape = match byte {
                b'u' if self.escape == 5 => 4,
                _ if self.escape == 5 => 0,
                _ => self.escape - 1,
            };
            return !self.dropping;
        }
        match byte {
            b'"' => {
                self.in_text = false;
                self.dropping = false;
                return true;
            }
            b'\\' => self.escape = 5,
            // The string must not be cut inside a character or between two escaped surrogates.
            _ if byte.is_ascii() && self.read > MAX_STRING => self.dropping = true,
            _ => {}
        }
        !self.dropping
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn all(bytes: &[u8], chunk: usize) -> Vec<Option<String>> {
        let mut lines = ShortLines::new(io::BufReader::with_capacity(chunk, bytes));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(match line {
                ShortLine::Cut(line) => Some(String::from_utf8_lossy(line).into_owned()),
                ShortLine::TooLong => None,
            });
        }
        all
    }

    #[test]
    fn long_texts_are_cut_and_what_is_left_is_json() {
        for filling in ["x", "\\", "\"", "é", "😀", "\u{1}", "a😀\\"] {
            for extra in 0..8 {
                let long = format!("{}{}", "y".repeat(extra), filling.repeat(5_000));
                let value = json!({"before": "a\\\"b", "long": long, "after": [1, "z"]});
                // Others write every character as an escape.
                let plain = value.to_string();
                let escaped: String = plain
                    .chars()
                    .flat_map(|c| match c.is_ascii() {
                        true => vec![c.to_string()],
                        false => {
                            let mut units = [0; 2];
                            let units = c.encode_utf16(&mut units);
                            units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
                        }
                    })
                    .collect();
                for line in [plain, escaped] {
                    for chunk in [1, 7, 8192] {
                        let cut = all(format!("{line}\n{{}}").as_bytes(), chunk);
                        assert_eq!(cut.len(), 2, "{filling:?}");
                        let cut = cut[0].as_ref().unwrap();
                        let read: Value = serde_json::from_str(cut)
                            .unwrap_or_else(|error| panic!("{filling:?} {extra}: {error}"));
                        assert_eq!(read["before"], "a\\\"b");
                        assert_eq!(read["after"], json!([1, "z"]));
                        let kept = read["long"].as_str().unwrap();
                        assert!(
                            long.starts_with(kept) && kept.len() >= 170,
                            "{}",
                            kept.len()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_line_of_anything_but_text_has_a_bound_and_the_next_is_read() {
        let numbers = "1,".repeat(3 << 20);
        let lines = all(format!("[{numbers}1]\nafter\n").as_bytes(), 8192);
        assert_eq!(lines, [None, Some("after".to_owned())]);
        assert_eq!(all(b"", 8), Vec::<Option<String>>::new());
        assert_eq!(
            all(b"\n\nx", 8),
            ["", "", "x"].map(|line| Some(line.to_owned()))
        );
    }
}
