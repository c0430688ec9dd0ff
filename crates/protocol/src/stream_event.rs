//! The streaming events of a reply, in the format of Anthropic's API.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ApiMessage, AssistantBlock, UsageReport};

/// A streaming event of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent<'a> {
    /// The start of a reply.
    MessageStart {
        /// The reply, still empty.
        message: ApiMessage<'a>,
    },
    /// The start of a block.
    ContentBlockStart {
        /// The index of the block.
        index: usize,
        /// The block, still empty.
        content_block: AssistantBlock<'a>,
    },
    /// More content of a block.
    ContentBlockDelta {
        /// The index of the block.
        index: usize,
        /// The content to append.
        delta: BlockDelta<'a>,
    },
    /// The end of a block.
    ContentBlockStop {
        /// The index of the block.
        index: usize,
    },
    /// The stop reason and the usage of the reply.
    MessageDelta {
        /// The stop reason.
        delta: StopDelta<'a>,
        /// The tokens that the reply has used.
        usage: UsageReport<'a>,
    },
    /// The end of the reply.
    MessageStop,
    /// An unknown event, unchanged.
    #[serde(untagged)]
    Other(Value),
}

/// Content that is appended to a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockDelta<'a> {
    /// Text.
    TextDelta {
        /// The text.
        text: Cow<'a, str>,
    },
    /// Thinking.
    ThinkingDelta {
        /// The text.
        thinking: Cow<'a, str>,
    },
    /// The signature of the thinking.
    SignatureDelta {
        /// The provider's proof that the model wrote the thinking.
        signature: Cow<'a, str>,
    },
    /// A part of a call's arguments.
    InputJsonDelta {
        /// A piece of their JSON text.
        partial_json: Cow<'a, str>,
    },
    /// An unknown delta, unchanged.
    #[serde(untagged)]
    Other(Value),
}

/// The reason why a reply ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopDelta<'a> {
    /// The stop reason.
    pub stop_reason: Option<Cow<'a, str>>,
    /// The stop sequence that ended the reply, if one did.
    pub stop_sequence: Option<Cow<'a, str>>,
}
