//! The requests of a session to its client, and the replies.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{PermissionUpdate, lenient};

/// A request of a session, by its subtype.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum SessionRequest<'a> {
    /// Asks whether a tool may run.
    CanUseTool(Box<CanUseToolRequest<'a>>),
    /// Runs a hook of the client.
    HookCallback(HookCallbackRequest<'a>),
    /// A message to an MCP server that the client runs.
    McpMessage(McpMessageRequest<'a>),
    /// Asks the user a question of an MCP server.
    Elicitation(Box<ElicitationRequest<'a>>),
    /// An unknown request, unchanged.
    #[serde(untagged)]
    Other(Value),
}

impl From<Value> for SessionRequest<'_> {
    fn from(request: Value) -> Self {
        lenient::read_object(request).unwrap_or(Self::Other(Value::Null))
    }
}

/// Asks whether a tool may run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CanUseToolRequest<'a> {
    /// The name of the tool.
    pub tool_name: Cow<'a, str>,
    /// The arguments.
    pub input: Cow<'a, Value>,
    /// Updates that would allow calls like this one from now on.
    #[serde(default, deserialize_with = "lenient::entries")]
    pub permission_suggestions: Vec<PermissionUpdate<'a>>,
    /// A path outside the working directories that the call needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_path: Option<Cow<'a, str>>,
    /// The reason why the call needs approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<Cow<'a, str>>,
    /// The type of `decision_reason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason_type: Option<Cow<'a, str>>,
    /// The id of the call.
    pub tool_use_id: Cow<'a, str>,
    /// The id of the subagent, if the call is a subagent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// The human-readable question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'a, str>>,
    /// The human-readable name of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<Cow<'a, str>>,
    /// A human-readable description of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
}

/// Runs a hook of the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookCallbackRequest<'a> {
    /// The id of the hook, as `initialize` registered it.
    pub callback_id: Cow<'a, str>,
    /// The input of the hook.
    pub input: Cow<'a, Value>,
    /// The id of the call that the event is about, as in the input.
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
    /// The name of the server.
    pub server_name: Cow<'a, str>,
    /// The message, in JSON-RPC.
    pub message: Value,
}

/// Asks the user a question of an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitationRequest<'a> {
    /// The name of the server.
    pub mcp_server_name: Cow<'a, str>,
    /// The server's message to the user.
    pub message: Cow<'a, str>,
    /// `form`, or `url` if the user must visit an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Cow<'a, str>>,
    /// The address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Cow<'a, str>>,
    /// The server's id of the elicitation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<Cow<'a, str>>,
    /// The JSON schema of the form.
    #[serde(
        default,
        deserialize_with = "lenient::there",
        skip_serializing_if = "Option::is_none"
    )]
    pub requested_schema: Option<Cow<'a, Value>>,
}

/// The user's reply to a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ElicitationReply {
    /// `accept`, `decline` or `cancel`.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub action: Option<String>,
    /// The values of the form.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub content: Option<Map<String, Value>>,
}

impl From<Value> for ElicitationReply {
    fn from(reply: Value) -> Self {
        lenient::read_object(reply).unwrap_or_default()
    }
}

/// The client's reply to a message to one of its servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct McpMessageReply {
    /// The server's JSON-RPC response, unchanged, for the sender of the message. `None` if the
    /// reply contains no object.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub mcp_response: Option<Map<String, Value>>,
}

impl From<Value> for McpMessageReply {
    fn from(reply: Value) -> Self {
        lenient::read_object(reply).unwrap_or_default()
    }
}

/// The result of a hook in the format of hook output. The session uses it when the client does not
/// answer in time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HookReply<'a> {
    /// `block`, or absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Cow<'a, str>>,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The fields that only hooks of this event have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_specific_output: Option<HookSpecificReply<'a>>,
}

/// The decision of a PreToolUse hook about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HookSpecificReply<'a> {
    /// The hook event.
    pub hook_event_name: Cow<'a, str>,
    /// The decision: `allow`, `ask`, `deny`, `defer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision: Option<Cow<'a, str>>,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision_reason: Option<Cow<'a, str>>,
}
