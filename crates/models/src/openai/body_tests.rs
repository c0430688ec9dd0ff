use std::sync::Arc;

use super::*;
use crate::{Conversation, Message, RequestPrefix, SystemBlock};

const ACCEPTED: AcceptedFields = AcceptedFields {
    stream_options: true,
    max_completion_tokens: false,
};

fn image() -> Content {
    Content::Image {
        source: MediaSource::Base64 {
            media_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
        },
    }
}

fn request() -> ModelRequest {
    let schema = json!({"type": "object", "additionalProperties": false});
    let tool = ToolDefinition {
        name: "Read".to_owned(),
        description: "Reads.".to_owned(),
        input_schema: schema,
    };
    let system = vec![SystemBlock::stable("Be good."), SystemBlock::new("Here.")];
    let mut conversation = Conversation::new();
    conversation.user([Content::text("read"), Content::text("it")]);
    let thinking = Block::Thinking {
        thinking: "hm".to_owned(),
        signature: String::new(),
        details: vec![json!({"type": "reasoning.text", "text": "hm"})],
    };
    let call = |id: &str, extra: Map<String, Value>| Block::ToolUse {
        id: id.to_owned(),
        name: "Read".to_owned(),
        input: json!({"p": 1}),
        extra,
    };
    let signed = Map::from_iter([("extra_content".to_owned(), json!({"s": 1}))]);
    let reply = vec![
        thinking,
        call("a", signed),
        call("toolu:with/odd characters", Map::new()),
    ];
    let mut shown = ToolResult::text("a", "see");
    shown.content.push(image());
    let failed = ToolResult::error("toolu:with/odd characters", "no such file");
    conversation
        .assistant(Message::assistant(reply, "m"), vec![shown, failed])
        .unwrap();
    conversation.user([Content::text("well?"), image()]);
    conversation
        .assistant(Message::assistant(vec![Block::text("well.")], "m"), vec![])
        .unwrap();
    conversation.user([Content::text("ok")]);
    ModelRequest::new(
        "m",
        Arc::new(RequestPrefix::new(system, vec![tool])),
        conversation.history(),
    )
}

fn sent(request: &ModelRequest, quirks: &Quirks) -> Value {
    serde_json::from_slice(&body(request, quirks, ACCEPTED)).unwrap()
}

#[test]
fn a_whole_request() {
    insta::assert_json_snapshot!(sent(&request(), &Quirks::default()));
}

#[test]
fn the_same_for_a_server_with_every_quirk() {
    let quirks = Quirks {
        max_completion_tokens: true,
        developer_role: true,
        no_null_content: true,
        echo_reasoning: EchoReasoning::Details,
        strict_alternation: true,
        nine_character_ids: true,
        tool_name_in_result: true,
        plain_schemas: true,
        think_tags: true,
        printed_calls: true,
    };
    insta::assert_json_snapshot!(sent(&request(), &quirks));
}

#[test]
fn reasoning_goes_back_only_where_it_is_wanted_and_to_whom_it_is_of() {
    let mut request = request();
    let echoed = |request: &ModelRequest, echo_reasoning| {
        let quirks = Quirks {
            echo_reasoning,
            ..Quirks::default()
        };
        sent(request, &quirks)["messages"][2].clone()
    };
    let message = echoed(&request, EchoReasoning::Content);
    assert_eq!(message["reasoning_content"], "hm");
    let message = echoed(&request, EchoReasoning::No);
    assert_eq!(message.get("reasoning_content"), None);
    request.model = "other".to_owned();
    let message = echoed(&request, EchoReasoning::Content);
    assert_eq!(message.get("reasoning_content"), None);
}

#[test]
fn parameters_of_a_request() {
    let mut variants = Vec::new();
    let mut add = |accepted: AcceptedFields, change: &dyn Fn(&mut ModelRequest)| {
        let mut request = request();
        change(&mut request);
        variants.push(parameters(&request, accepted).to_string());
    };
    let other = AcceptedFields {
        stream_options: false,
        max_completion_tokens: true,
    };
    add(other, &|_| {});
    add(ACCEPTED, &|request| request.temperature = Some(0.5));
    add(ACCEPTED, &|request| {
        (request.temperature, request.effort) = (Some(0.5), Some("high".to_owned()));
    });
    add(ACCEPTED, &|request| request.tool_choice = ToolChoice::Any);
    add(ACCEPTED, &|request| request.tool_choice = ToolChoice::None);
    add(ACCEPTED, &|request| {
        request.tool_choice = ToolChoice::Tool("Read".to_owned())
    });
    add(ACCEPTED, &|request| request.parallel_calls = false);
    add(ACCEPTED, &|request| {
        request.stop_sequences = vec!["END".to_owned()]
    });
    add(ACCEPTED, &|request| {
        request.output_schema = Some(json!({"type": "object"}))
    });
    insta::assert_snapshot!(variants.join("\n"));
}

#[test]
fn no_tools_no_key() {
    let mut request = request();
    request.prefix = Arc::new(RequestPrefix::new(vec![], vec![]));
    let body = sent(&request, &Quirks::default());
    assert_eq!(body.get("tools"), None);
    assert_eq!(body["messages"][0]["role"], "user");
}
