//! The rows of a match, by the rules of ripgrep's standard printer.

use std::io;
use std::path::Path;
use std::sync::Arc;

use grep_matcher::{Match, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::scan::{FileMatches, StopPoller};
use super::{GrepRow, MAX_COLUMNS, RowKind};
use crate::skip::SkipReason;

/// The number of bytes after a multi-line match that ripgrep shows to a lookahead such as `$` when
/// it finds the match again.
const LOOK_AHEAD: usize = 128;

/// A function that returns the path of the file. It is called for the first row, so a file without
/// rows costs nothing.
pub(super) type PathSource<'a> = dyn Fn() -> Arc<Path> + 'a;

/// Collects the rows of one file.
pub(super) struct RowSink<'a> {
    path: &'a PathSource<'a>,
    shared_path: Option<Arc<Path>>,
    matcher: &'a RegexMatcher,
    only_matching: bool,
    max_rows: usize,
    stop_poller: StopPoller<'a>,
    rows: Vec<GrepRow>,
    matches: u64,
    binary: Option<u64>,
    /// The matches inside the current lines; a field only to reuse its memory.
    spans: Vec<Match>,
}

impl<'a> RowSink<'a> {
    pub(super) fn new(
        path: &'a PathSource<'a>,
        matcher: &'a RegexMatcher,
        only_matching: bool,
        max_rows: usize,
        stop_poller: StopPoller<'a>,
    ) -> Self {
        Self {
            path,
            shared_path: None,
            matcher,
            only_matching,
            max_rows,
            stop_poller,
            rows: Vec::new(),
            matches: 0,
            binary: None,
            spans: Vec::new(),
        }
    }

    pub(super) fn into_finding(self) -> FileMatches {
        let skipped = self.binary.map(|offset| SkipReason::Binary { offset });
        FileMatches {
            rows: self.rows,
            matches: self.matches,
            modified: None,
            skipped,
        }
    }

    fn push(&mut self, kind: RowKind, line: Option<u64>, bytes: &[u8]) {
        let (text, full_length) = shown(bytes);
        let path = Arc::clone(self.shared_path.get_or_insert_with(self.path));
        self.rows.push(GrepRow {
            path,
            line,
            kind,
            text,
            full_length,
        });
    }

    fn push_lines(&mut self, found: &SinkMatch<'_>) {
        for (line, number) in found.lines().zip(found.line_number().unwrap_or(1)..) {
            self.push(RowKind::Match, Some(number), line);
        }
    }

    /// Adds one row for every match, or for every line's part of a match that spans lines.
    fn push_spans(&mut self, found: &SinkMatch<'_>, spans: &[Match], across_lines: bool) {
        if !across_lines {
            for span in spans {
                self.push(RowKind::Match, found.line_number(), &found.bytes()[*span]);
            }
            return;
        }
        let mut start = 0;
        let mut remaining = spans;
        for (line, number) in found.lines().zip(found.line_number().unwrap_or(1)..) {
            let end = start + line.strip_suffix(b"\n").unwrap_or(line).len();
            while let [first, rest @ ..] = remaining {
                let (from, to) = (first.start().max(start), first.end().min(end));
                if from < to {
                    self.push(RowKind::Match, Some(number), &found.bytes()[from..to]);
                }
                // A match that continues on the next line is needed again there.
                if first.end() > end {
                    break;
                }
                remaining = rest;
            }
            start += line.len();
        }
    }

    /// Returns whether the search is past the first NUL byte of a named file. Matches after it are
    /// announced but not shown.
    fn is_past_binary(&self, searcher: &Searcher) -> bool {
        self.binary.is_some() && searcher.binary_detection().convert_byte().is_some()
    }

    fn can_continue(&mut self) -> bool {
        self.rows.len() < self.max_rows && !self.stop_poller.must_stop()
    }
}

impl Sink for RowSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        if self.is_past_binary(searcher) {
            return Ok(false);
        }
        let mut spans = std::mem::take(&mut self.spans);
        spans.clear();
        if self.only_matching {
            each_match(searcher, self.matcher, found, |span| spans.push(span))?;
        }
        if spans.is_empty() {
            self.push_lines(found);
        } else {
            self.push_spans(
                found,
                &spans,
                searcher.multi_line_with_matcher(self.matcher),
            );
        }
        self.spans = spans;
        Ok(self.can_continue())
    }

    fn context(&mut self, searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.is_past_binary(searcher) {
            return Ok(false);
        }
        self.push(RowKind::Context, context.line_number(), context.bytes());
        Ok(self.can_continue())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.push(RowKind::Break, None, b"");
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, offset: u64) -> io::Result<bool> {
        self.binary = Some(offset);
        Ok(true)
    }

    fn finish(&mut self, searcher: &Searcher, _: &grep_searcher::SinkFinish) -> io::Result<()> {
        if let (Some(offset), true) = (self.binary, self.matches > 0) {
            let what = match searcher.binary_detection().quit_byte() {
                Some(_) => "WARNING: stopped searching binary file after match",
                None => "binary file matches",
            };
            let notice = format!("{what} (found \"\\0\" byte around offset {offset})");
            self.push(RowKind::Notice, None, notice.as_bytes());
        }
        Ok(())
    }
}

/// Finds the individual matches inside the lines that the searcher reports. Positions are relative
/// to the first of these lines.
pub(super) fn each_match(
    searcher: &Searcher,
    matcher: &RegexMatcher,
    found: &SinkMatch<'_>,
    mut each: impl FnMut(Match),
) -> io::Result<()> {
    let lines = found.bytes_range_in_buffer();
    let buffer = found.buffer();
    let end = if searcher.multi_line_with_matcher(matcher) {
        buffer.len().min(lines.end + LOOK_AHEAD)
    } else {
        // In single-line mode the line end is hidden from the regex, because `$` and `\s` would
        // match it.
        lines.start
            + found
                .bytes()
                .strip_suffix(b"\n")
                .unwrap_or(found.bytes())
                .len()
    };
    matcher
        .find_iter_at(&buffer[..end], lines.start, |span| {
            let inside = span.start() < lines.end;
            if inside {
                each(Match::new(
                    span.start() - lines.start,
                    span.end() - lines.start,
                ));
            }
            inside
        })
        .map_err(io::Error::other)
}

/// Converts a line to text: without its line end and cut at the display width. Returns the whole
/// length too if the text was cut.
fn shown(bytes: &[u8]) -> (String, Option<usize>) {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.len() <= MAX_COLUMNS {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => String::from_utf8_lossy(bytes).into_owned(),
        };
        return (text, None);
    }
    let mut text = String::new();
    let mut length = 0;
    for chunk in bytes.utf8_chunks() {
        let replaced = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        if length < MAX_COLUMNS {
            text.extend(
                chunk
                    .valid()
                    .chars()
                    .chain(replaced)
                    .take(MAX_COLUMNS - length),
            );
        }
        length += chunk.valid().chars().count() + usize::from(replaced.is_some());
    }
    (text, (length > MAX_COLUMNS).then_some(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_at_a_character_and_say_how_long_they_were() {
        let cases: [(&str, Vec<u8>, String, Option<usize>); 7] = [
            ("empty", b"\n".to_vec(), String::new(), None),
            ("both line ends", b"a\r\n".to_vec(), "a".into(), None),
            ("no line end", b"a".to_vec(), "a".into(), None),
            (
                "exactly as wide",
                "é".repeat(500).into_bytes(),
                "é".repeat(500),
                None,
            ),
            (
                "one wider",
                "é".repeat(501).into_bytes(),
                "é".repeat(500),
                Some(501),
            ),
            (
                "not UTF-8, short",
                b"a\xffb".to_vec(),
                "a\u{fffd}b".into(),
                None,
            ),
            (
                "not UTF-8, long",
                [b"\xff".repeat(600), b"z".to_vec()].concat(),
                "\u{fffd}".repeat(500),
                Some(601),
            ),
        ];
        for (what, bytes, text, length) in cases {
            assert_eq!(shown(&bytes), (text, length), "{what}");
        }
    }
}
