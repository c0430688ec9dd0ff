use std::sync::Arc;

use haft_contract::output::MediaSource;
use proptest::prelude::*;

use super::*;
use crate::{Conversation, RequestPrefix, SystemBlock, ToolDefinition};

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: format!("{name}s things"),
        input_schema: json!({"type": "object", "properties": {"b": {}, "a": {}}}),
    }
}

fn prefix() -> Arc<RequestPrefix> {
    let system = vec![
        SystemBlock::stable("Be good."),
        SystemBlock::new("Here is a project."),
    ];
    Arc::new(RequestPrefix::new(
        system,
        vec![tool("Read"), tool("Write")],
    ))
}

fn use_of(id: &str) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: "Read".to_owned(),
        input: json!({"file_path": "/p/a"}),
        extra: serde_json::Map::from_iter([("extra_content".to_owned(), json!(1))]),
    }
}

/// Thinking, a call and its result, with an image in it.
fn conversation() -> Conversation {
    let mut conversation = Conversation::new();
    conversation.user([Content::text("read it")]);
    let thinking = Block::Thinking {
        thinking: "hm".to_owned(),
        signature: "S".to_owned(),
        details: vec![],
    };
    let reply = Message::assistant(
        vec![thinking, Block::text("so"), use_of("t1"), use_of("t:2")],
        "m",
    );
    let mut shown = ToolResult::text("t1", "see");
    shown.content.push(Content::Image {
        source: MediaSource::Base64 {
            media_type: "image/png".to_owned(),
            data: "AAAA".to_owned(),
        },
    });
    shown.content.push(Content::Document {
        source: MediaSource::Base64 {
            media_type: "application/pdf".to_owned(),
            data: "BBBB".to_owned(),
        },
    });
    let failed = ToolResult::error("t:2", " ");
    conversation.assistant(reply, vec![shown, failed]).unwrap();
    conversation
}

fn request() -> ModelRequest {
    ModelRequest::new("m", prefix(), conversation().history())
}

fn sent(request: &ModelRequest) -> Value {
    serde_json::from_slice(&body(request, false)).unwrap()
}

fn marks(body: &[u8]) -> usize {
    let text = std::str::from_utf8(body).unwrap();
    text.matches(r#""cache_control""#).count()
}

#[test]
fn a_whole_request() {
    insta::assert_json_snapshot!(sent(&request()));
}

#[test]
fn parameters_of_a_request() {
    let mut variants = Vec::new();
    let mut add = |change: &dyn Fn(&mut ModelRequest)| {
        let mut request = request();
        change(&mut request);
        let mut parameters = json!({"max_tokens": request.max_tokens});
        settings(&request, &mut parameters);
        variants.push(parameters);
    };
    add(&|request| request.thinking = ThinkingMode::Budget(10));
    add(&|request| request.thinking = ThinkingMode::Budget(100_000));
    add(&|request| (request.max_tokens, request.thinking) = (1000, ThinkingMode::Budget(2000)));
    add(&|request| (request.thinking, request.temperature) = (ThinkingMode::Adaptive, Some(0.5)));
    add(&|request| request.temperature = Some(0.5));
    add(&|request| {
        (request.thinking, request.tool_choice) = (ThinkingMode::Adaptive, ToolChoice::Any)
    });
    add(&|request| request.tool_choice = ToolChoice::Tool("Read".to_owned()));
    add(&|request| (request.tool_choice, request.parallel_calls) = (ToolChoice::None, false));
    add(&|request| request.parallel_calls = false);
    add(&|request| request.effort = Some("high".to_owned()));
    add(&|request| request.output_schema = Some(json!({"type": "object"})));
    add(&|request| request.stop_sequences = vec!["END".to_owned()]);
    let lines: Vec<String> = variants.iter().map(Value::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn thinking_goes_to_no_other_model() {
    let mut request = request();
    request.model = "other".to_owned();
    let body = sent(&request);
    let types: Vec<&Value> = body["messages"][1]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(types, ["text", "tool_use", "tool_use"]);
}

#[test]
fn a_history_is_serialized_once_and_the_prefix_is_the_same_bytes_each_time() {
    let prefix = prefix();
    let mut conversation = conversation();
    let first = ModelRequest::new("m", prefix.clone(), conversation.history());
    let before = body(&first, false);
    let written = |request: &ModelRequest| -> Vec<*const u8> {
        let entries = request.history.entries().iter();
        entries
            .map(|entry| fragment(entry, request).bytes.as_ptr())
            .collect()
    };
    let pointers = written(&first);
    let reply = Message::assistant(vec![use_of("t3")], "m");
    conversation
        .assistant(reply, vec![ToolResult::text("t3", "ok")])
        .unwrap();
    let second = ModelRequest::new("m", prefix, conversation.history());
    let after = body(&second, false);
    assert_eq!(written(&second)[..pointers.len()], pointers);
    // The same up to the messages, which only move their marks.
    let end = before
        .windows(12)
        .position(|window| window == br#""messages":["#)
        .unwrap();
    assert_eq!(before[..end], after[..end]);
    let unmarked = |body: &[u8]| String::from_utf8_lossy(body).replace(FIVE_MINUTES, "");
    let (before, after) = (unmarked(&before), unmarked(&after));
    assert!(
        after.starts_with(before.trim_end_matches("]}")),
        "{before}\n{after}"
    );
}

#[test]
fn the_mark_of_one_request_is_where_the_last_mark_of_the_request_before_was() {
    let mut conversation = conversation();
    let marked = |conversation: &Conversation| -> Vec<usize> {
        let body = sent(&ModelRequest::new("m", prefix(), conversation.history()));
        let messages = body["messages"].as_array().unwrap().iter().enumerate();
        let marked = messages.filter(|(_, message)| message.to_string().contains("cache_control"));
        marked.map(|(index, _)| index).collect()
    };
    assert_eq!(marked(&conversation), [0, 2]);
    let reply = Message::assistant(vec![use_of("t3")], "m");
    conversation
        .assistant(reply, vec![ToolResult::text("t3", "ok")])
        .unwrap();
    assert_eq!(marked(&conversation), [2, 4]);
}

#[test]
fn a_last_message_of_the_model_does_not_end_in_white_space() {
    let mut conversation = conversation();
    let paused = Message::assistant(vec![Block::text("and so \n")], "m");
    conversation.assistant(paused, vec![]).unwrap();
    let body = sent(&ModelRequest::new("m", prefix(), conversation.history()));
    assert_eq!(body["messages"][3]["content"][0]["text"], "and so");
}

#[test]
fn a_message_does_not_end_in_thinking() {
    let mut conversation = conversation();
    let thought = || Block::RedactedThinking {
        data: "x".to_owned(),
    };
    let reply = Message::assistant(vec![thought(), use_of("t3"), thought()], "m");
    conversation
        .assistant(reply, vec![ToolResult::text("t3", "ok")])
        .unwrap();
    conversation
        .assistant(Message::assistant(vec![thought()], "m"), vec![])
        .unwrap();
    let body = sent(&ModelRequest::new("m", prefix(), conversation.history()));
    let types = |index: usize| -> Vec<String> {
        let blocks = body["messages"][index]["content"]
            .as_array()
            .unwrap()
            .iter();
        blocks
            .map(|block| block["type"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(types(3), ["redacted_thinking", "tool_use"]);
    assert_eq!(types(5), ["text"]);
}

#[test]
fn marks_for_an_hour() {
    let body = body(&request(), true);
    assert_eq!(marks(&body), 4);
    let text = String::from_utf8_lossy(&body).into_owned();
    assert_eq!(
        text.matches(r#"{"type":"ephemeral","ttl":"1h"}"#).count(),
        4
    );
}

proptest! {
    /// Vector 9: never more than four marks, never on thinking, always JSON.
    #[test]
    fn at_most_four_marks(
        stable in 0..3usize, own in 0..3usize, tools in 0..3usize, turns in 0..5usize, ends_with_model in any::<bool>(),
    ) {
        let mut system: Vec<SystemBlock> = (0..stable).map(|_| SystemBlock::stable("s")).collect();
        system.extend((0..own).map(|_| SystemBlock::new("o")));
        let tools = (0..tools).map(|n| tool(&format!("T{n}"))).collect();
        let mut conversation = Conversation::new();
        conversation.user([Content::text("go")]);
        for turn in 0..turns {
            let id = format!("t{turn}");
            let reply = Message::assistant(vec![Block::RedactedThinking { data: "x".to_owned() }, use_of(&id)], "m");
            conversation.assistant(reply, vec![ToolResult::text(&id, "ok")]).unwrap();
        }
        if ends_with_model {
            let only = Block::RedactedThinking { data: "x".to_owned() };
            conversation.assistant(Message::assistant(vec![only], "m"), vec![]).unwrap();
        }
        let request = ModelRequest::new("m", Arc::new(RequestPrefix::new(system, tools)), conversation.history());
        let bytes = body(&request, false);
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        prop_assert!(marks(&bytes) <= 4);
        prop_assert!(marks(&bytes) >= 1);
        for message in value["messages"].as_array().unwrap() {
            for block in message["content"].as_array().unwrap() {
                let is_thinking = block["type"] == "redacted_thinking";
                prop_assert!(!(is_thinking && block.get("cache_control").is_some()));
            }
        }
    }
}
