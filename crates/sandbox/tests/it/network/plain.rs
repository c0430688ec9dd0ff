//! Requests in absolute form.

use std::sync::{Arc, Mutex};

use haft_sandbox::network::{
    AllowedAddresses, GateFuture, GateRequest, GateVerdict, NetworkGate, ProxyLimits,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::rig::{Canned, Rig, Server, expect, read_all};

/// Lets everything through to this machine, and keeps what it was asked.
#[derive(Default)]
struct Open(Mutex<Vec<GateRequest>>);

impl NetworkGate for Open {
    fn decide(&self, request: GateRequest) -> GateFuture<'_, GateVerdict> {
        self.0.lock().unwrap().push(request);
        let verdict = GateVerdict::Allow {
            because: "everything is allowed".to_owned(),
            reach: AllowedAddresses::public().with([[127, 0, 0, 1].into()]),
        };
        Box::pin(async { verdict })
    }
}

fn open() -> (Rig, Arc<Open>) {
    let gate = Arc::new(Open::default());
    let names: &[(&str, &[&[&str]])] = &[("app.test", &[&["127.0.0.1"]])];
    (Rig::with(gate.clone(), names, ProxyLimits::default()), gate)
}

#[tokio::test]
async fn a_request_is_passed_on_with_the_judged_host() {
    let mut server = Canned::new(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\
         Keep-Alive: timeout=5\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\nhiHTTP/1.1 200 smuggled",
    )
    .await;
    let (rig, gate) = open();
    let port = server.port;
    let answer = rig
        .send(format!(
            "GET http://App.Test:{port}/a?b=c HTTP/1.1\r\nHost: evil.com\r\nAccept: */*\r\n\
             Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\nConnection: X-Mine\r\n\
             X-Mine: 1\r\nUpgrade: h2c\r\nTE: trailers\r\n\r\n"
        ))
        .await;
    assert_eq!(
        answer,
        "HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 2\r\n\
         connection: close\r\n\r\nhi"
    );
    assert_eq!(
        server.request().await,
        format!(
            "GET /a?b=c HTTP/1.1\r\nhost: app.test:{port}\r\naccept: */*\r\nconnection: close\r\n\r\n"
        )
    );
    let asked = gate.0.lock().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].host.to_string(), "app.test");
    assert_eq!(asked[0].method.as_deref(), Some("GET"));
    let url = format!("http://app.test:{port}/a?b=c");
    assert_eq!(asked[0].url.as_deref(), Some(url.as_str()));
}

#[tokio::test]
async fn bodies_end_where_they_say() {
    let (rig, _) = open();
    let cases = [
        (
            "Content-Length: 4\r\n",
            "body",
            "content-length: 4\r\n",
            "body",
        ),
        ("Content-Length: 0\r\n", "", "content-length: 0\r\n", ""),
        (
            "Transfer-Encoding: chunked\r\nTrailer: X\r\n",
            "4;a=b\r\nbody\r\n0\r\nX: y\r\n\r\n",
            "transfer-encoding: chunked\r\n",
            "4\r\nbody\r\n0\r\n\r\n",
        ),
    ];
    for (fields, body, passed_fields, passed_body) in cases {
        let mut server = Canned::new("HTTP/1.1 204 No Content\r\n\r\n").await;
        let port = server.port;
        let answer = rig
            .send(format!(
                "POST http://127.0.0.1:{port}/ HTTP/1.1\r\n{fields}\r\n{body}DELETE / HTTP/1.1\r\n\r\n"
            ))
            .await;
        assert_eq!(
            answer,
            "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"
        );
        let request = server.request().await;
        let head = format!("POST / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n");
        // The answer may be there before all of the body was sent.
        let whole = format!("{head}{passed_fields}connection: close\r\n\r\n{passed_body}");
        assert!(whole.starts_with(&request), "{request:?}");
        assert!(request.starts_with(&head), "{request:?}");
    }
}

#[tokio::test]
async fn a_body_arrives_whole() {
    let server = Server::new().await;
    let (rig, _) = open();
    let mut client = rig.connect().await;
    let head = format!(
        "PUT http://127.0.0.1:{}/ HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.port
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let mut server = server.accept().await;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        server.read_buf(&mut request).await.unwrap();
    }
    server
        .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
        .await
        .unwrap();
    expect(&mut client, b"HTTP/1.1 100 Continue\r\n\r\n").await;
    client.write_all(b"5\r\nwhole\r\n0\r\n\r\n").await.unwrap();
    expect(&mut server, b"5\r\nwhole\r\n0\r\n\r\n").await;
    // The client says that it is done; the server still has something to say, and keeps the
    // connection open after that.
    client.shutdown().await.unwrap();
    let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    server.write_all(answer).await.unwrap();
    assert_eq!(
        read_all(&mut client).await,
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    );
    assert_eq!(read_all(&mut server).await, "", "the server sees the end");
}

#[tokio::test]
async fn answers_without_a_body_or_a_length_are_framed() {
    let (rig, _) = open();
    let cases = [
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnot for you",
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\n",
        ),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nnot for you",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\nconnection: close\r\n\r\n",
        ),
        (
            "GET",
            "HTTP/1.0 200 OK\r\n\r\nuntil the end",
            "HTTP/1.0 200 OK\r\nconnection: close\r\n\r\nuntil the end",
        ),
        (
            "GET",
            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
            "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\
             connection: close\r\n\r\na",
        ),
    ];
    for (method, answer, expected) in cases {
        let server = Canned::new(answer).await;
        let got = rig
            .send(format!(
                "{method} http://127.0.0.1:{}/ HTTP/1.1\r\n\r\n",
                server.port
            ))
            .await;
        assert_eq!(got, expected);
    }
}

#[tokio::test]
async fn answers_that_can_be_read_in_two_ways_are_not_passed_on() {
    let (rig, _) = open();
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\nContent-Length: 1\n\na",
        "HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        "SSH-2.0-x\r\n",
        "",
    ] {
        let server = Canned::new(answer).await;
        let got = rig
            .send(format!(
                "GET http://127.0.0.1:{}/ HTTP/1.1\r\n\r\n",
                server.port
            ))
            .await;
        assert!(
            got.starts_with("HTTP/1.1 502 Bad Gateway\r\n"),
            "{answer:?} {got}"
        );
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_does_not_look_whole() {
    let (rig, _) = open();
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let server = Canned::new(answer).await;
        let mut client = rig.connect().await;
        let head = format!("GET http://127.0.0.1:{}/ HTTP/1.1\r\n\r\n", server.port);
        client.write_all(head.as_bytes()).await.unwrap();
        let error = client.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    // The same for what the client sends: the server never sees the end of it.
    let server = Server::new().await;
    let mut client = rig.connect().await;
    let head = format!(
        "POST http://127.0.0.1:{}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nZ\r\n",
        server.port
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let request = read_all(&mut server.accept().await).await;
    assert!(request.ends_with("\r\n\r\n3\r\nabc\r\n"), "{request:?}");
}

/// CVE-2026-54316: a host that may be read is not a host that may be written to.
#[tokio::test]
async fn rules_alone_let_only_reading_methods_through() {
    let mut server = Canned::new("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let port = server.port;
    let rig = Rig::new(&[&format!("127.0.0.1:{port}")], &[]);
    for (method, status) in [
        ("GET", "200 OK"),
        ("HEAD", "200 OK"),
        ("POST", "403 Forbidden"),
        ("PUT", "403 Forbidden"),
        ("DELETE", "403 Forbidden"),
        ("OPTIONS", "403 Forbidden"),
        ("TRACE", "403 Forbidden"),
        ("get", "403 Forbidden"),
    ] {
        let answer = rig
            .send(format!(
                "{method} http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n"
            ))
            .await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{method} {answer}"
        );
    }
    assert!(server.request().await.starts_with("GET / "));
    assert!(server.request().await.starts_with("HEAD / "));
    assert!(server.is_idle());
}
