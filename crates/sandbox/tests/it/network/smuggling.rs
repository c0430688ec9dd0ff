//! Requests that hide another.

use super::rig::{Canned, Rig};

/// Answers with 400, and the server hears nothing.
#[tokio::test]
async fn a_request_that_can_be_read_in_two_ways_goes_nowhere() {
    let mut server = Canned::new("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let port = server.port;
    let site = format!("127.0.0.1:{port}");
    let rig = Rig::new(&[&site], &[]);
    let get = format!("GET http://{site}/ HTTP/1.1\r\n");
    let hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";
    let cases = [
        format!("{get}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{get}Content-Length: 0\r\nContent-Length: 44\r\n\r\n{hidden}"),
        format!("{get}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
        format!("{get}Transfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n"),
        format!("{get}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{get}X: y\r\n Transfer-Encoding: chunked\r\n\r\n"),
        format!("{get}X: y\nTransfer-Encoding: chunked\r\n\r\n"),
        format!("{get}X: y\rTransfer-Encoding: chunked\r\n\r\n"),
        format!("{get}Host: a\r\nHost: b\r\n\r\n"),
        format!("GET http://{site}/ HTTP/1.1 HTTP/1.1\r\n\r\n"),
        format!("GET http://a@{site}/ HTTP/1.1\r\n\r\n"),
        format!("GET http://{site}/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("CONNECT {site} HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"),
        format!("CONNECT {site} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {site}\r\n\r\n"),
    ];
    for request in cases {
        let answer = rig.send(&request).await;
        assert!(
            answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
            "{request:?} {answer}"
        );
    }
    assert!(rig.proxy.log().is_empty());
    assert!(server.is_idle());
}

/// One request for a connection: what comes after it is neither judged nor passed on.
#[tokio::test]
async fn a_second_request_on_the_connection_is_not_served() {
    let mut server = Canned::new("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let port = server.port;
    let rig = Rig::new(&[&format!("127.0.0.1:{port}")], &[]);
    let first = format!("GET http://127.0.0.1:{port}/first HTTP/1.1\r\n\r\n");
    for second in [
        format!("POST http://127.0.0.1:{port}/second HTTP/1.1\r\n\r\n"),
        "GET http://evil.com/ HTTP/1.1\r\n\r\n".to_owned(),
    ] {
        let answer = rig.send(format!("{first}{second}")).await;
        assert_eq!(
            answer,
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        assert_eq!(
            server.request().await,
            format!("GET /first HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n")
        );
    }
    assert_eq!(rig.proxy.log().len(), 2);
    assert!(server.is_idle());
}
