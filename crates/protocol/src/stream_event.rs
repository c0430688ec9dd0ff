//! The pieces of a reply, in the shape of Anthropic's stream.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ApiMessage, AssistantBlock, UsageReport};

/// A step of a reply that is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent<'a> {
    /// A reply begins.
    MessageStart {
        /// The reply, still empty.
        message: ApiMessage<'a>,
    },
    /// A block begins.
    ContentBlockStart {
        /// Which.
        index: usize,
        /// The block, still empty.
        content_block: AssistantBlock<'a>,
    },
    /// More of a block.
    ContentBlockDelta {
        /// Which.
        index: usize,
        /// What is added.
        delta: BlockDelta<'a>,
    },
    /// A block is complete.
    ContentBlockStop {
        /// Which.
        index: usize,
    },
    /// Why the reply ends, and its cost.
    MessageDelta {
        /// Why it ends.
        delta: StopDelta<'a>,
        /// What it has cost.
        usage: UsageReport<'a>,
    },
    /// The reply is over.
    MessageStop,
    /// An event that is not known here, as it was written.
    #[serde(untagged)]
    Other(Value),
}

/// What is added to a block.
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
        /// The words.
        thinking: Cow<'a, str>,
    },
    /// The proof that the thinking is the model's.
    SignatureDelta {
        /// The proof.
        signature: Cow<'a, str>,
    },
    /// Arguments of a call.
    InputJsonDelta {
        /// A piece of their JSON.
        partial_json: Cow<'a, str>,
    },
    /// Something that is not known here, as it was written.
    #[serde(untagged)]
    Other(Value),
}

/// Why a reply ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopDelta<'a> {
    /// Why.
    pub stop_reason: Option<Cow<'a, str>>,
    /// What it was ended by.
    pub stop_sequence: Option<Cow<'a, str>>,
}
