//! WebSockets that only receive messages (RFC 6455). The HTTP client does the handshake; the frames
//! are parsed here.
//!
//! Only pongs and the closing frame are ever sent. A WebSocket crate is not used: it would add a
//! second HTTP parser and a second SHA-1 implementation to replace little code. The connection goes
//! to addresses that were checked before, without a proxy and without redirects.

use std::time::Duration;

use data_encoding::BASE64;
use haft_contract::{
    BoxFuture, WebSocketConnector, WebSocketMessage, WebSocketMessages, WebSocketRequest,
};
use reqwest::{Client, StatusCode, Url, header::HeaderMap, redirect};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream},
    time::timeout,
};

use super::root;

/// The timeout for connecting and for the handshake.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout for sending a pong.
const PONG: Duration = Duration::from_secs(10);
/// The constant of RFC 6455 that a server hashes together with our key.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Opens WebSockets.
#[derive(Debug, Clone, Copy, Default)]
pub struct WebSockets;

impl WebSocketConnector for WebSockets {
    fn open(
        &self,
        request: WebSocketRequest,
    ) -> BoxFuture<'_, Result<Box<dyn WebSocketMessages>, String>> {
        Box::pin(async move {
            let opened = timeout(TIMEOUT, open(request)).await;
            opened.unwrap_or_else(|_| {
                Err(format!("it did not answer within {} s", TIMEOUT.as_secs()))
            })
        })
    }
}

async fn open(request: WebSocketRequest) -> Result<Box<dyn WebSocketMessages>, String> {
    let scheme = if request.is_secure { "https" } else { "http" };
    let written = format!(
        "{scheme}://{}:{}{}",
        request.host, request.port, request.path
    );
    let url = Url::parse(&written).map_err(|error| format!("{written:?}: {error}"))?;
    // The URL parser must see the same host and port that were checked.
    let same = url.host_str().is_some_and(|host| host == request.host)
        && url.port_or_known_default() == Some(request.port);
    if !same {
        return Err(format!(
            "{written:?} does not have the host and port that were checked"
        ));
    }
    let key = key()?;
    let mut asked = client(&request)?
        .get(url)
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", &key);
    if !request.protocols.is_empty() {
        asked = asked.header("Sec-WebSocket-Protocol", request.protocols.join(", "));
    }
    let unreachable =
        |error: reqwest::Error| format!("it cannot be reached: {}", root(&error.without_url()));
    let answer = asked.send().await.map_err(unreachable)?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!(
            "it answers {} instead of opening a WebSocket",
            answer.status()
        ));
    }
    check(answer.headers(), &key, &request.protocols)?;
    let upgraded = answer.upgrade().await.map_err(unreachable)?;
    Ok(Box::new(WebSocketFrames::new(upgraded, request.longest)))
}

fn client(request: &WebSocketRequest) -> Result<Client, String> {
    // Fails only if a TLS crypto provider is already installed; then that one is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let host = request.host.trim_matches(['[', ']']);
    let mut builder = Client::builder()
        .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(TIMEOUT)
        .tcp_keepalive(Duration::from_secs(30))
        .http1_only()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .resolve_to_addrs(host, &request.addresses);
    if !request.is_secure {
        builder = builder.tls_certs_only([]);
    }
    builder
        .build()
        .map_err(|error| format!("TLS cannot be set up: {}", root(&error)))
}

fn key() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::getrandom(&mut bytes).map_err(|error| error.to_string())?;
    Ok(BASE64.encode(&bytes))
}

/// Checks that the response accepts our handshake.
fn check(headers: &HeaderMap, key: &str, protocols: &[String]) -> Result<(), String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let has = |name: &str, word: &str| {
        header(name).is_some_and(|value| {
            let mut words = value.split(',');
            words.any(|one| one.trim().eq_ignore_ascii_case(word))
        })
    };
    let answer = ring::digest::digest(
        &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}{MAGIC}").as_bytes(),
    );
    let is_answer = header("sec-websocket-accept") == Some(&*BASE64.encode(answer.as_ref()));
    if !has("upgrade", "websocket") || !has("connection", "upgrade") || !is_answer {
        return Err("its answer is not that of a WebSocket".to_owned());
    }
    if headers.contains_key("sec-websocket-extensions") {
        return Err("it uses extensions that it was not offered".to_owned());
    }
    match header("sec-websocket-protocol") {
        Some(chosen) if !protocols.iter().any(|offered| offered == chosen) => {
            Err("it chose a subprotocol that it was not offered".to_owned())
        }
        _ => Ok(()),
    }
}

/// The frames of an open connection.
struct WebSocketFrames<S> {
    stream: BufStream<S>,
    longest: usize,
    is_over: bool,
}

/// The header of a frame.
struct FrameHead {
    is_last: bool,
    kind: u8,
    length: usize,
}

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG_KIND: u8 = 10;
/// The bit that marks control frames, which may appear between the parts of a message.
const CONTROL: u8 = 8;
/// The maximum length of a control frame in bytes.
const MAX_CONTROL: usize = 125;

impl<S: AsyncRead + AsyncWrite + Send + Unpin> WebSocketFrames<S> {
    fn new(stream: S, longest: usize) -> Self {
        Self {
            stream: BufStream::new(stream),
            longest,
            is_over: false,
        }
    }

    async fn message(&mut self) -> Result<Option<WebSocketMessage>, String> {
        let mut kind = None;
        let mut bytes = Vec::new();
        loop {
            let Some(head) = self.head().await? else {
                return Ok(None);
            };
            if head.kind & CONTROL != 0 {
                if self.control(&head).await? {
                    return Ok(None);
                }
                continue;
            }
            match (kind, head.kind) {
                (None, TEXT | BINARY) => kind = Some(head.kind),
                (Some(_), CONTINUATION) => {}
                _ => return Err("its frames are out of order".to_owned()),
            }
            if head.length > self.longest.saturating_sub(bytes.len()) {
                return Err(format!(
                    "it sent a message of more than {} bytes",
                    self.longest
                ));
            }
            let from = bytes.len();
            bytes.resize(from + head.length, 0);
            self.stream
                .read_exact(&mut bytes[from..])
                .await
                .map_err(lost)?;
            if head.is_last {
                break;
            }
        }
        match kind {
            Some(TEXT) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Some(WebSocketMessage::Text(text))),
                Err(_) => Err("it sent a text that is not UTF-8".to_owned()),
            },
            _ => Ok(Some(WebSocketMessage::Binary(bytes.len()))),
        }
    }

    /// Reads the header of the next frame. Returns `None` if the connection ended between two
    /// frames.
    async fn head(&mut self) -> Result<Option<FrameHead>, String> {
        let mut start = [0; 2];
        match self.stream.read(&mut start[..1]).await.map_err(lost)? {
            0 => return Ok(None),
            _ => self
                .stream
                .read_exact(&mut start[1..])
                .await
                .map_err(lost)?,
        };
        let [first, second] = start;
        let head = FrameHead {
            is_last: first & 0x80 != 0,
            kind: first & 0x0f,
            length: match second & 0x7f {
                126 => usize::from(self.stream.read_u16().await.map_err(lost)?),
                127 => {
                    let length = self.stream.read_u64().await.map_err(lost)?;
                    usize::try_from(length).unwrap_or(usize::MAX)
                }
                short => usize::from(short),
            },
        };
        if first & 0x70 != 0 || second & 0x80 != 0 {
            return Err("its frames are not those of a server".to_owned());
        }
        let is_control = head.kind & CONTROL != 0;
        if is_control && (!head.is_last || head.length > MAX_CONTROL) {
            return Err("its frames are not those of a server".to_owned());
        }
        Ok(Some(head))
    }

    /// Handles a control frame. Returns `true` if it closes the connection.
    async fn control(&mut self, head: &FrameHead) -> Result<bool, String> {
        let mut bytes = vec![0; head.length];
        self.stream.read_exact(&mut bytes).await.map_err(lost)?;
        match head.kind {
            PING => self.send(PONG_KIND, &bytes).await.map(|()| false),
            PONG_KIND => Ok(false),
            CLOSE => {
                // The server may have disconnected already.
                let _ = self.send(CLOSE, bytes.get(..2).unwrap_or_default()).await;
                Ok(true)
            }
            _ => Err("its frames are of an unknown kind".to_owned()),
        }
    }

    /// Sends a short frame, masked as the protocol requires of clients.
    async fn send(&mut self, kind: u8, bytes: &[u8]) -> Result<(), String> {
        let mut mask = [0; 4];
        getrandom::getrandom(&mut mask).map_err(|error| error.to_string())?;
        let length = u8::try_from(bytes.len()).unwrap_or_default() & 0x7f;
        let mut frame = vec![0x80 | kind, 0x80 | length];
        frame.extend_from_slice(&mask);
        frame.extend(
            bytes
                .iter()
                .zip(mask.iter().cycle())
                .map(|(byte, mask)| byte ^ mask),
        );
        let sending = async {
            self.stream.write_all(&frame).await?;
            self.stream.flush().await
        };
        match timeout(PONG, sending).await {
            Ok(sent) => sent.map_err(lost),
            Err(_) => Err("it does not take answers".to_owned()),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> WebSocketMessages for WebSocketFrames<S> {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<WebSocketMessage>, String>> {
        Box::pin(async move {
            if self.is_over {
                return Ok(None);
            }
            let message = self.message().await;
            self.is_over = !matches!(message, Ok(Some(_)));
            message
        })
    }
}

fn lost(error: std::io::Error) -> String {
    format!("the connection was lost: {}", error.kind())
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    const MAX_LENGTH: usize = 1 << 20;

    /// What a client makes of what a server sends, and what the client sends then.
    async fn heard(sent: &[u8]) -> (Vec<WebSocketMessage>, Result<(), String>, Vec<u8>) {
        let (ours, mut server) = duplex(4 << 20);
        server.write_all(sent).await.unwrap();
        server.shutdown().await.unwrap();
        let mut frames = WebSocketFrames::new(ours, MAX_LENGTH);
        let mut messages = Vec::new();
        let end = loop {
            match frames.next().await {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break Ok(()),
                Err(why) => break Err(why),
            }
        };
        assert_eq!(frames.next().await, Ok(None), "it is over");
        drop(frames);
        let mut said = Vec::new();
        server.read_to_end(&mut said).await.unwrap();
        (messages, end, said)
    }

    fn text(words: &str) -> WebSocketMessage {
        WebSocketMessage::Text(words.to_owned())
    }

    #[tokio::test]
    async fn messages_are_read_whole_or_in_parts() {
        let long = [&[0x81, 126, 1, 0][..], &[b'x'; 256]].concat();
        let cases: [(&str, &[u8], Vec<WebSocketMessage>); 6] = [
            ("nothing", b"", vec![]),
            ("a text", b"\x81\x02hi", vec![text("hi")]),
            ("an empty one", b"\x81\x00", vec![text("")]),
            (
                "bytes",
                b"\x82\x03\0\xff\0",
                vec![WebSocketMessage::Binary(3)],
            ),
            (
                "parts, with a ping between",
                b"\x01\x01h\x89\x01p\x80\x01i",
                vec![text("hi")],
            ),
            ("a longer one", &long, vec![text(&"x".repeat(256))]),
        ];
        for (what, sent, expected) in cases {
            let (messages, end, _) = heard(sent).await;
            assert_eq!((messages, end), (expected, Ok(())), "{what}");
        }
    }

    #[tokio::test]
    async fn pings_and_the_end_are_answered_masked() {
        let (messages, end, said) = heard(b"\x89\x02pi\x81\x01a\x88\x02\x03\xe8\x81\x01b").await;
        assert_eq!(
            (messages, end),
            (vec![text("a")], Ok(())),
            "nothing after the end"
        );
        assert_eq!(said.len(), 8 + 8);
        let unmasked = |frame: &[u8]| -> Vec<u8> {
            let (mask, bytes) = frame[2..].split_at(4);
            bytes
                .iter()
                .zip(mask)
                .map(|(byte, mask)| byte ^ mask)
                .collect()
        };
        assert_eq!(said[..2], [0x8a, 0x82]);
        assert_eq!(unmasked(&said[..8]), b"pi");
        assert_eq!(said[8..10], [0x88, 0x82]);
        assert_eq!(unmasked(&said[8..]), [0x03, 0xe8]);
    }

    #[tokio::test]
    async fn a_server_that_lies_is_left() {
        let huge = [&[0x82, 127][..], &u64::MAX.to_be_bytes()].concat();
        let too_long = [&[0x81, 127][..], &(MAX_LENGTH as u64 + 1).to_be_bytes()].concat();
        let parts = [
            &[0x01, 127][..],
            &(MAX_LENGTH as u64).to_be_bytes(),
            &vec![b'x'; MAX_LENGTH],
            b"\x80\x01x",
        ]
        .concat();
        let cases: [(&str, &[u8], &str); 12] = [
            ("longer than anything", &huge, "more than 1048576 bytes"),
            ("longer than may be", &too_long, "more than 1048576 bytes"),
            (
                "longer than may be, in parts",
                &parts,
                "more than 1048576 bytes",
            ),
            ("masked", b"\x81\x82abcdhi", "not those of a server"),
            ("reserved bits", b"\xc1\x02hi", "not those of a server"),
            ("a long ping", b"\x89\x7e\0\x7e", "not those of a server"),
            ("a ping in parts", b"\x09\x01p", "not those of a server"),
            ("an unknown kind", b"\x8b\x00", "unknown kind"),
            ("no beginning", b"\x80\x01x", "out of order"),
            ("two beginnings", b"\x01\x01x\x81\x01y", "out of order"),
            ("no text", b"\x81\x02\xff\xfe", "text that is not UTF-8"),
            ("cut off", b"\x81\x05hi", "connection was lost"),
        ];
        for (what, sent, why) in cases {
            let (messages, end, _) = heard(sent).await;
            assert!(messages.is_empty(), "{what}");
            assert!(
                end.as_ref().is_err_and(|end| end.contains(why)),
                "{what}: {end:?}"
            );
        }
    }

    #[test]
    fn the_answer_must_be_to_our_key() {
        let headers = |pairs: &[(&'static str, &str)]| {
            let pairs = pairs.iter();
            let pairs = pairs.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            pairs.collect::<HeaderMap>()
        };
        // The example of the RFC.
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let good = [
            ("upgrade", "WebSocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        ];
        assert_eq!(check(&headers(&good), key, &[]), Ok(()));
        assert!(check(&headers(&good[..2]), key, &[]).is_err());
        assert!(check(&headers(&good[1..]), key, &[]).is_err());
        assert!(check(&headers(&good), "dGhlIHNhbXBsZSBub25jZR==", &[]).is_err());
        let with = |name, value| headers(&[&good[..], &[(name, value)]].concat());
        let chosen = with("sec-websocket-protocol", "chat");
        assert_eq!(check(&chosen, key, &["chat".to_owned()]), Ok(()));
        assert!(check(&chosen, key, &[]).is_err());
        assert!(
            check(
                &with("sec-websocket-extensions", "permessage-deflate"),
                key,
                &[]
            )
            .is_err()
        );
    }
}
