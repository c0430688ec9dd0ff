//! The lines that a session reads.

use std::fmt;

use haft_contract::Content;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{ClientRequest, ControlCancel, ControlRequest, ControlResponse, WireId, lenient};

/// A line that a session reads, by its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", from = "Value")]
pub enum ClientMessage {
    /// A message to the model.
    User(Box<UserInput>),
    /// A request.
    ControlRequest(ControlRequest<ClientRequest>),
    /// The response to a request of the session.
    ControlResponse(ControlResponse<Value>),
    /// The client withdraws a request.
    ControlCancelRequest(ControlCancel),
    /// A message without content that keeps the connection open.
    KeepAlive,
    /// An unknown message, unchanged.
    #[serde(untagged)]
    Other(Value),
}

/// A message to the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UserInput {
    /// The `{role, content}` object, unchanged, because it may be repeated to the client.
    #[serde(default)]
    pub message: Value,
    /// Not used in this direction.
    #[serde(default)]
    pub parent_tool_use_id: Value,
    /// Not used: a line belongs to the session that reads it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub session_id: Value,
    /// The id of the message.
    #[serde(
        default,
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub uuid: Option<WireId>,
    /// Whether a program instead of the user wrote the message.
    #[serde(
        default,
        rename = "isSynthetic",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub is_synthetic: bool,
    /// The priority: `now`, `next`, `later`.
    #[serde(
        default,
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub priority: Option<String>,
    /// If `false`, the message does not start a turn but is sent together with the next message.
    #[serde(
        default,
        rename = "shouldQuery",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub should_query: Option<bool>,
    /// The origin of the message.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub origin: Value,
    /// The time when the message was written.
    #[serde(
        default,
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub timestamp: Option<String>,
    /// Whether the client composed the message: `@` and `/` then have no special meaning.
    #[serde(
        default,
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub client_composed: bool,
}

/// The reason why a message to the model cannot be forwarded.
#[derive(Debug)]
pub enum UserInputError {
    /// The message has neither a text nor a list of blocks.
    NoContent,
    /// The type of a block is unknown.
    Block(serde_json::Error),
}

impl fmt::Display for UserInputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoContent => f.write_str("a message has no content: a text or a list of blocks"),
            Self::Block(error) => {
                write!(f, "a message has a block that cannot be taken: {error}")
            }
        }
    }
}

impl std::error::Error for UserInputError {}

impl UserInput {
    /// Returns the content of the message.
    pub fn content(&self) -> Result<Vec<Content>, UserInputError> {
        match self.message.get("content") {
            Some(Value::String(text)) => Ok(vec![Content::text(text)]),
            Some(Value::Array(blocks)) => blocks
                .iter()
                .map(|block| serde_json::from_value(block.clone()).map_err(UserInputError::Block))
                .collect(),
            _ => Err(UserInputError::NoContent),
        }
    }

    /// Returns whether the message must be delivered immediately.
    pub fn is_urgent(&self) -> bool {
        self.priority.as_deref() == Some("now")
    }
}

impl ClientMessage {
    /// Reads a line. Only invalid JSON is an error.
    pub fn read(line: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice::<Value>(line).map(Self::from)
    }
}

impl From<Value> for ClientMessage {
    fn from(message: Value) -> Self {
        // The type must be a string in an object; other values become [`ClientMessage::Other`].
        match message.get("type").and_then(Value::as_str) {
            Some("user") => known(message, |user| Self::User(Box::new(user))),
            Some("control_request") => known(message, Self::ControlRequest),
            Some("control_response") => known(message, Self::ControlResponse),
            Some("control_cancel_request") => known(message, Self::ControlCancelRequest),
            Some("keep_alive") => Self::KeepAlive,
            _ => Self::Other(message),
        }
    }
}

/// Reads an object. The fields of these types accept any value, so reading an object cannot fail.
fn known<T: DeserializeOwned>(message: Value, make: fn(T) -> ClientMessage) -> ClientMessage {
    lenient::read_object(message).map_or(ClientMessage::Other(Value::Null), make)
}
