//! Blocks and messages, in the shape that session logs and Anthropic's API share.

use haft_contract::{Content, Role, output::MediaSource};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    #[serde(deserialize_with = "text_or_list")]
    pub content: Vec<Block>,
    /// The model that said it; its thinking is sent back to no other.
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
    /// A picture.
    Image {
        /// Its bytes.
        source: MediaSource,
    },
    /// A document.
    Document {
        /// Its bytes.
        source: MediaSource,
    },
    /// What the model thought.
    Thinking {
        /// Its words, or a summary.
        thinking: String,
        /// The provider's proof that they are the model's; empty where there is none.
        #[serde(default)]
        signature: String,
        /// The provider's own records of it, sent back as they are.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        details: Vec<Value>,
    },
    /// What the model thought, readable by its provider only.
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
        /// The arguments: an object.
        input: Value,
        /// What else the provider said of the call and wants back.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extra: Map<String, Value>,
    },
    /// The answer to a tool call.
    ToolResult(ToolResult),
    /// A block of the provider's own, sent back as it came.
    #[serde(untagged)]
    Other(Value),
}

/// The answer to a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call's id.
    pub tool_use_id: String,
    /// What the model reads.
    #[serde(default, deserialize_with = "text_or_list")]
    pub content: Vec<Content>,
    /// The call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl Block {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Is it the model's thinking, in any form?
    pub fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }

    /// Text of which nothing can be seen; providers refuse it.
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
    /// A result of text.
    pub fn text(tool_use_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            content: vec![Content::text(text)],
            is_error: false,
        }
    }

    /// A result that says what went wrong.
    pub fn error(tool_use_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(tool_use_id, text)
        }
    }
}

impl Message {
    /// A message of the user's.
    pub fn user(content: Vec<Block>) -> Self {
        Self {
            role: Role::User,
            content,
            model: None,
        }
    }

    /// A message of the model's.
    pub fn assistant(content: Vec<Block>, model: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content,
            model: Some(model.into()),
        }
    }

    /// Its tool calls: id and name.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &str)> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolUse { id, name, .. } => Some((id.as_str(), name.as_str())),
            _ => None,
        })
    }
}

/// Content may be written as a plain string.
fn text_or_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + FromText,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either<T> {
        Text(String),
        List(Vec<T>),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Text(text) => vec![T::from_text(text)],
        Either::List(list) => list,
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
