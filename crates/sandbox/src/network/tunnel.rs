//! Forwarding in both directions, until both have ended.

use std::time::Duration;

use tokio::{
    io::{AsyncBufRead, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::Notify,
};

use super::{
    body::{CopyError, copy_some},
    connection_end::ConnectionEnd,
    idle::IdleClock,
};

/// Connects client and server. When one side closes its sending direction, the other one is
/// notified and may continue to send until the connection is idle for `silence`.
pub(super) async fn join(
    from_client: &mut (impl AsyncBufRead + Unpin),
    to_client: &mut (impl AsyncWrite + Unpin),
    server: impl AsyncRead + AsyncWrite,
    silence: Duration,
) -> ConnectionEnd {
    let (from_server, mut to_server) = tokio::io::split(server);
    let mut from_server = BufReader::new(from_server);
    let (pulse, half_ended) = (IdleClock::default(), Notify::new());
    let both_end = async {
        tokio::try_join!(
            pump(from_client, &mut to_server, &pulse, &half_ended),
            pump(&mut from_server, to_client, &pulse, &half_ended),
        )
    };
    let left_alone = async {
        half_ended.notified().await;
        pulse.stops(silence).await;
    };
    tokio::select! {
        ended = both_end => match ended {
            Ok(_) => ConnectionEnd::Whole,
            Err(_) => ConnectionEnd::Broken,
        },
        () = left_alone => ConnectionEnd::Broken,
    }
}

async fn pump(
    reader: &mut (impl AsyncBufRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    pulse: &IdleClock,
    ended: &Notify,
) -> Result<(), CopyError> {
    while copy_some(reader, writer, u64::MAX, pulse).await? > 0 {}
    ended.notify_one();
    writer.shutdown().await.map_err(|_| CopyError::Write)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, DuplexStream};

    use super::*;

    const SILENCE: Duration = Duration::from_secs(10);

    /// A client and a server, and how their connection ended.
    fn joined() -> (
        DuplexStream,
        DuplexStream,
        tokio::task::JoinHandle<ConnectionEnd>,
    ) {
        let (client, near_client) = tokio::io::duplex(100);
        let (server, near_server) = tokio::io::duplex(100);
        let end = tokio::spawn(async move {
            let (reader, mut writer) = tokio::io::split(near_client);
            join(
                &mut BufReader::new(reader),
                &mut writer,
                near_server,
                SILENCE,
            )
            .await
        });
        (client, server, end)
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_only_what_is_half_open() {
        let (mut client, mut server, end) = joined();
        tokio::time::sleep(100 * SILENCE).await;
        server.write_all(b"still here").await.unwrap();
        client.read_exact(&mut [0; 10]).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
        // What still flows is not cut off, however long it takes.
        for _ in 0..100 {
            tokio::time::sleep(SILENCE / 3).await;
            server.write_all(b"x").await.unwrap();
            assert_eq!(client.read_u8().await.unwrap(), b'x');
        }
        assert!(!end.is_finished());
        tokio::time::sleep(3 * SILENCE).await;
        assert_eq!(end.await.unwrap(), ConnectionEnd::Broken);
    }

    #[tokio::test(start_paused = true)]
    async fn both_ways_end_a_whole_connection() {
        let (mut client, mut server, end) = joined();
        server.shutdown().await.unwrap();
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        client.write_all(b"last").await.unwrap();
        client.shutdown().await.unwrap();
        let mut read = String::new();
        server.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "last");
        assert_eq!(end.await.unwrap(), ConnectionEnd::Whole);
    }
}
