//! What a session may ask of its client, and what it is answered.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{PermissionUpdate, lenient};

/// A request of a session, by its subtype.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum SessionRequest<'a> {
    /// May a tool run?
    CanUseTool(Box<CanUseToolRequest<'a>>),
    /// What does a hook of the client's say?
    HookCallback(HookCallbackRequest<'a>),
    /// A message to an MCP server that the client runs.
    McpMessage(McpMessageRequest<'a>),
    /// An MCP server wants to know something of a person.
    Elicitation(Box<ElicitationRequest<'a>>),
    /// A request that is not known here, as it was written.
    #[serde(untagged)]
    Other(Value),
}

impl From<Value> for SessionRequest<'_> {
    fn from(request: Value) -> Self {
        lenient::read_object(request).unwrap_or(Self::Other(Value::Null))
    }
}

/// May a tool run?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CanUseToolRequest<'a> {
    /// The tool.
    pub tool_name: Cow<'a, str>,
    /// Its arguments.
    pub input: Cow<'a, Value>,
    /// What would let calls like this one through from now on.
    #[serde(default, deserialize_with = "lenient::entries")]
    pub permission_suggestions: Vec<PermissionUpdate<'a>>,
    /// A path outside of the working directories that it wants to reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_path: Option<Cow<'a, str>>,
    /// Why it needs a person's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<Cow<'a, str>>,
    /// What sort of reason that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason_type: Option<Cow<'a, str>>,
    /// The call.
    pub tool_use_id: Cow<'a, str>,
    /// Whose call it is, if a subagent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// The question, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'a, str>>,
    /// The tool's name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<Cow<'a, str>>,
    /// What the call does, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
}

/// What does a hook of the client's say?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookCallbackRequest<'a> {
    /// The function, as `initialize` named it.
    pub callback_id: Cow<'a, str>,
    /// What a hook reads.
    pub input: Cow<'a, Value>,
    /// The call that it is about, as the input names it.
    #[serde(
        default,
        deserialize_with = "lenient::there",
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_use_id: Option<Cow<'a, Value>>,
}

/// A message to an MCP server that the client runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpMessageRequest<'a> {
    /// The server.
    pub server_name: Cow<'a, str>,
    /// The message, in JSON-RPC.
    pub message: Value,
}

/// An MCP server wants to know something of a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitationRequest<'a> {
    /// The server.
    pub mcp_server_name: Cow<'a, str>,
    /// What it says to them.
    pub message: Cow<'a, str>,
    /// `form`, or `url` for an address that is to be visited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Cow<'a, str>>,
    /// The address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Cow<'a, str>>,
    /// What the server calls a visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<Cow<'a, str>>,
    /// What a form asks for: a JSON schema.
    #[serde(
        default,
        deserialize_with = "lenient::there",
        skip_serializing_if = "Option::is_none"
    )]
    pub requested_schema: Option<Cow<'a, Value>>,
}

/// What a person answered to a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ElicitationReply {
    /// `accept`, `decline` or `cancel`.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub action: Option<String>,
    /// What was filled in.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub content: Option<Map<String, Value>>,
}

impl From<Value> for ElicitationReply {
    fn from(reply: Value) -> Self {
        lenient::read_object(reply).unwrap_or_default()
    }
}

/// What a client answers to a message to one of its servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpMessageReply {
    /// What the server answers, in JSON-RPC, as it was written: it is for the one who sent the message.
    /// Nothing where that is no object.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub mcp_response: Option<Map<String, Value>>,
}

impl From<Value> for McpMessageReply {
    fn from(reply: Value) -> Self {
        lenient::read_object(reply).unwrap_or_default()
    }
}

/// What a hook says that was answered for: the two answers that stand in for a client that is too late.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HookReply<'a> {
    /// `block`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Cow<'a, str>>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// What only hooks of this event can say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_specific_output: Option<HookSpecificReply<'a>>,
}

/// What a PreToolUse hook says of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HookSpecificReply<'a> {
    /// The event.
    pub hook_event_name: Cow<'a, str>,
    /// `allow`, `ask`, `deny`, `defer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision: Option<Cow<'a, str>>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision_reason: Option<Cow<'a, str>>,
}
