//! Sessions over HTTP, by requests that are written byte by byte.

use std::{sync::Arc, time::Duration};

use haft_contract::CancellationToken;
use haft_mcp::server::{HttpAccess, HttpServer, HttpServerOptions};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
};

use crate::fixture::Fixture;

pub(crate) struct Served {
    pub(crate) address: std::net::SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(own, _)| own.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }

    /// The messages in it, however they came.
    pub(crate) fn messages(&self) -> Vec<Value> {
        match self.header("content-type") {
            Some("text/event-stream") => {
                let data = self
                    .body
                    .lines()
                    .filter_map(|line| line.strip_prefix("data: "))
                    .filter(|data| !data.is_empty());
                data.map(|data| serde_json::from_str(data).unwrap())
                    .collect()
            }
            _ => serde_json::from_str(&self.body).into_iter().collect(),
        }
    }
}

pub(crate) async fn serve(options: HttpServerOptions) -> Served {
    let address = "127.0.0.1:0".parse().unwrap();
    let server = HttpServer::bind(address, options, Arc::new(Fixture))
        .await
        .unwrap();
    let (address, stop) = (server.address(), CancellationToken::new());
    let serving = tokio::spawn(server.run(stop.clone()));
    Served {
        address,
        stop,
        serving,
    }
}

pub(crate) async fn open() -> Served {
    serve(HttpServerOptions::new(HttpAccess::open())).await
}

pub(crate) const USUAL: &str =
    "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";

impl Served {
    /// Sends a request, and reads until the connection is closed.
    pub(crate) async fn send(&self, method: &str, headers: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // What is refused early may not be read to its end.
        let _ = stream.write_all(body.as_bytes()).await;
        let mut text = Vec::new();
        let reading = stream.read_to_end(&mut text);
        let _ = tokio::time::timeout(Duration::from_secs(20), reading)
            .await
            .expect("an answer in time");
        let text = String::from_utf8(text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let body = match head
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked")
        {
            true => unchunked(body),
            false => body.to_owned(),
        };
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body,
        }
    }

    pub(crate) async fn post(&self, headers: &str, message: &Value) -> Answer {
        self.send("POST", &format!("{USUAL}{headers}"), &message.to_string())
            .await
    }

    /// Begins a session; the header that names it.
    pub(crate) async fn begin(&self, revision: &str) -> String {
        let params = json!({"protocolVersion": revision, "capabilities": {}});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = self.post("", &message).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        format!(
            "mcp-session-id: {}\r\n",
            answer.header("mcp-session-id").unwrap()
        )
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(20), self.serving).await;
        ended.expect("it ends").unwrap();
    }
}

fn unchunked(body: &str) -> String {
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 || more.len() < size {
            break;
        }
        whole += &more[..size];
        rest = more[size..].trim_start_matches("\r\n");
    }
    whole
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[tokio::test]
async fn a_session_begins_is_used_and_ends() {
    let served = open().await;
    let session = served.begin("2025-06-18").await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let taken = served.post(&session, &note).await;
    assert_eq!((taken.status, taken.body.as_str()), (202, ""));
    let call = request(1, "tools/call", json!({"name": "test_simple_text"}));
    let answer = served.post(&session, &call).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.messages()[0]["id"], 1);
    let progress = json!({"name": "test_tool_with_progress", "_meta": {"progressToken": "t"}});
    let stream = served
        .post(&session, &request(2, "tools/call", progress))
        .await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let messages = stream.messages();
    assert_eq!(messages.len(), 4, "{messages:?}");
    assert_eq!(
        messages[1]["params"],
        json!({"progressToken": "t", "progress": 50, "total": 100})
    );
    assert_eq!(messages[3]["id"], 2);
    assert_eq!(served.send("DELETE", &session, "").await.status, 200);
    let over = served
        .post(&session, &request(3, "tools/list", json!({})))
        .await;
    assert_eq!(over.status, 404);
    served.end().await;
}

#[tokio::test]
async fn sessions_are_told_apart() {
    let served = open().await;
    let (one, two) = (
        served.begin("2025-06-18").await,
        served.begin("2025-03-26").await,
    );
    assert_ne!(one, two);
    // The same id in both; a batch in the one that has batches.
    let ping = request(1, "ping", json!({}));
    assert_eq!(served.post(&one, &ping).await.status, 200);
    let batch = json!([ping, request(2, "ping", json!({}))]);
    assert_eq!(served.post(&one, &batch).await.status, 400);
    let both = served.post(&two, &batch).await;
    assert_eq!((both.status, both.messages().len()), (200, 2));
    assert_eq!(served.send("DELETE", &one, "").await.status, 200);
    assert_eq!(served.post(&two, &ping).await.status, 200);
    served.end().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said() {
    let mut options = HttpServerOptions::new(HttpAccess::open());
    options.longest = 1_000;
    let served = serve(options).await;
    let ping = request(1, "ping", json!({}));
    let cases: [(&str, &str, String, String, u16); 8] = [
        (
            "no session",
            "POST",
            USUAL.to_owned(),
            ping.to_string(),
            400,
        ),
        ("no JSON", "POST", USUAL.to_owned(), "{".to_owned(), 400),
        ("too long", "POST", USUAL.to_owned(), "x".repeat(2_000), 413),
        (
            "another kind",
            "POST",
            "accept: */*\r\ncontent-type: text/plain\r\n".to_owned(),
            ping.to_string(),
            415,
        ),
        (
            "takes no stream",
            "POST",
            "accept: application/json\r\ncontent-type: application/json\r\n".to_owned(),
            ping.to_string(),
            406,
        ),
        (
            "another method",
            "PUT",
            USUAL.to_owned(),
            String::new(),
            405,
        ),
        (
            "a stream without a session",
            "GET",
            "accept: text/event-stream\r\n".to_owned(),
            String::new(),
            405,
        ),
        (
            "an unknown session",
            "POST",
            format!("{USUAL}mcp-session-id: 1234\r\n"),
            ping.to_string(),
            404,
        ),
    ];
    for (what, method, headers, body, status) in cases {
        let answer = served.send(method, &headers, &body).await;
        assert_eq!(answer.status, status, "{what}: {answer:?}");
    }
    // A length that is announced and never sent is refused at once.
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head =
        format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50000000\r\n{USUAL}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 413");
    let session = served.begin("2025-06-18").await;
    let version = format!("{session}mcp-protocol-version: 1999-01-01\r\n");
    assert_eq!(served.post(&version, &ping).await.status, 400);
    served.end().await;
}

#[tokio::test]
async fn who_comes_from_elsewhere_or_without_a_token_is_refused() {
    let served = serve(HttpServerOptions::new(HttpAccess::token(
        "0123456789abcdef",
    )))
    .await;
    let ping = request(1, "ping", json!({}));
    let refused = served.post("", &ping).await;
    assert_eq!(
        (refused.status, refused.header("www-authenticate")),
        (401, Some("Bearer"))
    );
    assert_eq!(
        served
            .post("authorization: Bearer no\r\n", &ping)
            .await
            .status,
        401
    );
    let right = "authorization: Bearer 0123456789abcdef\r\n";
    assert_eq!(
        served.post(right, &ping).await.status,
        400,
        "only the session is missing"
    );
    let page = format!("{right}origin: https://evil.example\r\n");
    assert_eq!(served.post(&page, &ping).await.status, 403);
    served.end().await;
}

impl Served {
    /// Calls a tool, and breaks the connection once its first event is there: the name of that event.
    async fn call_and_vanish(&self, session: &str, params: Value) -> String {
        let body = request(7, "tools/call", params).to_string();
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n{USUAL}{session}\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut text = String::new();
        while !text.contains("\n\n") {
            let mut part = [0; 1_024];
            let reading = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut part));
            let length = reading.await.expect("an event in time").unwrap();
            assert_ne!(length, 0, "{text}");
            text += std::str::from_utf8(&part[..length]).unwrap();
        }
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
        let mut ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
        ids.next_back().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_call_goes_on_when_its_connection_breaks_and_its_answer_is_fetched_later() {
    let served = open().await;
    // Where a revision has no events that only say how to come back, any event does.
    for revision in ["2025-11-25", "2025-03-26"] {
        let session = served.begin(revision).await;
        let other = served.begin(revision).await;
        let params = json!({"name": "test_tool_with_progress", "_meta": {"progressToken": 1}});
        let last = served.call_and_vanish(&session, params).await;
        let resumed = |session: &str, last: &str| {
            format!("accept: text/event-stream\r\nlast-event-id: {last}\r\n{session}")
        };
        let rest = served.send("GET", &resumed(&session, &last), "").await;
        let messages = rest.messages();
        assert_eq!(messages.last().unwrap()["id"], 7, "{messages:?}");
        assert_eq!(
            messages.last().unwrap()["result"],
            json!({"content": [{"type": "text", "text": "done"}]})
        );
        // Once more, and from the beginning: all of it.
        let (stream, _) = last.split_once('-').unwrap();
        let first = format!("{stream}-0");
        let whole = served.send("GET", &resumed(&session, &first), "").await;
        assert_eq!(whole.messages().len(), 4, "{whole:?}");
        // Another session cannot have it, and what is not known is refused.
        for (session, last) in [(&other, last.as_str()), (&session, "99-1"), (&session, "x")] {
            let refused = served.send("GET", &resumed(session, last), "").await;
            assert_eq!(refused.status, 400, "{refused:?}");
        }
    }
    served.end().await;
}

#[tokio::test]
async fn what_runs_for_a_client_that_stays_away_is_called_off() {
    let mut options = HttpServerOptions::new(HttpAccess::open());
    options.disconnect_timeout = Duration::from_millis(200);
    let served = serve(options).await;
    let session = served.begin("2025-11-25").await;
    let slow = json!({"name": "test_slow", "_meta": {"progressToken": 1}});
    served.call_and_vanish(&session, slow).await;
    // While it runs its id is taken; when it was called off it is free.
    let ping = request(7, "ping", json!({}));
    let busy = served.post(&session, &ping).await;
    assert_eq!(busy.messages()[0]["error"]["code"], -32600);
    let mut free = false;
    for _ in 0..50 {
        // Nothing is heard of it meanwhile.
        tokio::time::sleep(Duration::from_millis(600)).await;
        let answer = served.post(&session, &ping).await;
        free = answer.messages()[0].get("result").is_some();
        if free {
            break;
        }
    }
    assert!(free, "the call still runs");
    served.end().await;
}

#[tokio::test]
async fn a_session_is_out_of_reach_for_the_holder_of_another_token() {
    let (one, two) = ("one-0123456789abcdef", "two-0123456789abcdef");
    let access = HttpAccess::tokens([one.to_owned(), two.to_owned()]);
    let served = serve(HttpServerOptions::new(access)).await;
    let bearer = |token: &str| format!("authorization: Bearer {token}\r\n");
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let begun = served
        .post(&bearer(one), &request(0, "initialize", params))
        .await;
    let session = format!(
        "mcp-session-id: {}\r\n",
        begun.header("mcp-session-id").unwrap()
    );
    let ping = request(1, "ping", json!({}));
    let (mine, theirs) = (
        format!("{session}{}", bearer(one)),
        format!("{session}{}", bearer(two)),
    );
    assert_eq!(served.post(&theirs, &ping).await.status, 404);
    let listen = format!("accept: text/event-stream\r\n{theirs}");
    assert_eq!(served.send("GET", &listen, "").await.status, 404);
    assert_eq!(served.send("DELETE", &theirs, "").await.status, 404);
    assert_eq!(served.post(&mine, &ping).await.status, 200);
    assert_eq!(served.send("DELETE", &mine, "").await.status, 200);
    served.end().await;
}

#[tokio::test]
async fn a_session_that_no_one_uses_ends() {
    let mut options = HttpServerOptions::new(HttpAccess::open());
    options.idle = Duration::from_millis(200);
    let served = serve(options).await;
    let session = served.begin("2025-11-25").await;
    let ping = request(1, "ping", json!({}));
    let mut status = served.post(&session, &ping).await.status;
    assert_eq!(status, 200);
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        status = served.post(&session, &ping).await.status;
        if status == 404 {
            break;
        }
    }
    assert_eq!(status, 404);
    served.end().await;
}

#[tokio::test]
async fn requests_of_the_stateless_revision_need_no_session() {
    let served = open().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers =
        |method: &str| format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n");
    let found = request(1, "server/discover", json!({"_meta": meta}));
    let answer = served.post(&headers("server/discover"), &found).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("mcp-session-id"), None);
    let list = request(2, "tools/list", json!({"_meta": meta}));
    let answer = served.post(&headers("tools/list"), &list).await;
    let result = &answer.messages()[0]["result"];
    assert_eq!(
        (&result["ttlMs"], &result["cacheScope"]),
        (&json!(0), &json!("private"))
    );
    // Headers that do not fit, methods that are gone, and what is missing.
    let cases = [
        (headers("tools/call"), list.clone(), 400, -32020),
        (String::new(), list, 400, -32020),
        (
            headers("ping"),
            request(3, "ping", json!({"_meta": meta})),
            404,
            -32601,
        ),
        (
            headers("tools/list"),
            request(4, "tools/list", json!({})),
            400,
            -32602,
        ),
    ];
    for (headers, message, status, code) in cases {
        let answer = served.post(&headers, &message).await;
        let error = &answer.messages()[0]["error"]["code"];
        assert_eq!((answer.status, error), (status, &json!(code)), "{message}");
    }
    served.end().await;
}
