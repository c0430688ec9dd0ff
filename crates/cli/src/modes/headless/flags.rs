//! The flags of `haft -p`.

use std::{num::NonZeroU32, path::PathBuf};

use clap::{Args, ValueEnum};

/// What a run is made with, beside the session.
#[derive(Debug, Args)]
pub(crate) struct Headless {
    /// Run without a person: the answer on stdout, then the end.
    #[arg(short = 'p', long)]
    pub(crate) print: bool,

    /// What to do. What comes on stdin is put behind it. `@FILE`, `@FILE:10-20` and `@FOLDER` go with it.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    /// Words that were not quoted.
    #[arg(hide = true)]
    pub(crate) more_words: Vec<String>,

    /// A picture that goes with the prompt (PNG, JPEG, GIF, WebP); repeatable. A picture on stdin goes with it, too, and so do
    /// those that the prompt names, as in `what is in @a.png?`.
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,

    /// What comes out: the final text, one result object, or every message as a line of JSON.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output_format: OutputFormat,

    /// What comes in: a prompt, or messages and control requests as lines of JSON.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) input_format: InputFormat,

    /// With `--output-format json`: all messages, as one list.
    #[arg(long)]
    pub(crate) verbose: bool,

    /// Also report each piece of a reply as it comes.
    #[arg(long)]
    pub(crate) include_partial_messages: bool,

    /// Also report each hook as it starts, prints and ends; those of the beginning are always reported.
    #[arg(long)]
    pub(crate) include_hook_events: bool,

    /// Let Setup hooks make the project ready first.
    #[arg(long)]
    pub(crate) init: bool,

    /// Let Setup hooks make the project ready, and end then.
    #[arg(long)]
    pub(crate) init_only: bool,

    /// Let Setup hooks put the project in order first.
    #[arg(long)]
    pub(crate) maintenance: bool,

    /// Repeat each message from stdin on stdout.
    #[arg(long)]
    pub(crate) replay_user_messages: bool,

    /// Also report what subagents say and think, not only what they do.
    #[arg(long)]
    pub(crate) forward_subagent_text: bool,

    /// Kinds of subagents, in JSON: {"NAME": {"description", "prompt", "tools", "model", …}}.
    #[arg(long, value_name = "JSON")]
    pub(crate) agents: Option<String>,

    /// Be this kind of agent: its prompt, its tools, its model. Default: `agent` of the settings.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// MCP servers: files, or JSON itself, {"mcpServers": {"NAME": {…}}}. Those of type `sdk`, which the
    /// program at the other end runs, are connected; others are reported as failed.
    #[arg(long, value_name = "FILE-OR-JSON", num_args = 1..)]
    pub(crate) mcp_config: Vec<String>,

    /// Only the MCP servers of --mcp-config: none of the project's, none of plugins.
    #[arg(long)]
    pub(crate) strict_mcp_config: bool,

    /// Who is asked for permission: `stdio`, the program at the other end, or `mcp__SERVER__TOOL`, a
    /// tool of a server.
    #[arg(long, value_name = "WHO")]
    pub(crate) permission_prompt_tool: Option<String>,

    /// A folder with skills, commands and agents of a plugin; repeatable.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,

    /// No skills and no commands: a prompt that begins with a slash is a prompt.
    #[arg(long)]
    pub(crate) disable_slash_commands: bool,

    /// Without -p: a session in lines, for screen readers and plain terminals. Nothing is redrawn, and questions
    /// are answered by numbers.
    #[arg(long, alias = "ax-screen-reader", conflicts_with = "print")]
    pub(crate) plain: bool,

    /// Exit with 2 if a call was refused.
    #[arg(long)]
    pub(crate) fail_on_deny: bool,

    /// End after this many rounds of tools.
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub(crate) max_turns: Option<NonZeroU32>,

    /// End after this much money. What a model costs is in a table of public prices, unless `--prices` says otherwise.
    #[arg(long, value_name = "USD")]
    pub(crate) max_budget_usd: Option<f64>,

    /// The answer must be JSON of this schema; the result has it as `structured_output`.
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) json_schema: Option<String>,

    /// Allow a later switch to bypassPermissions.
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
    pub(crate) ignored: Ignored,
}

impl Headless {
    /// Text in and text out: a person may be there.
    pub(crate) fn is_for_people(&self) -> bool {
        self.output_format == OutputFormat::Text && self.input_format == InputFormat::Text
    }
}

/// At least one.
fn rounds(text: &str) -> Result<NonZeroU32, String> {
    let rounds: u32 = text.parse().map_err(|_| "expected a number".to_owned())?;
    NonZeroU32::new(rounds)
        .ok_or_else(|| "at least 1 round is needed; leave the flag out for no limit".to_owned())
}

/// Who answers.
#[derive(Debug, Args)]
pub(crate) struct ModelFlags {
    /// The model, as its provider names it, or `sonnet`, `opus`, `haiku`, `opusplan`; `[1m]` behind it asks
    /// for the longer context. Default: `model` of the settings, else ANTHROPIC_MODEL or OPENAI_MODEL, else
    /// what `haft models` marks.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Models that take over when the first is overloaded or does not exist, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) fallback_model: Vec<String>,

    /// Where the model is asked. One that ends in /v1 is taken for OpenAI-compatible unless
    /// `--provider` says otherwise.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// How the model is asked. Default: as the base URL says, else `openai` where only OPENAI_API_KEY
    /// or OPENAI_BASE_URL is set, else `anthropic`.
    #[arg(long, value_name = "WHICH")]
    pub(crate) provider: Option<ProviderKind>,

    /// Prices in USD for a million tokens: a file or JSON, {"MODEL": {"input", "output", …}} by the
    /// beginning of a model's name.
    #[arg(long, value_name = "FILE-OR-JSON")]
    pub(crate) prices: Option<String>,

    /// Whether the model thinks first: `adaptive` or `disabled`.
    #[arg(long, value_name = "HOW")]
    pub(crate) thinking: Option<ThinkingFlag>,

    /// The model thinks first, in at most this many tokens; 0: it does not.
    #[arg(long, value_name = "N")]
    pub(crate) max_thinking_tokens: Option<u32>,

    /// How much work the model puts in: low, medium, high, xhigh, max.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) effort: Option<String>,

    /// Features of the provider that are not for everyone yet.
    #[arg(long, value_name = "LIST", num_args = 1.., value_delimiter = ',')]
    pub(crate) betas: Vec<String>,

    /// Keep everything the model is asked and says in this file.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,

    /// Ask no model: say again what was recorded in this file.
    #[arg(long, value_name = "FILE", conflicts_with = "script")]
    pub(crate) replay: Option<PathBuf>,

    /// Ask no model: say what this script says.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
}

/// The system prompt.
#[derive(Debug, Args)]
pub(crate) struct PromptFlags {
    /// In place of our own system prompt; empty for none.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(conflicts_with = "system_prompt_file")]
    pub(crate) system_prompt: Option<String>,

    /// The same from a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) system_prompt_file: Option<PathBuf>,

    /// Behind the system prompt.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(conflicts_with = "append_system_prompt_file")]
    pub(crate) append_system_prompt: Option<String>,

    /// The same from a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) append_system_prompt_file: Option<PathBuf>,

    /// Behind the system prompt of every subagent.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) append_subagent_system_prompt: Option<String>,

    /// Say where the session runs with the first message, not in the system prompt, so that it is the
    /// same everywhere.
    #[arg(long)]
    pub(crate) exclude_dynamic_system_prompt_sections: bool,
}

/// Which conversation.
#[derive(Debug, Args)]
pub(crate) struct SessionFlags {
    /// Go on with the newest conversation of this directory.
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) go_on: bool,

    /// Go on with the conversation of this id or title.
    #[arg(short = 'r', long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,

    /// Go on under a new id; the old conversation stays as it is.
    #[arg(long)]
    pub(crate) fork_session: bool,

    /// Go on from this message, as if what came after it had not been said.
    #[arg(long, value_name = "UUID")]
    pub(crate) resume_session_at: Option<String>,

    /// With --resume-session-at: refuse to go on if more than the turn of this message would fall away.
    #[arg(long, value_name = "MESSAGE")]
    pub(crate) resume_drops_turn: Option<String>,

    /// The id of a new conversation.
    #[arg(long, value_name = "UUID")]
    pub(crate) session_id: Option<String>,

    /// Keep nothing of the conversation.
    #[arg(long, conflicts_with_all = ["go_on", "resume"])]
    pub(crate) no_session_persistence: bool,

    /// Also report each line of the conversation as it is saved, for programs that keep it elsewhere.
    #[arg(long)]
    pub(crate) session_mirror: bool,

    /// A title for the conversation.
    #[arg(short = 'n', long, value_name = "TITLE")]
    pub(crate) name: Option<String>,
}

/// How a session looks that a person follows at the terminal.
#[derive(Debug, Args)]
pub(crate) struct ScreenFlags {
    /// Nothing moves and all times are 0 s: for pictures and tests.
    #[arg(long, hide = true)]
    pub(crate) still: bool,
}

/// Flags of the convention that mean nothing here, and harm no one.
#[derive(Debug, Args)]
pub(crate) struct Ignored {
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

/// How providers are asked.
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
