//! Collects a bracketed paste.

use super::event::PasteResult;
use crate::clean::clean;

/// The maximum length of a paste in bytes. A longer paste is refused.
pub const MAX_PASTED: usize = 10 * 1024 * 1024;

/// The sequence that ends a paste.
const END: &[u8] = b"\x1b[201~";

/// A paste in progress.
#[derive(Debug, Clone, Default)]
pub(super) struct PasteBuffer {
    bytes: Vec<u8>,
    /// The number of bytes that were not stored because the paste is too long.
    dropped: usize,
    /// The number of bytes of the end sequence that were seen and are not in `bytes`.
    matched: usize,
}

impl PasteBuffer {
    /// Adds one byte. Returns the paste if the byte was its last.
    pub(super) fn push(&mut self, byte: u8) -> Option<PasteResult> {
        if byte == END[self.matched] {
            self.matched += 1;
            return (self.matched == END.len()).then(|| self.take());
        }
        let matched = std::mem::take(&mut self.matched);
        for seen in &END[..matched] {
            self.store_byte(*seen);
        }
        // Only the first byte of the end sequence can start it again.
        match byte == END[0] {
            true => self.matched = 1,
            false => self.store_byte(byte),
        }
        None
    }

    fn store_byte(&mut self, byte: u8) {
        if self.bytes.len() < MAX_PASTED {
            self.bytes.push(byte);
        } else {
            self.dropped += 1;
        }
    }

    /// Returns the paste so far, whether its end has come or not.
    pub(super) fn take(&mut self) -> PasteResult {
        let paste = std::mem::take(self);
        if paste.dropped > 0 {
            return PasteResult::TooLong {
                bytes: paste.bytes.len() + paste.dropped,
            };
        }
        PasteResult::Text(normalized(&paste.bytes))
    }
}

/// Converts line ends to line feeds, and makes all other control characters visible.
fn normalized(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    clean(&text.replace("\r\n", "\n").replace('\r', "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paste(bytes: &[u8]) -> Option<PasteResult> {
        let mut buffer = PasteBuffer::default();
        bytes.iter().find_map(|byte| buffer.push(*byte))
    }

    #[test]
    fn line_ends_are_line_feeds_and_control_characters_visible() {
        let pasted = paste(b"a\r\nb\rc\x1b[31m\x1b\x1b[201~");
        assert_eq!(pasted, Some(PasteResult::Text("a\nb\nc␛[31m␛".into())));
    }

    #[test]
    fn what_is_too_long_is_refused_and_counted() {
        let mut bytes = vec![b'x'; MAX_PASTED + 3];
        bytes.extend_from_slice(END);
        assert_eq!(
            paste(&bytes),
            Some(PasteResult::TooLong {
                bytes: MAX_PASTED + 3
            })
        );
    }
}
