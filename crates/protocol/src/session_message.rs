//! The lines that a session writes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    AssistantMessage, ControlCancel, ControlRequest, ControlResponse, ResultMessage, SessionAnswer,
    SessionRequest, StreamEvent, SystemMessage, UserMessage, WireId,
};

/// A line that a session writes, by its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionMessage<'a> {
    /// Information about the session.
    System(SystemMessage<'a>),
    /// A block of a model's reply.
    Assistant(AssistantMessage<'a>),
    /// Tool results and other messages in the user's name.
    User(UserMessage<'a>),
    /// A streaming event of a reply.
    StreamEvent(StreamEventMessage<'a>),
    /// A call is still running.
    ToolProgress(ToolProgressMessage<'a>),
    /// The outcome of a turn.
    Result(Box<ResultMessage<'a>>),
    /// The conversation was cleared and replaced by a new one.
    ConversationReset(ConversationResetMessage),
    /// A rate limit of the provider. Only read.
    RateLimitEvent(RateLimitMessage),
    /// A request to the client.
    ControlRequest(ControlRequest<SessionRequest<'a>>),
    /// The response to a request of the client.
    ControlResponse(ControlResponse<SessionAnswer>),
    /// The session withdraws a request to the client.
    ControlCancelRequest(ControlCancel),
    /// Lines of the transcript.
    TranscriptMirror(TranscriptMirror<'a>),
    /// A message without content that keeps the connection open.
    KeepAlive,
    /// An unknown message, unchanged.
    #[serde(untagged)]
    Other(Value),
}

/// A streaming event of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamEventMessage<'a> {
    /// The event.
    pub event: StreamEvent<'a>,
    /// The call that launched the subagent, if the reply is a subagent's.
    #[serde(default)]
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A call is still running.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolProgressMessage<'a> {
    /// The id of the call.
    pub tool_use_id: Cow<'a, str>,
    /// The name of the tool.
    pub tool_name: Cow<'a, str>,
    /// The call that launched the subagent, if the call is a subagent's.
    #[serde(default)]
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The run time so far.
    pub elapsed_time_seconds: u64,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// The conversation was cleared and replaced by a new one. This is the last message of the old one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationResetMessage {
    /// The id of the new session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_conversation_id: Option<WireId>,
    /// The id of the old session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A rate limit of the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RateLimitMessage {
    /// `{status, …}`.
    pub rate_limit_info: Value,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// Lines that were written to the transcript.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TranscriptMirror<'a> {
    /// The path of the transcript.
    #[serde(rename = "filePath")]
    pub file_path: Cow<'a, str>,
    /// The lines.
    pub entries: Vec<Value>,
}

impl<'a> SessionMessage<'a> {
    /// Creates a streaming event of the main agent's reply.
    pub fn stream_event(event: StreamEvent<'a>) -> Self {
        Self::StreamEvent(StreamEventMessage {
            event,
            parent_tool_use_id: None,
            session_id: None,
            uuid: None,
        })
    }

    /// Sets the missing ids of a conversation message.
    pub fn stamp(&mut self, session: Option<WireId>, uuid: impl FnOnce() -> Uuid) {
        let (of_session, of_message) = match self {
            Self::System(message) => message.ids(),
            Self::Assistant(message) => (&mut message.session_id, &mut message.uuid),
            Self::User(message) => (&mut message.session_id, &mut message.uuid),
            Self::StreamEvent(message) => (&mut message.session_id, &mut message.uuid),
            Self::ToolProgress(message) => (&mut message.session_id, &mut message.uuid),
            Self::Result(message) => (&mut message.session_id, &mut message.uuid),
            Self::ConversationReset(message) => (&mut message.session_id, &mut message.uuid),
            Self::RateLimitEvent(message) => (&mut message.session_id, &mut message.uuid),
            Self::Other(Value::Object(message)) => {
                if let (Some(session), None) = (session, message.get("session_id")) {
                    message.insert("session_id".to_owned(), session.to_string().into());
                }
                if message.get("uuid").is_none() {
                    message.insert("uuid".to_owned(), uuid().to_string().into());
                }
                return;
            }
            // Messages between session and client are not part of the conversation.
            Self::ControlRequest(_)
            | Self::ControlResponse(_)
            | Self::ControlCancelRequest(_)
            | Self::TranscriptMirror(_)
            | Self::KeepAlive
            | Self::Other(_) => return,
        };
        if of_session.is_none() {
            *of_session = session;
        }
        of_message.get_or_insert_with(|| uuid().into());
    }

    /// Returns whether this is the result of a turn.
    pub fn is_result(&self) -> bool {
        match self {
            Self::Result(_) => true,
            Self::Other(message) => message.get("type").is_some_and(|kind| kind == "result"),
            _ => false,
        }
    }
}

impl From<Value> for SessionMessage<'_> {
    /// Wraps the value unchanged.
    fn from(message: Value) -> Self {
        Self::Other(message)
    }
}

impl<'a> From<SystemMessage<'a>> for SessionMessage<'a> {
    fn from(message: SystemMessage<'a>) -> Self {
        Self::System(message)
    }
}

impl<'a> From<UserMessage<'a>> for SessionMessage<'a> {
    fn from(message: UserMessage<'a>) -> Self {
        Self::User(message)
    }
}

impl<'a> From<AssistantMessage<'a>> for SessionMessage<'a> {
    fn from(message: AssistantMessage<'a>) -> Self {
        Self::Assistant(message)
    }
}

impl<'a> From<ResultMessage<'a>> for SessionMessage<'a> {
    fn from(message: ResultMessage<'a>) -> Self {
        Self::Result(Box::new(message))
    }
}
