//! A model's reply as the provider's interface shapes it, whichever provider it is.

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
    /// Always the assistant's.
    pub role: MessageRole,
    /// Who said it, as the provider names the model.
    pub model: Cow<'a, str>,
    /// What was said.
    pub content: Vec<AssistantBlock<'a>>,
    /// Why the reply ended, once that is known.
    pub stop_reason: Option<Cow<'a, str>>,
    /// What the reply was ended by.
    pub stop_sequence: Option<Cow<'a, str>>,
    /// What it has cost so far.
    pub usage: UsageReport<'a>,
}

/// What an [`ApiMessage`] says that it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// A message.
    #[default]
    Message,
}

/// Whose words a message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// A person's, or words in their name.
    User,
    /// The model's.
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
    /// What the model thought.
    Thinking {
        /// Its words, or a summary.
        thinking: Cow<'a, str>,
        /// The provider's proof that they are the model's. Readers need the key: empty where there is none.
        #[serde(default)]
        signature: Cow<'a, str>,
        /// The provider's own records of it.
        #[serde(default, skip_serializing_if = "<[Value]>::is_empty")]
        details: Cow<'a, [Value]>,
    },
    /// What the model thought, readable by its provider only.
    RedactedThinking {
        /// Its bytes.
        data: Cow<'a, str>,
    },
    /// A call of a tool of ours.
    ToolUse {
        /// The provider's id.
        id: Cow<'a, str>,
        /// The tool.
        name: Cow<'a, str>,
        /// The arguments: an object.
        input: Cow<'a, Value>,
        /// What else the provider said of the call.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extra: Cow<'a, Map<String, Value>>,
    },
    /// A call of a tool that the provider runs.
    ServerToolUse {
        /// The provider's id.
        id: Cow<'a, str>,
        /// The tool.
        name: Cow<'a, str>,
        /// The arguments.
        input: Cow<'a, Value>,
    },
    /// A block that is not known here, as it was written.
    #[serde(untagged)]
    Other(Cow<'a, Value>),
}

/// What a reply, or a run, has cost in tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReport<'a> {
    /// Read at full price.
    pub input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
    /// Written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_input_tokens: Option<u64>,
    /// Tools that the provider ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_tool_use: Option<ServerToolUse>,
    /// How the provider treats the request, such as `standard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<Cow<'a, str>>,
    /// How long what was written to the cache is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_creation: Option<CacheWrites>,
}

/// How often the provider ran tools of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerToolUse {
    /// Searches of the web.
    pub web_search_requests: u64,
    /// Pages of the web.
    pub web_fetch_requests: u64,
}

/// Tokens written to the cache, by how long they are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheWrites {
    /// For an hour.
    pub ephemeral_1h_input_tokens: u64,
    /// For five minutes.
    pub ephemeral_5m_input_tokens: u64,
}
