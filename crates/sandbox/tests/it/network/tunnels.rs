//! CONNECT and SOCKS5.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::rig::{Closed, Rig, Server, expect, read_all};

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const SUCCEEDED: &[u8] = &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0];

/// What stands for a host in SOCKS5.
fn by_name(name: &[u8]) -> Vec<u8> {
    [&[3, name.len() as u8], name].concat()
}

const BY_ADDRESS: [u8; 5] = [1, 127, 0, 0, 1];

fn socks(host: &[u8], port: u16) -> Vec<u8> {
    [&[5, 1, 0, 5, 1, 0], host, &port.to_be_bytes()].concat()
}

/// A client and a server that are joined by the proxy, one pair for each way to ask for that.
async fn joined(rig: &Rig, server: &Server) -> Vec<(TcpStream, TcpStream)> {
    let port = server.port;
    let connect = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\n");
    let ways: [(Vec<u8>, Vec<u8>); 3] = [
        (connect.into_bytes(), ESTABLISHED.to_vec()),
        (
            socks(&by_name(b"127.0.0.1"), port),
            [&[5, 0], SUCCEEDED].concat(),
        ),
        (socks(&BY_ADDRESS, port), [&[5, 0], SUCCEEDED].concat()),
    ];
    let mut pairs = Vec::new();
    for (asked, answer) in ways {
        let mut client = rig.connect().await;
        client.write_all(&asked).await.unwrap();
        expect(&mut client, &answer).await;
        pairs.push((client, server.accept().await));
    }
    pairs
}

async fn rig() -> (Rig, Server) {
    let server = Server::new().await;
    let rule = format!("127.0.0.1:{}", server.port);
    (Rig::new(&[&rule], &[]), server)
}

#[tokio::test]
async fn bytes_go_both_ways() {
    let (rig, server) = rig().await;
    for (mut client, mut server) in joined(&rig, &server).await {
        client.write_all(b"ping").await.unwrap();
        expect(&mut server, b"ping").await;
        server.write_all(b"pong\0\xff").await.unwrap();
        expect(&mut client, b"pong\0\xff").await;
    }
    let log = rig.proxy.log();
    assert_eq!(log.len(), 3);
    for entry in log {
        assert!(entry.allowed);
        assert_eq!(
            (entry.host.as_str(), entry.port),
            ("127.0.0.1", server.port)
        );
        assert_eq!(entry.address, Some(([127, 0, 0, 1], server.port).into()));
        assert_eq!(entry.method, None);
    }
}

#[tokio::test]
async fn the_end_of_one_way_leaves_the_other_open() {
    let (rig, server) = rig().await;
    for (mut client, mut server) in joined(&rig, &server).await {
        client.write_all(b"all I have").await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_all(&mut server).await, "all I have");
        server.write_all(b"and ").await.unwrap();
        expect(&mut client, b"and ").await;
        server.write_all(b"still").await.unwrap();
        server.shutdown().await.unwrap();
        assert_eq!(read_all(&mut client).await, "still");
    }
    for (mut client, mut server) in joined(&rig, &server).await {
        server.write_all(b"bye").await.unwrap();
        server.shutdown().await.unwrap();
        assert_eq!(read_all(&mut client).await, "bye");
        client.write_all(b"wait").await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_all(&mut server).await, "wait");
    }
}

#[tokio::test]
async fn a_broken_connection_does_not_look_like_a_whole_one() {
    let (rig, server) = rig().await;
    for (mut client, server) in joined(&rig, &server).await {
        server.set_zero_linger().unwrap();
        drop(server);
        let error = client.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn much_passes_unchanged() {
    let (rig, server) = rig().await;
    let sent: Vec<u8> = (0..3_000_000u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for (client, server) in joined(&rig, &server).await {
        let (mut from_proxy, mut to_proxy) = client.into_split();
        // The server sends back what it gets, so that both ways are full at once.
        let echo = async {
            let (mut reader, mut writer) = server.into_split();
            tokio::io::copy(&mut reader, &mut writer).await.unwrap();
            writer.shutdown().await.unwrap();
        };
        let send = async {
            to_proxy.write_all(&sent).await.unwrap();
            to_proxy.shutdown().await.unwrap();
        };
        let mut got = Vec::new();
        let (_, _, read) = tokio::join!(echo, send, from_proxy.read_to_end(&mut got));
        read.unwrap();
        assert!(got == sent, "{} bytes of {}", got.len(), sent.len());
    }
}

#[tokio::test]
async fn what_is_sent_before_the_answer_is_not_lost() {
    let (rig, server) = rig().await;
    let port = server.port;
    let head = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nearly");
    let mut client = rig.connect().await;
    client.write_all(head.as_bytes()).await.unwrap();
    expect(&mut server.accept().await, b"early").await;
    let mut client = rig.connect().await;
    let request = [socks(&BY_ADDRESS, port), b"early".to_vec()].concat();
    client.write_all(&request).await.unwrap();
    expect(&mut server.accept().await, b"early").await;
}

#[tokio::test]
async fn requests_may_come_byte_by_byte() {
    let (rig, server) = rig().await;
    let port = server.port;
    let connect = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n").into_bytes();
    for (request, answer) in [
        (connect, ESTABLISHED.to_vec()),
        (socks(&BY_ADDRESS, port), [&[5, 0], SUCCEEDED].concat()),
    ] {
        let mut client = rig.connect().await;
        client.set_nodelay(true).unwrap();
        for byte in request {
            client.write_all(&[byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        expect(&mut client, &answer).await;
    }
}

/// SOCKS5: greeting and request, and the answer to them.
async fn replied(rig: &Rig, bytes: &[u8]) -> Vec<u8> {
    let mut client = rig.connect().await;
    client.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn socks_says_why_not() {
    let held = Closed::new();
    let closed = held.port;
    let rules = ["allowed.com", "nowhere.com", &format!("127.0.0.1:{closed}")];
    let rig = Rig::new(&rules, &[("allowed.com", &[&["10.0.0.1"]])]);
    let cases: [(&str, Vec<u8>, u8); 8] = [
        ("no rule", socks(&by_name(b"evil.com"), 443), 2),
        ("a private address", socks(&by_name(b"allowed.com"), 443), 2),
        ("no such name", socks(&by_name(b"nowhere.com"), 443), 4),
        ("nobody listens", socks(&BY_ADDRESS, closed), 5),
        ("another port", socks(&BY_ADDRESS, closed ^ 1), 2),
        ("IPv6", socks(&[&[4][..], &[0; 15], &[1]].concat(), 443), 2),
        ("a name of nothing", socks(&by_name(b""), 443), 2),
        ("a number", socks(&by_name(b"2130706433"), closed), 2),
    ];
    for (what, bytes, reply) in cases {
        let answer = replied(&rig, &bytes).await;
        assert_eq!(answer, [5, 0, 5, reply, 0, 1, 0, 0, 0, 0, 0, 0], "{what}");
    }
    assert_eq!(
        replied(&rig, &[5, 1, 2]).await,
        [5, 0xff],
        "wants a password"
    );
    assert_eq!(replied(&rig, &[5, 0]).await, [5, 0xff], "offers nothing");
}

/// The proxy of another program read `evil.com\0.allowed.com` up to the NUL, its rules to the end.
#[tokio::test]
async fn socks_nul_in_a_host_name_is_refused_before_policy() {
    let rig = Rig::new(&["*", "*.allowed.com"], &[]);
    for name in [
        &b"evil.com\0.allowed.com"[..],
        b"evil.com\r\n.allowed.com",
        b"evil.com%00.allowed.com",
        b"evil.com/.allowed.com",
        b"\xff.allowed.com",
    ] {
        let answer = replied(&rig, &socks(&by_name(name), 443)).await;
        assert_eq!(answer[..4], [5, 0, 5, 2], "{}", name.escape_ascii());
    }
    assert!(rig.names.asked().is_empty(), "nothing was resolved");
    let log = rig.proxy.log();
    assert_eq!(log.len(), 5);
    assert!(
        log.iter()
            .all(|entry| !entry.allowed && entry.address.is_none())
    );
    assert_eq!(log[0].host, "evil.com\\x00.allowed.com");
}
