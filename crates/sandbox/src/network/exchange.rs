//! One plain HTTP request and its response.
//!
//! Both are framed again, and both sides are notified that the connection closes afterwards: no
//! second request can bypass the gate.

use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

use super::{
    ProxyLimits,
    body::{CopyError, HttpBodyFraming},
    connection_end::{ConnectionEnd, discard},
    head::{DeclaredFraming, HeaderFields, HttpVersion, RequestHead, ResponseHead, read_response},
    idle::IdleClock,
    line::ReadError,
    proxy_reply::ProxyReply,
};

/// The maximum number of interim (1xx) responses.
const MAX_INTERIM: usize = 16;

/// One plain HTTP request and its response.
pub(super) struct HttpExchange {
    start: Vec<u8>,
    body: HttpBodyFraming,
    version: HttpVersion,
    is_head: bool,
    longest_head: usize,
    silence: Duration,
}

impl HttpExchange {
    /// Creates the exchange for a request with this head to this site (host and port, as in a URL).
    pub(super) fn new(
        head: &RequestHead,
        framing: DeclaredFraming,
        site: &str,
        path: &str,
        limits: &ProxyLimits,
    ) -> Self {
        let (method, version) = (&head.method, head.version.text());
        let first = format!("{method} {path} {version}\r\nhost: {site}\r\n");
        Self {
            start: with_fields(first, &head.fields, framing, true),
            body: match framing {
                DeclaredFraming::Unsaid => HttpBodyFraming::Empty,
                DeclaredFraming::Length(length) => HttpBodyFraming::Length(length),
                DeclaredFraming::Chunked => HttpBodyFraming::Chunked,
            },
            version: head.version,
            is_head: head.method == "HEAD",
            longest_head: limits.head,
            silence: limits.silence,
        }
    }

    /// Sends the request and forwards the response.
    pub(super) async fn run(
        self,
        from_client: &mut (impl AsyncBufRead + Unpin),
        to_client: &mut (impl AsyncWrite + Unpin),
        server: impl AsyncRead + AsyncWrite,
    ) -> Result<ConnectionEnd, ProxyReply> {
        let (from_server, mut to_server) = tokio::io::split(server);
        let mut from_server = BufReader::new(from_server);
        let pulse = IdleClock::default();
        let sending = async {
            // A server that has stopped reading may still respond. If the client breaks off, the server
            // must not treat half a request as a whole one.
            let sent = match to_server.write_all(&self.start).await {
                Ok(()) => {
                    let body = self.body;
                    body.copy(from_client, &mut to_server, self.longest_head, &pulse)
                        .await
                }
                Err(_) => Err(CopyError::Write),
            };
            if let Err(CopyError::Read(error)) = sent {
                return error;
            }
            // Further data is never served: the response announces that the connection closes.
            discard(from_client).await;
            pulse.stops(self.silence).await;
            ReadError::Closed
        };
        tokio::select! {
            biased;
            answered = self.receive(&mut from_server, to_client, &pulse) => answered,
            error = sending => {
                tracing::debug!(%error, "the client broke off");
                Ok(ConnectionEnd::Broken)
            }
        }
    }

    async fn receive(
        &self,
        from_server: &mut (impl AsyncBufRead + Unpin),
        to_client: &mut (impl AsyncWrite + Unpin),
        pulse: &IdleClock,
    ) -> Result<ConnectionEnd, ProxyReply> {
        let mut interim = 0;
        let (head, framing) = loop {
            let head = read_response(from_server, self.longest_head).await;
            let head = head.map_err(|error| ProxyReply::bad_gateway(&error))?;
            let framing = head.fields.framing(head.version);
            let framing = framing.map_err(|error| ProxyReply::bad_gateway(&error))?;
            match head.status {
                // The proxy does not forward the `Upgrade` field, so the server must not change the protocol.
                101 => {
                    let error = ReadError::Malformed("it changes the protocol");
                    return Err(ProxyReply::bad_gateway(&error));
                }
                100..=199 => {
                    interim += 1;
                    if interim > MAX_INTERIM {
                        return Err(ProxyReply::bad_gateway(&ReadError::TooLong));
                    }
                    if self.version == HttpVersion::Http11 {
                        let bytes =
                            with_fields(first(&head), &head.fields, DeclaredFraming::Unsaid, false);
                        if to_client.write_all(&bytes).await.is_err() {
                            return Ok(ConnectionEnd::Broken);
                        }
                    }
                }
                _ => break (head, framing),
            }
        };
        let body = match framing {
            _ if self.is_head || matches!(head.status, 204 | 304) => HttpBodyFraming::Empty,
            DeclaredFraming::Unsaid => HttpBodyFraming::UntilClose,
            DeclaredFraming::Length(length) => HttpBodyFraming::Length(length),
            DeclaredFraming::Chunked => HttpBodyFraming::Chunked,
        };
        let bytes = with_fields(first(&head), &head.fields, framing, true);
        if to_client.write_all(&bytes).await.is_err() {
            return Ok(ConnectionEnd::Broken);
        }
        match body
            .copy(from_server, to_client, self.longest_head, pulse)
            .await
        {
            Ok(()) => Ok(ConnectionEnd::Whole),
            Err(CopyError::Read(error)) => {
                tracing::debug!(%error, "the server broke off");
                Ok(ConnectionEnd::Broken)
            }
            Err(CopyError::Write) => Ok(ConnectionEnd::Broken),
        }
    }
}

fn first(head: &ResponseHead) -> String {
    format!(
        "{} {} {}\r\n",
        head.version.text(),
        head.status,
        head.reason
    )
}

/// Returns a message head: its first lines, the fields that may be forwarded, and those of the
/// proxy.
fn with_fields(
    first: String,
    fields: &HeaderFields,
    framing: DeclaredFraming,
    closes: bool,
) -> Vec<u8> {
    let mut head = first.into_bytes();
    for (name, value) in fields.iter() {
        if name == "host" || fields.is_of_connection(name) {
            continue;
        }
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    match framing {
        DeclaredFraming::Unsaid => {}
        DeclaredFraming::Length(length) => {
            head.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        DeclaredFraming::Chunked => head.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    if closes {
        head.extend_from_slice(b"connection: close\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, DuplexStream};

    use super::*;

    const SILENCE: Duration = Duration::from_secs(10);

    /// A client and a server, a request between them, and how it ended.
    fn started() -> (
        DuplexStream,
        DuplexStream,
        tokio::task::JoinHandle<ConnectionEnd>,
    ) {
        let (client, near_client) = tokio::io::duplex(100);
        let (server, near_server) = tokio::io::duplex(100);
        let end = tokio::spawn(async move {
            let exchange = HttpExchange {
                start: b"GET / HTTP/1.1\r\n\r\n".to_vec(),
                body: HttpBodyFraming::Empty,
                version: HttpVersion::Http11,
                is_head: false,
                longest_head: 1000,
                silence: SILENCE,
            };
            let (reader, mut writer) = tokio::io::split(near_client);
            let mut reader = BufReader::new(reader);
            let run = exchange.run(&mut reader, &mut writer, near_server);
            run.await.unwrap_or(ConnectionEnd::Broken)
        });
        (client, server, end)
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_is_waited_for() {
        let (mut client, mut server, end) = started();
        tokio::time::sleep(100 * SILENCE).await;
        server
            .write_all(b"HTTP/1.1 200 OK\r\n\r\nlate")
            .await
            .unwrap();
        server.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("late"), "{answer}");
        assert_eq!(end.await.unwrap(), ConnectionEnd::Whole);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_gone_is_not_waited_for() {
        let (mut client, mut server, end) = started();
        client.shutdown().await.unwrap();
        server.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        // What still flows is not cut off, however long it takes.
        let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
        client.read_exact(&mut vec![0; head.len()]).await.unwrap();
        for _ in 0..100 {
            tokio::time::sleep(SILENCE / 3).await;
            server.write_all(b"x").await.unwrap();
            assert_eq!(client.read_u8().await.unwrap(), b'x');
        }
        assert!(!end.is_finished());
        tokio::time::sleep(3 * SILENCE).await;
        assert_eq!(end.await.unwrap(), ConnectionEnd::Broken);
    }
}
