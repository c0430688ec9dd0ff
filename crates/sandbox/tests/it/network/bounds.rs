//! Limits, and the end of everything.

use std::{
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use haft_sandbox::network::{
    GateFuture, GateRequest, GateVerdict, HostRules, NetworkGate, ProxyLimits, RuleGate,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::rig::{Canned, Rig, Server, expect, read_all, rules};

const REFUSED: &str = "CONNECT evil.com:443 HTTP/1.1\r\n\r\n";

#[tokio::test]
async fn a_client_that_does_not_say_what_it_wants_is_sent_away() {
    let limits = ProxyLimits {
        handshake: Duration::from_secs(1),
        ..ProxyLimits::default()
    };
    let rig = Rig::with(Arc::new(RuleGate::default()), &[], limits);
    let (nothing, http, greeting, socks) = tokio::join!(
        rig.send(b""),
        rig.send(b"GET http://a.com/"),
        rig.send(b"\x05"),
        rig.send(b"\x05\x01\x00\x05\x01"),
    );
    assert_eq!(nothing, "");
    assert!(
        http.starts_with("HTTP/1.1 408 Request Timeout\r\n"),
        "{http}"
    );
    assert_eq!(greeting, "");
    assert_eq!(socks, "\x05\x00");
}

#[tokio::test]
async fn a_head_may_not_be_too_long() {
    let limits = ProxyLimits {
        head: 1000,
        ..ProxyLimits::default()
    };
    let rig = Rig::with(Arc::new(RuleGate::default()), &[], limits);
    let path = "a".repeat(100_000);
    let answer = rig
        .send(format!("GET http://a.com/{path} HTTP/1.1\r\n\r\n"))
        .await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let answer = rig.send(vec![b'a'; 100_000]).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn an_answer_to_a_long_request_is_not_lost() {
    let rig = Rig::new(&[], &[]);
    let mut client = rig.connect().await;
    // More than the sockets hold, so that it must be read.
    let body = vec![b'a'; 30_000_000];
    let head = format!(
        "POST http://evil.com/ HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(&body).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.ends_with("`WebFetch(domain:evil.com)`.\n"),
        "{answer}"
    );
}

/// Never answers, and counts whom it keeps waiting.
#[derive(Default)]
struct Silent {
    waiting: Arc<AtomicUsize>,
    most: AtomicUsize,
}

struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl NetworkGate for Silent {
    fn decide(&self, _: GateRequest) -> GateFuture<'_, GateVerdict> {
        let now = self.waiting.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let waiting = Waiting(Arc::clone(&self.waiting));
        Box::pin(async move {
            let _waiting = waiting;
            std::future::pending().await
        })
    }
}

async fn until(what: impl Fn() -> bool) {
    haft_testkit::until("what the test waits for", what).await;
}

#[tokio::test]
async fn more_connections_than_allowed_wait_their_turn() {
    let server = Server::new().await;
    let rule = format!("127.0.0.1:{}", server.port);
    let limits = ProxyLimits {
        connections: 2,
        ..ProxyLimits::default()
    };
    let rig = Rig::with(Arc::new(RuleGate(rules(&[&rule], &[]))), &[], limits);
    let connect = format!("CONNECT {rule} HTTP/1.1\r\n\r\n");
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = rig.connect().await;
        client.write_all(connect.as_bytes()).await.unwrap();
        expect(&mut client, b"HTTP/1.1 200 Connection established\r\n\r\n").await;
        clients.push((client, server.accept().await));
    }
    let mut third = rig.connect().await;
    third.write_all(REFUSED.as_bytes()).await.unwrap();
    // With both slots taken no one reads it.
    let early = tokio::time::timeout(Duration::from_millis(50), third.read_u8()).await;
    assert!(early.is_err());
    assert_eq!(rig.proxy.log().len(), 2);
    drop(clients.pop());
    assert!(read_all(&mut third).await.contains("403"));
}

#[tokio::test]
async fn everything_ends_with_the_proxy() {
    let server = Server::new().await;
    let rule = format!("127.0.0.1:{}", server.port);
    let rig = Rig::with(
        Arc::new(RuleGate(rules(&[&rule], &[]))),
        &[],
        ProxyLimits::default(),
    );
    let mut client = rig.connect().await;
    let connect = format!("CONNECT {rule} HTTP/1.1\r\n\r\n");
    client.write_all(connect.as_bytes()).await.unwrap();
    let mut held = server.accept().await;
    expect(&mut client, b"HTTP/1.1 200 Connection established\r\n\r\n").await;
    let mut idle = rig.connect().await;
    let address = rig.address;
    drop(rig);
    assert_eq!(read_all(&mut client).await, "");
    assert_eq!(read_all(&mut held).await, "");
    assert_eq!(read_all(&mut idle).await, "");
    loop {
        match TcpStream::connect(address).await {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => break,
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

#[tokio::test]
async fn a_pending_question_ends_with_the_proxy() {
    let gate = Arc::new(Silent::default());
    let rig = Rig::with(gate.clone(), &[], ProxyLimits::default());
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = rig.connect().await;
        client.write_all(REFUSED.as_bytes()).await.unwrap();
        clients.push(client);
    }
    until(|| gate.waiting.load(Ordering::SeqCst) == 3).await;
    drop(rig);
    until(|| gate.waiting.load(Ordering::SeqCst) == 0).await;
    assert_eq!(gate.most.load(Ordering::SeqCst), 3);
}

/// No one is to be asked for a client that has given up.
#[tokio::test]
async fn a_pending_question_ends_with_its_client() {
    let gate = Arc::new(Silent::default());
    let rig = Rig::with(gate.clone(), &[], ProxyLimits::default());
    let socks = b"\x05\x01\x00\x05\x01\x00\x03\x08evil.com\x01\xbb";
    for request in [REFUSED.as_bytes(), socks] {
        let mut client = rig.connect().await;
        client.write_all(request).await.unwrap();
        until(|| gate.waiting.load(Ordering::SeqCst) == 1).await;
        drop(client);
        until(|| gate.waiting.load(Ordering::SeqCst) == 0).await;
    }
    until(|| rig.proxy.log().len() == 2).await;
    for entry in rig.proxy.log() {
        assert!(!entry.allowed);
        assert_eq!(entry.reason, "The client left before it was decided.");
    }
}

/// Judges nothing: the proxy must not take that for a yes.
struct Broken;

impl NetworkGate for Broken {
    fn decide(&self, _: GateRequest) -> GateFuture<'_, GateVerdict> {
        Box::pin(async { std::panic::resume_unwind(Box::new("broken")) })
    }
}

#[tokio::test]
async fn a_gate_that_panics_lets_nothing_through_and_ends_nothing_else() {
    let rig = Rig::with(Arc::new(Broken), &[], ProxyLimits::default());
    for _ in 0..3 {
        assert_eq!(rig.send(REFUSED).await, "");
    }
}

#[tokio::test]
async fn the_log_keeps_the_latest() {
    let limits = ProxyLimits {
        log: 3,
        ..ProxyLimits::default()
    };
    let rig = Rig::with(Arc::new(RuleGate(HostRules::default())), &[], limits);
    for port in 1..=5 {
        rig.send(format!("CONNECT evil.com:{port} HTTP/1.1\r\n\r\n"))
            .await;
    }
    let ports: Vec<u16> = rig.proxy.log().iter().map(|entry| entry.port).collect();
    assert_eq!(ports, [3, 4, 5]);
    // And of each as much as a host can have.
    let long = "!".repeat(60_000);
    let answer = rig.send(format!("CONNECT {long}:1 HTTP/1.1\r\n\r\n")).await;
    assert!(answer.contains("!!!..., port 1."), "{answer}");
    let host = &rig.proxy.log()[2].host;
    assert_eq!(*host, format!("{}...", "!".repeat(253)));
}

#[tokio::test]
async fn a_half_open_connection_does_not_stay_for_ever() {
    let server = Server::new().await;
    let rule = format!("127.0.0.1:{}", server.port);
    let limits = ProxyLimits {
        silence: Duration::from_millis(50),
        ..ProxyLimits::default()
    };
    let rig = Rig::with(Arc::new(RuleGate(rules(&[&rule], &[]))), &[], limits);
    for request in [
        format!("CONNECT {rule} HTTP/1.1\r\n\r\n"),
        format!("GET http://{rule}/ HTTP/1.1\r\n\r\n"),
    ] {
        let mut client = rig.connect().await;
        client.write_all(request.as_bytes()).await.unwrap();
        let mut silent = server.accept().await;
        client.shutdown().await.unwrap();
        // The server says nothing and closes nothing: the proxy does.
        read_all(&mut silent).await;
        read_all(&mut client).await;
    }
}

#[tokio::test]
async fn many_clients_at_once_are_served() {
    let server = Canned::new("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let rule = format!("127.0.0.1:{}", server.port);
    let rig = Arc::new(Rig::new(&[&rule], &[]));
    let mut clients = tokio::task::JoinSet::new();
    for at in 0..300 {
        let (rig, rule) = (Arc::clone(&rig), rule.clone());
        clients.spawn(async move {
            let host = if at % 3 == 0 {
                "evil.com"
            } else {
                rule.as_str()
            };
            let answer = rig
                .send(format!("GET http://{host}/ HTTP/1.1\r\n\r\n"))
                .await;
            (at % 3 == 0, answer)
        });
    }
    while let Some(done) = clients.join_next().await {
        let (evil, answer) = done.unwrap();
        let expected = if evil { "HTTP/1.1 403" } else { "HTTP/1.1 200" };
        assert!(answer.starts_with(expected), "{answer}");
    }
}
