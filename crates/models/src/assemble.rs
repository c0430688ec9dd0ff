//! Builds blocks from events.
//!
//! A tool's input is collected as text and parsed when its block stops. From then on the call can
//! run while the model is still writing. An input that is not a JSON object becomes a [`BadInput`],
//! whose text is the error result that lets the model repair its call.

use std::{collections::HashMap, fmt};

use haft_contract::ToolUse;
use serde_json::{Map, Value};

use crate::{
    Block, BlockStart, Message, ModelEvent, StopReason, ToolResult, Usage,
    conversation::empty_input,
};

/// The maximum length of an input in bytes. No tool and no provider accepts a longer one.
const MAX_INPUT: usize = 16 * 1024 * 1024;

/// The number of characters of a bad input that the model sees.
const SHOWN: usize = 200;

/// Collects the events of one reply.
#[derive(Debug)]
pub struct ReplyAssembler {
    requested_model: String,
    id: Option<String>,
    model: Option<String>,
    blocks: Vec<BlockBuilder>,
    /// The block that each index currently refers to.
    by_index: HashMap<usize, usize>,
    /// A call with an empty input that has not been returned yet: the model may turn out to have
    /// been cut off before the input.
    held: Option<usize>,
    usage: Usage,
    stop: Option<StopReason>,
}

/// A complete tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, or the reason why they cannot be used. A call with unusable arguments is
    /// answered with an error, not run.
    pub input: Result<Value, BadInput>,
}

/// An input that no tool can accept. Its [`Display`](fmt::Display) text is for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadInput {
    /// The problem.
    pub problem: String,
    /// The beginning of the input.
    pub beginning: String,
    /// The length in bytes.
    pub length: usize,
}

/// The complete blocks of one reply. Incomplete blocks are dropped.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The provider's id of the message.
    pub id: Option<String>,
    /// The model that answered, under the name that the provider reports. It is often more specific
    /// than the name in the request.
    pub model: Option<String>,
    /// The message for the conversation. Its model is the one that was requested.
    pub message: Message,
    /// The calls in the message, in order. Each must be answered.
    pub calls: Vec<ToolCall>,
    /// The stop reason; `None` if the reply was interrupted.
    pub stop: Option<StopReason>,
    /// The tokens that the reply used.
    pub usage: Usage,
    /// Whether a block began and was not completed.
    pub incomplete: bool,
}

#[derive(Debug)]
struct BlockBuilder {
    block: PartialBlock,
    complete: bool,
}

#[derive(Debug)]
enum PartialBlock {
    Text(String),
    Thinking {
        thinking: String,
        signature: String,
        details: Vec<Value>,
    },
    Redacted(String),
    Tool {
        id: String,
        name: String,
        extra: Map<String, Value>,
        json: String,
        /// The full length, including bytes beyond the limit that were not stored.
        length: usize,
        input: Option<Result<Value, BadInput>>,
    },
    Other {
        block: Value,
        json: String,
    },
}

impl PartialBlock {
    fn as_block(&self) -> Block {
        match self {
            Self::Text(text) => Block::text(text),
            Self::Thinking {
                thinking,
                signature,
                details,
            } => Block::Thinking {
                thinking: thinking.clone(),
                signature: signature.clone(),
                details: details.clone(),
            },
            Self::Redacted(data) => Block::RedactedThinking { data: data.clone() },
            Self::Other { block, .. } => Block::Other(block.clone()),
            Self::Tool {
                id,
                name,
                extra,
                input,
                ..
            } => Block::ToolUse {
                id: id.clone(),
                name: name.clone(),
                // Providers accept only objects; the error result shows what the model had sent.
                input: match input {
                    Some(Ok(input)) => input.clone(),
                    _ => empty_input(),
                },
                extra: extra.clone(),
            },
        }
    }
}

impl ReplyAssembler {
    /// Creates an assembler for one reply of the requested model.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            requested_model: model.into(),
            id: None,
            model: None,
            blocks: Vec::new(),
            by_index: HashMap::new(),
            held: None,
            usage: Usage::default(),
            stop: None,
        }
    }

    /// Processes an event. Returns the call that this event completes, if any.
    pub fn push(&mut self, event: &ModelEvent) -> Option<ToolCall> {
        match event {
            ModelEvent::Start { id, model } => {
                self.id.clone_from(id);
                self.model.clone_from(model);
            }
            ModelEvent::BlockStart { index, block } => {
                self.start(*index, block);
                return self.release_held_call(None);
            }
            ModelEvent::Text { index, text } => {
                if let Some(PartialBlock::Text(so_far)) = self.open(*index) {
                    so_far.push_str(text);
                }
            }
            ModelEvent::Thinking { index, text } => {
                if let Some(PartialBlock::Thinking { thinking, .. }) = self.open(*index) {
                    thinking.push_str(text);
                }
            }
            ModelEvent::Signature { index, signature } => {
                if let Some(PartialBlock::Thinking { signature: own, .. }) = self.open(*index) {
                    own.push_str(signature);
                }
            }
            ModelEvent::ThinkingDetail { index, detail } => {
                if let Some(PartialBlock::Thinking { details, .. }) = self.open(*index) {
                    details.push(detail.clone());
                }
            }
            ModelEvent::Input { index, json: more } => match self.open(*index) {
                Some(PartialBlock::Tool { json, length, .. }) => {
                    *length += more.len();
                    if *length <= MAX_INPUT {
                        json.push_str(more);
                    }
                }
                Some(PartialBlock::Other { json, .. }) => json.push_str(more),
                _ => {}
            },
            ModelEvent::BlockStop { index } => return self.complete(*index),
            ModelEvent::Usage { usage } => self.usage = *usage,
            ModelEvent::Stop { reason } => {
                self.stop = Some(reason.clone());
                return self.release_held_call(Some(reason));
            }
            ModelEvent::CutOff { .. } => self.stop = Some(StopReason::CutOff),
            ModelEvent::Discard => *self = Self::new(std::mem::take(&mut self.requested_model)),
            ModelEvent::Fallback { to, .. } => self.requested_model.clone_from(to),
            ModelEvent::Retry { .. } | ModelEvent::ImagesDropped { .. } => {}
        }
        None
    }

    /// Returns the block with this index, if it is complete.
    pub fn block(&self, index: usize) -> Option<Block> {
        let building = self.blocks.get(*self.by_index.get(&index)?)?;
        building.complete.then(|| building.block.as_block())
    }

    /// Ends the reply and returns its complete blocks.
    pub fn finish(self) -> Reply {
        let mut reply = Reply {
            id: self.id,
            model: self.model,
            message: Message::assistant(
                Vec::with_capacity(self.blocks.len()),
                self.requested_model,
            ),
            calls: Vec::new(),
            stop: self.stop,
            usage: self.usage,
            incomplete: false,
        };
        for building in self.blocks {
            if !building.complete {
                reply.incomplete = true;
                continue;
            }
            if let PartialBlock::Tool {
                id, name, input, ..
            } = &building.block
            {
                let input = input.clone().unwrap_or_else(|| Ok(empty_input()));
                reply.calls.push(ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    input,
                });
            }
            reply.message.content.push(building.block.as_block());
        }
        reply
    }

    fn start(&mut self, index: usize, block: &BlockStart) {
        let block = match block {
            BlockStart::Text => PartialBlock::Text(String::new()),
            BlockStart::Thinking => PartialBlock::Thinking {
                thinking: String::new(),
                signature: String::new(),
                details: Vec::new(),
            },
            BlockStart::RedactedThinking { data } => PartialBlock::Redacted(data.clone()),
            BlockStart::ToolUse { id, name, extra } => PartialBlock::Tool {
                id: self.unused(id),
                name: name.clone(),
                extra: extra.clone(),
                json: String::new(),
                length: 0,
                input: None,
            },
            BlockStart::Other { block } => PartialBlock::Other {
                block: block.clone(),
                json: String::new(),
            },
        };
        self.by_index.insert(index, self.blocks.len());
        self.blocks.push(BlockBuilder {
            block,
            complete: false,
        });
    }

    /// Returns `id`, or a variant of it that no earlier call has: two calls with the same id could
    /// not be answered.
    fn unused(&self, id: &str) -> String {
        let taken = |wanted: &str| {
            self.blocks.iter().any(
                |building| matches!(&building.block, PartialBlock::Tool { id, .. } if id == wanted),
            )
        };
        let mut unused = id.to_owned();
        let mut count = 2;
        while taken(&unused) {
            unused = format!("{id}_{count}");
            count += 1;
        }
        unused
    }

    fn open(&mut self, index: usize) -> Option<&mut PartialBlock> {
        let building = self.blocks.get_mut(*self.by_index.get(&index)?)?;
        (!building.complete).then_some(&mut building.block)
    }

    fn complete(&mut self, index: usize) -> Option<ToolCall> {
        let position = *self.by_index.get(&index)?;
        let building = self.blocks.get_mut(position)?;
        if std::mem::replace(&mut building.complete, true) {
            return None;
        }
        match &mut building.block {
            PartialBlock::Tool {
                json,
                length,
                input,
                ..
            } => {
                let json = std::mem::take(json);
                *input = Some(if *length > MAX_INPUT {
                    Err(BadInput::too_long(&json, *length))
                } else {
                    parse_input(&json)
                });
                if *length == 0 {
                    // If another call was held back, it is complete, because this one follows it.
                    let earlier = self.held.replace(position)?;
                    return self.call(earlier);
                }
                self.call(position)
            }
            PartialBlock::Other { block, json } => {
                if let Ok(input) = serde_json::from_str::<Value>(json) {
                    block["input"] = input;
                }
                None
            }
            _ => None,
        }
    }

    /// Releases the call that was held back, because an event follows it. If the reply ends here
    /// because of a token limit, the context window or a refusal, the input was never written, so the input becomes a
    /// [`BadInput`].
    fn release_held_call(&mut self, end: Option<&StopReason>) -> Option<ToolCall> {
        let position = self.held.take()?;
        let is_cut_off = matches!(
            end,
            Some(StopReason::MaxTokens | StopReason::ContextWindow | StopReason::Refusal)
        );
        if is_cut_off && let PartialBlock::Tool { input, .. } = &mut self.blocks[position].block {
            *input = Some(Err(BadInput::new("the reply was cut off before it", "")));
        }
        self.call(position)
    }

    fn call(&self, position: usize) -> Option<ToolCall> {
        match &self.blocks.get(position)?.block {
            PartialBlock::Tool {
                id,
                name,
                input: Some(input),
                ..
            } => Some(ToolCall {
                id: id.clone(),
                name: name.clone(),
                input: input.clone(),
            }),
            _ => None,
        }
    }
}

/// Parses the arguments of a call. An empty text is an empty object.
fn parse_input(json: &str) -> Result<Value, BadInput> {
    if json.trim().is_empty() {
        return Ok(empty_input());
    }
    match serde_json::from_str(json) {
        Ok(input @ Value::Object(_)) => Ok(input),
        Ok(_) => Err(BadInput::new("it must be a JSON object", json)),
        Err(error) if error.is_eof() => Err(BadInput::new(
            &format!("the JSON is cut off ({error})"),
            json,
        )),
        Err(error) => Err(BadInput::new(&format!("it is not JSON ({error})"), json)),
    }
}

impl ToolCall {
    /// Returns the call to run, or the error result that answers a call that cannot run.
    pub fn into_use(self) -> Result<ToolUse, ToolResult> {
        let Self { id, name, input } = self;
        match input {
            Ok(input) => Ok(ToolUse { id, name, input }),
            Err(bad) => Err(ToolResult::error(id, bad.to_string())),
        }
    }
}

impl BadInput {
    fn new(problem: &str, json: &str) -> Self {
        Self {
            problem: problem.to_owned(),
            beginning: json.chars().take(SHOWN).collect(),
            length: json.len(),
        }
    }

    fn too_long(json: &str, length: usize) -> Self {
        let limit = MAX_INPUT / (1024 * 1024);
        Self {
            length,
            ..Self::new(
                &format!("it is longer than {limit} MiB; make several smaller calls"),
                json,
            )
        }
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            problem,
            beginning,
            length,
        } = self;
        write!(
            f,
            "The call was not run, because its input cannot be used: {problem}. \
             Send the call again with a complete JSON object. The input "
        )?;
        if *length == 0 {
            write!(f, "was empty")
        } else if *length > beginning.len() {
            write!(f, "({length} bytes) began: {beginning}")
        } else {
            write!(f, "was: {beginning}")
        }
    }
}
