//! The events of a model's reply.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ModelError;

/// One event of a reply, or a wrapper's report about it.
///
/// Blocks are identified by `index`; their events may interleave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelEvent {
    /// The start of the reply.
    Start {
        /// The provider's id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The model that answers, under the name that the provider reports.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// The start of a block.
    BlockStart {
        /// The index of the block.
        index: usize,
        /// The type of the block.
        block: BlockStart,
    },
    /// More text of a text block.
    Text {
        /// The index of the block.
        index: usize,
        /// The text to append.
        text: String,
    },
    /// More text of a thinking block.
    Thinking {
        /// The index of the block.
        index: usize,
        /// The text to append.
        text: String,
    },
    /// The signature of a thinking block, or a part of it.
    Signature {
        /// The index of the block.
        index: usize,
        /// The text to append.
        signature: String,
    },
    /// A provider's opaque record of the model's thinking. It must be sent back unchanged.
    ThinkingDetail {
        /// The index of the block.
        index: usize,
        /// The record.
        detail: Value,
    },
    /// More JSON text of a tool's input.
    Input {
        /// The index of the block.
        index: usize,
        /// The text to append. It may be split anywhere, also inside a JSON token.
        json: String,
    },
    /// The end of a block: it is complete.
    BlockStop {
        /// The index of the block.
        index: usize,
    },
    /// The tokens that the reply has used so far. Replaces earlier values.
    Usage {
        /// The total so far.
        usage: Usage,
    },
    /// The end of the reply.
    Stop {
        /// The stop reason.
        reason: StopReason,
    },
    /// All earlier events of this reply are void: the request is sent again.
    Discard,
    /// The request is sent again after a wait.
    Retry {
        /// The number of the retry, counted from 1.
        attempt: u32,
        /// The maximum number of retries.
        max_retries: u32,
        /// The wait before the retry.
        delay: Duration,
        /// The error that caused the retry.
        error: ModelError,
    },
    /// The request continues with another model.
    Fallback {
        /// The model that failed.
        from: String,
        /// The model that answers from now on.
        to: String,
        /// The error of the first model.
        error: ModelError,
    },
    /// The provider rejected these images, and the request was sent again without them. The caller
    /// must remove them from the conversation too, with
    /// [`Conversation::drop_images`](crate::Conversation::drop_images).
    ImagesDropped {
        /// The positions of the messages that held the images.
        messages: Vec<usize>,
        /// The provider's error.
        error: ModelError,
    },
    /// The connection was lost after a complete tool call had been handed out. Complete blocks are
    /// valid, the incomplete one is void. The caller answers the calls and continues with the next
    /// request.
    CutOff {
        /// The error that ended the connection.
        error: ModelError,
    },
}

/// The type of a new block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockStart {
    /// Text.
    Text,
    /// Thinking.
    Thinking,
    /// Thinking that only the provider can decrypt.
    RedactedThinking {
        /// The encrypted text.
        data: String,
    },
    /// A tool call.
    ToolUse {
        /// The provider's id of the call.
        id: String,
        /// The name of the tool.
        name: String,
        /// Further fields of the call that the provider expects back.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extra: Map<String, Value>,
    },
    /// A provider-specific block. It must be sent back unchanged.
    Other {
        /// The whole block.
        block: Value,
    },
}

/// The reason why a model stopped. Whether the model called tools follows from the blocks, not from
/// the stop reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The reply is complete.
    EndTurn,
    /// The model waits for tool results.
    ToolUse,
    /// The reply reached the token limit.
    MaxTokens,
    /// The reply reached a stop sequence.
    StopSequence,
    /// The model pauses: the caller sends the conversation back unchanged.
    PauseTurn,
    /// The model or its provider declined to answer.
    Refusal,
    /// The conversation filled the model's context window.
    ContextWindow,
    /// The connection was lost after a complete tool call; see [`ModelEvent::CutOff`].
    CutOff,
    /// A reason that this version does not know.
    #[serde(untagged)]
    Other(String),
}

/// The tokens of one reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens at full price.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache, with both lifetimes (five minutes and one
    /// hour).
    pub cache_write: u64,
    /// The part of `cache_write` that is cached for an hour.
    pub cache_write_1h: u64,
    /// Whether the numbers are estimated (a quarter of the characters) because the provider sent
    /// none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// Returns all input tokens, cached or not.
    pub fn total_input(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// Adds the tokens of another reply. The sums saturate.
    pub fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cache_write_1h = self.cache_write_1h.saturating_add(other.cache_write_1h);
        self.estimated |= other.estimated;
    }
}
