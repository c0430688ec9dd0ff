//! What a session answers to requests of its client.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::WireId;

/// The payload of a good answer; which one, the request says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SessionAnswer {
    /// Done, and nothing to say.
    Done(NoFields),
    /// To `initialize`.
    Initialize(Box<InitializeAnswer>),
    /// To `interrupt`.
    Interrupt(InterruptAnswer),
    /// To `set_permission_mode`.
    Mode(ModeAnswer),
    /// To `get_context_usage`.
    ContextUsage(Box<ContextUsageAnswer>),
    /// To `rewind_files`.
    Rewind(RewindAnswer),
    /// To `mcp_status`.
    Servers(McpStatusAnswer),
    /// To `mcp_set_servers`.
    SetServers(ServersAnswer),
    /// To `cancel_async_message`.
    Cancelled(CancelledMessage),
    /// To `reload_skills`.
    Skills(SkillsAnswer),
    /// To `reload_output_styles`.
    OutputStyles(OutputStylesAnswer),
    /// To `reload_plugins`.
    Plugins(Box<PluginsAnswer>),
    /// To `read_file`.
    File(FileAnswer),
    /// To `get_binary_version`.
    Version(BinaryVersion),
    /// Something else, as it was written.
    Other(Value),
}

impl SessionAnswer {
    /// Done, and nothing to say.
    pub const DONE: Self = Self::Done(NoFields {});
}

impl From<Value> for SessionAnswer {
    /// As it is: only who asked knows what is answered.
    fn from(answer: Value) -> Self {
        Self::Other(answer)
    }
}

/// Nothing but the request, or the answer, itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoFields {}

/// What there is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InitializeAnswer {
    /// Slash commands.
    pub commands: Vec<DescribedCommand>,
    /// Kinds of subagents.
    pub agents: Vec<DescribedAgent>,
    /// How the model is to write.
    pub output_style: String,
    /// How it may.
    pub available_output_styles: Vec<String>,
    /// Models: `{value, displayName, description}`.
    pub models: Vec<Value>,
    /// Whose account is used.
    pub account: Map<String, Value>,
    /// What a client says of hooks that fail is kept to.
    pub hook_on_failure_supported: bool,
    /// The process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// Skills and commands, as they are now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkillsAnswer {
    /// Those that a person can call.
    pub skills: Vec<DescribedCommand>,
}

/// Output styles, as they are now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputStylesAnswer {
    /// Their names.
    pub available_output_styles: Vec<String>,
}

/// What plugins bring, as it is now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginsAnswer {
    /// Slash commands.
    pub commands: Vec<DescribedCommand>,
    /// Kinds of subagents.
    pub agents: Vec<DescribedAgent>,
    /// Plugins.
    pub plugins: Vec<LoadedPlugin>,
    /// MCP servers.
    #[serde(rename = "mcpServers")]
    pub mcp_servers: Vec<ListedServer>,
    /// How many things are wrong.
    pub error_count: usize,
}

/// A plugin that is loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedPlugin {
    /// Its name.
    pub name: String,
    /// Its folder.
    #[serde(default)]
    pub path: String,
    /// Its version, as its manifest says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What is in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FileAnswer {
    /// Its text, or its bytes in base64.
    pub contents: String,
    /// Where it really is.
    pub abs_path: String,
    /// There is more.
    #[serde(skip_serializing_if = "crate::lenient::is_false")]
    pub truncated: bool,
    /// `base64`, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Of a text: some bytes were none, and are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lossy: Option<bool>,
}

/// A slash command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DescribedCommand {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may follow it.
    pub argument_hint: String,
}

/// A kind of subagents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DescribedAgent {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its model, where it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What an interrupt left waiting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterruptAnswer {
    /// Messages that wait for their turn; a message without an id is a `null`.
    pub still_queued: Vec<Option<WireId>>,
    /// Messages that were withdrawn with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Vec<Option<WireId>>>,
}

/// The permission mode from now on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeAnswer {
    /// Its name.
    pub mode: String,
}

/// How full the model's window is, in tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContextUsageAnswer {
    /// By what fills it.
    pub categories: Vec<ContextCategory>,
    /// Together.
    pub total_tokens: u64,
    /// How much fits.
    pub max_tokens: u64,
    /// How much would fit.
    pub raw_max_tokens: u64,
    /// How full it is.
    pub percentage: u64,
    /// The model.
    pub model: String,
    /// Is it summarized before it is full?
    pub is_auto_compact_enabled: bool,
    /// Files of instructions.
    pub memory_files: Vec<Value>,
    /// Tools of MCP servers.
    pub mcp_tools: Vec<ContextMcpTool>,
    /// Kinds of subagents.
    pub agents: Vec<Value>,
    /// A picture of it.
    pub grid_rows: Vec<Value>,
}

/// A part of what fills a window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextCategory {
    /// What.
    pub name: String,
    /// How much.
    pub tokens: u64,
    /// The colour that it is shown in.
    pub color: String,
}

/// What a tool of an MCP server takes of a window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContextMcpTool {
    /// The tool.
    pub name: String,
    /// Its server.
    pub server_name: String,
    /// How much.
    pub tokens: u64,
    /// The model has read about it.
    pub is_loaded: bool,
}

/// What came of making the files what they were, or what would.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RewindAnswer {
    /// It can be done.
    pub can_rewind: bool,
    /// The files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<Vec<String>>,
    /// Lines that came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insertions: Option<u64>,
    /// Lines that went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// What cannot, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How the MCP servers are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct McpStatusAnswer {
    /// All of them.
    pub mcp_servers: Vec<ListedServer>,
}

/// How an MCP server is, in full.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ListedServer {
    /// Its name.
    pub name: String,
    /// `connected`, `failed`, `pending` …
    pub status: String,
    /// As it was given.
    pub config: Value,
    /// Where it was.
    pub scope: String,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it says of itself.
    #[serde(
        deserialize_with = "crate::lenient::there",
        skip_serializing_if = "Option::is_none"
    )]
    pub server_info: Option<Value>,
    /// Its tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ListedServerTool>>,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListedServerTool {
    /// As its server names it.
    pub name: String,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What its server says of calls.
    #[serde(skip_serializing_if = "ToolHints::is_empty")]
    pub annotations: ToolHints,
}

/// What a server says of calls of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolHints {
    /// They change nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// They may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// They reach beyond the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolHints {
    /// It says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What came of setting servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServersAnswer {
    /// New ones.
    pub added: Vec<String>,
    /// Those that are gone.
    pub removed: Vec<String>,
    /// What is wrong with others, by name.
    pub errors: Map<String, Value>,
}

/// Whether a message could be withdrawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelledMessage {
    /// It still waited.
    pub cancelled: bool,
}

/// Which haft this is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinaryVersion {
    /// The version.
    pub version: String,
}
