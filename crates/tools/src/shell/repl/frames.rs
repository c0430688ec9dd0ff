//! The messages of an interpreter's driver, one JSON object per line.
//!
//! The code that the interpreter runs can send the same messages, or invalid ones. Therefore a
//! message never affects anything outside of this interpreter.

use data_encoding::BASE64;
use haft_sandbox::CommandOutput;
use serde::Deserialize;
use tokio::{io::AsyncReadExt, sync::mpsc};

/// The maximum length of a line, in bytes. The longest lines contain an image.
const MAX_LENGTH: usize = 16 << 20;
/// The maximum length of a value or an error, in characters.
const MAX_TEXT: usize = 45_000;

/// A message of the driver.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DriverFrame {
    /// The driver is ready.
    Ready,
    /// An image of the call that has this nonce.
    Image { nonce: String, bytes: Vec<u8> },
    /// The call has finished.
    Done { nonce: String, done: DriverAnswer },
    /// An invalid message, with the reason.
    Invalid(&'static str),
}

/// The result of the code.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DriverAnswer {
    /// The value of the last expression, as text.
    pub(super) value: Option<String>,
    /// The error, if the code failed.
    pub(super) error: Option<String>,
    /// The code failed because it was interrupted.
    pub(super) interrupted: bool,
    /// The number of images that were omitted because there were too many.
    pub(super) left_out: u64,
}

#[derive(Deserialize)]
struct DriverLine {
    #[serde(default)]
    ready: bool,
    #[serde(default)]
    nonce: String,
    image: Option<String>,
    #[serde(default)]
    done: bool,
    value: Option<String>,
    error: Option<String>,
    #[serde(default)]
    interrupted: bool,
    #[serde(default)]
    left_out: u64,
}

/// Parses lines and passes the messages on, until the end or an invalid message.
pub(super) async fn read_frames(mut output: CommandOutput, to: mpsc::Sender<DriverFrame>) {
    let mut line = Vec::new();
    let mut room = vec![0; 64 << 10];
    loop {
        let read = match output.read(&mut room).await {
            Ok(0) | Err(_) => return,
            Ok(read) => read,
        };
        let mut rest = &room[..read];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let frame = read_line(&line);
            line.clear();
            let is_nonsense = matches!(frame, DriverFrame::Invalid(_));
            if to.send(frame).await.is_err() || is_nonsense {
                return;
            }
        }
        line.extend_from_slice(rest);
        if line.len() > MAX_LENGTH {
            let _ = to.send(DriverFrame::Invalid("an endless line")).await;
            return;
        }
    }
}

fn read_line(line: &[u8]) -> DriverFrame {
    let Ok(line) = serde_json::from_slice::<DriverLine>(line) else {
        return DriverFrame::Invalid("a line that is not an answer");
    };
    let cut = |text: String| match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    };
    if line.ready {
        return DriverFrame::Ready;
    }
    if let Some(image) = line.image {
        return match BASE64.decode(image.as_bytes()) {
            Ok(bytes) => DriverFrame::Image {
                nonce: line.nonce,
                bytes,
            },
            Err(_) => DriverFrame::Invalid("an image that cannot be decoded"),
        };
    }
    match line.done {
        true => DriverFrame::Done {
            nonce: line.nonce,
            done: DriverAnswer {
                value: line.value.map(cut),
                error: line.error.map(cut),
                interrupted: line.interrupted,
                left_out: line.left_out,
            },
        },
        false => DriverFrame::Invalid("a line without content"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_answer_is_nonsense() {
        let odd: [&[u8]; 7] = [
            b"",
            b"{}",
            b"[]",
            b"{\"image\": \"not base64!\"}",
            b"{\"done\": 7}",
            b"\xff\xff",
            b"{\"done\": true, \"value\": {}}",
        ];
        for line in odd {
            let frame = read_line(line);
            assert!(matches!(frame, DriverFrame::Invalid(_)), "{line:?}");
        }
        assert_eq!(read_line(b"{\"ready\": true}"), DriverFrame::Ready);
        let done = read_line(b"{\"nonce\": \"n\", \"done\": true, \"value\": \"4\", \"more\": 1}");
        let expected = DriverFrame::Done {
            nonce: "n".to_owned(),
            done: DriverAnswer {
                value: Some("4".to_owned()),
                ..DriverAnswer::default()
            },
        };
        assert_eq!(done, expected);
    }
}
