//! A model's reply in the format of Anthropic's API, for all providers.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A reply of a model, or a part of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiMessage<'a> {
    /// The provider's id of the reply.
    pub id: Option<Cow<'a, str>>,
    /// Always `message`.
    #[serde(rename = "type")]
    pub kind: MessageKind,
    /// Always [`MessageRole::Assistant`].
    pub role: MessageRole,
    /// The model, under its provider's name.
    pub model: Cow<'a, str>,
    /// The blocks.
    pub content: Vec<AssistantBlock<'a>>,
    /// The stop reason, once it is known.
    pub stop_reason: Option<Cow<'a, str>>,
    /// The stop sequence that ended the reply, if one did.
    pub stop_sequence: Option<Cow<'a, str>>,
    /// The tokens used so far.
    pub usage: UsageReport<'a>,
}

/// The `type` of an [`ApiMessage`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// A message.
    #[default]
    Message,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// The user. Tool results have this role too.
    User,
    /// The model.
    Assistant,
}

/// A part of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AssistantBlock<'a> {
    /// Text.
    Text {
        /// The text.
        text: Cow<'a, str>,
    },
    /// The model's thinking.
    Thinking {
        /// The text of the thinking, or a summary.
        thinking: Cow<'a, str>,
        /// The provider's proof that the model wrote the text. Readers require the key; it is empty
        /// without a proof.
        #[serde(default)]
        signature: Cow<'a, str>,
        /// The provider's opaque records of the thinking.
        #[serde(default, skip_serializing_if = "<[Value]>::is_empty")]
        details: Cow<'a, [Value]>,
    },
    /// Thinking that only the provider can decrypt.
    RedactedThinking {
        /// The encrypted text.
        data: Cow<'a, str>,
    },
    /// A call of one of our tools.
    ToolUse {
        /// The provider's id of the call.
        id: Cow<'a, str>,
        /// The name of the tool.
        name: Cow<'a, str>,
        /// The arguments: an object.
        input: Cow<'a, Value>,
        /// Further fields that the provider sent with the call.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extra: Cow<'a, Map<String, Value>>,
    },
    /// A call of a tool that the provider runs itself.
    ServerToolUse {
        /// The provider's id of the call.
        id: Cow<'a, str>,
        /// The name of the tool.
        name: Cow<'a, str>,
        /// The arguments.
        input: Cow<'a, Value>,
    },
    /// An unknown block, unchanged.
    #[serde(untagged)]
    Other(Cow<'a, Value>),
}

/// The tokens that a reply or a run has used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReport<'a> {
    /// Input tokens at full price.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Input tokens read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_input_tokens: Option<u64>,
    /// Calls of tools that the provider ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_tool_use: Option<ServerToolUse>,
    /// The provider's service tier for the request, such as `standard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<Cow<'a, str>>,
    /// The tokens written to the cache, by their lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_creation: Option<CacheWrites>,
}

/// The number of calls of tools that the provider ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerToolUse {
    /// The number of web searches.
    pub web_search_requests: u64,
    /// The number of fetched web pages.
    pub web_fetch_requests: u64,
}

/// Tokens written to the cache, by their lifetime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheWrites {
    /// Cached for an hour.
    pub ephemeral_1h_input_tokens: u64,
    /// Cached for five minutes.
    pub ephemeral_5m_input_tokens: u64,
}
