//! What a model says, piece by piece.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ModelError;

/// One piece of a reply, or a word of a wrapper about it.
///
/// Blocks are told apart by `index` and may interleave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelEvent {
    /// The reply begins.
    Start {
        /// The provider's id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The model that answers, as the provider names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A block begins.
    BlockStart {
        /// Which.
        index: usize,
        /// What it is.
        block: BlockStart,
    },
    /// More of a text block.
    Text {
        /// Which block.
        index: usize,
        /// To be appended.
        text: String,
    },
    /// More of a thinking block.
    Thinking {
        /// Which block.
        index: usize,
        /// To be appended.
        text: String,
    },
    /// (A part of) the signature of a thinking block.
    Signature {
        /// Which block.
        index: usize,
        /// To be appended.
        signature: String,
    },
    /// A provider's own record of its thinking, to be sent back as it is.
    ThinkingDetail {
        /// Which block.
        index: usize,
        /// The record.
        detail: Value,
    },
    /// More of the JSON text of a tool's input.
    Input {
        /// Which block.
        index: usize,
        /// To be appended; any piece, not only whole tokens.
        json: String,
    },
    /// A block is complete.
    BlockStop {
        /// Which.
        index: usize,
    },
    /// What the reply has cost so far; replaces what was said before.
    Usage {
        /// All of it.
        usage: Usage,
    },
    /// Why the model stopped.
    Stop {
        /// The reason.
        reason: StopReason,
    },
    /// Everything said so far of this reply is void: it is asked for again.
    Discard,
    /// The request is sent again after a wait.
    Retry {
        /// Counted from 1.
        attempt: u32,
        /// At most this many.
        max_retries: u32,
        /// The wait.
        delay: Duration,
        /// Why.
        error: ModelError,
    },
    /// Another model takes over.
    Fallback {
        /// Who failed.
        from: String,
        /// Who answers from now on.
        to: String,
        /// Why.
        error: ModelError,
    },
    /// The provider refuses these images; they were left out. Take them out of the conversation too,
    /// with [`Conversation::drop_images`](crate::Conversation::drop_images).
    ImagesDropped {
        /// The messages they stood in, by position.
        messages: Vec<usize>,
        /// Why.
        error: ModelError,
    },
    /// The connection was lost after a complete tool call was handed out. Complete blocks stand,
    /// the incomplete one is void; answer the calls and go on.
    CutOff {
        /// How.
        error: ModelError,
    },
}

/// What sort of block begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockStart {
    /// Text.
    Text,
    /// Thinking.
    Thinking,
    /// Thinking that only the provider can read.
    RedactedThinking {
        /// Its bytes.
        data: String,
    },
    /// A tool call.
    ToolUse {
        /// The provider's id.
        id: String,
        /// The tool.
        name: String,
        /// What else the provider said of the call and wants back.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extra: Map<String, Value>,
    },
    /// A block of the provider's own, sent back as it came.
    Other {
        /// All of it.
        block: Value,
    },
}

/// Why a model stopped. Whether it called tools is known from its blocks, not from this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// It had said everything.
    EndTurn,
    /// It waits for results.
    ToolUse,
    /// It reached the limit of tokens.
    MaxTokens,
    /// It said a stop sequence.
    StopSequence,
    /// It pauses: send the conversation back as it is.
    PauseTurn,
    /// It, or its provider, declined.
    Refusal,
    /// The conversation filled the model's window.
    ContextWindow,
    /// The connection was lost after a complete tool call; see [`ModelEvent::CutOff`].
    CutOff,
    /// A reason this version does not know.
    #[serde(untagged)]
    Other(String),
}

/// Tokens of one reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Read at full price.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Written to the provider's cache, for five minutes and for an hour together.
    pub cache_write: u64,
    /// The part of `cache_write` that is kept for an hour.
    pub cache_write_1h: u64,
    /// The provider did not say: counted as a quarter of the characters.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// Everything the model read.
    pub fn total_input(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// Adds those of another reply. What would be too many stays at the most there can be.
    pub fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cache_write_1h = self.cache_write_1h.saturating_add(other.cache_write_1h);
        self.estimated |= other.estimated;
    }
}
