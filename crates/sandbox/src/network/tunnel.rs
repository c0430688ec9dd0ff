//! Bytes both ways, until both ways have ended.

use std::{
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::{
    io::{AsyncBufRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpStream, tcp::WriteHalf},
};

use super::{
    body::{CopyError, copy_some},
    end::End,
};

/// Joins client and server. When one says that it has sent everything, the other is told, and may go
/// on sending: for as long as it likes, if it is never silent for longer than `silence`.
pub(super) async fn join(
    from_client: &mut (impl AsyncBufRead + Unpin),
    to_client: &mut WriteHalf<'_>,
    server: &mut TcpStream,
    silence: Duration,
) -> End {
    let (from_server, mut to_server) = server.split();
    let mut from_server = BufReader::new(from_server);
    let moved = AtomicU64::new(0);
    let mut up = pin!(pump(from_client, &mut to_server, &moved));
    let mut down = pin!(pump(&mut from_server, to_client, &moved));
    let (first, up_is_left) = tokio::select! {
        result = &mut up => (result, false),
        result = &mut down => (result, true),
    };
    if first.is_err() {
        return End::Broken;
    }
    let mut before = moved.load(Ordering::Relaxed);
    loop {
        let pause = tokio::time::sleep(silence);
        let second = if up_is_left {
            tokio::select! { result = &mut up => Some(result), () = pause => None }
        } else {
            tokio::select! { result = &mut down => Some(result), () = pause => None }
        };
        let now = moved.load(Ordering::Relaxed);
        match second {
            Some(Ok(())) => return End::Whole,
            None if now != before => before = now,
            _ => return End::Broken,
        }
    }
}

async fn pump(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    moved: &AtomicU64,
) -> Result<(), CopyError> {
    loop {
        match copy_some(reader, writer, u64::MAX).await? {
            0 => break,
            copied => moved.fetch_add(copied, Ordering::Relaxed),
        };
    }
    writer.shutdown().await.map_err(|_| CopyError::Write)
}
