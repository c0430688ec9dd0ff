//! What an MCP server says of its tools and answers to calls, as far as a face looks at it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lenient;

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
