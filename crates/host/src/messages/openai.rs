//! OpenAI's format: `tool_calls` in, a list of `tool` messages out.

use haft_contract::{Content, ToolUse, output::MediaSource};
use haft_engine::CallResult;
use serde_json::{Value, json};

use super::{MessageError, text_of};

pub(super) fn calls(calls: &Value) -> Result<Vec<ToolUse>, MessageError> {
    let Some(calls) = calls.as_array() else {
        return Err(MessageError("`tool_calls` must be a list".to_owned()));
    };
    calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            let what = format!("tool call {index}");
            let function = call
                .get("function")
                .ok_or_else(|| MessageError(format!("{what}: `function` is missing")))?;
            Ok(ToolUse {
                id: text_of(call, "id", &what)?.to_owned(),
                name: text_of(function, "name", &what)?.to_owned(),
                input: arguments(function),
            })
        })
        .collect()
}

/// Parses the arguments, which are JSON in a string. Invalid JSON stays a string: the pipeline
/// rejects it in the result of this call, and the other calls run.
pub(super) fn arguments(function: &Value) -> Value {
    match function.get("arguments") {
        Some(Value::String(text)) if text.trim().is_empty() => json!({}),
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Some(other) => other.clone(),
        None => json!({}),
    }
}

pub(super) fn answer(results: &[CallResult]) -> Value {
    let mut messages: Vec<Value> = results
        .iter()
        .map(|finished| {
            let texts: Vec<&str> = finished.content.iter().map(text_or_place).collect();
            // The format has no field for a failure, so the text says it.
            let failed = if finished.is_error { "Error: " } else { "" };
            let content = format!("{failed}{}", texts.join("\n"));
            json!({"role": "tool", "tool_call_id": finished.id, "content": content})
        })
        .collect();
    // A tool message can only contain text; other content follows in a user message.
    let more = results.iter().flat_map(|finished| {
        let added = finished
            .messages
            .iter()
            .flat_map(|message| &message.content);
        finished
            .content
            .iter()
            .filter(|block| block.as_text().is_none())
            .chain(added)
    });
    let parts: Vec<Value> = more.map(part).collect();
    if !parts.is_empty() {
        messages.push(json!({"role": "user", "content": parts}));
    }
    Value::Array(messages)
}

fn text_or_place(block: &Content) -> &str {
    match block {
        Content::Text { text } => text,
        Content::Image { .. } => "[image: see the next message]",
        Content::Document { .. } => "[document: see the next message]",
    }
}

fn part(block: &Content) -> Value {
    match block {
        Content::Text { text } => json!({"type": "text", "text": text}),
        Content::Image {
            source: MediaSource::Base64 { media_type, data },
        } => json!({
            "type": "image_url",
            "image_url": {"url": format!("data:{media_type};base64,{data}")},
        }),
        Content::Document {
            source: MediaSource::Base64 { media_type, data },
        } => json!({
            "type": "file",
            "file": {"file_data": format!("data:{media_type};base64,{data}")},
        }),
    }
}
