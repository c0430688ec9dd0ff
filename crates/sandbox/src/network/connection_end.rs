//! The end of connections.

use std::time::Duration;

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt},
    net::tcp::WriteHalf,
    time::timeout,
};

/// The time for which a client may continue to send after it has received its response.
const GOODBYE: Duration = Duration::from_secs(5);

/// The kind of end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// All data was forwarded.
    Whole,
    /// One side broke off.
    Broken,
}

impl ConnectionEnd {
    /// Closes the client's connection so that the client can distinguish the two: a broken
    /// connection is reset.
    pub(super) async fn close(
        self,
        reader: &mut (impl AsyncBufRead + Unpin),
        writer: &mut WriteHalf<'_>,
    ) {
        match self {
            // This fails only if the connection is already closed.
            Self::Broken => drop(writer.as_ref().set_zero_linger()),
            // Closing the socket while the client still sends would discard the data that was
            // written last.
            Self::Whole => {
                if writer.shutdown().await.is_ok() {
                    drop(timeout(GOODBYE, discard(reader)).await);
                }
            }
        }
    }
}

/// Completes when the client has closed its connection. Never completes after the client has sent
/// more data.
pub(super) async fn wait_client_gone(reader: &mut (impl AsyncBufRead + Unpin)) {
    if matches!(reader.fill_buf().await, Ok(buffer) if !buffer.is_empty()) {
        std::future::pending().await
    }
}

/// Reads to the end and discards the data.
pub(super) async fn discard(reader: &mut (impl AsyncBufRead + Unpin)) {
    while let Ok(buffer) = reader.fill_buf().await
        && !buffer.is_empty()
    {
        let read = buffer.len();
        reader.consume(read);
    }
}
