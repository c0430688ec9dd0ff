//! How connections end.

use std::time::Duration;

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt},
    net::tcp::WriteHalf,
    time::timeout,
};

/// How long a client that has its answer may go on sending what no one wants.
const GOODBYE: Duration = Duration::from_secs(5);

/// How a connection came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Everything was passed on.
    Whole,
    /// Someone broke off.
    Broken,
}

impl End {
    /// Ends the client's connection so that it can tell the one from the other.
    pub(super) async fn close(
        self,
        reader: &mut (impl AsyncBufRead + Unpin),
        writer: &mut WriteHalf<'_>,
    ) {
        match self {
            // It can fail only if the connection is gone already.
            Self::Broken => drop(writer.as_ref().set_zero_linger()),
            // Closing while the client still sends would throw away what was written last.
            Self::Whole => {
                if writer.shutdown().await.is_ok() {
                    drop(timeout(GOODBYE, discard(reader)).await);
                }
            }
        }
    }
}

/// Returns once the client has left, as far as that can be known: not after it has sent something.
pub(super) async fn gone(reader: &mut (impl AsyncBufRead + Unpin)) {
    if matches!(reader.fill_buf().await, Ok(buffer) if !buffer.is_empty()) {
        std::future::pending().await
    }
}

/// Reads to the end, for nothing.
pub(super) async fn discard(reader: &mut (impl AsyncBufRead + Unpin)) {
    while let Ok(buffer) = reader.fill_buf().await
        && !buffer.is_empty()
    {
        let read = buffer.len();
        reader.consume(read);
    }
}
