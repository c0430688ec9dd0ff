//! Files with size 0 that have content (`/proc`, `/sys`): reading them with limits on size and
//! time.
//!
//! Such a read can block indefinitely. It runs on a separate thread; if it never returns, only that
//! thread is lost.

use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum number of bytes read from a special file.
pub(crate) const CAP: usize = 256 << 10;
const TIMEOUT: Duration = Duration::from_secs(2);
const PIECE: usize = 64 << 10;

/// The content that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SpecialRead {
    pub(crate) bytes: Vec<u8>,
    /// The file was read to its end.
    pub(crate) ended: bool,
}

/// Reads an open file whose size is not known.
pub(crate) fn read_special(file: &File) -> io::Result<SpecialRead> {
    read_within(file.try_clone()?, CAP, TIMEOUT)
}

fn read_within(
    mut source: impl Read + Send + 'static,
    cap: usize,
    patience: Duration,
) -> io::Result<SpecialRead> {
    let (sender, pieces) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let mut buffer = vec![0; PIECE];
        let mut sent = 0;
        while sent <= cap {
            let piece = match source.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result.map(|count| buffer[..count].to_vec()),
            };
            let is_last = piece.as_ref().map_or(true, Vec::is_empty);
            sent += piece.as_ref().map_or(0, Vec::len);
            if sender.send(piece).is_err() || is_last {
                return; // the receiver was dropped, or the file has ended
            }
        }
    })?;
    let deadline = Instant::now() + patience;
    let mut bytes = Vec::new();
    let ended = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match pieces.recv_timeout(left) {
            Ok(Ok(piece)) if piece.is_empty() => break true,
            Ok(Ok(piece)) => bytes.extend_from_slice(&piece),
            // A file opened without blocking returns this error if it has no data now.
            Ok(Err(error)) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Ok(Err(_)) | Err(RecvTimeoutError::Timeout) if bytes.is_empty() => {
                let seconds = patience.as_secs_f64();
                let text = format!("it returned no data within {seconds} s");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            Ok(Err(_)) | Err(_) => break false,
        }
        if bytes.len() > cap {
            bytes.truncate(cap);
            break false;
        }
    };
    Ok(SpecialRead { bytes, ended })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn what_ends_is_read_to_its_end() {
        let special = |bytes: &[u8], ended| SpecialRead {
            bytes: bytes.to_vec(),
            ended,
        };
        let cases: [(&[u8], SpecialRead); 4] = [
            (b"", special(b"", true)),
            (b"abc", special(b"abc", true)),
            (b"abcd", special(b"abcd", true)),
            (b"abcde", special(b"abcd", false)),
        ];
        for (content, expected) in cases {
            let source = io::Cursor::new(content.to_vec());
            assert_eq!(read_within(source, 4, LONG).unwrap(), expected);
        }
    }

    #[test]
    fn what_never_ends_is_cut_and_what_never_comes_is_not_waited_for() {
        let endless = read_within(io::repeat(b'x'), 100_000, LONG).unwrap();
        assert_eq!((endless.bytes.len(), endless.ended), (100_000, false));

        let (silent, _writer) = io::pipe().unwrap();
        let error = read_within(silent, CAP, SHORT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("0.05 s"), "{error}");

        let (slow, mut writer) = io::pipe().unwrap();
        writer.write_all(b"the beginning").unwrap();
        let beginning = read_within(slow, CAP, SHORT).unwrap();
        assert_eq!(beginning.bytes, b"the beginning");
        assert!(!beginning.ended);
    }

    #[test]
    fn what_has_nothing_now_is_not_waited_for_either() {
        struct Nothing(bool);
        impl Read for Nothing {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if std::mem::take(&mut self.0) {
                    buffer[0] = b'x';
                    return Ok(1);
                }
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
        let some = read_within(Nothing(true), CAP, LONG).unwrap();
        assert_eq!((some.bytes.as_slice(), some.ended), (&b"x"[..], false));
        let none = read_within(Nothing(false), CAP, LONG).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::TimedOut);
    }
}
