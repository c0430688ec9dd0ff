//! Converts the provider's stream into [`ModelEvent`]s.

use bytes::Bytes;
use futures_util::Stream;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    BlockStart, ErrorKind, ModelError, ModelEvent, StopReason, Usage,
    http::{
        body::{ResponseBody, ResponseEvents},
        error_response::{describe_body, from_body, quoted},
    },
    stream_block::StreamSender,
};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StreamMessage {
    MessageStart {
        message: WireStart,
    },
    ContentBlockStart {
        index: usize,
        content_block: Value,
    },
    ContentBlockDelta {
        index: usize,
        delta: WireDelta,
    },
    ContentBlockStop {
        index: usize,
    },
    MessageDelta {
        delta: MessageDelta,
        #[serde(default)]
        usage: Option<WireUsage>,
    },
    MessageStop,
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct WireStart {
    id: Option<String>,
    model: Option<String>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum WireDelta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct MessageDelta {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
}

#[derive(Deserialize)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Option<u64>,
}

/// Decodes the messages of one stream.
#[derive(Default)]
struct MessageDecoder {
    usage: Usage,
    /// Whether a stop reason arrived. After it only the end of the stream can follow.
    has_stopped: bool,
    /// Whether the end of the message arrived.
    is_over: bool,
    anything: bool,
}

/// Sends the events of the body. Returns an error if the body ends too early.
pub(super) async fn read<S, E>(body: ResponseBody<S>, out: &StreamSender) -> Result<(), ModelError>
where
    S: Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
    E: std::error::Error + Send,
{
    let mut events = ResponseEvents::new(body);
    let mut decoder = MessageDecoder::default();
    while !decoder.is_over {
        let read = match events.next().await {
            Ok(Some(read)) => read,
            Ok(None) => break,
            // The reply is complete; only its end marker is missing.
            Err(error) if decoder.has_stopped && error.kind != ErrorKind::Cancelled => break,
            Err(error) => return Err(error),
        };
        let (name, data) = (read.event.name.as_str(), read.event.data.as_str());
        if name == "error" {
            return Err(from_body(None, data));
        }
        let wire: Value = match serde_json::from_str(data) {
            Ok(wire) => wire,
            Err(_) if read.open => return Err(lost()),
            Err(_) if name.is_empty() || known(name) => {
                let message = format!("an event is not JSON: {}", quoted(data));
                return Err(ModelError::protocol(message));
            }
            Err(_) => continue,
        };
        decoder.anything = true;
        for event in decoder.decode(wire)? {
            out.send(event).await;
        }
    }
    if decoder.is_over {
        events.body.drain_end().await;
        return Ok(());
    }
    if decoder.has_stopped {
        return Ok(());
    }
    if decoder.anything {
        return Err(lost());
    }
    // The server does not stream, or it is not an API server.
    let head = String::from_utf8_lossy(&events.body.head).into_owned();
    match serde_json::from_str::<Value>(&head) {
        Ok(answer) if !answer["error"].is_null() => Err(from_body(None, &head)),
        _ => Err(ModelError::protocol(describe_body(None, &head))),
    }
}

/// Sends a response that arrived as one JSON message as if it had been streamed.
pub(super) async fn read_whole<S, E>(
    mut body: ResponseBody<S>,
    longest: usize,
    out: &StreamSender,
) -> Result<(), ModelError>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::error::Error,
{
    let bytes = body.all(longest).await?;
    let text = String::from_utf8_lossy(&bytes);
    let unreadable = || ModelError::protocol(describe_body(None, &text));
    let mut message: Value = serde_json::from_str(&text).map_err(|_| unreadable())?;
    if !message["error"].is_null() {
        return Err(from_body(None, &text));
    }
    let Value::Array(blocks) = message["content"].take() else {
        return Err(unreadable());
    };
    let delta = json!({"stop_reason": message["stop_reason"]});
    let mut wire = vec![json!({"type": "message_start", "message": message})];
    for (index, block) in blocks.into_iter().enumerate() {
        wire.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        wire.push(json!({"type": "content_block_stop", "index": index}));
    }
    wire.push(json!({"type": "message_delta", "delta": delta}));
    let mut decoder = MessageDecoder::default();
    for wire in wire {
        for event in decoder.decode(wire)? {
            out.send(event).await;
        }
    }
    match decoder.has_stopped {
        true => Ok(()),
        false => Err(lost()),
    }
}

fn lost() -> ModelError {
    ModelError::connection("the answer ended before it was complete")
}

fn known(name: &str) -> bool {
    name.starts_with("message_") || name.starts_with("content_block_")
}

impl MessageDecoder {
    fn decode(&mut self, wire: Value) -> Result<Vec<ModelEvent>, ModelError> {
        if wire["type"] == "error" {
            return Err(from_body(None, &wire.to_string()));
        }
        let wire: StreamMessage = serde_json::from_value(wire).map_err(|error| {
            ModelError::protocol(format!("an event is not as it should be: {error}"))
        })?;
        Ok(match wire {
            StreamMessage::MessageStart { message } => {
                self.count(message.usage);
                let (id, model) = (message.id, message.model);
                let start = ModelEvent::Start { id, model };
                vec![start, ModelEvent::Usage { usage: self.usage }]
            }
            StreamMessage::ContentBlockStart {
                index,
                content_block,
            } => started(index, content_block)?,
            StreamMessage::ContentBlockDelta { index, delta } => match delta {
                WireDelta::Text { text } => vec![ModelEvent::Text { index, text }],
                WireDelta::Input { partial_json: json } => vec![ModelEvent::Input { index, json }],
                WireDelta::Thinking { thinking: text } => {
                    vec![ModelEvent::Thinking { index, text }]
                }
                WireDelta::Signature { signature } => {
                    vec![ModelEvent::Signature { index, signature }]
                }
                WireDelta::Unknown => Vec::new(),
            },
            StreamMessage::ContentBlockStop { index } => vec![ModelEvent::BlockStop { index }],
            StreamMessage::MessageDelta { delta, usage } => {
                self.count(usage);
                let mut events = vec![ModelEvent::Usage { usage: self.usage }];
                if let Some(reason) = delta.stop_reason {
                    self.has_stopped = true;
                    let reason = stop_reason(reason);
                    events.push(ModelEvent::Stop { reason });
                }
                events
            }
            StreamMessage::MessageStop => {
                self.is_over = true;
                Vec::new()
            }
            StreamMessage::Unknown => Vec::new(),
        })
    }

    /// Updates the usage: each number replaces the previous one.
    fn count(&mut self, usage: Option<WireUsage>) {
        let Some(wire) = usage else { return };
        let own = &mut self.usage;
        own.input = wire.input_tokens.unwrap_or(own.input);
        own.output = wire.output_tokens.unwrap_or(own.output);
        own.cache_read = wire.cache_read_input_tokens.unwrap_or(own.cache_read);
        own.cache_write = wire.cache_creation_input_tokens.unwrap_or(own.cache_write);
        let hour = wire
            .cache_creation
            .and_then(|by| by.ephemeral_1h_input_tokens);
        own.cache_write_1h = hour.unwrap_or(own.cache_write_1h);
    }
}

/// Returns the events for the start of a block, with the content that it already has.
fn started(index: usize, block: Value) -> Result<Vec<ModelEvent>, ModelError> {
    let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
    let start = |block| ModelEvent::BlockStart { index, block };
    Ok(match block["type"].as_str() {
        Some("text") => vec![
            start(BlockStart::Text),
            ModelEvent::Text {
                index,
                text: text("text"),
            },
        ],
        Some("thinking") => vec![
            start(BlockStart::Thinking),
            ModelEvent::Thinking {
                index,
                text: text("thinking"),
            },
            ModelEvent::Signature {
                index,
                signature: text("signature"),
            },
        ],
        Some("redacted_thinking") => {
            vec![start(BlockStart::RedactedThinking { data: text("data") })]
        }
        Some("tool_use") => {
            let (id, name) = (text("id"), text("name"));
            if id.is_empty() || name.is_empty() {
                return Err(ModelError::protocol("a tool call has no id or no name"));
            }
            let extra = Map::new();
            let mut events = vec![start(BlockStart::ToolUse { id, name, extra })];
            // `input` is empty in a stream, but some gateways put the whole input here.
            if let Value::Object(input) = &block["input"]
                && !input.is_empty()
            {
                let json = block["input"].to_string();
                events.push(ModelEvent::Input { index, json });
            }
            events
        }
        _ => vec![start(BlockStart::Other { block })],
    }
    .into_iter()
    .filter(|event| {
        !matches!(event, ModelEvent::Text { text, .. } | ModelEvent::Thinking { text, .. } if text.is_empty())
            && !matches!(event, ModelEvent::Signature { signature, .. } if signature.is_empty())
    })
    .collect())
}

fn stop_reason(reason: String) -> StopReason {
    match reason.as_str() {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "pause_turn" => StopReason::PauseTurn,
        "refusal" => StopReason::Refusal,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        _ => StopReason::Other(reason),
    }
}
