//! Lines of HTTP, parsed strictly: each ends in CR LF and contains no other CR or LF.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The reason why a message could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the connection ended too early")]
    Closed,
    #[error("it is too long")]
    TooLong,
    #[error("{0}")]
    Malformed(&'static str),
}

/// Returns the next line, without its end. Subtracts its length from `budget`.
pub(super) async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    budget: &mut usize,
) -> Result<Vec<u8>, ReadError> {
    let mut line = Vec::new();
    loop {
        let buffer = reader.fill_buf().await?;
        if buffer.is_empty() {
            return Err(ReadError::Closed);
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(buffer.len(), |end| end + 1);
        *budget = budget.checked_sub(taken).ok_or(ReadError::TooLong)?;
        line.extend_from_slice(&buffer[..taken]);
        reader.consume(taken);
        if end.is_some() {
            break;
        }
    }
    let Some(text) = line.strip_suffix(b"\r\n") else {
        return Err(ReadError::Malformed("a line ends in LF without CR"));
    };
    if text.contains(&b'\r') {
        return Err(ReadError::Malformed("a line has a CR inside"));
    }
    let length = text.len();
    line.truncate(length);
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_ends_in_both_and_has_neither_inside() {
        let cases: [(&[u8], Option<&[u8]>); 9] = [
            (b"a b\r\nrest", Some(b"a b")),
            (b"\r\n", Some(b"")),
            (b"\0\xff\r\n", Some(b"\0\xff")),
            (b"a\n", None),
            (b"\n", None),
            (b"a\r\r\n", None),
            (b"a\rb\r\n", None),
            (b"a\r", None),
            (b"more than ten\r\n", None),
        ];
        for (mut bytes, expected) in cases {
            let line = read_line(&mut bytes, &mut 10).await.ok();
            assert_eq!(line.as_deref(), expected);
        }
    }
}
