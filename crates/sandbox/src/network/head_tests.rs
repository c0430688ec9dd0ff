//! What is a head, and what only looks like one.

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, BufReader};

use super::{
    head::{DeclaredFraming, HttpVersion, RequestHead, RequestTarget, read_request, read_response},
    line::ReadError,
};

async fn request(mut bytes: &[u8]) -> Result<RequestHead, ReadError> {
    read_request(&mut bytes, 4096).await
}

fn plain(host: &str, port: u16, path: &str) -> RequestTarget {
    RequestTarget::Plain {
        host: host.as_bytes().to_vec(),
        port,
        path: path.to_owned(),
    }
}

fn tunnel(host: &str, port: u16) -> RequestTarget {
    let host = host.as_bytes().to_vec();
    RequestTarget::Tunnel { host, port }
}

#[tokio::test]
async fn targets_are_read() {
    let cases = [
        ("GET http://a.com/x?y=z", plain("a.com", 80, "/x?y=z")),
        ("GET HTTP://A.com:8080", plain("A.com", 8080, "/")),
        ("GET http://a.com?q", plain("a.com", 80, "/?q")),
        ("GET http://[::1]:81/", plain("[::1]", 81, "/")),
        (
            "GET http://a.com/http://b.com",
            plain("a.com", 80, "/http://b.com"),
        ),
        // Read as hosts here, refused as hosts later.
        (
            "GET http://evil.com\\.a.com/",
            plain("evil.com\\.a.com", 80, "/"),
        ),
        ("GET http:///x", plain("", 80, "/x")),
        ("CONNECT a.com:443", tunnel("a.com", 443)),
        ("CONNECT [::1]:443", tunnel("[::1]", 443)),
        ("CONNECT a.com/x:443", tunnel("a.com/x", 443)),
    ];
    for (line, expected) in cases {
        let head = request(format!("{line} HTTP/1.1\r\n\r\n").as_bytes()).await;
        assert_eq!(head.unwrap().target, expected, "{line}");
    }
}

#[tokio::test]
async fn what_servers_read_differently_is_refused() {
    let heads: [&[u8]; 36] = [
        b"",
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET http://a.com/\r\n\r\n",
        b"GET http://a.com/ HTTP/0.9\r\n\r\n",
        b"GET http://a.com/ HTTP/2.0\r\n\r\n",
        b"GET http://a.com/ http/1.1\r\n\r\n",
        b"GET  http://a.com/ HTTP/1.1\r\n\r\n",
        b"GET http://a.com/ x HTTP/1.1\r\n\r\n",
        b" GET http://a.com/ HTTP/1.1\r\n\r\n",
        b"GET\thttp://a.com/ HTTP/1.1\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1 \r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\n\n",
        b"GET http://a.com/ HTTP/1.1\r\nA: b\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\n A: b\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nA : b\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\n: b\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nA b\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nA: \0\r\n\r\n",
        b"GET http://a.com/ HTTP/1.1\r\nA: b",
        b"GET http://a.com/ HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
        b"GET http://a.com/\0 HTTP/1.1\r\n\r\n",
        b"GET http://a.com/\xc3\xbc HTTP/1.1\r\n\r\n",
        b"GET http://a.com/#x HTTP/1.1\r\n\r\n",
        b"GET http://u:p@a.com/ HTTP/1.1\r\n\r\n",
        b"GET http://a.com:0/ HTTP/1.1\r\n\r\n",
        b"GET http://a.com:/ HTTP/1.1\r\n\r\n",
        b"GET http://a.com:+80/ HTTP/1.1\r\n\r\n",
        b"GET https://a.com/ HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.com\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\n\r\n",
        b"CONNECT a.com HTTP/1.1\r\n\r\n",
        b"CONNECT http://a.com/ HTTP/1.1\r\n\r\n",
        b"(GET) http://a.com/ HTTP/1.1\r\n\r\n",
    ];
    let long = format!("{} http://a.com/ HTTP/1.1\r\n\r\n", "X".repeat(41));
    for head in heads.into_iter().chain([long.as_bytes()]) {
        let read = request(head).await;
        assert!(read.is_err(), "{} {read:?}", head.escape_ascii());
    }
}

#[tokio::test]
async fn the_length_of_a_body_is_said_once_and_clearly() {
    let http11 = [
        ("", Some(DeclaredFraming::Unsaid)),
        ("Content-Length: 0\r\n", Some(DeclaredFraming::Length(0))),
        (
            "content-length: \t42 \r\n",
            Some(DeclaredFraming::Length(42)),
        ),
        (
            "Transfer-Encoding: Chunked\r\n",
            Some(DeclaredFraming::Chunked),
        ),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", None),
        ("Content-Length: 1\r\nContent-Length: 1\r\n", None),
        ("Content-Length: 1, 1\r\n", None),
        ("Content-Length: +1\r\n", None),
        ("Content-Length: -1\r\n", None),
        ("Content-Length: 0x1\r\n", None),
        ("Content-Length:\r\n", None),
        ("Content-Length: 99999999999999999999\r\n", None),
        ("Transfer-Encoding: gzip, chunked\r\n", None),
        ("Transfer-Encoding: chunked, chunked\r\n", None),
        ("Transfer-Encoding: xchunked\r\n", None),
        ("Transfer-Encoding: identity\r\n", None),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            None,
        ),
    ];
    for (fields, expected) in http11 {
        let head = format!("POST http://a.com/ HTTP/1.1\r\n{fields}\r\n");
        let head = request(head.as_bytes()).await.unwrap();
        let framing = head.fields.framing(head.version).ok();
        assert_eq!(framing, expected, "{fields:?}");
    }
    let head = b"POST http://a.com/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    let head = request(head).await.unwrap();
    assert_eq!(head.version, HttpVersion::Http10);
    assert!(head.fields.framing(head.version).is_err());
}

#[tokio::test]
async fn fields_of_the_connection_are_known() {
    let head = b"GET http://a.com/ HTTP/1.1\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nTE: x\r\nAccept: */*\r\n\r\n";
    let fields = request(head).await.unwrap().fields;
    let passed: Vec<&str> = fields
        .iter()
        .map(|(name, _)| name)
        .filter(|name| !fields.is_of_connection(name))
        .collect();
    assert_eq!(passed, ["accept"]);
}

#[tokio::test]
async fn answers_are_read() {
    let cases = [
        ("HTTP/1.1 200 OK\r\n\r\n", Some((200, "OK"))),
        ("HTTP/1.0 404\r\n\r\n", Some((404, ""))),
        (
            "HTTP/1.1 200 \r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n",
            Some((200, "")),
        ),
        ("HTTP/1.1 2000 OK\r\n\r\n", None),
        ("HTTP/1.1 600 OK\r\n\r\n", None),
        ("HTTP/1.1 +20 OK\r\n\r\n", None),
        ("HTTP/1.1  200 OK\r\n\r\n", None),
        ("HTTP/2 200\r\n\r\n", None),
        ("ICY 200 OK\r\n\r\n", None),
        ("HTTP/1.1 200 OK\n\n", None),
        ("HTTP/1.1 200 O\u{1}K\r\n\r\n", None),
    ];
    for (text, expected) in cases {
        let head = read_response(&mut text.as_bytes(), 4096).await.ok();
        let got = head
            .as_ref()
            .map(|head| (head.status, head.reason.as_str()));
        assert_eq!(got, expected, "{text:?}");
    }
}

#[tokio::test]
async fn a_head_is_bounded() {
    let long = format!("GET http://a.com/{} HTTP/1.1\r\n\r\n", "a".repeat(5000));
    let read = request(long.as_bytes()).await;
    assert!(matches!(read, Err(ReadError::TooLong)), "{read:?}");
    let many = format!("GET http://a.com/ HTTP/1.1\r\n{}\r\n", "a:\r\n".repeat(257));
    let read = request(many.as_bytes()).await;
    assert!(matches!(read, Err(ReadError::TooLong)), "{read:?}");
    // Without an end it does not wait for one.
    let read = request(&[b'a'; 5000]).await;
    assert!(matches!(read, Err(ReadError::TooLong)), "{read:?}");
}

/// Bytes that are nearly a request.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "GET",
        "CONNECT",
        " ",
        "  ",
        "\t",
        "http://",
        "a.com",
        "[::1]",
        ":",
        "80",
        "/",
        "?",
        "@",
        "HTTP/1.1",
        "\r\n",
        "\n",
        "\r",
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "chunked",
        "5",
        "\0",
        "é",
        "HTTP/1.1 200 OK",
    ]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        prop::collection::vec(words.clone(), 0..20).prop_map(|words| words.concat().into_bytes()),
        prop::collection::vec(words, 0..8).prop_map(|words| {
            let words = words.concat();
            format!("GET http://a.com/ HTTP/1.1\r\n{words}\r\n\r\nrest").into_bytes()
        }),
    ]
}

proptest! {
    /// Nothing panics; and wherever the bytes are split, they mean the same.
    #[test]
    fn any_bytes_are_read_the_same_in_pieces(bytes in nearly(), capacity in 1..5usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut whole = bytes.as_slice();
            let expected = read_request(&mut whole, 4096).await.ok();
            for at in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(at);
                let mut pieces = head.chain(tail);
                prop_assert_eq!(&read_request(&mut pieces, 4096).await.ok(), &expected);
                let mut rest = Vec::new();
                pieces.read_to_end(&mut rest).await.unwrap();
                if expected.is_some() {
                    prop_assert_eq!(rest.as_slice(), whole);
                }
            }
            let mut small = BufReader::with_capacity(capacity, bytes.as_slice());
            prop_assert_eq!(&read_request(&mut small, 4096).await.ok(), &expected);
            if let Some(head) = expected {
                drop(head.fields.framing(head.version));
            }
            let answer = read_response(&mut bytes.as_slice(), 4096).await.ok();
            let mut small = BufReader::with_capacity(capacity, bytes.as_slice());
            prop_assert_eq!(read_response(&mut small, 4096).await.ok(), answer);
            Ok(())
        })?;
    }
}
