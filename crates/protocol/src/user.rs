//! `user`: results of tools, and words in the user's name.

use std::borrow::Cow;

use haft_contract::Content;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{MessageRole, WireId, lenient::is_false};

/// A message in the user's name, as a session writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage<'a> {
    /// What it says.
    pub message: UserBody<'a>,
    /// The call that launched the subagent whose message it is.
    #[serde(default)]
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The result of the tool for programs: an object or, of a call that failed, a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Cow<'a, Value>>,
    /// It repeats a message of the client's.
    #[serde(default, rename = "isReplay", skip_serializing_if = "is_false")]
    pub is_replay: bool,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
    /// Neither a person nor a tool said it.
    #[serde(default, rename = "isSynthetic", skip_serializing_if = "is_false")]
    pub is_synthetic: bool,
    /// Where it comes from, as its sender said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Cow<'a, Value>>,
    /// The kind of the subagent whose message it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<Cow<'a, str>>,
    /// Whose message it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
}

impl<'a> UserMessage<'a> {
    /// A message to the main agent.
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

/// What a message in the user's name says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum UserBody<'a> {
    /// In the provider's shape.
    Plain(PlainUserBody<'a>),
    /// As the client wrote it.
    Given(Cow<'a, Value>),
}

/// What a message in the user's name says, in the provider's shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlainUserBody<'a> {
    /// Always the user's.
    pub role: MessageRole,
    /// The words, and what goes with them.
    pub content: UserContent<'a>,
}

impl<'a> UserBody<'a> {
    /// Words, or blocks.
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
    /// Words.
    Text(Cow<'a, str>),
    /// Blocks.
    Blocks(Vec<UserBlock<'a>>),
}

/// A block of a message in the user's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserBlock<'a> {
    /// What a tool answered.
    ToolResult(ToolResultBlock<'a>),
    /// Text, a picture, a document.
    #[serde(untagged)]
    Content(Cow<'a, Content>),
    /// A block that is not known here, as it was written.
    #[serde(untagged)]
    Other(Value),
}

/// What a tool answered, as the model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResultBlock<'a> {
    /// The call that it answers.
    pub tool_use_id: Cow<'a, str>,
    /// What the model reads.
    pub content: ToolResultContent<'a>,
    /// The call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}

/// What a model reads of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ToolResultContent<'a> {
    /// Words alone.
    Text(Cow<'a, str>),
    /// Words, pictures, documents.
    Blocks(Cow<'a, [Content]>),
    /// Something else, as it was written.
    Other(Value),
}
