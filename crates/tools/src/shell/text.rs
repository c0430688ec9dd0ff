//! The conversion of a command's output into text for a model and a terminal.
//!
//! The text contains no control characters except line ends and tabs, for any bytes and however
//! they are split. It is what a terminal would show of each line: colours and titles are removed, a
//! progress bar leaves its last state, backspaces are applied. Cursor movement between lines is
//! ignored.

use std::mem;

use vte::{Params, Parser, Perform};

/// A converter from bytes to text.
#[derive(Default)]
pub(crate) struct TerminalText {
    /// The first bytes of an incomplete character.
    begun: Vec<u8>,
    parser: Parser,
    screen: LineScreen,
    seen: ByteStats,
}

/// The content of a whole output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShownOutput {
    /// Text, without empty lines at its end.
    Text(String),
    /// An image, which was printed as a data URI.
    Image {
        /// The type, such as `image/png`.
        mime: String,
        /// The image.
        bytes: Vec<u8>,
    },
    /// Binary data with this number of bytes.
    Binary(u64),
}

/// Counts of the bytes seen, by kind.
#[derive(Default)]
struct ByteStats {
    all: u64,
    zeros: u64,
    undecodable: u64,
    /// Control characters that do not appear in text.
    odd: u64,
}

impl TerminalText {
    /// Adds bytes, which may be split anywhere.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.seen.all += bytes.len() as u64;
        let joined;
        let mut rest = bytes;
        if !self.begun.is_empty() {
            joined = [mem::take(&mut self.begun).as_slice(), bytes].concat();
            rest = &joined;
        }
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.text(text);
                    return;
                }
                Err(error) => {
                    let (valid, behind) = rest.split_at(error.valid_up_to());
                    self.text(&String::from_utf8_lossy(valid));
                    let Some(length) = error.error_len() else {
                        self.begun = behind.to_vec();
                        return;
                    };
                    self.undecodable(length);
                    rest = &behind[length..];
                }
            }
        }
    }

    /// Takes the complete lines, for a caller that shows or stores the output while it grows.
    pub(crate) fn take(&mut self) -> String {
        mem::take(&mut self.screen.done)
    }

    /// Returns the unfinished line: a question, or the state of a progress bar.
    pub(crate) fn unfinished(&self) -> &str {
        &self.screen.line
    }

    /// Returns whether the output so far looks like binary data.
    pub(crate) fn is_binary(&self) -> bool {
        let ByteStats {
            all,
            zeros,
            undecodable,
            odd,
        } = self.seen;
        // `find -print0` and similar commands print text with zeros as line ends.
        let is_list = undecodable == 0 && odd == 0 && zeros * 2 < all;
        let has_zeros = zeros > 0 && !is_list && (zeros + undecodable + odd) * 10 > all;
        // A little text in another encoding is better shown with replacement characters than not at
        // all.
        has_zeros || all >= 16 && undecodable * 10 > all * 3
    }

    /// Ends the conversion, and returns the output that was not taken yet.
    pub(crate) fn finish(mut self) -> ShownOutput {
        let begun = mem::take(&mut self.begun).len();
        if begun > 0 {
            self.undecodable(begun);
        }
        if self.is_binary() {
            return ShownOutput::Binary(self.seen.all);
        }
        self.screen.end_line(false);
        let text = self.screen.done;
        if let Some((mime, bytes)) = image(&text) {
            return ShownOutput::Image { mime, bytes };
        }
        ShownOutput::Text(without_blank_end(text))
    }

    fn undecodable(&mut self, bytes: usize) {
        self.seen.undecodable += bytes as u64;
        self.text("\u{fffd}");
    }

    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                0 => self.seen.zeros += 1,
                b'\n' | b'\t' | b'\r' | 0x07 | 0x08 | 0x0c | 0x1b => {}
                0x01..=0x1f | 0x7f => self.seen.odd += 1,
                _ => {}
            }
        }
        // A line end also ends an unterminated escape sequence, so that a stray one does not
        // swallow the rest. Only images contain line ends in their sequence.
        let mut rest = text;
        while let Some(at) = rest.find(['\n', '\0']) {
            self.parser
                .advance(&mut self.screen, &rest.as_bytes()[..at]);
            if !self.screen.in_picture {
                self.parser.advance(&mut self.screen, b"\x18");
                self.screen.end_line(true);
            }
            rest = &rest[at + 1..];
        }
        self.parser.advance(&mut self.screen, rest.as_bytes());
    }
}

/// One line of a terminal, and the finished lines above it.
#[derive(Default)]
struct LineScreen {
    done: String,
    line: String,
    /// The offset of the next character in the line, in bytes.
    at: usize,
    /// A carriage return was read: the next text replaces the line. Until then the line remains,
    /// since a line end usually follows.
    returned: bool,
    in_picture: bool,
}

impl LineScreen {
    fn end_line(&mut self, with_end: bool) {
        self.done.push_str(&self.line);
        if with_end {
            self.done.push('\n');
        }
        self.line.clear();
        self.at = 0;
        self.returned = false;
    }

    fn erase(&mut self, from: usize) {
        self.line.truncate(from);
        self.at = self.at.min(from);
    }

    fn back(&mut self, by: usize) {
        if self.returned {
            return;
        }
        let before = self.line[..self.at].char_indices().rev();
        self.at = before.take(by).last().map_or(self.at, |(at, _)| at);
    }
}

impl Perform for LineScreen {
    fn print(&mut self, character: char) {
        if character.is_control() {
            return;
        }
        if mem::take(&mut self.returned) {
            self.erase(0);
        }
        match self.line[self.at..].chars().next() {
            None => self.line.push(character),
            Some(old) => {
                let mut new = [0; 4];
                let range = self.at..self.at + old.len_utf8();
                self.line
                    .replace_range(range, character.encode_utf8(&mut new));
            }
        }
        self.at += character.len_utf8();
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.returned = true,
            0x08 => self.back(1),
            b'\t' => {
                if mem::take(&mut self.returned) {
                    self.erase(0);
                }
                // In a terminal, a tab moves over existing text. Progress bars do not do that, so
                // the text after the tab is removed.
                self.line.truncate(self.at);
                self.line.push('\t');
                self.at = self.line.len();
            }
            // Vertical tab and form feed move to another line.
            0x0b | 0x0c => self.end_line(true),
            _ => {}
        }
    }

    fn hook(&mut self, _: &Params, intermediates: &[u8], _: bool, action: char) {
        self.in_picture = action == 'q' && intermediates.is_empty();
    }

    fn unhook(&mut self) {
        self.in_picture = false;
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: char) {
        if !intermediates.is_empty() {
            return;
        }
        let first = params.iter().next().and_then(|first| first.first());
        let first = first.copied().unwrap_or(0);
        match (action, first) {
            // Erase in the line: after the cursor, or all of it.
            ('K', 0) if self.returned => self.erase(0),
            ('K', 0) => self.erase(self.at),
            ('K', 2) => self.erase(0),
            // Move to the first column.
            ('G', 0 | 1) => self.returned = true,
            ('D', by) => self.back(usize::from(by.max(1))),
            _ => {}
        }
    }
}

/// Returns the image, if the text is exactly the data URI of an image.
fn image(text: &str) -> Option<(String, Vec<u8>)> {
    let (mime, data) = text.trim().strip_prefix("data:")?.split_once(";base64,")?;
    if !matches!(
        mime,
        "image/png" | "image/jpeg" | "image/gif" | "image/webp"
    ) {
        return None;
    }
    // Some programs split base64 into lines.
    let data: Vec<u8> = data.bytes().filter(|byte| *byte != b'\n').collect();
    let bytes = data_encoding::BASE64.decode(&data).ok()?;
    (!bytes.is_empty()).then(|| (mime.to_owned(), bytes))
}

/// Removes empty lines, and the line end, from the end of the text.
fn without_blank_end(mut text: String) -> String {
    let kept = text.trim_end();
    // Spaces at the end of the last line remain: they may be part of the output.
    let blank = &text[kept.len()..];
    let end = kept.len() + blank.find('\n').unwrap_or(blank.len());
    text.truncate(if kept.is_empty() { 0 } else { end });
    text
}

/// Returns the beginning and the end of a text that is longer than `limit` characters, and how much
/// is left out between them. Cuts at nearby line ends.
pub(crate) fn excerpt(text: &str, limit: usize) -> String {
    let all = text.chars().count();
    if all <= limit {
        return text.to_owned();
    }
    let head_length = limit / 2;
    let tail_length = limit - head_length;
    let head = &text[..byte_of(text, head_length)];
    let tail = &text[byte_of(text, all - tail_length)..];
    // Up to a fifth of each side may be dropped to reach a line end.
    let head = match head.rfind('\n') {
        Some(at) if head[at..].chars().count() <= head_length / 5 + 1 => &head[..at],
        _ => head,
    };
    let tail = match tail.find('\n') {
        Some(at) if tail[..at].chars().count() <= tail_length / 5 => &tail[at + 1..],
        _ => tail,
    };
    let left_out = all - head.chars().count() - tail.chars().count();
    format!("{head}\n\n... [{left_out} characters truncated] ...\n\n{tail}")
}

fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices()
        .nth(character)
        .map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
