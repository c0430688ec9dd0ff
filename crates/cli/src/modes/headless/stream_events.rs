//! The pieces of a reply, as Anthropic's stream tells them, whoever said them.

use haft_models::{BlockStart, ModelEvent, StopReason, Usage};
use serde_json::{Value, json};

use super::messages::usage;

/// The reply so far.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    usage: Usage,
    /// It has stopped; what it cost may be told after that.
    stop: Option<StopReason>,
    is_open: bool,
}

impl Pieces {
    /// What a piece is told as. `model`: who is asked.
    pub(super) fn of(&mut self, event: &ModelEvent, model: &str) -> Vec<Value> {
        let mut told = Vec::new();
        match event {
            ModelEvent::Start { id, model: named } => {
                told.extend(self.end());
                self.usage = Usage::default();
                self.is_open = true;
                told.push(json!({
                    "type": "message_start",
                    "message": {
                        "id": id,
                        "type": "message",
                        "role": "assistant",
                        "model": named.as_deref().unwrap_or(model),
                        "content": [],
                        "stop_reason": null,
                        "stop_sequence": null,
                        "usage": usage(&self.usage),
                    },
                }));
            }
            ModelEvent::BlockStart { index, block } => told.push(json!({
                "type": "content_block_start",
                "index": index,
                "content_block": start(block),
            })),
            ModelEvent::Text { index, text } => {
                told.push(delta(*index, json!({"type": "text_delta", "text": text})));
            }
            ModelEvent::Thinking { index, text } => {
                told.push(delta(
                    *index,
                    json!({"type": "thinking_delta", "thinking": text}),
                ));
            }
            ModelEvent::Signature { index, signature } => {
                let piece = json!({"type": "signature_delta", "signature": signature});
                told.push(delta(*index, piece));
            }
            ModelEvent::Input { index, json } => {
                let piece = json!({"type": "input_json_delta", "partial_json": json});
                told.push(delta(*index, piece));
            }
            ModelEvent::BlockStop { index } => {
                told.push(json!({"type": "content_block_stop", "index": index}));
            }
            ModelEvent::Usage { usage } => self.usage = *usage,
            ModelEvent::Stop { reason } => self.stop = Some(reason.clone()),
            ModelEvent::Discard => *self = Self::default(),
            _ => {}
        }
        told
    }

    /// The end of the reply, if it has not been told.
    pub(super) fn end(&mut self) -> Vec<Value> {
        if !std::mem::take(&mut self.is_open) {
            return Vec::new();
        }
        vec![
            json!({
                "type": "message_delta",
                "delta": {"stop_reason": self.stop.take(), "stop_sequence": null},
                "usage": usage(&self.usage),
            }),
            json!({"type": "message_stop"}),
        ]
    }

    /// Has it said why it stopped?
    pub(super) fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }
}

fn start(block: &BlockStart) -> Value {
    match block {
        BlockStart::Text => json!({"type": "text", "text": ""}),
        BlockStart::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
        BlockStart::RedactedThinking { data } => json!({"type": "redacted_thinking", "data": data}),
        BlockStart::ToolUse { id, name, .. } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": {}})
        }
        BlockStart::Other { block } => block.clone(),
        _ => json!({"type": "text", "text": ""}),
    }
}

fn delta(index: usize, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}
