//! The parts of an MCP server's tool descriptions and call results that a front end uses.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lenient;

/// A tool, as its server describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DescribedTool {
    /// The name; empty if the server sends none.
    #[serde(deserialize_with = "lenient::or_default")]
    pub name: String,
    /// The human-readable name.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub title: Option<String>,
    /// The description.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub description: Option<String>,
    /// The JSON schema of the arguments.
    pub input_schema: Value,
    /// The server's hints about calls.
    #[serde(
        deserialize_with = "lenient::object",
        skip_serializing_if = "Option::is_none"
    )]
    pub annotations: Option<ToolAnnotations>,
    /// Further data outside the MCP standard.
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

/// A server's hints about the calls of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// The human-readable name of the tool.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub title: Option<String>,
    /// Whether calls are read-only.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub read_only_hint: Option<bool>,
    /// Whether calls may destroy data.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub destructive_hint: Option<bool>,
    /// Whether calls reach systems outside the server.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub open_world_hint: Option<bool>,
}

/// A server's data about a tool outside the MCP standard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolMeta {
    /// The maximum length of a shown result in characters.
    #[serde(
        rename = "anthropic/maxResultSizeChars",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_result_size_chars: Option<u64>,
    /// Terms by which tool search finds the tool.
    #[serde(
        rename = "anthropic/searchHint",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "Option::is_none"
    )]
    pub search_hint: Option<String>,
    /// Whether the user must approve each call.
    #[serde(
        rename = "anthropic/requiresUserInteraction",
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub requires_user_interaction: bool,
}

/// The result of `tools/call`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CallAnswer {
    /// The blocks: a list, unchanged.
    #[serde(
        deserialize_with = "lenient::there",
        skip_serializing_if = "Option::is_none"
    )]
    pub content: Option<Value>,
    /// The machine-readable result.
    #[serde(
        deserialize_with = "lenient::there",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_content: Option<Value>,
    /// Whether the call failed.
    #[serde(
        deserialize_with = "lenient::or_default",
        skip_serializing_if = "lenient::is_false"
    )]
    pub is_error: bool,
}

impl CallAnswer {
    /// Returns the blocks, or an empty slice if the content is not a list.
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
