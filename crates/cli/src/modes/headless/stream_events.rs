//! Converts model events of any provider to the events of Anthropic's streaming API.

use std::borrow::Cow;

use haft_models::{BlockStart, ModelEvent, StopReason, Usage};
use haft_protocol::{
    ApiMessage, AssistantBlock, BlockDelta, MessageKind, MessageRole, StopDelta, StreamEvent,
};
use serde_json::{Map, Value};

use super::messages::{stop_name, usage};

/// The state of the current reply.
#[derive(Debug, Default)]
pub(super) struct StreamEventWriter {
    usage: Usage,
    /// The stop reason. The usage may be reported after it.
    stop: Option<StopReason>,
    is_open: bool,
}

impl StreamEventWriter {
    /// Returns the stream events for a model event. `model` is the requested model, used if the
    /// reply does not name one.
    pub(super) fn events_for<'e>(
        &mut self,
        event: &'e ModelEvent,
        model: &str,
    ) -> Vec<StreamEvent<'e>> {
        let mut told = Vec::new();
        match event {
            ModelEvent::Start { id, model: named } => {
                told.extend(self.end());
                self.usage = Usage::default();
                self.is_open = true;
                let message = ApiMessage {
                    id: id.as_deref().map(Cow::Borrowed),
                    kind: MessageKind::Message,
                    role: MessageRole::Assistant,
                    model: match named {
                        Some(named) => named.into(),
                        None => model.to_owned().into(),
                    },
                    content: Vec::new(),
                    stop_reason: None,
                    stop_sequence: None,
                    usage: usage(&self.usage),
                };
                told.push(StreamEvent::MessageStart { message });
            }
            ModelEvent::BlockStart { index, block } => told.push(StreamEvent::ContentBlockStart {
                index: *index,
                content_block: start(block),
            }),
            ModelEvent::Text { index, text } => {
                let text = text.into();
                told.push(delta(*index, BlockDelta::TextDelta { text }));
            }
            ModelEvent::Thinking { index, text } => {
                let thinking = text.into();
                told.push(delta(*index, BlockDelta::ThinkingDelta { thinking }));
            }
            ModelEvent::Signature { index, signature } => {
                let signature = signature.into();
                told.push(delta(*index, BlockDelta::SignatureDelta { signature }));
            }
            ModelEvent::Input { index, json } => {
                let partial_json = json.into();
                told.push(delta(*index, BlockDelta::InputJsonDelta { partial_json }));
            }
            ModelEvent::BlockStop { index } => {
                told.push(StreamEvent::ContentBlockStop { index: *index });
            }
            ModelEvent::Usage { usage } => self.usage = *usage,
            ModelEvent::Stop { reason } => self.stop = Some(reason.clone()),
            ModelEvent::Discard => *self = Self::default(),
            _ => {}
        }
        told
    }

    /// Returns the events that end the reply, unless they were reported already.
    pub(super) fn end(&mut self) -> Vec<StreamEvent<'static>> {
        if !std::mem::take(&mut self.is_open) {
            return Vec::new();
        }
        let delta = StopDelta {
            stop_reason: self.stop.take().as_ref().and_then(stop_name),
            stop_sequence: None,
        };
        let usage = usage(&self.usage);
        vec![
            StreamEvent::MessageDelta { delta, usage },
            StreamEvent::MessageStop,
        ]
    }

    /// Returns whether the reply has reported its stop reason.
    pub(super) fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }
}

/// Returns the empty block that starts a content block.
fn start(block: &BlockStart) -> AssistantBlock<'_> {
    match block {
        BlockStart::Thinking => AssistantBlock::Thinking {
            thinking: "".into(),
            signature: "".into(),
            details: Cow::Borrowed(&[]),
        },
        BlockStart::RedactedThinking { data } => {
            let data = data.into();
            AssistantBlock::RedactedThinking { data }
        }
        BlockStart::ToolUse { id, name, .. } => AssistantBlock::ToolUse {
            id: id.into(),
            name: name.into(),
            input: Cow::Owned(Value::Object(Map::new())),
            extra: Cow::Owned(Map::new()),
        },
        BlockStart::Other { block } => AssistantBlock::Other(Cow::Borrowed(block)),
        _ => AssistantBlock::Text { text: "".into() },
    }
}

fn delta(index: usize, delta: BlockDelta<'_>) -> StreamEvent<'_> {
    StreamEvent::ContentBlockDelta { index, delta }
}
