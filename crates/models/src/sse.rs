//! Server-sent events, parsed from bytes that may be split anywhere.
//!
//! Lines end in LF, CRLF or CR. `data` may have several lines. Comments are ignored. The parser is
//! more lenient than the standard in two cases, for servers that omit empty lines: an `event` line
//! after data begins a new event, and the end of the stream ends the last event
//! ([`SseParser::finish`]).

use std::ops::Range;

/// A server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// The name; empty if the event has none.
    pub name: String,
    /// The data, lines joined by LF.
    pub data: String,
}

/// The reason why a stream cannot be parsed. Nothing can be read after it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// The bytes are not UTF-8. Replacing them could change what a tool writes to a file.
    #[error("the stream holds bytes that are not UTF-8")]
    NotUtf8,
    /// An event is longer than the limit.
    #[error("an event of the stream is longer than {0} bytes")]
    TooLong(usize),
}

/// Parses events from chunks of bytes.
#[derive(Debug)]
pub struct SseParser {
    /// Bytes of lines that have not been parsed.
    buffer: Vec<u8>,
    /// The offset of the next line.
    start: usize,
    /// The offset up to which no line end was found.
    scanned: usize,
    begun: bool,
    name: String,
    data: Option<String>,
    /// The last id that the stream sent.
    id: Option<String>,
    /// The reconnection delay that the stream sent, in milliseconds.
    retry: Option<u64>,
    longest: usize,
}

impl SseParser {
    /// Creates a parser for events of at most `longest` bytes.
    pub fn new(longest: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            begun: false,
            name: String::new(),
            data: None,
            id: None,
            retry: None,
            longest,
        }
    }

    /// Adds a chunk; [`next`](Self::next) returns the events that it completes.
    pub fn push(&mut self, chunk: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next complete event, if any.
    #[expect(
        clippy::should_implement_trait,
        reason = "`None` means not yet, which is not what it means to an iterator"
    )]
    pub fn next(&mut self) -> Option<Result<ServerEvent, SseError>> {
        while let Some(line) = self.line(false) {
            match self.take(line) {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(error) => return Some(Err(error)),
            }
        }
        let pending = self.buffer.len() - self.start + self.data.as_ref().map_or(0, String::len);
        (pending > self.longest).then_some(Err(SseError::TooLong(self.longest)))
    }

    /// Ends the stream and returns the event that has no empty line after it. The stream may have
    /// been cut off, so the event's data may be incomplete.
    pub fn finish(&mut self) -> Option<Result<ServerEvent, SseError>> {
        while let Some(line) = self.line(true) {
            match self.take(line) {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(error) => return Some(Err(error)),
            }
        }
        self.event().map(Ok)
    }

    /// Returns the last event id of the stream, which a client sends to resume it.
    pub fn last_id(&self) -> Option<&str> {
        self.id.as_deref().filter(|id| !id.is_empty())
    }

    /// Returns the reconnection delay in milliseconds, if the stream sent one.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Returns the next line, without its end.
    fn line(&mut self, at_end: bool) -> Option<Range<usize>> {
        let unread = &self.buffer[self.scanned..];
        let found = unread.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let Some(end) = found.map(|at| self.scanned + at) else {
            self.scanned = self.buffer.len();
            let rest = self.start..self.buffer.len();
            if at_end && !rest.is_empty() {
                self.start = rest.end;
                return Some(rest);
            }
            return None;
        };
        let mut after = end + 1;
        if self.buffer[end] == b'\r' {
            match self.buffer.get(after) {
                Some(b'\n') => after += 1,
                Some(_) => {}
                // Whether an LF follows is not known yet.
                None if !at_end => {
                    self.scanned = end;
                    return None;
                }
                None => {}
            }
        }
        let line = self.start..end;
        self.start = after;
        self.scanned = after;
        Some(line)
    }

    fn take(&mut self, line: Range<usize>) -> Result<Option<ServerEvent>, SseError> {
        let mut bytes = &self.buffer[line];
        if !std::mem::replace(&mut self.begun, true) {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        let line = std::str::from_utf8(bytes).map_err(|_| SseError::NotUtf8)?;
        if line.is_empty() {
            return Ok(self.event());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                let data = match &mut self.data {
                    None => self.data.insert(value.to_owned()),
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                        data
                    }
                };
                if data.len() > self.longest {
                    return Err(SseError::TooLong(self.longest));
                }
            }
            "event" => {
                let name = value.to_owned();
                let before = self.event();
                self.name = name;
                return Ok(before);
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok().or(self.retry),
            // Comments have an empty field name.
            _ => {}
        }
        Ok(None)
    }

    fn event(&mut self) -> Option<ServerEvent> {
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?;
        Some(ServerEvent { name, data })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(chunks: &[&[u8]]) -> Result<Vec<(String, String)>, SseError> {
        let mut parser = SseParser::new(1000);
        let mut events = Vec::new();
        for chunk in chunks {
            parser.push(chunk);
            while let Some(event) = parser.next() {
                let event = event?;
                events.push((event.name, event.data));
            }
        }
        while let Some(event) = parser.finish() {
            let event = event?;
            events.push((event.name, event.data));
        }
        Ok(events)
    }

    fn pairs(events: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, data): &(&str, &str)| ((*name).to_owned(), (*data).to_owned());
        events.iter().map(owned).collect()
    }

    #[test]
    fn lines_fields_and_ends() {
        type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);
        let cases: &[Case<'_>] = &[
            ("plain", "event: a\ndata: 1\n\n", &[("a", "1")]),
            ("no space", "event:a\ndata:1\n\n", &[("a", "1")]),
            ("only one space goes", "data:  1\n\n", &[("", " 1")]),
            (
                "CRLF",
                "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n",
                &[("a", "1"), ("", "2")],
            ),
            ("CR", "data: 1\r\rdata: 2\r\r", &[("", "1"), ("", "2")]),
            ("several lines", "data: 1\ndata: 2\n\n", &[("", "1\n2")]),
            ("comments", ": hi\n\ndata: 1\n: there\n\n", &[("", "1")]),
            ("other fields", "id: 7\nretry: 5\ndata: 1\n\n", &[("", "1")]),
            ("byte order mark", "\u{feff}data: 1\n\n", &[("", "1")]),
            ("no data, no event", "event: a\n\ndata: 1\n\n", &[("", "1")]),
            ("field without colon", "data\n\n", &[("", "")]),
            (
                "no blank line",
                "event: a\ndata: 1\nevent: b\ndata: 2\n",
                &[("a", "1"), ("b", "2")],
            ),
            ("no end", "data: 1", &[("", "1")]),
        ];
        for (what, text, expected) in cases {
            assert_eq!(
                parse(&[text.as_bytes()]).unwrap(),
                pairs(expected),
                "{what}"
            );
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_and_endless_lines_are_errors() {
        assert_eq!(parse(&[b"data: \xff\n\n"]), Err(SseError::NotUtf8));
        let long = vec![b'x'; 600];
        assert_eq!(parse(&[&long, &long]), Err(SseError::TooLong(1000)));
        let many = b"data: 0123456789\n".repeat(100);
        assert_eq!(parse(&[&many]), Err(SseError::TooLong(1000)));
    }

    proptest! {
        #[test]
        fn splits_change_nothing(
            lines in prop::collection::vec("(data|event|:|id|)(:| |)[a-z€é🙂]{0,6}", 0..12),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r", "\n\n", "\r\n\r\n"]), 12),
            splits in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let text: String = lines.iter().zip(&ends).flat_map(|(line, end)| [line.as_str(), *end]).collect();
            let bytes = text.as_bytes();
            let whole = parse(&[bytes]);
            let mut at: Vec<usize> = splits.iter().map(|index| index.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let chunks: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(&parse(&chunks), &whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&parse(&single), &whole);
        }
    }
}
