//! `user`: tool results and other messages in the user's name.

use std::borrow::Cow;

use haft_contract::Content;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{MessageRole, WireId, lenient::is_false};

/// A message in the user's name, as a session writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage<'a> {
    /// The content.
    pub message: UserBody<'a>,
    /// The call that launched the subagent, if the message is part of a subagent's conversation.
    #[serde(default)]
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The machine-readable result of a tool: an object, or the error text of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Cow<'a, Value>>,
    /// Whether the message repeats one that the client sent.
    #[serde(default, rename = "isReplay", skip_serializing_if = "is_false")]
    pub is_replay: bool,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
    /// Whether the message comes neither from the user nor from a tool.
    #[serde(default, rename = "isSynthetic", skip_serializing_if = "is_false")]
    pub is_synthetic: bool,
    /// The origin of the message, as its sender stated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Cow<'a, Value>>,
    /// The agent kind of the subagent, if the message is part of a subagent's conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<Cow<'a, str>>,
    /// The id of the subagent, if the message is part of a subagent's conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
}

impl<'a> UserMessage<'a> {
    /// Creates a message to the main agent.
    pub fn new(message: UserBody<'a>) -> Self {
        Self {
            message,
            parent_tool_use_id: None,
            tool_use_result: None,
            is_replay: false,
            uuid: None,
            is_synthetic: false,
            origin: None,
            subagent_type: None,
            agent_id: None,
            session_id: None,
        }
    }
}

/// The body of a message in the user's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum UserBody<'a> {
    /// The provider's format.
    Plain(PlainUserBody<'a>),
    /// The client's body, unchanged.
    Given(Cow<'a, Value>),
}

/// The body of a message in the user's name, in the provider's format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlainUserBody<'a> {
    /// Always [`MessageRole::User`].
    pub role: MessageRole,
    /// The text or the blocks.
    pub content: UserContent<'a>,
}

impl<'a> UserBody<'a> {
    /// Creates a body with text or blocks.
    pub fn new(content: UserContent<'a>) -> Self {
        Self::Plain(PlainUserBody {
            role: MessageRole::User,
            content,
        })
    }
}

/// The content of a message in the user's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum UserContent<'a> {
    /// Plain text.
    Text(Cow<'a, str>),
    /// Blocks.
    Blocks(Vec<UserBlock<'a>>),
}

/// A block of a message in the user's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserBlock<'a> {
    /// The result of a tool call.
    ToolResult(ToolResultBlock<'a>),
    /// Text, an image or a document.
    #[serde(untagged)]
    Content(Cow<'a, Content>),
    /// An unknown block, unchanged.
    #[serde(untagged)]
    Other(Value),
}

/// The result of a tool call, as the model receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResultBlock<'a> {
    /// The id of the call.
    pub tool_use_id: Cow<'a, str>,
    /// The content that the model receives.
    pub content: ToolResultContent<'a>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}

/// The content of a tool result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ToolResultContent<'a> {
    /// Plain text.
    Text(Cow<'a, str>),
    /// Text, images and documents.
    Blocks(Cow<'a, [Content]>),
    /// Any other value, unchanged.
    Other(Value),
}
