//! Answers that are none: each ends soon, with a message that says what to do.

use std::{sync::Arc, time::Duration};

use haft_contract::{Content, output::MediaSource};
use haft_models::{
    Anthropic, Conversation, ErrorKind, Http, HttpOptions, Model, ModelError, ModelRequest,
    RequestPrefix, ToolResult, anthropic::AnthropicOptions,
};
use haft_testkit::http::{HttpFake, HttpReply};
use serde_json::json;

use crate::ask::{anthropic, ask, openai, request, retrying};

/// What both providers say of the same answer, each through retries; addresses hidden.
async fn said(answer: HttpReply) -> String {
    let server = HttpFake::start([answer]);
    let (a, _) = retrying(anthropic(&server.url));
    let (o, _) = retrying(openai(&server.url));
    let host = server.url.trim_start_matches("http://").to_owned();
    let mut lines = Vec::new();
    for model in [&a as &dyn Model, &o] {
        let error = ask(model, request()).await.error.unwrap();
        lines.push(format!("{:?}: {error}", error.kind).replace(&host, "HOST"));
    }
    let tries = server.requests().len();
    if lines[0] == lines[1] {
        lines.pop();
    }
    format!("{} [{tries} requests]", lines.join("\n"))
}

#[tokio::test]
async fn what_people_read() {
    let html = "<!doctype html><html><head><title>Welcome to the hotel</title></head><body>Log in</body></html>";
    let cases = [
        (
            "wrong key",
            HttpReply::error(401, "authentication_error", "invalid x-api-key"),
        ),
        (
            "not allowed",
            HttpReply::error(403, "permission_error", "Your key cannot use this model."),
        ),
        (
            "no credit",
            HttpReply::error(402, "billing_error", "Your credit balance is too low."),
        ),
        (
            "no such model",
            HttpReply::error(404, "not_found_error", "model: clod-4"),
        ),
        (
            "too long",
            HttpReply::error(
                400,
                "invalid_request_error",
                "prompt is too long: 210000 tokens > 200000 maximum",
            ),
        ),
        (
            "too large",
            HttpReply::error(413, "request_too_large", "Request exceeds the maximum size"),
        ),
        (
            "wait an hour",
            HttpReply::error(
                429,
                "rate_limit_error",
                "Number of request tokens has exceeded your limit",
            )
            .header("retry-after", "3600"),
        ),
        ("a page with 200", HttpReply::new(200, "text/html", html)),
        ("a page with 404", HttpReply::new(404, "text/html", html)),
        ("a page with 502", HttpReply::new(502, "text/html", html)),
        (
            "plain text",
            HttpReply::new(200, "text/plain", "It works!\n"),
        ),
        ("nothing", HttpReply::new(200, "text/event-stream", "")),
        (
            "a redirect",
            HttpReply::new(307, "text/plain", "")
                .header("location", "https://elsewhere.example/v1"),
        ),
        (
            "not UTF-8",
            HttpReply::events(b"event: message_start\ndata: {\"type\":\"\xff\xfe\"}\n\n".to_vec()),
        ),
        (
            "not JSON",
            HttpReply::events("event: message_start\ndata: {\"type\":\n\n"),
        ),
        (
            "cut in the head of a stream",
            HttpReply::events("event: mess").then_cut(),
        ),
        ("gone", HttpReply::new(503, "text/plain", "").then_cut()),
    ];
    let mut lines = Vec::new();
    for (what, answer) in cases {
        lines.push(format!("{what}:\n{}", said(answer).await));
    }
    insta::assert_snapshot!(lines.join("\n\n"));
}

#[tokio::test]
async fn nobody_listens() {
    // Bound and dropped, so that no one else has it.
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let (model, clock) = retrying(anthropic(&format!("http://127.0.0.1:{port}")));
    let error = ask(&model, request()).await.error.unwrap();
    let text = error.to_string().replace(&port.to_string(), "PORT");
    insta::assert_snapshot!(text, @"the connection failed: 127.0.0.1:PORT cannot be reached: Connection refused (os error 111); check the base URL, and that a server runs there");
    // A server that starts up may need seconds; minutes would only look like a hang.
    assert_eq!(clock.waits.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn addresses_that_are_none() {
    let mut lines = Vec::new();
    for base in ["localhost:8080", "ftp://x", "not an address", "https://"] {
        let error = ask(&anthropic(base), request()).await.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Local);
        lines.push(error.to_string());
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls() {
    use tokio::io::AsyncWriteExt;
    haft_testkit::bound_this_process();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let model = anthropic(&format!("https://{host}"));
    let answering = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 X\r\n\r\n").await.unwrap();
        stream
    };
    let (heard, _open) = tokio::join!(ask(&model, request()), answering);
    let text = heard.error.unwrap().to_string().replace(&host, "HOST");
    insta::assert_snapshot!(text, @"the connection failed: HOST cannot be reached: it does not support TLS; use http:// in the base URL");
}

/// The environment of a process cannot be changed safely, so this test runs itself again in a child.
#[tokio::test]
async fn the_proxies_of_the_environment_are_used() {
    const CHILD: &str = "HAFT_TEST_BEHIND_A_PROXY";
    if std::env::var_os(CHILD).is_some() {
        let mut options = AnthropicOptions::default();
        options.base_url = "http://model.invalid".to_owned();
        let model = Anthropic::new(Http::default(), options);
        let heard = ask(&model, request()).await;
        assert_eq!(
            (heard.error, heard.reply.id.as_deref()),
            (None, Some("proxied"))
        );
        return;
    }
    let stream = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"proxied\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let server = HttpFake::start([HttpReply::events(stream)]);
    let child = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "bad::the_proxies_of_the_environment_are_used"])
        .env(CHILD, "1")
        .env("HTTP_PROXY", &server.url)
        .env("http_proxy", &server.url)
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .env_remove("REQUEST_METHOD")
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    assert!(
        child.status.success(),
        "{}",
        String::from_utf8_lossy(&child.stdout)
    );
    let line = server.requests()[0].head.lines().next().unwrap().to_owned();
    assert_eq!(line, "POST http://model.invalid/v1/messages HTTP/1.1");
}

fn impatient(url: &str, change: impl FnOnce(&mut HttpOptions)) -> Anthropic {
    let mut http = HttpOptions {
        proxies: false,
        ..HttpOptions::default()
    };
    change(&mut http);
    let mut options = AnthropicOptions::default();
    options.base_url = url.to_owned();
    Anthropic::new(Http::new(http), options)
}

#[tokio::test]
async fn silence_does_not_hang() {
    let server = HttpFake::start([HttpReply::events(": hello\n\n").then_silence()]);
    let model = impatient(&server.url, |http| {
        http.idle_timeout = Duration::from_millis(50)
    });
    let error = ask(&model, request()).await.error.unwrap();
    assert_eq!(
        error.to_string(),
        "the connection failed: nothing came for 0.05 s"
    );
}

#[tokio::test]
async fn a_server_that_never_begins_to_answer_does_not_hang() {
    haft_testkit::bound_this_process();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let model = impatient(&url, |http| {
        http.content_timeout = Duration::from_millis(50)
    });
    let error = ask(&model, request()).await.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Connection);
    assert!(
        error
            .message
            .ends_with("did not begin to answer within 0.05 s"),
        "{error}"
    );
}

#[tokio::test]
async fn an_endless_stream_ends() {
    let endless = [
        ("one line", b"xxxxxxxxxxxxxxxx".repeat(64)),
        ("data of one event", b"data: xxxxxxxxxx\n".repeat(64)),
        (
            "pings",
            b"event: ping\ndata: {\"type\":\"ping\"}\n\n".repeat(64),
        ),
        ("comments", b": still here\n\n".repeat(64)),
    ];
    let mut lines = Vec::new();
    for (what, chunk) in endless {
        let server = HttpFake::start([HttpReply::events(chunk).endless()]);
        let model = impatient(&server.url, |http| {
            (http.max_response_bytes, http.max_event_bytes) = (4 << 20, 1 << 20);
        });
        let error = ask(&model, request()).await.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Protocol, "{what}");
        lines.push(format!("{what}: {error}"));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test]
async fn a_tool_input_of_30_megabytes_is_answered_and_not_run() {
    let event = |value: serde_json::Value| format!("data: {value}\n\n");
    let mut stream = event(json!({"type": "message_start", "message": {"id": "m"}}));
    let tool = json!({"type": "tool_use", "id": "a", "name": "Write", "input": {}});
    stream += &event(json!({"type": "content_block_start", "index": 0, "content_block": tool}));
    let delta = |json: &str| {
        let delta = json!({"type": "input_json_delta", "partial_json": json});
        event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    };
    stream += &delta("{\"content\":\"");
    let megabyte = delta(&"x".repeat(1 << 20));
    for _ in 0..30 {
        stream += &megabyte;
    }
    stream += &delta("\"}");
    stream += &event(json!({"type": "content_block_stop", "index": 0}));
    stream += &event(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
    stream += &event(json!({"type": "message_stop"}));
    let server = HttpFake::start([HttpReply::events(stream).in_chunks_of(65_536)]);
    let heard = ask(&anthropic(&server.url), request()).await;
    assert_eq!(heard.error, None);
    let bad = heard.handed_out[0].input.clone().unwrap_err();
    let text = bad.to_string();
    assert!(text.len() < 600, "{}", text.len());
    assert!(
        text.contains("it is longer than 16 MiB; make several smaller calls"),
        "{text}"
    );
    assert!(
        text.contains("(31457294 bytes) began: {\"content\":\"xxx"),
        "{text}"
    );
    // The history can go on with it.
    let mut conversation = Conversation::new();
    conversation.user([Content::text("write")]);
    conversation
        .assistant(heard.reply.message, vec![ToolResult::error("a", text)])
        .unwrap();
}

fn image(size: usize) -> Content {
    Content::Image {
        source: MediaSource::Base64 {
            media_type: "image/png".to_owned(),
            data: "A".repeat(size),
        },
    }
}

/// A conversation with an image of the user's, one in a result, and one of the user's at the end.
fn pictures(second: usize) -> Conversation {
    let mut conversation = Conversation::new();
    conversation.user([Content::text("look"), image(8)]);
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}]});
    let mut result = ToolResult::text("a", "this");
    result.content.push(image(second));
    conversation
        .assistant(serde_json::from_value(call).unwrap(), vec![result])
        .unwrap();
    let reply = json!({"role": "assistant", "content": "seen"});
    conversation
        .assistant(serde_json::from_value(reply).unwrap(), vec![])
        .unwrap();
    conversation.user([image(8)]);
    conversation
}

#[tokio::test]
async fn an_image_that_is_refused_is_left_out() {
    let good = "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let named = "messages.2.content.0.tool_result.content.1.image.source.base64: image exceeds 5 MB maximum: 6 > 5";
    let unnamed = "image dimensions exceed max allowed size: 8000 pixels";
    let cases = [
        ("by its place", 400, named, pictures(8), vec![2]),
        ("by its size", 400, unnamed, pictures(6 << 20), vec![2]),
        ("the last one", 400, unnamed, pictures(8), vec![4]),
        (
            "a model without eyes",
            400,
            "this model does not support image input",
            pictures(8),
            vec![0, 2, 4],
        ),
        (
            "all of them",
            413,
            "Request exceeds the maximum size",
            pictures(8),
            vec![0, 2, 4],
        ),
    ];
    for (what, status, message, mut conversation, expected) in cases {
        let kind = if status == 413 {
            "request_too_large"
        } else {
            "invalid_request_error"
        };
        let server = HttpFake::start([
            HttpReply::error(status, kind, message),
            HttpReply::events(good),
        ]);
        let (model, clock) = retrying(anthropic(&server.url));
        let request = ModelRequest::new(
            "m",
            Arc::new(RequestPrefix::default()),
            conversation.history(),
        );
        let heard = ask(&model, request).await;
        assert_eq!(heard.error, None, "{what}");
        assert_eq!(
            heard.notes(),
            [format!("images dropped {expected:?}")],
            "{what}"
        );
        assert_eq!(clock.waits.lock().unwrap().len(), 0, "{what}");
        let with_images = |body: &serde_json::Value| -> Vec<usize> {
            let messages = body["messages"].as_array().unwrap().iter().enumerate();
            let found =
                messages.filter(|(_, message)| message.to_string().contains(r#""type":"image""#));
            found.map(|(index, _)| index).collect()
        };
        let second = &server.requests()[1].body;
        let left: Vec<usize> = [0, 2, 4]
            .into_iter()
            .filter(|index| !expected.contains(index))
            .collect();
        assert_eq!(with_images(second), left, "{what}");
        assert!(second.to_string().contains("[image left out: "), "{what}");
        // And for good.
        conversation.drop_images(&expected, "[image left out]");
        let request = ModelRequest::new(
            "m",
            Arc::new(RequestPrefix::default()),
            conversation.history(),
        );
        ask(&model, request).await;
        assert_eq!(with_images(&server.requests()[2].body), left, "{what}");
    }
}

#[tokio::test]
async fn images_are_left_out_once_and_then_the_error_is_told() {
    let server = HttpFake::start([HttpReply::error(
        400,
        "invalid_request_error",
        "image exceeds 5 MB maximum",
    )]);
    let (model, _) = retrying(anthropic(&server.url));
    let request = ModelRequest::new(
        "m",
        Arc::new(RequestPrefix::default()),
        pictures(8).history(),
    );
    let heard = ask(&model, request).await;
    assert_eq!(
        (heard.kind(), server.requests().len()),
        (Some(ErrorKind::BadRequest), 2)
    );
}

#[tokio::test]
async fn an_answer_in_gzip_is_unpacked() {
    let plain = b"data: {\"type\":\"message_start\",\"message\":{\"id\":\"zipped\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let answer = HttpReply::events(gzip(plain))
        .header("content-encoding", "gzip")
        .in_chunks_of(7);
    let server = HttpFake::start([answer]);
    let heard = ask(&anthropic(&server.url), request()).await;
    assert_eq!(
        (heard.error, heard.reply.id.as_deref()),
        (None, Some("zipped"))
    );
}

/// Stored, not compressed: a valid gzip file all the same.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(bytes);
    let crc = bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    });
    out.extend((!crc).to_le_bytes());
    out.extend(u32::from(length).to_le_bytes());
    out
}

#[test]
fn codes_of_stream_json() {
    use ErrorKind::{
        Auth, BadRequest, Billing, Connection, ContextTooLong, NotFound, Overloaded, Permission,
        RateLimited, TooLarge,
    };
    let code = |kind| ModelError::new(kind, "").code();
    let kinds = [
        Auth,
        Permission,
        Billing,
        NotFound,
        BadRequest,
        ContextTooLong,
        TooLarge,
        RateLimited,
        Overloaded,
        ErrorKind::Server,
        Connection,
    ];
    let codes: Vec<&str> = kinds.into_iter().map(code).collect();
    assert_eq!(
        codes,
        [
            "authentication_failed",
            "authentication_failed",
            "billing_error",
            "model_not_found",
            "invalid_request",
            "invalid_request",
            "invalid_request",
            "rate_limit",
            "overloaded",
            "server_error",
            "server_error",
        ]
    );
}
