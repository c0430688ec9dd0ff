//! Everything a session writes.

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
    /// What there is to know beside what is said.
    System(SystemMessage<'a>),
    /// What a model said.
    Assistant(AssistantMessage<'a>),
    /// Results of tools, and words in the user's name.
    User(UserMessage<'a>),
    /// A piece of a reply.
    StreamEvent(StreamEventMessage<'a>),
    /// A call takes its time.
    ToolProgress(ToolProgressMessage<'a>),
    /// How a turn ended.
    Result(Box<ResultMessage<'a>>),
    /// The conversation was cleared; another takes its place.
    ConversationReset(ConversationResetMessage),
    /// A limit of the provider's. Read only.
    RateLimitEvent(RateLimitMessage),
    /// A question to the client.
    ControlRequest(ControlRequest<SessionRequest<'a>>),
    /// The answer to a question of the client's.
    ControlResponse(ControlResponse<SessionAnswer>),
    /// A question to the client is withdrawn.
    ControlCancelRequest(ControlCancel),
    /// Lines of the transcript.
    TranscriptMirror(TranscriptMirror<'a>),
    /// Nothing; the line is still there.
    KeepAlive,
    /// A message that is not known here, as it was written.
    #[serde(untagged)]
    Other(Value),
}

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamEventMessage<'a> {
    /// The piece.
    pub event: StreamEvent<'a>,
    /// The call that launched the subagent whose reply it is.
    #[serde(default)]
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A call takes its time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolProgressMessage<'a> {
    /// The call.
    pub tool_use_id: Cow<'a, str>,
    /// The tool.
    pub tool_name: Cow<'a, str>,
    /// The call that launched the subagent whose call it is.
    #[serde(default)]
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// How long so far.
    pub elapsed_time_seconds: u64,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// The conversation was cleared; another takes its place. It is the last message of the old one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationResetMessage {
    /// The session from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_conversation_id: Option<WireId>,
    /// The session until now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A limit of the provider's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RateLimitMessage {
    /// `{status, …}`.
    pub rate_limit_info: Value,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// Lines of the transcript, as they are recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TranscriptMirror<'a> {
    /// The transcript.
    #[serde(rename = "filePath")]
    pub file_path: Cow<'a, str>,
    /// The lines.
    pub entries: Vec<Value>,
}

impl<'a> SessionMessage<'a> {
    /// A piece of a reply of the main agent.
    pub fn stream_event(event: StreamEvent<'a>) -> Self {
        Self::StreamEvent(StreamEventMessage {
            event,
            parent_tool_use_id: None,
            session_id: None,
            uuid: None,
        })
    }

    /// Gives a message of the conversation the ids that it does not have yet.
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
            // Words between programs are no part of the conversation.
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

    /// Is it the end of a turn?
    pub fn is_result(&self) -> bool {
        match self {
            Self::Result(_) => true,
            Self::Other(message) => message.get("type").is_some_and(|kind| kind == "result"),
            _ => false,
        }
    }
}

impl From<Value> for SessionMessage<'_> {
    /// As it is.
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
