//! The command line.

mod commands;
mod complete;
mod dispatch;
mod foreign_commands;
mod mcp;
mod mcp_serve;
mod shared;

use std::{
    ffi::OsString,
    io::{self, IsTerminal},
    path::PathBuf,
};

use clap::{Args, FromArgMatches, Parser, ValueEnum, builder::Styles};
use haft::PermissionMode;

pub(crate) use commands::{
    AcpFlags, CallFlags, CliCommand, DemoFlags, ExecFlags, ModelChoiceCommand, ModelsFlags,
    PermissionsCommand, SessionsCommand, ToolsFlags, UndoFlags,
};
pub(crate) use complete::{answer_if_asked, script as completion_script};
pub(crate) use mcp::{McpAddFlags, McpCommand, McpServersCommand, McpTransport};
pub(crate) use mcp_serve::McpServeFlags;
pub(crate) use shared::{pages, show_help, show_shared_options};

use crate::{
    OWN_VERSION, VERSION,
    exit::Exit,
    modes::headless::flags::{HeadlessFlags, InputFormat, OutputFormat},
    show,
};

const EXAMPLES: &str = "\
Examples:
  haft                                         start a session in this terminal; `?` shows its keys
  haft -p 'what does this do?'                 run one task; see `haft -p --help`
  haft demo                                    watch a session without a key
  haft models                                  list the models
  haft tools                                   list the tools
  haft call Grep pattern='fn main' type=rust   run one tool call
  haft call Read '{\"file_path\": \"README.md\"}'  pass its input as JSON
  haft exec --permission-mode acceptEdits      run calls from stdin, one JSON line each

Exit codes:
  0    success
  1    wrong usage, or the session could not be set up; `haft -p`: the run failed
  2    `haft call`: the call's result is an error; `haft -p --fail-on-deny`: a call was denied
  130  interrupted (SIGINT)
  143  terminated (SIGTERM)

Environment:
  HAFT_MAX_TOOL_CONCURRENCY  number of parallel calls (also CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY)
  HAFT_LOG                   log level on stderr, such as `debug`
  CLAUDE_CONFIG_DIR          directory for settings and sessions (default ~/.claude)
  NO_COLOR                   no colors

`haft help` lists topics: settings, rules, hooks, the exec protocol and more. `haft help options` lists the options of all commands.";

const HEADLESS: &str = "\
Examples:
  haft -p 'what does this do?'                    print the reply as text
  git diff | haft -p 'review this'                append stdin to the prompt
  haft -p --output-format stream-json 'fix it'    print every message as a JSON line
  haft -p --continue 'and now the tests'          continue the last conversation of this directory

Exit codes:
  0    success
  1    the run failed or did not start
  2    with --fail-on-deny: a call was denied
  130  interrupted (SIGINT)
  143  terminated (SIGTERM)

Environment:
  ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, ANTHROPIC_BASE_URL, ANTHROPIC_MODEL
  OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL
  CLAUDE_CODE_MAX_TURNS, CLAUDE_CODE_MAX_OUTPUT_TOKENS, MAX_THINKING_TOKENS
  CLAUDE_CODE_MAX_RETRIES, API_TIMEOUT_MS";

/// A coding agent for your terminal: every command is explained, sandboxed and undoable.
#[derive(Debug, Parser)]
#[command(name = "haft", after_help = EXAMPLES, disable_version_flag = true)]
#[command(
    arg_required_else_help = true,
    infer_long_args = false,
    disable_help_subcommand = true
)]
#[command(
    override_usage = "haft [OPTIONS] [PROMPT]\n       haft -p [OPTIONS] [PROMPT]\n       haft [OPTIONS] COMMAND"
)]
// A command after a flag that takes several values is still recognized as a command.
#[command(subcommand_precedence_over_arg = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    version: VersionFlags,

    #[command(flatten)]
    session: SessionArgs,

    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Debug, Args)]
struct VersionFlags {
    /// Print the version.
    #[arg(short = 'V', long)]
    version: bool,

    /// Print the version for SDKs: the version of the conventions, then that of haft.
    #[arg(short = 'v')]
    level: bool,
}

impl VersionFlags {
    /// Returns the requested version line, if any.
    fn line(&self) -> Option<&'static str> {
        match (self.version, self.level) {
            (true, _) => Some(OWN_VERSION),
            (false, true) => Some(VERSION),
            (false, false) => None,
        }
    }
}

/// The options of a session. All commands share them.
#[derive(Debug, Default, Args)]
pub(crate) struct SessionArgs {
    /// Work in this directory instead of the current one.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) cwd: Option<PathBuf>,

    /// Add a working directory; repeatable.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Offer only these built-in tools: names or aliases, separated by commas. `default` means all of
    /// them, an empty value none.
    #[arg(long, value_name = "LIST", global = true)]
    pub(crate) tools: Option<String>,

    /// Rules that allow calls without asking, such as `Bash(npm test *)`; separated by commas or
    /// spaces; repeatable.
    #[arg(long, alias = "allowedTools", value_name = "RULE", global = true, num_args = 1..)]
    pub(crate) allowed_tools: Vec<String>,

    /// Rules that deny calls, such as `Read(./.env)`. The name of a tool alone removes the tool.
    #[arg(long, alias = "disallowedTools", value_name = "RULE", global = true, num_args = 1..)]
    pub(crate) disallowed_tools: Vec<String>,

    /// Additional settings: a file, or JSON.
    #[arg(long, value_name = "FILE-OR-JSON", global = true)]
    pub(crate) settings: Option<String>,

    /// The settings files to use: `user`, `project`, `local`, separated by commas; an empty value means
    /// none. If `project` or `local` is named, its hooks and variables take effect without trust.
    #[arg(long, value_name = "LIST", global = true)]
    pub(crate) setting_sources: Option<String>,

    /// Offer only the essential tools: Bash, Read, Edit, Write.
    #[arg(long, global = true)]
    pub(crate) bare: bool,

    /// The permission mode: the calls that run without asking. Default: the mode in the settings, otherwise `default`.
    #[arg(long, value_name = "MODE", global = true)]
    pub(crate) permission_mode: Option<PermissionModeArg>,

    /// Short for `--permission-mode bypassPermissions`.
    #[arg(long, global = true, conflicts_with = "permission_mode")]
    pub(crate) dangerously_skip_permissions: bool,

    /// The approximate number of tokens for tool definitions in each request. The largest definitions beyond it are sent
    /// by name only, and the model loads them when needed. Default: a tenth of the context window.
    #[arg(long, value_name = "TOKENS", global = true)]
    pub(crate) tool_budget: Option<usize>,

    /// The maximum number of parallel calls.
    #[arg(long, value_name = "N", global = true)]
    pub(crate) max_concurrency: Option<std::num::NonZeroUsize>,
}

/// The values of `--permission-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
pub(crate) enum PermissionModeArg {
    /// Reads inside the working directories run; everything else asks, or is denied if no user can be asked.
    #[value(alias = "manual")]
    Default,
    /// Edits inside the working directories run, too.
    AcceptEdits,
    /// Only reads run; everything else asks.
    Plan,
    /// Commands and edits run if undo can restore what they change; everything else asks.
    Auto,
    /// Calls that would ask are denied.
    DontAsk,
    /// Everything runs that no rule denies or asks about.
    BypassPermissions,
}

impl From<PermissionModeArg> for PermissionMode {
    fn from(mode: PermissionModeArg) -> Self {
        match mode {
            PermissionModeArg::Default => Self::Default,
            PermissionModeArg::Auto => Self::Auto,
            PermissionModeArg::AcceptEdits => Self::AcceptEdits,
            PermissionModeArg::Plan => Self::Plan,
            PermissionModeArg::DontAsk => Self::DontAsk,
            PermissionModeArg::BypassPermissions => Self::BypassPermissions,
        }
    }
}

/// Run one task without a user and print the model's reply.
#[derive(Debug, Parser)]
#[command(name = "haft", disable_version_flag = true, args_override_self = true)]
#[command(override_usage = "haft -p [OPTIONS] [PROMPT]", after_help = HEADLESS)]
struct HeadlessCli {
    #[command(flatten)]
    version: VersionFlags,

    #[command(flatten)]
    session: SessionArgs,

    #[command(flatten)]
    headless: HeadlessFlags,
}

/// The parsed command line.
pub(crate) struct RequestedCommand {
    pub(crate) session: SessionArgs,
    pub(crate) command: CliCommand,
}

/// Parses the command line. If it asks only for help or the version, prints that and returns `None`.
pub(crate) fn parse() -> anyhow::Result<Option<RequestedCommand>> {
    let args: Vec<OsString> = std::env::args_os().collect();
    // Runs before the flags are parsed, because the flags of another program's command are unknown here.
    if let Some(word) = args.get(1).and_then(|word| word.to_str()) {
        if word == "version" {
            show::line(OWN_VERSION)?;
            return Ok(None);
        }
        foreign_commands::check(word)?;
    }
    let is_alone = args.len() == 1 && is_at_terminal();
    if is_alone || dispatch::is_headless(args.get(1..).unwrap_or_default()) {
        return headless(&args);
    }
    let Some(cli): Option<Cli> = parse_args(&shared::cli(), &args)? else {
        return Ok(None);
    };
    if let Some(version) = cli.version.line() {
        show::line(version)?;
        return Ok(None);
    }
    match cli.command {
        Some(command) => Ok(Some(RequestedCommand {
            session: cli.session,
            command,
        })),
        None => {
            anyhow::bail!("no command given; try `exec`, `call` or `tools`, or see `haft --help`")
        }
    }
}

fn headless(args: &[OsString]) -> anyhow::Result<Option<RequestedCommand>> {
    let Some(cli): Option<HeadlessCli> = parse_args(&shared::headless(), args)? else {
        return Ok(None);
    };
    if let Some(version) = cli.version.line() {
        show::line(version)?;
        return Ok(None);
    }
    let said_so = cli.headless.print
        || cli.headless.output_format != OutputFormat::Text
        || cli.headless.input_format != InputFormat::Text;
    let prompt = &cli.headless.prompt;
    // An argument after `--` is always text.
    let text = args.iter().skip_while(|arg| *arg != "--").nth(1);
    let is_text = prompt.is_some() && text.and_then(|text| text.to_str()) == prompt.as_deref();
    if let Some(word) = prompt.as_deref().filter(|_| !is_text) {
        match said_so {
            true => foreign_commands::check_prompt(word, &dispatch::commands())?,
            false => foreign_commands::check(word)?,
        }
    }
    if !cli.headless.more_words.is_empty() {
        let all = prompt.iter().chain(&cli.headless.more_words);
        let prompt = all.cloned().collect::<Vec<_>>().join(" ");
        anyhow::bail!(
            "a prompt is one argument: quote it, as in haft -p {}",
            quoted(&prompt)
        );
    }
    if !said_so
        && !is_text
        && let Some(word) = prompt
        && let Some(meant) = dispatch::mistyped(word)
    {
        anyhow::bail!(
            "unknown command {word:?}. Did you mean `haft {meant}`? To send it as a prompt: haft -p {word}"
        );
    }
    let flags = Box::new(cli.headless);
    let command = match said_so || flags.init_only || !is_at_terminal() {
        true => CliCommand::Headless(flags),
        false => CliCommand::Interactive(flags),
    };
    Ok(Some(RequestedCommand {
        session: cli.session,
        command,
    }))
}

/// Returns whether stdin and stdout are terminals.
fn is_at_terminal() -> bool {
    show::stdout_is_terminal() && io::stdin().is_terminal()
}

/// Quotes the text as one word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Parses the arguments. Prints requested help and returns `None`. If the arguments are invalid, prints the error and
/// exits.
fn parse_args<T: FromArgMatches>(
    parser: &clap::Command,
    args: &[OsString],
) -> anyhow::Result<Option<T>> {
    let parse = |parser: clap::Command| {
        let found = parser.try_get_matches_from(args)?;
        T::from_arg_matches(&found)
    };
    match parse(parser.clone()) {
        Ok(parsed) => Ok(Some(parsed)),
        Err(error) if error.use_stderr() => {
            // The message quotes the arguments. It is rendered without styles, so all control characters in it are from
            // the arguments, and are shown instead of sent to the terminal.
            let error = parse(parser.clone().styles(Styles::plain()))
                .err()
                .unwrap_or(error);
            let text = error.render().ansi().to_string();
            let text = text.trim_end();
            // All errors of haft begin with `haft:`.
            match text.strip_prefix("error: ") {
                Some(rest) => show::warn(&format!("haft: {rest}")),
                None => show::warn(text),
            }
            std::process::exit(Exit::Usage as i32);
        }
        Err(help) => {
            show::print(
                &help.render().ansi().to_string(),
                &help.render().to_string(),
            )?;
            Ok(None)
        }
    }
}
