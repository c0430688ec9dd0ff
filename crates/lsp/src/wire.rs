//! Frames: a header with `Content-Length`, an empty line, then the given number of bytes of JSON.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// The maximum size of a message in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// The maximum length of a header line in bytes.
const MAX_LINE: u64 = 4096;

/// Encodes a message as a frame.
pub fn frame(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    frame.extend(body.as_bytes());
    frame
}

/// Reads the next message, or returns `None` at the end of the input. After an invalid frame, an
/// error is returned and nothing more can be read.
pub async fn read(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Value>> {
    Ok(read_sized(input).await?.map(|(message, _)| message))
}

/// Like [`read`], but also returns the length in bytes.
pub(crate) async fn read_sized(
    input: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<(Value, usize)>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        let read = (&mut *input)
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)
            .await?;
        if read == 0 {
            return match length {
                None => Ok(None),
                Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        let text = String::from_utf8_lossy(&line);
        let Some(text) = text.strip_suffix('\n') else {
            return Err(invalid_data("a header line is too long"));
        };
        let text = text.trim_end_matches('\r');
        if text.is_empty() {
            break;
        }
        // A line without a colon is not a header, for example a greeting that some servers print.
        let Some((name, value)) = text.split_once(':') else {
            return Err(invalid_data("the server wrote text that is not a message"));
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(
                value
                    .trim()
                    .parse()
                    .map_err(|_| invalid_data("a Content-Length is not a number"))?,
            );
        }
    }
    let length: usize = length.ok_or_else(|| invalid_data("a message has no Content-Length"))?;
    if length > MAX_BYTES {
        return Err(invalid_data("a message is too long"));
    }
    let mut body = Vec::new();
    // The buffer grows with the input: the announced length may never arrive.
    (&mut *input)
        .take(length as u64)
        .read_to_end(&mut body)
        .await?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((serde_json::from_slice(&body)?, length)))
}

fn invalid_data(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    async fn all(bytes: &[u8]) -> (Vec<Value>, Option<String>) {
        let mut input = bytes;
        let mut found = Vec::new();
        loop {
            match read(&mut input).await {
                Ok(Some(message)) => found.push(message),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error.to_string())),
            }
        }
    }

    #[tokio::test]
    async fn messages_follow_each_other() {
        let (one, two) = (json!({"a": "é"}), json!([1]));
        let mut bytes = frame(&one);
        bytes.extend(b"content-type: x\r\nContent-length:  3 \r\n\r\n[1]");
        assert_eq!(all(&bytes).await, (vec![one, two], None));
    }

    #[tokio::test]
    async fn what_is_no_message_is_an_error_and_never_waited_for() {
        for bytes in [
            "Content-Length: 99999999999\r\n\r\n{}",
            "Content-Length: 10\r\n\r\n{}",
            "Content-Length: x\r\n\r\n{}",
            "\r\n{}",
            "hello\r\n\r\n",
            "Content-Length: 2\r\n",
            "Content-Length: 2\r\n\r\n{]",
        ] {
            let (found, error) = all(bytes.as_bytes()).await;
            assert!(found.is_empty() && error.is_some(), "{bytes:?}");
        }
        let long = format!("X: {}", "y".repeat(10_000));
        assert!(all(long.as_bytes()).await.1.is_some());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(all(&bytes));
        }
    }
}
