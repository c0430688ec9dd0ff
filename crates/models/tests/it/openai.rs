use haft_models::{
    Block, ErrorKind, OpenAi, StopReason, Usage,
    openai::{OpenAiOptions, Quirks},
};
use haft_testkit::http::{HttpFake, HttpReply, header};
use serde_json::{Value, json};

use crate::ask::{Heard, ask, http, openai, request, retrying};

fn chunk(value: Value) -> String {
    format!("data: {value}\n\n")
}

fn delta(delta: Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
    chunk(json!({"id": "c1", "model": "m-1", "choices": [choice]}))
}

fn finish(reason: Value) -> String {
    let choice = json!({"index": 0, "delta": {}, "finish_reason": reason});
    chunk(json!({"id": "c1", "choices": [choice]}))
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": "R", "arguments": arguments}}]})
}

const DONE: &str = "data: [DONE]\n\n";

async fn heard(stream: impl Into<String>) -> Heard {
    let server = HttpFake::start([HttpReply::events(stream.into())]);
    ask(&openai(&server.url), request()).await
}

#[tokio::test]
async fn vector_11_calls_count_whatever_the_reason_to_finish() {
    for reason in [
        json!("stop"),
        json!("tool_calls"),
        json!("eos"),
        json!(null),
    ] {
        let heard = heard(delta(call("a", "{}")) + &finish(reason.clone()) + DONE).await;
        assert_eq!(heard.calls(), ["a R {}"], "{reason}");
        assert_eq!(heard.reply.stop, Some(StopReason::ToolUse), "{reason}");
    }
}

#[tokio::test]
async fn vector_12_a_call_that_was_cut_off_is_not_run() {
    let heard = heard(delta(call("a", r#"{"x":"#)) + &finish(json!("length")) + DONE).await;
    let bad = heard.handed_out[0].input.clone().unwrap_err();
    assert_eq!(bad.beginning, r#"{"x":"#);
    assert_eq!(heard.reply.stop, Some(StopReason::MaxTokens));
}

#[tokio::test]
async fn vector_13_usage_comes_at_the_end_or_on_the_way_or_not_at_all() {
    let details = json!({"cached_tokens": 4});
    let usage =
        json!({"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": details});
    let said = delta(json!({"content": "hi"}));
    let expected = Usage {
        input: 6,
        output: 3,
        cache_read: 4,
        ..Usage::default()
    };
    let last = chunk(json!({"choices": [], "usage": usage}));
    let heard_last = heard(said.clone() + &finish(json!("stop")) + &last + DONE).await;
    assert_eq!(heard_last.reply.usage, expected);
    let choice = json!({"delta": {"content": "hi"}, "finish_reason": "stop"});
    let riding = chunk(json!({"choices": [choice], "usage": usage})) + DONE;
    assert_eq!(heard(riding).await.reply.usage, expected);
    let none = heard(said + &finish(json!("stop")) + DONE)
        .await
        .reply
        .usage;
    assert!(
        none.estimated && none.input > 10 && none.output == 1,
        "{none:?}"
    );
}

#[tokio::test]
async fn vector_14_a_missing_end_is_forgiven_after_the_reason_to_finish() {
    let stream = delta(json!({"content": "hi"})) + &finish(json!("stop"));
    for answer in [
        HttpReply::events(stream.clone()),
        HttpReply::events(stream.clone()).then_cut(),
    ] {
        let server = HttpFake::start([answer]);
        let heard = ask(&openai(&server.url), request()).await;
        assert_eq!((heard.error.as_ref(), heard.text().as_str()), (None, "hi"));
    }
    let lost = heard(delta(json!({"content": "hi"}))).await;
    assert_eq!(lost.kind(), Some(ErrorKind::Connection));
    let cut_inside = stream.trim_end_matches("}\n\n").to_owned();
    assert_eq!(heard(cut_inside).await.kind(), Some(ErrorKind::Connection));
}

#[tokio::test]
async fn vector_15_reasoning_under_each_of_its_names() {
    for name in [
        "reasoning_content",
        "reasoning",
        "reasoning_text",
        "thinking",
    ] {
        let stream = delta(json!({name: "a", "content": null})) + &delta(json!({"content": "b"}));
        let heard = heard(stream + &finish(json!("stop")) + DONE).await;
        let thinking = Block::Thinking {
            thinking: "a".to_owned(),
            signature: String::new(),
            details: vec![],
        };
        assert_eq!(
            heard.reply.message.content,
            [thinking, Block::text("b")],
            "{name}"
        );
    }
    let detail = json!({"type": "reasoning.encrypted", "data": "x", "index": 0});
    let stream = delta(json!({"reasoning_details": [detail]})) + &finish(json!("stop")) + DONE;
    let Block::Thinking { details, .. } = heard(stream).await.reply.message.content.remove(0)
    else {
        panic!("no thinking");
    };
    assert_eq!(details, [detail]);
}

#[tokio::test]
async fn a_stream_cut_in_two_at_every_byte() {
    let entry = json!({"tool_calls": [{"index": 0, "function": {"arguments": ":\"é🙂\"}"}}]});
    let stream = delta(json!({"content": "hé"})).replace('\n', "\r\n")
        + ": keep-alive\n\n"
        + &delta(call("a", r#"{"x""#)).replace("data: ", "data:")
        + &delta(entry)
        + &finish(json!("tool_calls"))
        + DONE;
    let answers = (0..stream.len()).map(|at| HttpReply::events(stream.clone()).split_at(at));
    let server = HttpFake::start(answers);
    let model = openai(&server.url);
    for at in 0..stream.len() {
        let heard = ask(&model, request()).await;
        assert_eq!(heard.error, None, "at {at}");
        assert_eq!(heard.calls(), [r#"a R {"x":"é🙂"}"#], "at {at}");
        assert_eq!(heard.text(), "hé", "at {at}");
    }
}

#[tokio::test]
async fn an_error_in_the_stream_is_the_error_it_names() {
    let said = delta(json!({"content": "hi"}));
    let cases = [
        (
            chunk(json!({"error": {"message": "slow down", "code": 429}})),
            ErrorKind::RateLimited,
        ),
        (
            chunk(json!({"error": {"message": "x", "type": "server_error"}})),
            ErrorKind::Server,
        ),
        (
            "event: error\ndata: {\"error\":{\"message\":\"x\",\"code\":401}}\n\n".to_owned(),
            ErrorKind::Auth,
        ),
        ("data: {not json\n\n".to_owned(), ErrorKind::Protocol),
    ];
    for (last, kind) in cases {
        assert_eq!(
            heard(said.clone() + &last).await.kind(),
            Some(kind),
            "{last}"
        );
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let calls = json!([{"id": "a", "type": "function", "function": {"name": "R", "arguments": "{\"x\":1}"}}]);
    let message = json!({"role": "assistant", "content": "so", "tool_calls": calls});
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 2});
    let body = json!({"id": "c1", "choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": usage});
    let server = HttpFake::start([HttpReply::new(
        200,
        "application/json; charset=utf-8",
        body.to_string(),
    )]);
    let heard = ask(&openai(&server.url), request()).await;
    assert_eq!(heard.calls(), [r#"a R {"x":1}"#]);
    assert_eq!((heard.text().as_str(), heard.reply.usage.input), ("so", 5));
}

#[tokio::test]
async fn whole_answers_that_cannot_be_used() {
    let cases: [(&[u8], ErrorKind); 4] = [
        (
            b"{\"choices\":[{\"message\":{\"content\":\"\xff\"}}]}",
            ErrorKind::Protocol,
        ),
        (b"{\"choices\":[", ErrorKind::Protocol),
        (b"{\"hello\":1}", ErrorKind::Protocol),
        (
            b"{\"error\":{\"message\":\"x\",\"code\":429}}",
            ErrorKind::RateLimited,
        ),
    ];
    for (body, kind) in cases {
        let server = HttpFake::start([HttpReply::new(200, "application/json", body)]);
        let heard = ask(&openai(&server.url), request()).await;
        assert_eq!(
            heard.kind(),
            Some(kind),
            "{}",
            String::from_utf8_lossy(body)
        );
    }
}

#[tokio::test]
async fn fields_that_a_server_refuses_are_left_out_from_then_on() {
    let good =
        || HttpReply::events(delta(json!({"content": "ok"})) + &finish(json!("stop")) + DONE);
    let refuse = |message: &str| HttpReply::error(400, "invalid_request_error", message);
    let server = HttpFake::start([
        refuse("Unrecognized request argument: stream_options"),
        refuse("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        good(),
        good(),
        refuse("max_completion_tokens is not known here"),
    ]);
    let model = openai(&server.url);
    for _ in 0..2 {
        assert_eq!(ask(&model, request()).await.text(), "ok");
    }
    let last = ask(&model, request()).await;
    assert_eq!(last.kind(), Some(ErrorKind::BadRequest), "no third way");
    let keys: Vec<String> = server
        .requests()
        .iter()
        .map(|seen| {
            let keys = seen.body.as_object().unwrap().keys();
            let keys = keys.filter(|key| key.contains("max_") || key.contains("stream_"));
            keys.cloned().collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(
        keys,
        [
            "stream_options max_tokens",
            "max_tokens",
            "max_completion_tokens",
            "max_completion_tokens",
            "max_completion_tokens",
        ]
    );
}

#[tokio::test]
async fn a_call_without_a_name_is_asked_for_again_once() {
    let nameless =
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]});
    let bad = || HttpReply::events(delta(nameless.clone()) + &finish(json!("tool_calls")) + DONE);
    let good = HttpReply::events(delta(json!({"content": "ok"})) + &finish(json!("stop")) + DONE);
    let server = HttpFake::start([bad(), good]);
    assert_eq!(ask(&openai(&server.url), request()).await.text(), "ok");
    let server = HttpFake::start([bad()]);
    let heard = ask(&openai(&server.url), request()).await;
    assert_eq!(
        (heard.kind(), server.requests().len()),
        (Some(ErrorKind::Protocol), 2)
    );
}

#[tokio::test]
async fn thinking_in_tags_is_told_from_text() {
    let server = HttpFake::start([HttpReply::events(
        delta(json!({"content": "<thi"}))
            + &delta(json!({"content": "nk>hm</think>\n\nhi"}))
            + &finish(json!("stop"))
            + DONE,
    )]);
    let mut options = OpenAiOptions::default();
    options.base_url.clone_from(&server.url);
    // As is known of a server on this machine.
    let heard = ask(&OpenAi::new(http(), options), request()).await;
    assert_eq!(heard.text(), "hi");
    assert!(
        matches!(&heard.reply.message.content[0], Block::Thinking { thinking, .. } if thinking == "hm")
    );
}

#[tokio::test]
async fn printed_calls_are_calls_only_where_the_server_is_known_to_print_them() {
    let stream = delta(json!({"content": "So: <tool_"}))
        + &delta(json!({"content": "call>{\"name\":\"R\",\"arguments\":{\"x\":1}}</tool_call>"}))
        + &finish(json!("stop"))
        + DONE;
    let server = HttpFake::start([HttpReply::events(stream)]);
    let with = |quirks: Quirks| {
        let mut options = OpenAiOptions::default();
        options.base_url.clone_from(&server.url);
        options.quirks = Some(quirks);
        OpenAi::new(http(), options)
    };
    let mut prints = Quirks::default();
    prints.printed_calls = true;
    let heard = ask(&with(prints), request()).await;
    assert_eq!(heard.text(), "So:");
    assert_eq!(heard.handed_out[0].input, Ok(json!({"x": 1})));
    let heard = ask(&with(Quirks::default()), request()).await;
    assert!(heard.handed_out.is_empty() && heard.text().contains("<tool_call>"));
}

#[tokio::test]
async fn a_refusal_and_a_filter_are_told() {
    let refused = delta(json!({"refusal": "I will not."})) + &finish(json!("stop")) + DONE;
    let heard_refused = heard(refused).await;
    assert_eq!(
        (heard_refused.text().as_str(), heard_refused.reply.stop),
        ("I will not.", Some(StopReason::Refusal))
    );
    let filtered =
        heard(delta(json!({"content": "x"})) + &finish(json!("content_filter")) + DONE).await;
    assert_eq!(filtered.reply.stop, Some(StopReason::Refusal));
}

#[tokio::test]
async fn addresses_and_keys() {
    let server = HttpFake::start([HttpReply::events(
        delta(json!({"content": "ok"})) + &finish(json!("stop")) + DONE,
    )]);
    let with = |base: &str, change: &dyn Fn(&mut OpenAiOptions)| {
        let mut options = OpenAiOptions::default();
        options.base_url = format!("{}{base}", server.url);
        options.quirks = Some(Quirks::default());
        change(&mut options);
        OpenAi::new(http(), options)
    };
    let models = [
        with("", &|_| {}),
        with("/v1/", &|options| {
            options.api_key = Some("key-1".to_owned())
        }),
        with("/openai/deployments/x", &|options| {
            options.api_key = Some("key-2".to_owned());
            options.api_key_header = true;
            options.api_version = Some("2024-10-21".to_owned());
        }),
    ];
    for model in &models {
        assert_eq!(ask(model, request()).await.text(), "ok");
    }
    let seen = server.requests();
    let lines: Vec<&str> = seen
        .iter()
        .filter_map(|seen| seen.head.lines().next())
        .collect();
    assert_eq!(
        lines,
        [
            "POST /v1/chat/completions HTTP/1.1",
            "POST /v1/chat/completions HTTP/1.1",
            "POST /openai/deployments/x/chat/completions?api-version=2024-10-21 HTTP/1.1",
        ]
    );
    assert_eq!(
        header(&seen[0].head, "authorization"),
        None,
        "a local server needs no key"
    );
    assert_eq!(header(&seen[1].head, "authorization"), Some("Bearer key-1"));
    assert_eq!(
        (
            header(&seen[2].head, "authorization"),
            header(&seen[2].head, "api-key")
        ),
        (None, Some("key-2"))
    );
}

#[tokio::test]
async fn a_lost_connection_hands_out_no_call_and_is_retried() {
    let lost = delta(call("a", "{}"));
    let whole = delta(call("b", "{}")) + &finish(json!("tool_calls")) + DONE;
    let server = HttpFake::start([HttpReply::events(lost).then_cut(), HttpReply::events(whole)]);
    let (model, _) = retrying(openai(&server.url));
    assert_eq!(ask(&model, request()).await.calls(), ["b R {}"]);
}

#[tokio::test]
async fn a_call_is_handed_out_while_the_next_one_is_still_written() {
    let entry = |index: u64, id: &str, arguments: &str| {
        let function = json!({"name": "R", "arguments": arguments});
        delta(json!({"tool_calls": [{"index": index, "id": id, "function": function}]}))
    };
    let begun =
        delta(json!({"content": "so"})) + &entry(0, "a", r#"{"x":1}"#) + &entry(1, "b", r#"{"y""#);
    let rest = delta(json!({"tool_calls": [{"index": 1, "function": {"arguments": ":2}"}}]}));
    let whole = begun.clone() + &rest + &finish(json!("tool_calls")) + DONE;
    let heard_whole = heard(whole).await;
    assert_eq!(heard_whole.calls(), [r#"a R {"x":1}"#, r#"b R {"y":2}"#]);
    assert_eq!(
        (heard_whole.text().as_str(), heard_whole.reply.stop),
        ("so", Some(StopReason::ToolUse))
    );
    // Lost after that: what was handed out stands, and nothing is asked again.
    let server = HttpFake::start([HttpReply::events(begun).then_cut()]);
    let (model, _) = retrying(openai(&server.url));
    let lost = ask(&model, request()).await;
    assert_eq!(lost.calls(), [r#"a R {"x":1}"#]);
    assert_eq!(
        (lost.reply.stop, server.requests().len()),
        (Some(StopReason::CutOff), 1)
    );
}
