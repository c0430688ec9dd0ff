//! Everything a session reads.

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
    /// The answer to a request of the session's.
    ControlResponse(ControlResponse<Value>),
    /// A request is withdrawn.
    ControlCancelRequest(ControlCancel),
    /// Nothing; the line is still there.
    KeepAlive,
    /// A message that is not known here, as it was written.
    #[serde(untagged)]
    Other(Value),
}

/// A message to the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UserInput {
    /// `{role, content}`, as it was written: it may be repeated like that.
    #[serde(default)]
    pub message: Value,
    /// Not used in this direction.
    #[serde(default)]
    pub parent_tool_use_id: Value,
    /// Not used: a line belongs to the session that reads it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub session_id: Value,
    /// The message.
    #[serde(
        default,
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub uuid: Option<WireId>,
    /// No person wrote it.
    #[serde(
        default,
        rename = "isSynthetic",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub is_synthetic: bool,
    /// `now`, `next`, `later`.
    #[serde(
        default,
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub priority: Option<String>,
    /// `false`: it goes with the next message, and is not answered by itself.
    #[serde(
        default,
        rename = "shouldQuery",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub should_query: Option<bool>,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub origin: Value,
    /// When it was written.
    #[serde(
        default,
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub timestamp: Option<String>,
    /// A program wrote it: neither `@` nor `/` mean anything in it.
    #[serde(
        default,
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub client_composed: bool,
}

/// A message to the model that says nothing that can be passed on.
#[derive(Debug)]
pub enum UserInputError {
    /// There is neither a text nor a list of blocks.
    NoContent,
    /// A block is of no kind that is known.
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
    /// What it says.
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

    /// It must be said at once.
    pub fn is_urgent(&self) -> bool {
        self.priority.as_deref() == Some("now")
    }
}

impl ClientMessage {
    /// Reads a line. Only what is not JSON fails.
    pub fn read(line: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice::<Value>(line).map(Self::from)
    }
}

impl From<Value> for ClientMessage {
    fn from(message: Value) -> Self {
        // A name that only an object can have: what is none of these is passed over.
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

/// The fields of these take any value, so that nothing can be wrong with them.
fn known<T: DeserializeOwned>(message: Value, make: fn(T) -> ClientMessage) -> ClientMessage {
    lenient::read_object(message).map_or(ClientMessage::Other(Value::Null), make)
}
