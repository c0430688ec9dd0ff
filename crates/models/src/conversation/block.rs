//! Blocks and messages, in the format that transcripts and Anthropic's API share.

use haft_contract::{Content, Role, output::MediaSource};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The role of the author.
    pub role: Role,
    /// The blocks.
    #[serde(deserialize_with = "text_or_list")]
    pub content: Vec<Block>,
    /// The model that wrote the message. Its thinking is not sent to any other model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// The image's bytes.
        source: MediaSource,
    },
    /// A document.
    Document {
        /// The document's bytes.
        source: MediaSource,
    },
    /// The model's thinking.
    Thinking {
        /// The text of the thinking, or a summary.
        thinking: String,
        /// The provider's proof that the model wrote the text; empty if the provider sends none.
        #[serde(default)]
        signature: String,
        /// The provider's opaque records of the thinking, sent back unchanged.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        details: Vec<Value>,
    },
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
        /// The arguments: an object.
        input: Value,
        /// Further fields of the call that the provider expects back.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extra: Map<String, Value>,
    },
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// A provider-specific block, sent back unchanged.
    #[serde(untagged)]
    Other(Value),
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub tool_use_id: String,
    /// The content that the model reads.
    #[serde(default, deserialize_with = "text_or_list")]
    pub content: Vec<Content>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl Block {
    /// Creates a block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns whether the block is thinking, in any form.
    pub fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }

    /// Returns whether the block is text without a visible character. Providers reject such blocks.
    pub(super) fn is_empty_text(&self) -> bool {
        matches!(self, Self::Text { text } if text.trim().is_empty())
    }
}

impl From<Content> for Block {
    fn from(content: Content) -> Self {
        match content {
            Content::Text { text } => Self::Text { text },
            Content::Image { source } => Self::Image { source },
            Content::Document { source } => Self::Document { source },
        }
    }
}

impl ToolResult {
    /// Creates a successful result of text.
    pub fn text(tool_use_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            content: vec![Content::text(text)],
            is_error: false,
        }
    }

    /// Creates an error result with this message.
    pub fn error(tool_use_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(tool_use_id, text)
        }
    }
}

impl Message {
    /// Creates a user message.
    pub fn user(content: Vec<Block>) -> Self {
        Self {
            role: Role::User,
            content,
            model: None,
        }
    }

    /// Creates a message of this model.
    pub fn assistant(content: Vec<Block>, model: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content,
            model: Some(model.into()),
        }
    }

    /// Returns the id and the tool's name of each tool call.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &str)> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolUse { id, name, .. } => Some((id.as_str(), name.as_str())),
            _ => None,
        })
    }
}

/// Reads content that may be a plain string or a list.
fn text_or_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + FromText,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum TextOrList<T> {
        Text(String),
        List(Vec<T>),
    }
    Ok(match TextOrList::deserialize(deserializer)? {
        TextOrList::Text(text) => vec![T::from_text(text)],
        TextOrList::List(list) => list,
    })
}

trait FromText {
    fn from_text(text: String) -> Self;
}

impl FromText for Block {
    fn from_text(text: String) -> Self {
        Self::Text { text }
    }
}

impl FromText for Content {
    fn from_text(text: String) -> Self {
        Self::Text { text }
    }
}
