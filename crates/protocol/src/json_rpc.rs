//! JSON-RPC with an MCP server, as far as a session speaks it through its client.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lenient;

/// The version of JSON-RPC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RpcVersion {
    /// The one there is.
    #[default]
    #[serde(rename = "2.0")]
    V2,
}

/// A request to a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcRequest<'a, P> {
    /// Always 2.0.
    pub jsonrpc: RpcVersion,
    /// What the answer names.
    pub id: u64,
    /// What is asked.
    pub method: Cow<'a, str>,
    /// What about.
    pub params: P,
}

/// Something a server is told, without an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcNotification<'a, P> {
    /// Always 2.0.
    pub jsonrpc: RpcVersion,
    /// What.
    pub method: Cow<'a, str>,
    /// More about it.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub params: Option<P>,
}

/// What a server answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RpcAnswer {
    /// The answer.
    pub result: Value,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
}

impl RpcAnswer {
    /// The answer, or why there is none, for people.
    pub fn into_result(self) -> Result<Value, String> {
        match self.error {
            None => Ok(self.result),
            Some(error) => Err(error.into_message()),
        }
    }
}

/// What went wrong at a server, as it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RpcError(Value);

impl RpcError {
    /// In the server's words, if it has any.
    pub fn into_message(self) -> String {
        match self.0.get("message").and_then(Value::as_str) {
            Some(message) => message.to_owned(),
            None => self.0.to_string(),
        }
    }
}

/// `initialize`: who we are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcHello<'a> {
    /// The newest version of the protocol that we know.
    pub protocol_version: Cow<'a, str>,
    /// What we can do.
    pub capabilities: crate::NoFields,
    /// Our name.
    pub client_info: ClientInfo<'a>,
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientInfo<'a> {
    /// The program.
    pub name: Cow<'a, str>,
    /// Its version.
    pub version: Cow<'a, str>,
}

/// `initialize`: who a server is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServerGreeting {
    /// What it can do.
    pub capabilities: Value,
    /// What it says of itself.
    pub server_info: Value,
}

impl ServerGreeting {
    /// A server that says what it can do and does not name tools has none.
    pub fn has_tools(&self) -> bool {
        match &self.capabilities {
            Value::Object(capabilities) => capabilities.contains_key("tools"),
            _ => true,
        }
    }
}

impl From<Value> for ServerGreeting {
    fn from(greeting: Value) -> Self {
        lenient::read_object(greeting).unwrap_or_default()
    }
}

/// `tools/list`: from where on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcPage {
    /// Where the last page ended; the first page where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// `tools/list`: some tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolPage {
    /// The tools.
    #[serde(deserialize_with = "lenient::objects")]
    pub tools: Vec<DescribedTool>,
    /// Where this page ends, if more come.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub next_cursor: Option<String>,
}

impl From<Value> for ToolPage {
    fn from(page: Value) -> Self {
        lenient::read_object(page).unwrap_or_default()
    }
}

/// A tool, as its server describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DescribedTool {
    /// Its name; empty where the server gives none.
    #[serde(deserialize_with = "lenient::or_default")]
    pub name: String,
    /// Its name, for people.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub title: Option<String>,
    /// What it does.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub description: Option<String>,
    /// What its arguments look like.
    pub input_schema: Value,
    /// What the server says of calls.
    #[serde(
        deserialize_with = "lenient::object",
        skip_serializing_if = "Option::is_none"
    )]
    pub annotations: Option<ToolAnnotations>,
    /// What else it says, by conventions beside the protocol.
    #[serde(
        rename = "_meta",
        deserialize_with = "lenient::object",
        skip_serializing_if = "Option::is_none"
    )]
    pub meta: Option<ToolMeta>,
}

impl From<Value> for DescribedTool {
    fn from(tool: Value) -> Self {
        lenient::read_object(tool).unwrap_or_default()
    }
}

/// What a server says of calls of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// The tool's name, for people.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub title: Option<String>,
    /// They change nothing.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub read_only_hint: Option<bool>,
    /// They may destroy something.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub destructive_hint: Option<bool>,
    /// They reach beyond the server.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub open_world_hint: Option<bool>,
}

/// What a server says of a tool by conventions beside the protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolMeta {
    /// How much of a result is shown, in characters.
    #[serde(
        rename = "anthropic/maxResultSizeChars",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_result_size_chars: Option<u64>,
    /// What it may be looked for by.
    #[serde(
        rename = "anthropic/searchHint",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub search_hint: Option<String>,
    /// A person must agree to each call.
    #[serde(
        rename = "anthropic/requiresUserInteraction",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub requires_user_interaction: bool,
}

/// `tools/call`: which, and with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcCall<'a> {
    /// The tool, as its server names it.
    pub name: Cow<'a, str>,
    /// Its arguments.
    pub arguments: Cow<'a, Value>,
}

/// `tools/call`: what a call came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CallAnswer {
    /// Blocks, in a list, as they were written.
    #[serde(
        deserialize_with = "lenient::there",
        skip_serializing_if = "Option::is_none"
    )]
    pub content: Option<Value>,
    /// The same for programs.
    #[serde(
        deserialize_with = "lenient::there",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_content: Option<Value>,
    /// The call failed.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub is_error: bool,
}

impl CallAnswer {
    /// The blocks; none where there is no list.
    pub fn blocks(&self) -> &[Value] {
        let blocks = self.content.as_ref().and_then(Value::as_array);
        blocks.map(Vec::as_slice).unwrap_or_default()
    }
}

impl From<Value> for CallAnswer {
    fn from(answer: Value) -> Self {
        lenient::read_object(answer).unwrap_or_default()
    }
}

/// `notifications/cancelled`: a request is withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcCancelled<'a> {
    /// Which.
    pub request_id: u64,
    /// Why.
    pub reason: Cow<'a, str>,
}
