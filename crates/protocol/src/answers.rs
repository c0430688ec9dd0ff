//! The responses of a session to requests of its client.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::WireId;

/// The payload of a successful response. The request determines the variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SessionAnswer {
    /// The request succeeded without a payload.
    Done(NoFields),
    /// The response to `initialize`.
    Initialize(Box<InitializeAnswer>),
    /// The response to `interrupt`.
    Interrupt(InterruptAnswer),
    /// The response to `set_permission_mode`.
    Mode(ModeAnswer),
    /// The response to `get_context_usage`.
    ContextUsage(Box<ContextUsageAnswer>),
    /// The response to `rewind_files`.
    Rewind(RewindAnswer),
    /// The response to `mcp_status`.
    Servers(McpStatusAnswer),
    /// The response to `mcp_set_servers`.
    SetServers(ServersAnswer),
    /// The response to `cancel_async_message`.
    Cancelled(CancelledMessage),
    /// The response to `reload_skills`.
    Skills(SkillsAnswer),
    /// The response to `reload_output_styles`.
    OutputStyles(OutputStylesAnswer),
    /// The response to `reload_plugins`.
    Plugins(Box<PluginsAnswer>),
    /// The response to `read_file`.
    File(FileAnswer),
    /// The response to `get_binary_version`.
    Version(BinaryVersion),
    /// Any other payload, unchanged.
    Other(Value),
}

impl SessionAnswer {
    /// The response of a request that succeeded without a payload.
    pub const DONE: Self = Self::Done(NoFields {});
}

impl From<Value> for SessionAnswer {
    /// Wraps the value unchanged: only the sender of the request knows its type.
    fn from(answer: Value) -> Self {
        Self::Other(answer)
    }
}

/// An empty object: a request or a response without fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoFields {}

/// The response to `initialize`: the commands, agent kinds and models of the session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InitializeAnswer {
    /// The slash commands.
    pub commands: Vec<DescribedCommand>,
    /// The agent kinds.
    pub agents: Vec<DescribedAgent>,
    /// The current output style.
    pub output_style: String,
    /// The available output styles.
    pub available_output_styles: Vec<String>,
    /// The models: `{value, displayName, description}`.
    pub models: Vec<Value>,
    /// The account that is used.
    pub account: Map<String, Value>,
    /// Whether the session supports `onFailure` of the client's hooks.
    pub hook_on_failure_supported: bool,
    /// The id of the session's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// The current skills and commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillsAnswer {
    /// The skills and commands that the user can call.
    pub skills: Vec<DescribedCommand>,
}

/// The current output styles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputStylesAnswer {
    /// The names of the output styles.
    pub available_output_styles: Vec<String>,
}

/// The current contributions of plugins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginsAnswer {
    /// The slash commands.
    pub commands: Vec<DescribedCommand>,
    /// The agent kinds.
    pub agents: Vec<DescribedAgent>,
    /// The loaded plugins.
    pub plugins: Vec<LoadedPlugin>,
    /// The MCP servers.
    #[serde(rename = "mcpServers")]
    pub mcp_servers: Vec<ListedServer>,
    /// The number of errors.
    pub error_count: usize,
}

/// A loaded plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedPlugin {
    /// The name.
    pub name: String,
    /// The plugin's folder.
    #[serde(default)]
    pub path: String,
    /// The version in the plugin's manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The contents of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FileAnswer {
    /// The text, or the bytes in base64.
    pub contents: String,
    /// The real path of the file.
    pub abs_path: String,
    /// Whether the file is longer than `contents`.
    #[serde(skip_serializing_if = "crate::lenient::is_false")]
    pub truncated: bool,
    /// `base64`, if the request asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// For text: whether invalid bytes were replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lossy: Option<bool>,
}

/// A slash command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DescribedCommand {
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// A hint at the expected arguments.
    pub argument_hint: String,
}

/// An agent kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DescribedAgent {
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The model, if the agent kind sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The response to an interrupt: the messages that are still queued.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterruptAnswer {
    /// The ids of the queued messages; `null` for a message without an id.
    pub still_queued: Vec<Option<WireId>>,
    /// The ids of the messages that the interrupt withdrew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Vec<Option<WireId>>>,
}

/// The permission mode that now applies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeAnswer {
    /// The name of the mode.
    pub mode: String,
}

/// The usage of the context window, in tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContextUsageAnswer {
    /// The usage by category.
    pub categories: Vec<ContextCategory>,
    /// The total of all categories.
    pub total_tokens: u64,
    /// The usable size of the context window.
    pub max_tokens: u64,
    /// The full size of the context window.
    pub raw_max_tokens: u64,
    /// The used percentage.
    pub percentage: u64,
    /// The name of the model.
    pub model: String,
    /// Whether the conversation is compacted automatically before the window is full.
    pub is_auto_compact_enabled: bool,
    /// The loaded memory files.
    pub memory_files: Vec<Value>,
    /// The tools of MCP servers.
    pub mcp_tools: Vec<ContextMcpTool>,
    /// The agent kinds.
    pub agents: Vec<Value>,
    /// The rows of a grid that visualizes the usage.
    pub grid_rows: Vec<Value>,
}

/// A category of context usage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextCategory {
    /// The name.
    pub name: String,
    /// The number of tokens.
    pub tokens: u64,
    /// The colour of the category on screen.
    pub color: String,
}

/// The context usage of an MCP server's tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContextMcpTool {
    /// The name of the tool.
    pub name: String,
    /// The name of the server.
    pub server_name: String,
    /// The number of tokens.
    pub tokens: u64,
    /// Whether the definition of the tool is in the context.
    pub is_loaded: bool,
}

/// The result of a rewind of files, or its preview.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RewindAnswer {
    /// Whether the rewind is possible.
    pub can_rewind: bool,
    /// The changed files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<Vec<String>>,
    /// The number of lines that the rewind adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insertions: Option<u64>,
    /// The number of lines that the rewind removes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// The reason why a rewind is impossible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The status of all MCP servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct McpStatusAnswer {
    /// The servers.
    pub mcp_servers: Vec<ListedServer>,
}

/// The full status of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ListedServer {
    /// The name.
    pub name: String,
    /// The status: `connected`, `failed`, `pending` …
    pub status: String,
    /// The configuration, unchanged.
    pub config: Value,
    /// The scope of the settings that define the server.
    pub scope: String,
    /// The error of a failed server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The server's description of itself.
    #[serde(
        deserialize_with = "crate::lenient::there",
        skip_serializing_if = "Option::is_none"
    )]
    pub server_info: Option<Value>,
    /// The server's tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ListedServerTool>>,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListedServerTool {
    /// The server's name of the tool.
    pub name: String,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The server's hints about calls.
    #[serde(skip_serializing_if = "ToolHints::is_empty")]
    pub annotations: ToolHints,
}

/// A server's hints about the calls of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolHints {
    /// Whether calls are read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether calls may destroy data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Whether calls reach systems outside the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolHints {
    /// Returns whether no hint is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The result of setting the MCP servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServersAnswer {
    /// The names of the new servers.
    pub added: Vec<String>,
    /// The names of the removed servers.
    pub removed: Vec<String>,
    /// The errors of other servers, by name.
    pub errors: Map<String, Value>,
}

/// The response to the withdrawal of a queued message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelledMessage {
    /// Whether the message was still queued and is now withdrawn.
    pub cancelled: bool,
}

/// The version of the haft binary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinaryVersion {
    /// The version.
    pub version: String,
}
