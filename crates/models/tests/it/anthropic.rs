mod connections;

use haft_contract::{CancellationToken, Content};
use haft_models::{
    Anthropic, Block, Conversation, ErrorKind, Message, Model, ModelEvent, ModelRequest,
    RequestPrefix, StopReason, SystemBlock, ToolResult, Usage, anthropic::AnthropicOptions,
};
use haft_testkit::http::{HttpFake, HttpReply, header};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

use crate::ask::{Heard, anthropic, ask, http, request, retrying};

/// The stream of the specification, word for word: it has no blank lines between its events.
const VECTOR: &str = include_str!("traffic/anthropic/vector.sse");

fn event(value: Value) -> String {
    format!(
        "event: {}\ndata: {value}\n\n",
        value["type"].as_str().unwrap()
    )
}

fn start() -> String {
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    event(
        json!({"type": "message_start", "message": {"id": "msg_1", "model": "m-1", "usage": usage}}),
    )
}

fn block(index: usize, block: Value, deltas: &[Value]) -> String {
    let mut text =
        event(json!({"type": "content_block_start", "index": index, "content_block": block}));
    for delta in deltas {
        text += &event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }
    text + &event(json!({"type": "content_block_stop", "index": index}))
}

fn say(index: usize, text: &str) -> String {
    block(
        index,
        json!({"type": "text", "text": ""}),
        &[json!({"type": "text_delta", "text": text})],
    )
}

fn tool(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})
}

fn json_delta(json: &str) -> Value {
    json!({"type": "input_json_delta", "partial_json": json})
}

fn call(index: usize, id: &str, json: &str) -> String {
    block(index, tool(id), &[json_delta(""), json_delta(json)])
}

fn stop(reason: &str) -> String {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    event(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}))
        + &event(json!({"type": "message_stop"}))
}

fn error(kind: &str) -> String {
    event(json!({"type": "error", "error": {"type": kind, "message": "busy"}}))
}

async fn heard(answer: HttpReply) -> Heard {
    let server = HttpFake::start([answer]);
    ask(&anthropic(&server.url), request()).await
}

fn is_the_vector(heard: &Heard) {
    let reply = &heard.reply;
    assert_eq!(heard.error, None);
    let thinking = Block::Thinking {
        thinking: "hm".to_owned(),
        signature: "S".to_owned(),
        details: vec![],
    };
    assert_eq!(reply.message.content[0], thinking);
    assert_eq!(heard.calls(), [r#"toolu_1 Read {"file_path":"/p/a"}"#]);
    let usage = Usage {
        input: 10,
        output: 42,
        cache_read: 5,
        ..Usage::default()
    };
    assert_eq!(reply.usage, usage);
    assert_eq!(reply.usage.total_input(), 15);
    assert_eq!(reply.stop, Some(StopReason::ToolUse));
    assert_eq!(reply.id.as_deref(), Some("msg_1"));
}

#[tokio::test]
async fn the_vector() {
    is_the_vector(&heard(HttpReply::events(VECTOR)).await);
    let spaced = VECTOR.replace("\nevent:", "\n\nevent:");
    is_the_vector(&heard(HttpReply::events(spaced.clone())).await);
    is_the_vector(&heard(HttpReply::events(spaced.replace('\n', "\r\n"))).await);
    is_the_vector(&heard(HttpReply::events(spaced.replace("data: ", "data:"))).await);
    // Data in several lines, cut where JSON allows it.
    let lines = spaced.replace("data: {", "data: {\ndata: ");
    is_the_vector(&heard(HttpReply::events(lines)).await);
    is_the_vector(&heard(HttpReply::events(spaced).in_chunks_of(1)).await);
}

#[tokio::test]
async fn the_vector_cut_in_two_at_every_byte() {
    let spaced = VECTOR
        .replace("\nevent:", "\n\nevent:")
        .replace("hm", "hé€🙂m");
    let answers = (0..spaced.len()).map(|at| HttpReply::events(spaced.clone()).split_at(at));
    let server = HttpFake::start(answers);
    let model = anthropic(&server.url);
    for at in 0..spaced.len() {
        let heard = ask(&model, request()).await;
        assert_eq!(heard.error, None, "at {at}");
        assert_eq!(
            heard.calls(),
            [r#"toolu_1 Read {"file_path":"/p/a"}"#],
            "at {at}"
        );
        assert!(
            format!("{:?}", heard.reply.message).contains("hé€🙂m"),
            "at {at}"
        );
    }
}

#[tokio::test]
async fn tool_input_fragmented_at_every_character() {
    let input = json!({"text": "a \"b\" \\ \n é€🙂 \u{1}", "n": [1, -2.5e3, null], "o": {"": {}}});
    let text = input.to_string();
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let mut streams: Vec<String> = Vec::new();
    for at in &ends {
        let deltas = [json_delta(&text[..*at]), json_delta(&text[*at..])];
        streams.push(start() + &block(0, tool("a"), &deltas) + &stop("tool_use"));
    }
    let single: Vec<Value> = text.chars().map(|c| json_delta(&c.to_string())).collect();
    streams.push(start() + &block(0, tool("a"), &single) + &stop("tool_use"));
    let server = HttpFake::start(
        streams
            .iter()
            .map(|stream| HttpReply::events(stream.clone())),
    );
    let model = anthropic(&server.url);
    for _ in &streams {
        let heard = ask(&model, request()).await;
        assert_eq!(heard.handed_out[0].input, Ok(input.clone()));
    }
}

#[tokio::test]
async fn vector_1_no_input_at_all_is_an_empty_object() {
    let stream = start() + &block(0, tool("a"), &[]) + &stop("tool_use");
    assert_eq!(
        heard(HttpReply::events(stream)).await.calls(),
        ["a Read {}"]
    );
    let two = start() + &block(0, tool("a"), &[]) + &call(1, "b", r#"{"x":1}"#) + &stop("tool_use");
    let heard = heard(HttpReply::events(two)).await;
    assert_eq!(heard.calls(), ["a Read {}", r#"b Read {"x":1}"#]);
}

#[tokio::test]
async fn vector_2_interleaved_blocks_are_told_apart_by_their_index() {
    let begin = |index, id| {
        event(json!({"type": "content_block_start", "index": index, "content_block": tool(id)}))
    };
    let more = |index, json| {
        event(json!({"type": "content_block_delta", "index": index, "delta": json_delta(json)}))
    };
    let end = |index| event(json!({"type": "content_block_stop", "index": index}));
    let parts = [
        start(),
        begin(0, "a"),
        begin(1, "b"),
        more(1, r#"{"y""#),
        more(0, r#"{"x""#),
        more(1, ":2}"),
        more(0, ":1}"),
        end(1),
        end(0),
        stop("tool_use"),
    ];
    let heard = heard(HttpReply::events(parts.concat())).await;
    let handed_out: Vec<&str> = heard
        .handed_out
        .iter()
        .map(|call| call.id.as_str())
        .collect();
    assert_eq!(handed_out, ["b", "a"], "as they were complete");
    let in_order: Vec<String> = heard
        .reply
        .calls
        .iter()
        .map(|call| format!("{} {}", call.id, call.input.as_ref().unwrap()))
        .collect();
    assert_eq!(in_order, [r#"a {"x":1}"#, r#"b {"y":2}"#]);
}

#[tokio::test]
async fn vector_4_an_error_after_text_is_retried_and_leaves_no_partial_text() {
    let open = event(
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "par"}}),
    );
    let failing = start() + &open + &error("overloaded_error");
    let whole = start() + &say(0, "whole") + &stop("end_turn");
    let server = HttpFake::start([HttpReply::events(failing), HttpReply::events(whole)]);
    let (model, _) = retrying(anthropic(&server.url));
    let heard = ask(&model, request()).await;
    assert_eq!(heard.notes(), ["discard", "retry 1 after 500ms: busy"]);
    assert_eq!(
        (heard.text().as_str(), heard.error.as_ref()),
        ("whole", None)
    );
}

#[tokio::test]
async fn vector_5_unknown_events_blocks_and_deltas() {
    let parts = [
        start(),
        "event: foo\ndata: not json\n\n".to_owned(),
        event(json!({"type": "bar"})),
        block(
            0,
            json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
            &[json_delta(r#"{"q":1}"#)],
        ),
        block(
            1,
            json!({"type": "text", "text": ""}),
            &[
                json!({"type": "citations_delta", "citation": {}}),
                json!({"type": "text_delta", "text": "hi"}),
            ],
        ),
        stop("end_turn"),
    ];
    let heard = heard(HttpReply::events(parts.concat())).await;
    assert_eq!((heard.error.as_ref(), heard.text().as_str()), (None, "hi"));
    let kept =
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}});
    assert_eq!(heard.reply.message.content[0], Block::Other(kept));
    assert_eq!(heard.calls(), [""; 0]);
}

#[tokio::test]
async fn vector_6_and_7_statuses_that_are_retried() {
    let good = || HttpReply::events(start() + &say(0, "ok") + &stop("end_turn"));
    let busy = |status, kind| HttpReply::error(status, kind, "busy");
    let cases = [
        (busy(529, "overloaded_error"), 500),
        (busy(500, "api_error"), 500),
        (busy(502, "api_error"), 500),
        (busy(504, "timeout_error"), 500),
        (busy(408, "x"), 500),
        (
            busy(429, "rate_limit_error").header("retry-after", "2"),
            2000,
        ),
        (
            busy(429, "rate_limit_error").header("retry-after-ms", "1200"),
            1200,
        ),
        (
            busy(400, "invalid_request_error").header("x-should-retry", "true"),
            500,
        ),
    ];
    for (answer, millis) in cases {
        let what = format!("{answer:?}");
        let server = HttpFake::start([answer, good()]);
        let (model, clock) = retrying(anthropic(&server.url));
        let heard = ask(&model, request()).await;
        assert_eq!(heard.text(), "ok", "{what}");
        assert_eq!(
            *clock.waits.lock().unwrap(),
            [Duration::from_millis(millis)],
            "{what}"
        );
        assert_eq!(heard.notes().len(), 1, "{what}");
    }
}

#[tokio::test]
async fn after_ten_retries_the_error_is_handed_on() {
    let server = HttpFake::start([HttpReply::error(529, "overloaded_error", "busy")]);
    let (model, clock) = retrying(anthropic(&server.url));
    let heard = ask(&model, request()).await;
    assert_eq!(heard.kind(), Some(ErrorKind::Overloaded));
    assert_eq!(server.requests().len(), 11);
    let seconds: Vec<f64> = clock
        .waits
        .lock()
        .unwrap()
        .iter()
        .map(Duration::as_secs_f64)
        .collect();
    assert_eq!(
        seconds,
        [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0, 32.0]
    );
}

#[tokio::test]
async fn vector_8_a_history_without_a_result_is_repaired_before_it_is_sent() {
    let log = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}]},
    ]);
    let (conversation, repairs) =
        Conversation::load(serde_json::from_value::<Vec<Message>>(log).unwrap());
    assert_eq!(repairs.len(), 1);
    let server = HttpFake::start([HttpReply::events(
        start() + &say(0, "ok") + &stop("end_turn"),
    )]);
    let request = ModelRequest::new(
        "m",
        Arc::new(RequestPrefix::default()),
        conversation.history(),
    );
    ask(&anthropic(&server.url), request).await;
    let result = &server.requests()[0].body["messages"][2]["content"][0];
    assert_eq!(
        (&result["type"], &result["tool_use_id"], &result["is_error"]),
        (&json!("tool_result"), &json!("a"), &json!(true))
    );
}

#[tokio::test]
async fn vector_10_a_call_that_was_cut_off_by_the_limit_is_not_run() {
    let cut = start() + &call(0, "a", r#"{"file_path":"/p"#) + &stop("max_tokens");
    let heard_cut = heard(HttpReply::events(cut)).await;
    let bad = heard_cut.handed_out[0].input.clone().unwrap_err();
    insta::assert_snapshot!(bad.to_string(), @r#"The call was not run, because its input cannot be used: the JSON is cut off (EOF while parsing a string at line 1 column 16). Send the call again with a complete JSON object. The input was: {"file_path":"/p"#);
    // Not even begun.
    for reason in ["max_tokens", "model_context_window_exceeded", "refusal"] {
        let empty = start() + &block(0, tool("a"), &[json_delta("")]) + &stop(reason);
        let heard_empty = heard(HttpReply::events(empty)).await;
        assert_eq!(
            heard_empty.calls(),
            ["a Read bad: the reply was cut off before it"],
            "{reason}"
        );
    }
    // No end of the block: dropped.
    let begin =
        event(json!({"type": "content_block_start", "index": 1, "content_block": tool("b")}));
    let open = start() + &say(0, "x") + &begin + &stop("max_tokens");
    let heard_open = heard(HttpReply::events(open)).await;
    assert!(heard_open.reply.incomplete && heard_open.reply.calls.is_empty());
}

#[tokio::test]
async fn calls_are_recognised_by_their_blocks_whatever_the_reason_to_stop() {
    for reason in ["end_turn", "stop_sequence", "something_new"] {
        let stream = start() + &call(0, "a", "{}") + &stop(reason);
        assert_eq!(
            heard(HttpReply::events(stream)).await.calls(),
            ["a Read {}"],
            "{reason}"
        );
    }
}

#[tokio::test]
async fn addresses_and_headers() {
    let good = || HttpReply::events(start() + &say(0, "ok") + &stop("end_turn"));
    let server = HttpFake::start([good()]);
    for base in ["", "/", "/v1", "/v1/", "/proxy"] {
        ask(&anthropic(&format!("{}{base}", server.url)), request()).await;
    }
    let mut options = AnthropicOptions::default();
    options.base_url.clone_from(&server.url);
    options.auth_token = Some("token-1".to_owned());
    options.betas = vec!["one".to_owned(), "two".to_owned()];
    options.custom_headers = "X-Mine: yes".to_owned();
    ask(&Anthropic::new(http(), options), request()).await;
    let seen = server.requests();
    let lines: Vec<&str> = seen
        .iter()
        .filter_map(|seen| seen.head.lines().next())
        .collect();
    assert_eq!(
        lines,
        [
            "POST /v1/messages HTTP/1.1",
            "POST /v1/messages HTTP/1.1",
            "POST /v1/messages HTTP/1.1",
            "POST /v1/messages HTTP/1.1",
            "POST /proxy/v1/messages HTTP/1.1",
            "POST /v1/messages HTTP/1.1",
        ]
    );
    let value = |index: usize, name: &str| header(&seen[index].head, name).map(str::to_owned);
    assert_eq!(value(0, "x-api-key").as_deref(), Some("key-1"));
    assert_eq!(value(0, "anthropic-version").as_deref(), Some("2023-06-01"));
    assert_eq!(
        value(0, "content-type").as_deref(),
        Some("application/json")
    );
    assert_eq!(value(0, "accept").as_deref(), Some("text/event-stream"));
    assert_eq!(value(5, "authorization").as_deref(), Some("Bearer token-1"));
    assert_eq!(value(5, "x-api-key"), None);
    assert_eq!(value(5, "anthropic-beta").as_deref(), Some("one,two"));
    assert_eq!(value(5, "x-mine").as_deref(), Some("yes"));
}

#[tokio::test]
async fn cancelling_ends_a_reply_and_closes_the_connection() {
    use futures_util::StreamExt;
    let stream = start() + &say(0, "first");
    let server = HttpFake::start([HttpReply::events(stream).then_silence()]);
    let cancel = CancellationToken::new();
    let (model, _) = retrying(anthropic(&server.url));
    let mut events = model.stream(request(), cancel.clone());
    let mut last = None;
    while let Some(event) = events.next().await {
        if matches!(event, Ok(ModelEvent::BlockStop { .. })) {
            cancel.cancel();
        }
        last = Some(event);
    }
    assert_eq!(last.unwrap().unwrap_err().kind, ErrorKind::Cancelled);
}

#[tokio::test]
async fn a_second_turn_repeats_the_first_byte_for_byte_but_for_its_marks() {
    let first = start() + &say(0, "so") + &call(1, "a", r#"{"x":1}"#) + &stop("tool_use");
    let server = HttpFake::start([HttpReply::events(first)]);
    let model = anthropic(&server.url);
    let prefix = Arc::new(RequestPrefix::new(vec![SystemBlock::stable("s")], vec![]));
    let mut conversation = Conversation::new();
    conversation.user([Content::text("hello")]);
    let heard = ask(
        &model,
        ModelRequest::new("m", prefix.clone(), conversation.history()),
    )
    .await;
    assert_eq!(
        heard.reply.message.model.as_deref(),
        Some("m"),
        "as it was asked, not as it calls itself"
    );
    assert_eq!(heard.reply.model.as_deref(), Some("m-1"));
    conversation
        .assistant(heard.reply.message, vec![ToolResult::text("a", "ok")])
        .unwrap();
    ask(
        &model,
        ModelRequest::new("m", prefix, conversation.history()),
    )
    .await;
    let bodies: Vec<Value> = server
        .requests()
        .into_iter()
        .map(|seen| seen.body)
        .collect();
    assert_eq!(bodies[0]["system"], bodies[1]["system"]);
    assert_eq!(
        bodies[0]["messages"][0], bodies[1]["messages"][0],
        "marked in both"
    );
    assert_eq!(
        bodies[1]["messages"][1]["content"],
        json!([
            {"type": "text", "text": "so"},
            {"type": "tool_use", "id": "a", "name": "Read", "input": {"x": 1}},
        ])
    );
}

#[tokio::test]
async fn how_long_a_request_is_and_which_models_there_are() {
    let json = |text: &str| HttpReply::new(200, "application/json", text);
    let server = HttpFake::start([
        json(r#"{"input_tokens":2095}"#),
        json(r#"{"data":[{"type":"model","id":"m-1","display_name":"M One"}],"has_more":false}"#),
        json("{}"),
        HttpReply::error(401, "authentication_error", "invalid x-api-key"),
    ]);
    let model = anthropic(&server.url);
    let cancel = CancellationToken::new();
    assert_eq!(model.count_tokens(&request(), &cancel).await, Ok(2095));
    let models = model.models(&cancel).await.unwrap();
    assert_eq!(
        (models[0].id.as_str(), models[0].display_name.as_str()),
        ("m-1", "M One")
    );
    let kind = |error: haft_models::ModelError| error.kind;
    assert_eq!(
        model.models(&cancel).await.map_err(kind),
        Err(ErrorKind::Protocol)
    );
    assert_eq!(
        model.models(&cancel).await.map_err(kind),
        Err(ErrorKind::Auth)
    );
    let seen = server.requests();
    let lines: Vec<&str> = seen
        .iter()
        .filter_map(|seen| seen.head.lines().next())
        .collect();
    assert_eq!(
        lines[..2],
        [
            "POST /v1/messages/count_tokens HTTP/1.1",
            "GET /v1/models?limit=1000 HTTP/1.1"
        ]
    );
    let keys: Vec<&String> = seen[0].body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "messages"]);
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": null,
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "S"},
            {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/p/a"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 10, "output_tokens": 42, "cache_read_input_tokens": 5},
    });
    let json = "application/json; charset=utf-8";
    is_the_vector(&heard(HttpReply::new(200, json, message.to_string())).await);
    let cases = [
        (
            r#"{"content":[{"type":"text","text":"a"}]}"#,
            ErrorKind::Connection,
        ),
        (r#"{"hello":1}"#, ErrorKind::Protocol),
        (r#"{"content":["#, ErrorKind::Protocol),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
            ErrorKind::Overloaded,
        ),
    ];
    for (body, kind) in cases {
        let heard = heard(HttpReply::new(200, json, body)).await;
        assert_eq!(heard.kind(), Some(kind), "{body}");
    }
}
