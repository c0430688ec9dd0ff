//! Messages as lines of limited length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The default for the maximum length of a message in bytes.
pub const MAX_FRAME: usize = 32 * 1024 * 1024;

/// The number of bytes at either end of an oversized message that are stored, to find out what it
/// belongs to.
const KEPT_ENDS: usize = 512;

/// A line of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineFrame {
    /// A line without its line end.
    Line(Vec<u8>),
    /// An oversized line, which was skipped.
    TooLong {
        /// The beginning and the end of the line.
        ends: Vec<u8>,
        /// The length in bytes.
        length: usize,
    },
}

/// Reads lines. Empty lines are skipped.
#[derive(Debug)]
pub struct FrameReader<R> {
    inner: R,
    longest: usize,
    /// The part of the current line that was read; dropping a read loses nothing.
    line: Vec<u8>,
    /// The number of skipped bytes of the line.
    passed: usize,
}

impl<R: AsyncBufRead + Unpin> FrameReader<R> {
    /// Creates a reader with a maximum length of lines in bytes.
    pub fn new(inner: R, longest: usize) -> Self {
        Self {
            inner,
            longest,
            line: Vec::new(),
            passed: 0,
        }
    }

    /// Returns the next line, or `None` at the end. A last line without a line end is returned too.
    /// The future may be dropped at any time.
    pub async fn next(&mut self) -> io::Result<Option<LineFrame>> {
        loop {
            let chunk = self.inner.fill_buf().await?;
            let is_over = chunk.is_empty();
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(chunk.len(), |end| end + 1);
            let content = &chunk[..end.unwrap_or(chunk.len())];
            take(&mut self.line, &mut self.passed, content, self.longest);
            self.inner.consume(taken);
            if end.is_none() && !is_over {
                continue;
            }
            if let Some(frame) = self.frame() {
                return Ok(Some(frame));
            }
            if is_over {
                return Ok(None);
            }
        }
    }

    fn frame(&mut self) -> Option<LineFrame> {
        let mut line = std::mem::take(&mut self.line);
        let passed = std::mem::take(&mut self.passed);
        if passed > 0 {
            let length = passed + line.len();
            return Some(LineFrame::TooLong { ends: line, length });
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then_some(LineFrame::Line(line))
    }
}

/// Appends to a line; only the two ends of an oversized line are stored.
fn take(line: &mut Vec<u8>, passed: &mut usize, content: &[u8], longest: usize) {
    line.extend_from_slice(content);
    let kept = 2 * KEPT_ENDS;
    if *passed == 0 && line.len() <= longest || line.len() <= kept {
        return;
    }
    let over = line.len() - kept;
    line.drain(KEPT_ENDS..KEPT_ENDS + over);
    *passed += over;
    line.shrink_to(kept);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn read(chunks: &[&[u8]], longest: usize) -> Vec<LineFrame> {
        let (mut writer, reader) = tokio::io::duplex(64);
        let chunks: Vec<Vec<u8>> = chunks.iter().map(|chunk| chunk.to_vec()).collect();
        let writing = tokio::spawn(async move {
            for chunk in chunks {
                tokio::io::AsyncWriteExt::write_all(&mut writer, &chunk)
                    .await
                    .unwrap();
            }
        });
        let mut reader = FrameReader::new(tokio::io::BufReader::with_capacity(16, reader), longest);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next().await.unwrap() {
            frames.push(frame);
        }
        writing.await.unwrap();
        frames
    }

    fn line(text: &str) -> LineFrame {
        LineFrame::Line(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_end_in_a_line_feed_and_blank_ones_are_passed_over() {
        let read = read(&[b"a\r\n\n  \nb", b"c\nlast"], 100).await;
        assert_eq!(read, [line("a"), line("bc"), line("last")]);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_and_the_next_one_read() {
        let mut long = b"{\"id\":1,".to_vec();
        long.extend(vec![b'x'; 5_000]);
        long.extend(b"tail}\n");
        let read = read(&[&long, b"next\n"], 2_000).await;
        let [LineFrame::TooLong { ends, length }, next] = &read[..] else {
            panic!("{read:?}");
        };
        assert_eq!(*length, long.len() - 1);
        assert!(ends.starts_with(b"{\"id\":1,") && ends.ends_with(b"tail}"));
        assert_eq!(ends.len(), 2 * KEPT_ENDS);
        assert_eq!(*next, line("next"));
    }

    proptest! {
        #[test]
        fn splits_change_nothing(lines in prop::collection::vec("[a-z]{1,30}", 0..6), at in 0usize..200) {
            let text = lines.join("\n");
            let at = at.min(text.len());
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (left, right) = text.as_bytes().split_at(at);
            let read = runtime.block_on(read(&[left, right], 100));
            let expected: Vec<LineFrame> = lines.iter().map(|text| line(text)).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
