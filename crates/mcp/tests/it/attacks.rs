//! What clients may do to a server: it answers with an error, or not at all, and goes on.

use std::time::Duration;

use haft_mcp::server::{HttpAccess, HttpServerOptions};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    server_http::{USUAL, open, request, serve},
    server_lines::{MAX_LENGTH, RawClient},
};

/// Reads until the connection is closed.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let reading = stream.read_to_end(&mut text);
    // A connection that is reset is closed as well.
    let _ = tokio::time::timeout(Duration::from_secs(60), reading)
        .await
        .expect("it is closed in time");
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn a_request_may_come_byte_by_byte() {
    let served = open().await;
    let session = served.begin("2025-11-25").await;
    let body = request(1, "ping", json!({})).to_string();
    let text = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n{USUAL}{session}\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in text.as_bytes() {
        stream.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    served.end().await;
}

#[tokio::test]
async fn a_line_may_come_byte_by_byte() {
    let mut client = RawClient::greeted("2025-11-25", json!({})).await;
    let line = format!("{}\r\n", request(1, "ping", json!({})));
    for byte in line.as_bytes() {
        client.bytes(&[*byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.hear().await["result"], json!({}));
    client.end().await;
}

/// What stands for the address in a header of a rebound or forged request.
#[tokio::test]
async fn pages_of_other_sites_reach_nothing() {
    let served = open().await;
    let port = served.address.port();
    let body = request(1, "initialize", json!({"protocolVersion": "2025-11-25"})).to_string();
    let cases = [
        (
            "rebound".to_owned(),
            format!("host: evil.example:{port}\r\n"),
        ),
        (
            "by a name that ends like ours".to_owned(),
            format!("host: evil-localhost:{port}\r\n"),
        ),
        (
            "with our name in front".to_owned(),
            format!("host: localhost.evil.example:{port}\r\n"),
        ),
        (
            "user and host".to_owned(),
            format!("host: localhost@evil.example:{port}\r\n"),
        ),
        ("no host".to_owned(), String::new()),
        (
            "two hosts".to_owned(),
            format!("host: localhost:{port}\r\nhost: evil.example\r\n"),
        ),
        (
            "another address".to_owned(),
            format!("host: 192.168.0.1:{port}\r\n"),
        ),
        (
            "a page elsewhere".to_owned(),
            format!("host: localhost:{port}\r\norigin: http://evil.example\r\n"),
        ),
        (
            "a sandboxed page".to_owned(),
            format!("host: localhost:{port}\r\norigin: null\r\n"),
        ),
        (
            "an extension".to_owned(),
            format!("host: localhost:{port}\r\norigin: chrome-extension://abc\r\n"),
        ),
        (
            "two pages".to_owned(),
            format!(
                "host: localhost:{port}\r\norigin: http://localhost\r\norigin: http://evil.example\r\n"
            ),
        ),
        (
            "our name as a user".to_owned(),
            format!("host: localhost:{port}\r\norigin: http://localhost@evil.example\r\n"),
        ),
    ];
    for (what, headers) in cases {
        let text = format!(
            "POST /mcp HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n{USUAL}{headers}\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(["400", "403"].contains(&status), "{what}: {answer}");
        assert!(
            !answer.to_ascii_lowercase().contains("access-control"),
            "{answer}"
        );
    }
    // A form of a page can be posted without asking; its kind is refused.
    let form = "content-type: text/plain\r\naccept: */*\r\n";
    assert_eq!(served.send("POST", form, &body).await.status, 415);
    // Nor may a page ask whether it may.
    assert_eq!(served.send("OPTIONS", "", "").await.status, 405);
    served.end().await;
}

#[tokio::test]
async fn a_frame_of_fifty_megabytes_is_passed_over() {
    let mut client = RawClient::greeted("2025-11-25", json!({})).await;
    client
        .bytes(br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":""#)
        .await;
    let part = vec![b'x'; 1024 * 1024];
    for _ in 0..50 {
        client.bytes(&part).await;
    }
    client.raw("\"}}").await;
    let refused = client.hear().await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(1), &json!(-32600))
    );
    let ping = client.ask(2, "ping", json!({})).await;
    assert_eq!(ping["result"], json!({}));
    client.end().await;
    // Over HTTP it is refused before it is read, and also where its length is not announced.
    let served = open().await;
    let session = served.begin("2025-11-25").await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n{USUAL}{session}\r\n"
    );
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..50 {
        let mut chunk = b"100000\r\n".to_vec();
        chunk.extend(&part);
        chunk.extend(b"\r\n");
        if stream.write_all(&chunk).await.is_err() {
            break; // it is refused already
        }
    }
    let answer = rest(&mut stream).await;
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 413"),
        "{answer}"
    );
    let ping = request(3, "ping", json!({}));
    assert_eq!(served.post(&session, &ping).await.status, 200);
    served.end().await;
}

#[tokio::test]
async fn ids_of_all_kinds_deep_json_and_keys_that_are_there_twice() {
    let mut client = RawClient::greeted("2025-03-26", json!({})).await;
    let wrong_ids = [
        "null",
        "true",
        "1.5",
        "1e400",
        "[]",
        "{}",
        "18446744073709551616",
        "1.0",
    ];
    for id in wrong_ids {
        client
            .raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))
            .await;
        let refused = client.hear().await;
        assert_eq!(refused["id"], Value::Null, "{id}: {refused}");
        let code = refused["error"]["code"].as_i64().unwrap();
        assert!([-32600, -32700].contains(&code), "{id}: {refused}");
    }
    let long = "x".repeat(10_000);
    let right_ids = [
        json!(0),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("1"),
        json!("\u{0}\n\""),
        json!(long),
    ];
    for id in right_ids {
        client
            .say(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
            .await;
        assert_eq!(client.hear().await["id"], id);
    }
    // The number 1 and the text "1" are two ids.
    let slow = json!({"name": "test_slow", "_meta": {"progressToken": 1}});
    client
        .say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": slow}))
        .await;
    client.hear().await;
    client
        .say(json!({"jsonrpc": "2.0", "id": "1", "method": "ping"}))
        .await;
    assert_eq!(client.hear().await["id"], "1");
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!(
            "{}1{}",
            open.repeat(MAX_LENGTH / 20),
            close.repeat(MAX_LENGTH / 20)
        );
        client
            .raw(&format!(
                r#"{{"jsonrpc":"2.0","id":5,"method":"ping","params":{deep}}}"#
            ))
            .await;
        assert_eq!(client.hear().await["error"]["code"], -32700);
    }
    // One who reads it on its way may take the first of both.
    client
        .raw(r#"{"jsonrpc":"2.0","id":6,"method":"no/such","id":7,"method":"ping"}"#)
        .await;
    let refused = client.hear().await;
    assert_eq!(refused["id"], Value::Null, "{refused}");
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    client.end().await;
}

#[tokio::test]
async fn a_batch_of_thousands_is_answered_and_no_more_than_some_at_once_run() {
    let mut client = RawClient::greeted("2025-03-26", json!({})).await;
    let slow = |id: u64| {
        let params = json!({"name": "test_slow"});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let batch: Vec<Value> = (0..1_000).map(slow).collect();
    client.say(Value::Array(batch)).await;
    // What is too much is refused at once; the rest runs until it is called off.
    for _ in 0..1_000 - 256 {
        let refused = client.hear().await;
        assert_eq!(refused["error"]["message"], "too many requests at once");
    }
    for id in 0..256 {
        let params = json!({"requestId": id});
        client
            .say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
            .await;
    }
    let mut free = false;
    for _ in 0..200 {
        free = client
            .ask(5_000, "ping", json!({}))
            .await
            .get("result")
            .is_some();
        if free {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(free, "cancelled calls still count");
    let empty = json!([[], [[]], 1, null, {}]);
    client.say(empty).await;
    for _ in 0..5 {
        assert_eq!(client.hear().await["error"]["code"], -32600);
    }
    client.end().await;
}

/// A client that asks and asks and reads nothing is not listened to for ever: what waits for it is bounded.
#[tokio::test]
async fn a_client_that_reads_no_answers_is_no_longer_read() {
    let mut client = RawClient::greeted("2025-11-25", json!({})).await;
    let ask = format!("{}\n", request(1, "no/such", json!({})));
    let mut sent = 0;
    loop {
        let sending = client.bytes(ask.as_bytes());
        match tokio::time::timeout(Duration::from_secs(2), sending).await {
            Ok(()) => sent += 1,
            Err(_) => break,
        }
        assert!(sent < 100_000, "it is read without end");
    }
    client.drop_now().await;
}

#[tokio::test]
async fn a_cancellation_that_crosses_with_its_answer_harms_nothing() {
    let mut client = RawClient::greeted("2025-11-25", json!({})).await;
    let mut answered = 0;
    for id in 0..300 {
        client
            .say(request(
                id,
                "tools/call",
                json!({"name": "test_simple_text"}),
            ))
            .await;
        if id % 3 != 0 {
            tokio::task::yield_now().await;
        }
        let params = json!({"requestId": id});
        client
            .say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
            .await;
        client.say(request(1_000 + id, "ping", json!({}))).await;
        // The call has one answer or none, the ping one.
        loop {
            let heard = client.hear().await;
            if heard["id"] == 1_000 + id {
                break;
            }
            answered += 1;
        }
    }
    assert!(answered <= 300);
    let ping = client.ask(9_999, "ping", json!({})).await;
    assert!(
        ping["id"] == 9_999 || ping["id"].as_u64().unwrap() < 300,
        "{ping}"
    );
    client.end().await;
}

#[tokio::test]
async fn thousands_of_sessions_are_begun_and_ended_and_no_more_than_some_are_open() {
    let served = open().await;
    for _ in 0..300 {
        let session = served.begin("2025-11-25").await;
        assert_eq!(served.send("DELETE", &session, "").await.status, 200);
    }
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(served.begin("2025-11-25").await);
    }
    let params = json!({"protocolVersion": "2025-11-25"});
    let refused = served
        .post("", &request(0, "initialize", params.clone()))
        .await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(
        refused.body.contains("64 sessions are open already"),
        "{}",
        refused.body
    );
    // The others are as before, and one that ends makes room.
    let ping = request(1, "ping", json!({}));
    assert_eq!(served.post(&open[63], &ping).await.status, 200);
    served.send("DELETE", &open[0], "").await;
    served.begin("2025-11-25").await;
    served.end().await;
    // Where clients went away without a word, the oldest makes room.
    let mut options = HttpServerOptions::new(HttpAccess::open());
    options.disconnect_timeout = Duration::from_millis(50);
    let served = serve(options).await;
    for _ in 0..64 {
        served.begin("2025-11-25").await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    served.begin("2025-11-25").await;
    served.end().await;
}

#[tokio::test]
async fn session_ids_that_are_none() {
    let served = open().await;
    let session = served.begin("2025-11-25").await;
    let ping = request(1, "ping", json!({}));
    let id = session.trim_start_matches("mcp-session-id: ").trim();
    for wrong in [
        "",
        " ",
        "../..",
        &id[1..],
        &id.to_uppercase(),
        &"x".repeat(10_000),
    ] {
        let headers = format!("mcp-session-id: {wrong}\r\n");
        let status = served.post(&headers, &ping).await.status;
        // One of digits alone is the same in capitals.
        assert!(status == 404 || wrong == id, "{wrong}: {status}");
    }
    assert_eq!(served.post(&session, &ping).await.status, 200);
    served.end().await;
}

/// Connections that say nothing, or not all of it, keep no one else out for long.
#[tokio::test]
async fn connections_that_never_ask_do_not_keep_others_out() {
    let served = open().await;
    let mut silent = Vec::new();
    for at in 0..200 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        if at % 2 == 0 {
            let begun = stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: loc").await;
            begun.unwrap();
        }
        silent.push(stream);
    }
    let session = served.begin("2025-11-25").await;
    let ping = request(1, "ping", json!({}));
    assert_eq!(served.post(&session, &ping).await.status, 200);
    drop(silent);
    served.end().await;
}

/// The rest never comes, so nothing here depends on how fast anything is.
#[tokio::test]
async fn a_head_or_a_body_that_never_ends_is_given_up() {
    let mut options = HttpServerOptions::new(HttpAccess::open());
    (options.head, options.body) = (Duration::from_millis(200), Duration::from_millis(200));
    let served = serve(options).await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\n";
    let slow = [
        ("half a head", head.to_owned(), None),
        ("nothing at all", String::new(), None),
        (
            "a body shorter than announced",
            format!("{head}content-length: 100\r\n{USUAL}\r\n{{\"jsonrpc\":"),
            Some("HTTP/1.1 408"),
        ),
        (
            "a chunk that does not end",
            format!("{head}transfer-encoding: chunked\r\n{USUAL}\r\n64\r\n{{\"jsonrpc\":"),
            Some("HTTP/1.1 408"),
        ),
        (
            "chunks without an end",
            format!("{head}transfer-encoding: chunked\r\n{USUAL}\r\n1\r\n{{\r\n"),
            Some("HTTP/1.1 408"),
        ),
    ];
    for (what, text, expected) in slow {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        match expected {
            Some(expected) => assert!(answer.starts_with(expected), "{what}: {answer}"),
            None => assert!(!answer.contains("200"), "{what}: {answer}"),
        }
    }
    let session = served.begin("2025-11-25").await;
    let ping = request(1, "ping", json!({}));
    assert_eq!(served.post(&session, &ping).await.status, 200);
    served.end().await;
}

/// What two readers could read differently is read by none.
#[tokio::test]
async fn a_message_that_can_be_read_in_two_ways_is_refused() {
    let served = open().await;
    let session = served.begin("2025-11-25").await;
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#;
    let answer = served
        .send("POST", &format!("{USUAL}{session}"), twice)
        .await;
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("duplicate field"), "{answer:?}");
    let ping = request(2, "ping", json!({}));
    let other = served.begin("2025-11-25").await;
    let both = served.post(&format!("{session}{other}"), &ping).await;
    assert_eq!(both.status, 404, "{both:?}");
    let long = json!({"jsonrpc": "2.0", "id": "x".repeat(20_000), "method": "ping"});
    assert_eq!(served.post(&session, &long).await.status, 400);
    assert_eq!(served.post(&session, &ping).await.status, 200);
    served.end().await;
}
