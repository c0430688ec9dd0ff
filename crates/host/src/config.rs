//! The configuration of a session: plain data, from flags, an editor or an embedder.

use std::{path::PathBuf, time::Duration};

use haft_contract::{PermissionMode, SessionId};
use haft_engine::settings::{SettingsFlags, SettingsProblem};
use serde_json::{Map, Value};

use crate::Environment;

/// The configuration of a session. Everything except the directory has a default: the value in the
/// settings, or otherwise the usual one.
#[derive(Debug, Clone, Default)]
pub struct SessionConfig {
    /// The absolute path of the working directory.
    pub cwd: PathBuf,
    /// The environment variables. Default: those of the process.
    pub environment: Environment,
    /// The program that confines commands and reads PDFs when it is started again, such as
    /// [`std::env::current_exe`]. It must call [`haft_tools::serve_child`] first in `main`. None:
    /// no command can run.
    pub program: Option<PathBuf>,
    /// Additional settings, and which settings files are read.
    pub settings: SettingsFlags,
    /// Problems with these settings, reported with the problems of settings files.
    pub problems: Vec<SettingsProblem>,
    /// The permission mode.
    pub permission_mode: Option<PermissionMode>,
    /// Whether the mode may be switched to `bypassPermissions` later.
    pub allow_bypass: bool,
    /// Allow rules, such as `Bash(npm test *)`.
    pub allow: Vec<String>,
    /// Deny rules, such as `Read(./.env)`.
    pub deny: Vec<String>,
    /// Additional directories that calls may read and edit; absolute.
    pub directories: Vec<PathBuf>,
    /// The built-in tools to offer, by name, separated by commas. None: all of them.
    pub tools: Option<String>,
    /// The approximate token budget for definitions of tools in each request; tools beyond it are
    /// deferred. None: a tenth of the model's window, but at least 8,000.
    pub tool_budget: Option<usize>,
    /// Whether calls come from a program that may serve many conversations. Then no tool is
    /// deferred, no result refers to an earlier one, and no card of a result is drawn.
    pub for_programs: bool,
    /// Offers only the basic tools, and loads no extensions.
    pub bare: bool,
    /// The search engine, to share it with other code that lists files. It is created with the
    /// settings of the first session. None: each session has its own.
    #[cfg(feature = "search")]
    pub search: Option<haft_tools::SharedEngine>,
    /// The number of calls that run concurrently.
    pub concurrency: Option<usize>,
    /// The choice of the model.
    pub model: ModelChoice,
    /// The texts of the system prompt.
    pub prompts: PromptTexts,
    /// The choice of the conversation.
    pub conversation: ConversationChoice,
    /// The maximum number of turns.
    pub max_turns: Option<u32>,
    /// The maximum cost in USD.
    pub max_budget_usd: Option<f64>,
    /// The JSON schema, as JSON text, that the answer must match.
    pub output_schema: Option<String>,
    /// Additional agent kinds, by name.
    pub agents: Map<String, Value>,
    /// The kind of the main agent.
    pub agent: Option<String>,
    /// Folders of plugins; absolute.
    pub plugins: Vec<PathBuf>,
    /// Disables skills and commands: a prompt that begins with a slash is an ordinary prompt.
    pub without_slash_commands: bool,
    /// MCP servers, as files or JSON.
    pub mcp_servers: Vec<String>,
    /// Uses only these servers, not those of the project or of plugins.
    pub strict_mcp: bool,
    /// The server's tool, by its name in the pool, that answers permission requests. It is not
    /// offered to the model, and the session does not start without it.
    pub permission_tool: Option<String>,
    /// The Setup hooks that run before the session starts.
    pub setup: SetupHooks,
    /// Whether hooks may provide the first prompt if the input is closed without a message.
    pub hooks_may_begin: bool,
    /// Reports only one result: the results of background subagents belong to the message that
    /// launched them.
    pub one_result: bool,
    /// Notifies hooks when no message arrives for a minute after a turn (`Notification`,
    /// `idle_prompt`). Off if the front end does so itself
    /// ([`SessionInput::notify_waiting_for_user`](crate::SessionInput::notify_waiting_for_user)).
    pub reports_idle: bool,
    /// The maximum time that the first turn waits for MCP servers; tools of slower servers are
    /// added later. None: servers that were named for this session are waited for until they are
    /// connected or have failed.
    pub longest_server_wait: Option<Duration>,
    /// Saves the user's choices with `/model` and `/effort` in their settings, for later sessions.
    pub saves_choices: bool,
    /// The folder for the session's state. None: a folder in the project's folder.
    pub state_folder: Option<PathBuf>,
    /// Whether messages about this configuration name flags of the `haft` command line, because it
    /// was made from them.
    pub names_flags: bool,
    /// The version recorded in transcripts. Empty: ours.
    pub version: String,
}

impl SessionConfig {
    /// Creates the configuration of a session that works in this directory; an absolute path.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            ..Self::default()
        }
    }
}

/// The choice of the model.
#[derive(Debug, Clone, Default)]
pub struct ModelChoice {
    /// The model's name, as known to its provider or the settings.
    pub name: Option<String>,
    /// Fallback models, if the first is overloaded or does not exist.
    pub fallbacks: Vec<String>,
    /// The base URL of the provider.
    pub base_url: Option<String>,
    /// The API of the provider. None: determined by the base URL or the environment.
    pub provider: Option<ModelProvider>,
    /// Prices in USD per million tokens, by prefix of the model's name.
    pub prices: Option<Value>,
    /// The thinking mode of the model.
    pub thinking: Option<ThinkingChoice>,
    /// The maximum number of thinking tokens; 0 disables thinking.
    pub max_thinking_tokens: Option<u32>,
    /// The effort of the model.
    pub effort: Option<String>,
    /// Beta features of the provider.
    pub betas: Vec<String>,
    /// Records all requests and replies in this file.
    pub record: Option<PathBuf>,
    /// Replays the replies recorded in this file, without a model.
    pub replay: Option<PathBuf>,
    /// Takes the replies from this script, without a model.
    pub script: Option<PathBuf>,
}

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelProvider {
    /// The Messages API.
    Anthropic,
    /// The chat completions API of OpenAI and many other servers.
    OpenAi,
}

/// The thinking mode of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingChoice {
    /// The model decides.
    Adaptive,
    /// The model does not think.
    Disabled,
}

/// The texts of the system prompt.
#[derive(Debug, Clone, Default)]
pub struct PromptTexts {
    /// Replaces our own system prompt; empty for none.
    pub system: Option<String>,
    /// A text appended to the system prompt.
    pub append: Option<String>,
    /// A text appended to the system prompt of every subagent.
    pub append_subagent: Option<String>,
    /// Puts the description of the environment into the first message instead of the system prompt.
    pub environment_in_message: bool,
}

/// The conversation that a session belongs to.
#[derive(Debug, Clone, Default)]
pub struct ConversationChoice {
    /// The conversation to resume. None: a new one.
    pub from: Option<EarlierConversation>,
    /// Copies the conversation under a new id; the old one stays unchanged.
    pub fork: bool,
    /// Resumes after this message, without the messages that follow it.
    pub until: Option<String>,
    /// Of the messages that follow, only the turn of this prompt may be dropped; otherwise the
    /// session does not start.
    pub drops_turn: Option<String>,
    /// The id of a new conversation.
    pub id: Option<SessionId>,
    /// Does not store the conversation.
    pub forget: bool,
    /// Reports each line of the transcript when it is written.
    pub mirror: bool,
    /// The title.
    pub title: Option<String>,
}

/// A conversation to resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EarlierConversation {
    /// The newest of the directory, if any.
    Newest,
    /// The one with this id or title.
    Named(String),
}

/// The Setup hooks that run before the session starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetupHooks {
    /// Runs the `init` hooks.
    pub init: bool,
    /// Runs the `init` hooks and ends the session after that.
    pub init_only: bool,
    /// Runs the `maintenance` hooks.
    pub maintenance: bool,
}
