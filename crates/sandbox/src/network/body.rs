//! Bodies of HTTP/1 messages, forwarded to their end and not a byte further.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use super::{
    head::{is_control, read_fields},
    idle::IdleClock,
    line::{ReadError, read_line},
};

/// The framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpBodyFraming {
    Empty,
    Length(u64),
    Chunked,
    UntilClose,
}

/// The side that failed.
#[derive(Debug)]
pub(super) enum CopyError {
    Read(ReadError),
    Write,
}

impl From<ReadError> for CopyError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl HttpBodyFraming {
    /// Forwards the body. Encodes chunks again, without extensions and trailer fields, so that the
    /// receiver parses them exactly as this proxy did. `line` is the maximum total length of the lines
    /// between chunks.
    pub(super) async fn copy(
        self,
        reader: &mut (impl AsyncBufRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
        line: usize,
        pulse: &IdleClock,
    ) -> Result<(), CopyError> {
        match self {
            Self::Empty => Ok(()),
            Self::Length(length) => copy_bytes(reader, writer, length, pulse).await,
            Self::Chunked => copy_chunks(reader, writer, line, pulse).await,
            Self::UntilClose => {
                while copy_some(reader, writer, u64::MAX, pulse).await? > 0 {}
                Ok(())
            }
        }
    }
}

async fn copy_chunks(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    line: usize,
    pulse: &IdleClock,
) -> Result<(), CopyError> {
    loop {
        let mut budget = line;
        let size = chunk_size(&read_line(reader, &mut budget).await?)?;
        if size == 0 {
            read_fields(reader, &mut budget).await?;
            return write(writer, b"0\r\n\r\n").await;
        }
        write(writer, format!("{size:x}\r\n").as_bytes()).await?;
        copy_bytes(reader, writer, size, pulse).await?;
        if !read_line(reader, &mut budget).await?.is_empty() {
            return Err(ReadError::Malformed("a chunk is longer than it says").into());
        }
        write(writer, b"\r\n").await?;
    }
}

fn chunk_size(line: &[u8]) -> Result<u64, ReadError> {
    const BAD: ReadError = ReadError::Malformed("the size of a chunk is not a number");
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit());
    let (digits, extension) = line.split_at(end.unwrap_or(line.len()));
    let extended = extension.is_empty() || extension.trim_ascii_start().starts_with(b";");
    // A `u64` has at most 16 hexadecimal digits.
    if digits.is_empty() || digits.len() > 16 || !extended {
        return Err(BAD);
    }
    if extension.iter().any(|byte| is_control(*byte)) {
        return Err(BAD);
    }
    let digits = str::from_utf8(digits).map_err(|_| BAD)?;
    u64::from_str_radix(digits, 16).map_err(|_| BAD)
}

async fn copy_bytes(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    mut left: u64,
    pulse: &IdleClock,
) -> Result<(), CopyError> {
    while left > 0 {
        match copy_some(reader, writer, left, pulse).await? {
            0 => return Err(ReadError::Closed.into()),
            copied => left -= copied,
        }
    }
    Ok(())
}

/// Forwards the bytes that are available, or waits for some. Returns their number: 0 at the end.
pub(super) async fn copy_some(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    most: u64,
    pulse: &IdleClock,
) -> Result<u64, CopyError> {
    let buffer = reader.fill_buf().await.map_err(ReadError::Io)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let taken = buffer.len().min(most);
    write(writer, &buffer[..taken]).await?;
    reader.consume(taken);
    pulse.reset();
    Ok(taken as u64)
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), CopyError> {
    writer.write_all(bytes).await.map_err(|_| CopyError::Write)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt, BufReader};

    use super::*;

    /// What was passed on, what was left unread, and how it ended.
    async fn copied(
        body: HttpBodyFraming,
        input: &[u8],
    ) -> (Vec<u8>, Vec<u8>, Result<(), CopyError>) {
        let (mut output, mut reader) = (Vec::new(), input);
        let result = body
            .copy(&mut reader, &mut output, 1000, &IdleClock::default())
            .await;
        (output, reader.to_vec(), result)
    }

    #[tokio::test]
    async fn a_body_ends_where_it_says() {
        let chunks = b"3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET /";
        let written: &[u8] = b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n";
        type Bytes = &'static [u8];
        let cases: [(HttpBodyFraming, Bytes, Bytes, Bytes); 5] = [
            (HttpBodyFraming::Empty, b"GET /", b"", b"GET /"),
            (HttpBodyFraming::Length(3), b"abcGET /", b"abc", b"GET /"),
            (HttpBodyFraming::Chunked, chunks, written, b"GET /"),
            (HttpBodyFraming::Chunked, b"0\r\n\r\nx", b"0\r\n\r\n", b"x"),
            (HttpBodyFraming::UntilClose, b"abc", b"abc", b""),
        ];
        for (body, input, expected, rest) in cases {
            let (output, left, result) = copied(body, input).await;
            result.unwrap();
            assert_eq!((output, left), (expected.to_vec(), rest.to_vec()));
        }
    }

    #[tokio::test]
    async fn a_body_that_breaks_its_word_is_never_ended() {
        let cases: [(HttpBodyFraming, &[u8]); 15] = [
            (HttpBodyFraming::Length(4), b"abc"),
            (HttpBodyFraming::Chunked, b""),
            (HttpBodyFraming::Chunked, b"\r\n"),
            (HttpBodyFraming::Chunked, b"3\r\nab"),
            (HttpBodyFraming::Chunked, b"3\r\nabcd\r\n0\r\n\r\n"),
            (HttpBodyFraming::Chunked, b"3\nabc\r\n0\r\n\r\n"),
            (HttpBodyFraming::Chunked, b"3\r\nabc\n0\r\n\r\n"),
            (HttpBodyFraming::Chunked, b"0\r\n"),
            (HttpBodyFraming::Chunked, b"0\r\n folded: x\r\n\r\n"),
            (HttpBodyFraming::Chunked, b"0x3\r\nabc\r\n0\r\n\r\n"),
            (HttpBodyFraming::Chunked, b"+3\r\nabc\r\n0\r\n\r\n"),
            (HttpBodyFraming::Chunked, b" 3\r\nabc\r\n0\r\n\r\n"),
            (HttpBodyFraming::Chunked, b"3 x\r\nabc\r\n0\r\n\r\n"),
            (HttpBodyFraming::Chunked, b"3;\x01\r\nabc\r\n0\r\n\r\n"),
            (HttpBodyFraming::Chunked, b"10000000000000000\r\nabc"),
        ];
        for (body, input) in cases {
            let (output, _, result) = copied(body, input).await;
            let text = input.escape_ascii();
            assert!(matches!(result, Err(CopyError::Read(_))), "{text}");
            assert!(!output.ends_with(b"0\r\n\r\n"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_the_same_in_pieces(
            input in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..60),
                "([0-3a]{1,2}(;x)?(\r\n|\n)[a-c]{0,3}(\r\n)?){0,4}(0\r\n\r\n)?".prop_map(String::into_bytes),
            ],
            capacity in 1..8usize,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let (whole, left, result) = copied(HttpBodyFraming::Chunked, &input).await;
                let mut pieces = BufReader::with_capacity(capacity, input.as_slice());
                let mut output = Vec::new();
                let again = HttpBodyFraming::Chunked
                    .copy(&mut pieces, &mut output, 1000, &IdleClock::default())
                    .await;
                prop_assert_eq!(result.is_ok(), again.is_ok());
                prop_assert_eq!(whole, output);
                let mut rest = Vec::new();
                pieces.read_to_end(&mut rest).await.unwrap();
                if again.is_ok() {
                    prop_assert_eq!(left, rest);
                }
                Ok(())
            })?;
        }
    }
}
