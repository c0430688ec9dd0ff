//! `assistant`: a model's reply, block by block.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

use crate::{ApiMessage, WireId};

/// A block of a reply, or, with `error`, the message that replaces a failed reply.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AssistantMessage<'a> {
    /// The reply with this block.
    pub message: ApiMessage<'a>,
    /// The call that launched the subagent, if the reply is a subagent's.
    #[serde(default)]
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The error that replaced the reply: `authentication_failed` `billing_error` `rate_limit`
    /// `overloaded` `invalid_request` `model_not_found` `server_error` `max_output_tokens`
    /// `unknown` …
    #[serde(default)]
    pub error: Option<Cow<'a, str>>,
    /// The provider's id of the failed request.
    #[serde(default)]
    pub request_id: Option<Cow<'a, str>>,
    /// The agent kind of the subagent, if the reply is a subagent's.
    #[serde(default)]
    pub subagent_type: Option<Cow<'a, str>>,
    /// The id of the subagent, if the reply is a subagent's.
    #[serde(default)]
    pub agent_id: Option<Cow<'a, str>>,
    /// The id of the session.
    #[serde(default)]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default)]
    pub uuid: Option<WireId>,
}

impl<'a> AssistantMessage<'a> {
    /// Creates a message of the main agent.
    pub fn new(message: ApiMessage<'a>) -> Self {
        Self {
            message,
            parent_tool_use_id: None,
            error: None,
            request_id: None,
            subagent_type: None,
            agent_id: None,
            session_id: None,
            uuid: None,
        }
    }
}

/// Written by hand because the position of `uuid` varies: a block is a line of the transcript, so
/// its `uuid` precedes the fields about the session. A failure is not a line of the transcript, so
/// its `uuid` is last.
impl Serialize for AssistantMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_block = self.error.is_none();
        let mut fields = serializer.serialize_struct("AssistantMessage", 8)?;
        fields.serialize_field("message", &self.message)?;
        fields.serialize_field("parent_tool_use_id", &self.parent_tool_use_id)?;
        if let Some(error) = &self.error {
            fields.serialize_field("error", error)?;
        }
        if let Some(id) = &self.request_id {
            fields.serialize_field("request_id", id)?;
        }
        if let (true, Some(uuid)) = (is_block, &self.uuid) {
            fields.serialize_field("uuid", uuid)?;
        }
        if let Some(kind) = &self.subagent_type {
            fields.serialize_field("subagent_type", kind)?;
        }
        if let Some(id) = &self.agent_id {
            fields.serialize_field("agent_id", id)?;
        }
        if let Some(session) = &self.session_id {
            fields.serialize_field("session_id", session)?;
        }
        if let (false, Some(uuid)) = (is_block, &self.uuid) {
            fields.serialize_field("uuid", uuid)?;
        }
        fields.end()
    }
}
