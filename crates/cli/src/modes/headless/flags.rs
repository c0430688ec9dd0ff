//! The flags of `haft -p`.

use std::{num::NonZeroU32, path::PathBuf};

use clap::{Args, ValueEnum};

/// The options of a run, in addition to those of the session.
#[derive(Debug, Args)]
pub(crate) struct HeadlessFlags {
    /// Run one task without a user: print the reply and exit.
    #[arg(short = 'p', long)]
    pub(crate) print: bool,

    /// The prompt. Text from stdin is appended. `@FILE`, `@FILE:10-20` and `@FOLDER` attach content.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    /// Words that were not quoted.
    #[arg(hide = true)]
    pub(crate) more_words: Vec<String>,

    /// An image to attach to the prompt (PNG, JPEG, GIF, WebP); repeatable. An image on stdin is attached too, and so are
    /// images that the prompt names, as in `what is in @a.png?`.
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,

    /// The output: the final text, one result object, or every message as a JSON line.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output_format: OutputFormat,

    /// The input: a prompt, or messages and control requests as JSON lines.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) input_format: InputFormat,

    /// With `--output-format json`: print all messages as one list.
    #[arg(long)]
    pub(crate) verbose: bool,

    /// Also report each streamed piece of a reply.
    #[arg(long)]
    pub(crate) include_partial_messages: bool,

    /// Also report the start, output and end of each hook; those of the session start are always reported.
    #[arg(long)]
    pub(crate) include_hook_events: bool,

    /// Run Setup hooks first.
    #[arg(long)]
    pub(crate) init: bool,

    /// Run Setup hooks and exit.
    #[arg(long)]
    pub(crate) init_only: bool,

    /// Run Setup hooks for maintenance first.
    #[arg(long)]
    pub(crate) maintenance: bool,

    /// Repeat each message from stdin on stdout.
    #[arg(long)]
    pub(crate) replay_user_messages: bool,

    /// Also report text and thinking of subagents, not only their calls.
    #[arg(long)]
    pub(crate) forward_subagent_text: bool,

    /// Agent kinds as JSON: {"NAME": {"description", "prompt", "tools", "model", …}}.
    #[arg(long, value_name = "JSON")]
    pub(crate) agents: Option<String>,

    /// Use this agent kind: its prompt, tools and model. Default: `agent` of the settings.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// MCP servers: files, or JSON, {"mcpServers": {"NAME": {…}}}. Servers of type `sdk` run in the program that
    /// drives haft.
    #[arg(long, value_name = "FILE-OR-JSON", num_args = 1..)]
    pub(crate) mcp_config: Vec<String>,

    /// Use only the MCP servers of --mcp-config, none of projects or plugins.
    #[arg(long)]
    pub(crate) strict_mcp_config: bool,

    /// The program that answers permission questions: `stdio` (the program that drives haft), or
    /// `mcp__SERVER__TOOL` (a tool of an MCP server).
    #[arg(long, value_name = "WHO")]
    pub(crate) permission_prompt_tool: Option<String>,

    /// The directory of a plugin; repeatable.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,

    /// Disable skills and slash commands: a prompt that begins with a slash is sent as text.
    #[arg(long)]
    pub(crate) disable_slash_commands: bool,

    /// Without -p: a line-oriented session for screen readers and simple terminals. Nothing is redrawn, and you
    /// answer questions with numbers.
    #[arg(long, alias = "ax-screen-reader", conflicts_with = "print")]
    pub(crate) plain: bool,

    /// Exit with 2 if a call was denied.
    #[arg(long)]
    pub(crate) fail_on_deny: bool,

    /// The maximum number of turns.
    #[arg(long, value_name = "N", value_parser = parse_max_turns)]
    pub(crate) max_turns: Option<NonZeroU32>,

    /// The maximum cost in USD. Prices are public list prices unless `--prices` gives others.
    #[arg(long, value_name = "USD")]
    pub(crate) max_budget_usd: Option<f64>,

    /// Require a final answer that matches this JSON schema; the result has it as `structured_output`.
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) json_schema: Option<String>,

    /// Permit a later switch to bypassPermissions.
    #[arg(long)]
    pub(crate) allow_dangerously_skip_permissions: bool,

    #[command(flatten)]
    pub(crate) model: ModelFlags,

    #[command(flatten)]
    pub(crate) prompts: PromptFlags,

    #[command(flatten)]
    pub(crate) session: SessionFlags,

    #[command(flatten)]
    pub(crate) screen: ScreenFlags,

    #[command(flatten)]
    pub(crate) ignored: IgnoredFlags,
}

impl HeadlessFlags {
    /// Returns whether input and output are text, so that a user may read and answer.
    pub(crate) fn is_text_only(&self) -> bool {
        self.output_format == OutputFormat::Text && self.input_format == InputFormat::Text
    }
}

/// Parses a number of turns, at least 1.
fn parse_max_turns(text: &str) -> Result<NonZeroU32, String> {
    let rounds: u32 = text.parse().map_err(|_| "expected a number".to_owned())?;
    NonZeroU32::new(rounds)
        .ok_or_else(|| "expected at least 1; omit the flag for no limit".to_owned())
}

/// The model and its provider.
#[derive(Debug, Args)]
pub(crate) struct ModelFlags {
    /// The model: the provider's name, or `sonnet`, `opus`, `haiku`, `opusplan`; with the suffix `[1m]`, the
    /// longer context. Default: `model` of the settings, otherwise ANTHROPIC_MODEL or OPENAI_MODEL, otherwise
    /// the model that `haft models` marks.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Models to use if the first one is overloaded or does not exist, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) fallback_model: Vec<String>,

    /// The URL of the model server. A URL that ends in /v1 means an OpenAI-compatible server unless
    /// `--provider` names another API.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// The API of the model server. Default: derived from the base URL, otherwise `openai` if only OPENAI_API_KEY
    /// or OPENAI_BASE_URL is set, otherwise `anthropic`.
    #[arg(long, value_name = "WHICH")]
    pub(crate) provider: Option<ProviderKind>,

    /// Prices in USD per million tokens: a file or JSON, {"MODEL": {"input", "output", …}}, where MODEL is a
    /// prefix of model names.
    #[arg(long, value_name = "FILE-OR-JSON")]
    pub(crate) prices: Option<String>,

    /// Whether the model thinks first: `adaptive` or `disabled`.
    #[arg(long, value_name = "HOW")]
    pub(crate) thinking: Option<ThinkingFlag>,

    /// The maximum number of thinking tokens; 0 disables thinking.
    #[arg(long, value_name = "N")]
    pub(crate) max_thinking_tokens: Option<u32>,

    /// The effort of the model: low, medium, high, xhigh, max.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) effort: Option<String>,

    /// Beta features of the provider.
    #[arg(long, value_name = "LIST", num_args = 1.., value_delimiter = ',')]
    pub(crate) betas: Vec<String>,

    /// Record all model traffic in this file.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,

    /// Ask no model: replay the traffic recorded in this file.
    #[arg(long, value_name = "FILE", conflicts_with = "script")]
    pub(crate) replay: Option<PathBuf>,

    /// Ask no model: take the replies from this script (`haft help script`).
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
}

/// The system prompt.
#[derive(Debug, Args)]
pub(crate) struct PromptFlags {
    /// Replace the system prompt; empty for none.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(conflicts_with = "system_prompt_file")]
    pub(crate) system_prompt: Option<String>,

    /// Replace the system prompt by the content of a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) system_prompt_file: Option<PathBuf>,

    /// Append to the system prompt.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(conflicts_with = "append_system_prompt_file")]
    pub(crate) append_system_prompt: Option<String>,

    /// Append the content of a file to the system prompt.
    #[arg(long, value_name = "FILE")]
    pub(crate) append_system_prompt_file: Option<PathBuf>,

    /// Append to the system prompt of every subagent.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) append_subagent_system_prompt: Option<String>,

    /// Describe the environment in the first message, not in the system prompt, so that the system prompt is
    /// the same everywhere.
    #[arg(long)]
    pub(crate) exclude_dynamic_system_prompt_sections: bool,
}

/// The conversation to start or resume.
#[derive(Debug, Args)]
pub(crate) struct SessionFlags {
    /// Continue the last conversation of this directory.
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) go_on: bool,

    /// Resume the conversation with this id or title.
    #[arg(short = 'r', long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,

    /// Resume under a new id; the old conversation does not change.
    #[arg(long)]
    pub(crate) fork_session: bool,

    /// Resume from this message and drop what follows.
    #[arg(long, value_name = "UUID")]
    pub(crate) resume_session_at: Option<String>,

    /// With --resume-session-at: fail if more than the turn of this message would be dropped.
    #[arg(long, value_name = "MESSAGE")]
    pub(crate) resume_drops_turn: Option<String>,

    /// The id of a new conversation.
    #[arg(long, value_name = "UUID")]
    pub(crate) session_id: Option<String>,

    /// Do not save the conversation.
    #[arg(long, conflicts_with_all = ["go_on", "resume"])]
    pub(crate) no_session_persistence: bool,

    /// Also report each line of the transcript when it is saved.
    #[arg(long)]
    pub(crate) session_mirror: bool,

    /// The title of the conversation.
    #[arg(short = 'n', long, value_name = "TITLE")]
    pub(crate) name: Option<String>,
}

/// The appearance of an interactive session.
#[derive(Debug, Args)]
pub(crate) struct ScreenFlags {
    /// Disable animations and show all times as 0 s, for screenshots and tests.
    #[arg(long, hide = true)]
    pub(crate) still: bool,
}

/// Flags of the convention that haft accepts and ignores.
#[derive(Debug, Args)]
pub(crate) struct IgnoredFlags {
    #[arg(long, hide = true)]
    #[arg(long, hide = true)]
    prompt_suggestions: bool,
    #[arg(long, hide = true)]
    ide: bool,
    #[arg(long, hide = true)]
    no_chrome: bool,
    #[arg(long, hide = true)]
    task_budget: Option<String>,
    #[arg(long, hide = true)]
    thinking_display: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    debug: Option<String>,
    #[arg(long, hide = true)]
    debug_file: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    Text,
    StreamJson,
}

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProviderKind {
    Anthropic,
    Openai,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThinkingFlag {
    Adaptive,
    Disabled,
}
