//! Builds replies in Anthropic's streaming format.

use serde_json::{Value, json};

use crate::http::HttpReply;

/// Builds a streamed reply with these blocks.
pub fn reply(blocks: &[Value], stop: &str) -> HttpReply {
    reply_of("m-1-2026", blocks, stop)
}

/// Like [`reply`], but from this model.
pub fn reply_of(model: &str, blocks: &[Value], stop: &str) -> HttpReply {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 12, "output_tokens": 1},
    });
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = match block["type"].as_str() {
            Some("text") => (
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": block["text"]}),
            ),
            Some("thinking") => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                json!({"type": "thinking_delta", "thinking": block["thinking"]}),
            ),
            _ => (
                json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}),
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}),
            ),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        if let Some(signature) = block["signature"].as_str() {
            let delta = json!({"type": "signature_delta", "signature": signature});
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 40}}));
    events.push(json!({"type": "message_stop"}));
    let body: String = events
        .iter()
        .map(|event| {
            let name = event["type"].as_str().unwrap_or_default();
            format!("event: {name}\ndata: {event}\n\n")
        })
        .collect();
    HttpReply::events(body)
}

/// Builds a reply with this text.
pub fn text_reply(text: &str) -> HttpReply {
    reply(&[json!({"type": "text", "text": text})], "end_turn")
}

/// Builds a reply that calls a tool.
pub fn tool_reply(name: &str, input: Value) -> HttpReply {
    called_as("toolu_1", name, input)
}

/// Like [`tool_reply`], but with this call id.
pub fn called_as(id: &str, name: &str, input: Value) -> HttpReply {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
    reply(&[block], "tool_use")
}
