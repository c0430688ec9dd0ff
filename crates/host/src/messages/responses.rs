//! The format of OpenAI's Responses API: items in, items out.

use haft_contract::{Content, ToolUse, output::MediaSource};
use haft_engine::CallResult;
use serde_json::{Value, json};

use super::{MessageError, openai::arguments, text_of};

/// Returns the items of a whole response, of a list of items, or of a single item.
pub(super) fn items(message: &Value) -> Option<&[Value]> {
    if let Value::Array(items) = message {
        let is_item = |item: &Value| item["type"].is_string() || item["role"].is_string();
        return Some(items.as_slice()).filter(|items| items.first().is_some_and(is_item));
    }
    match message["output"].as_array() {
        Some(items) if message.get("role").is_none() => Some(items),
        _ if message["type"] == "function_call" => Some(std::slice::from_ref(message)),
        _ => None,
    }
}

pub(super) fn calls(items: &[Value]) -> Result<Vec<ToolUse>, MessageError> {
    let calls = items
        .iter()
        .enumerate()
        .filter(|(_, item)| item["type"] == "function_call");
    calls
        .map(|(index, item)| {
            let what = format!("item {index}, a function_call");
            Ok(ToolUse {
                id: text_of(item, "call_id", &what)?.to_owned(),
                name: text_of(item, "name", &what)?.to_owned(),
                input: arguments(item),
            })
        })
        .collect()
}

pub(super) fn answer(results: &[CallResult]) -> Value {
    let mut items: Vec<Value> = results
        .iter()
        .map(|finished| {
            let output = match finished.content.as_slice() {
                // The format has no field for a failure, so the text says it.
                [Content::Text { text }] if finished.is_error => json!(format!("Error: {text}")),
                [Content::Text { text }] => json!(text),
                blocks => blocks.iter().map(part).collect(),
            };
            json!({"type": "function_call_output", "call_id": finished.id, "output": output})
        })
        .collect();
    let added = results.iter().flat_map(|finished| &finished.messages);
    let parts: Vec<Value> = added
        .flat_map(|message| &message.content)
        .map(part)
        .collect();
    if !parts.is_empty() {
        items.push(json!({"type": "message", "role": "user", "content": parts}));
    }
    Value::Array(items)
}

fn part(block: &Content) -> Value {
    match block {
        Content::Text { text } => json!({"type": "input_text", "text": text}),
        Content::Image {
            source: MediaSource::Base64 { media_type, data },
        } => json!({
            "type": "input_image",
            "image_url": format!("data:{media_type};base64,{data}"),
        }),
        Content::Document {
            source: MediaSource::Base64 { media_type, data },
        } => json!({
            "type": "input_file",
            "file_data": format!("data:{media_type};base64,{data}"),
        }),
    }
}
