//! What a session is set up with: plain data, from flags, an editor or an embedder.

use std::{path::PathBuf, time::Duration};

use haft_contract::{PermissionMode, SessionId};
use haft_engine::settings::{Flags, Problem};
use serde_json::{Map, Value};

use crate::Environment;

/// What a session is set up with. Everything but the directory has a default that means "as the settings
/// say, else as usual".
#[derive(Debug, Clone, Default)]
pub struct SessionConfig {
    /// The directory to work in; absolute.
    pub cwd: PathBuf,
    /// The variables it goes by. Default: those of the process.
    pub environment: Environment,
    /// The program that confines commands and reads PDFs when it is started again, such as
    /// [`std::env::current_exe`]; it must call [`haft_tools::serve_child`] first thing in `main`. None: no
    /// command can run.
    pub program: Option<PathBuf>,
    /// Settings that are given, and which settings files count.
    pub settings: Flags,
    /// What is wrong with what was given; reported with the problems of the settings.
    pub problems: Vec<Problem>,
    /// How much runs without asking.
    pub permission_mode: Option<PermissionMode>,
    /// A later switch to `bypassPermissions` is allowed.
    pub allow_bypass: bool,
    /// Rules that let calls through, such as `Bash(npm test *)`.
    pub allow: Vec<String>,
    /// Rules that refuse calls, such as `Read(./.env)`.
    pub deny: Vec<String>,
    /// Further directories that calls may read and edit; absolute.
    pub directories: Vec<PathBuf>,
    /// Only these built-in tools, by name, separated by commas. None: all of them.
    pub tools: Option<String>,
    /// About this many tokens may go to the definitions of tools in each request; beyond it tools are sent by
    /// name only. None: a tenth of what the model can read, and at least 8,000.
    pub tool_budget: Option<usize>,
    /// Calls come from a program that may serve many conversations: no tool is sent by name only, no answer
    /// points to an earlier one, and no card of a result is drawn.
    pub for_programs: bool,
    /// Only the few tools an agent cannot do without, and nothing that people put in folders.
    pub bare: bool,
    /// The search engine, to share with those who list files beside the session; it is made with the settings of
    /// the first session. None: each session has its own.
    #[cfg(feature = "search")]
    pub search: Option<haft_tools::SharedEngine>,
    /// How many calls run at once.
    pub concurrency: Option<usize>,
    /// Who answers.
    pub model: ModelChoice,
    /// The system prompt.
    pub prompts: PromptTexts,
    /// Which conversation.
    pub conversation: ConversationChoice,
    /// The most rounds of tools.
    pub max_turns: Option<u32>,
    /// The most money, in USD.
    pub max_budget_usd: Option<f64>,
    /// The answer must be JSON of this schema, a JSON text.
    pub output_schema: Option<String>,
    /// Kinds of subagents, by name, beside those in folders.
    pub agents: Map<String, Value>,
    /// The main agent is of this kind.
    pub agent: Option<String>,
    /// Folders of plugins; absolute.
    pub plugins: Vec<PathBuf>,
    /// No skills and no commands: a prompt that begins with a slash is a prompt.
    pub without_slash_commands: bool,
    /// MCP servers: files, or JSON itself.
    pub mcp_servers: Vec<String>,
    /// Only those: none of the project's, none of plugins.
    pub strict_mcp: bool,
    /// The tool of a server that is asked for permission, as the pool names it. It is not offered to the
    /// model, and the session does not begin without it.
    pub permission_tool: Option<String>,
    /// Hooks that make the project ready before it begins.
    pub setup: SetupHooks,
    /// Hooks may bring the first words where the input is closed without a message.
    pub hooks_may_begin: bool,
    /// One result in all: what subagents come to in the background belongs to the message that launched
    /// them.
    pub one_result: bool,
    /// Hooks learn when nothing was said for a minute after a turn (`Notification`, `idle_prompt`). Off where the face
    /// reports it itself ([`SessionInput::waits_for_person`](crate::SessionInput::waits_for_person)).
    pub reports_idle: bool,
    /// The first turn waits no longer than this for MCP servers, wherever they are named; their tools come when they are there.
    /// None: servers that were named for this very session are waited for until they are there or have failed.
    pub longest_server_wait: Option<Duration>,
    /// What a person chooses with `/model` and `/effort` is saved in their settings, for later sessions too.
    pub saves_choices: bool,
    /// Where the session keeps its state. None: in the folder of its project.
    pub state_folder: Option<PathBuf>,
    /// What is said about this configuration names flags of `haft`'s command line: it was made from them.
    pub names_flags: bool,
    /// The version that transcripts name. Empty: ours.
    pub version: String,
}

impl SessionConfig {
    /// A session that works in this directory; an absolute path.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            ..Self::default()
        }
    }
}

/// Who answers.
#[derive(Debug, Clone, Default)]
pub struct ModelChoice {
    /// The model, as its provider or the settings name it.
    pub name: Option<String>,
    /// Models that take over when the first is overloaded or does not exist.
    pub fallbacks: Vec<String>,
    /// Where the model is asked.
    pub base_url: Option<String>,
    /// How the model is asked. None: as the base URL or the environment says.
    pub provider: Option<ModelProvider>,
    /// Prices in USD for a million tokens, by the beginning of a model's name.
    pub prices: Option<Value>,
    /// Whether the model thinks first.
    pub thinking: Option<ThinkingChoice>,
    /// In at most this many tokens; 0: it does not.
    pub max_thinking_tokens: Option<u32>,
    /// How much work the model puts in.
    pub effort: Option<String>,
    /// Features of the provider that are not for everyone yet.
    pub betas: Vec<String>,
    /// Everything the model is asked and says is kept in this file.
    pub record: Option<PathBuf>,
    /// No model is asked: what was recorded in this file is said again.
    pub replay: Option<PathBuf>,
    /// No model is asked: this script says what it says.
    pub script: Option<PathBuf>,
}

/// How providers are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelProvider {
    /// The Messages API.
    Anthropic,
    /// Chat completions, as OpenAI and many servers speak them.
    OpenAi,
}

/// Whether a model thinks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingChoice {
    /// As it sees fit.
    Adaptive,
    /// Not at all.
    Disabled,
}

/// The system prompt.
#[derive(Debug, Clone, Default)]
pub struct PromptTexts {
    /// In place of our own system prompt; empty for none.
    pub system: Option<String>,
    /// Behind the system prompt.
    pub append: Option<String>,
    /// Behind the system prompt of every subagent.
    pub append_subagent: Option<String>,
    /// The description of the environment goes into the first message, not into the system prompt.
    pub environment_in_message: bool,
}

/// Which conversation a session belongs to.
#[derive(Debug, Clone, Default)]
pub struct ConversationChoice {
    /// One that is gone on with. None: a new one.
    pub from: Option<EarlierConversation>,
    /// Under a new id; the old one stays as it is.
    pub fork: bool,
    /// From this message on, as if what came after it had not been said.
    pub until: Option<String>,
    /// Of what came after that message, only the turn of this prompt may fall away; else it does not begin.
    pub drops_turn: Option<String>,
    /// The id of a new conversation.
    pub id: Option<SessionId>,
    /// Nothing of it is kept.
    pub forget: bool,
    /// Each line of it is reported as it is written.
    pub mirror: bool,
    /// Its title.
    pub title: Option<String>,
}

/// A conversation that is gone on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EarlierConversation {
    /// The newest of the directory, if there is one.
    Newest,
    /// The one of this id or title.
    Named(String),
}

/// Which Setup hooks run before the session begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetupHooks {
    /// Those that make the project ready.
    pub init: bool,
    /// The same, and the session ends then.
    pub init_only: bool,
    /// Those that put it in order.
    pub maintenance: bool,
}
