//! Anthropic's format: blocks in, one user message out.

use haft_contract::{Content, ToolUse};
use haft_engine::CallResult;
use serde_json::{Value, json};

use super::{MessageError, text_of};

pub(super) fn calls(message: &Value) -> Result<Vec<ToolUse>, MessageError> {
    let blocks = match message.get("content") {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::String(_)) => return Ok(Vec::new()),
        _ => {
            return Err(MessageError(
                "`content` must be a string or a list of blocks".to_owned(),
            ));
        }
    };
    let tool_uses = blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| block["type"] == "tool_use");
    tool_uses
        .map(|(index, block)| {
            let what = format!("block {index}, a tool_use");
            Ok(ToolUse {
                id: text_of(block, "id", &what)?.to_owned(),
                name: text_of(block, "name", &what)?.to_owned(),
                input: block.get("input").cloned().unwrap_or_else(|| json!({})),
            })
        })
        .collect()
}

pub(super) fn answer(results: &[CallResult]) -> Value {
    let mut content: Vec<Value> = results.iter().map(tool_result).collect();
    // Text may follow the results in the same message, but must not be between them.
    let messages = results.iter().flat_map(|finished| &finished.messages);
    content.extend(
        messages
            .flat_map(|message| &message.content)
            .map(|block| json!(block)),
    );
    // A message without calls needs no answer, and providers reject an empty message.
    match content.is_empty() {
        true => Value::Null,
        false => json!({"role": "user", "content": content}),
    }
}

fn tool_result(finished: &CallResult) -> Value {
    let mut result = json!({
        "type": "tool_result",
        "tool_use_id": finished.id,
        "content": shortest(&finished.content),
    });
    if finished.is_error {
        result["is_error"] = json!(true);
    }
    result
}

/// Returns a string if the content is a single text block.
pub(crate) fn shortest(content: &[Content]) -> Value {
    match content {
        [Content::Text { text }] => json!(text),
        blocks => json!(blocks),
    }
}
