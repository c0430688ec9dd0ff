//! The command line, as typed.

mod complete;
mod mcp;
mod shared;
mod which;
mod words;

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum, builder::Styles};
use haft::{Format, PermissionMode};

pub(crate) use complete::{answer_if_asked, script as completion_script};
pub(crate) use mcp::{McpCommand, McpServe};
pub(crate) use shared::{pages, show_help, show_shared_options};

use crate::{
    OWN_VERSION, VERSION,
    exit::Exit,
    modes::headless::flags::{Headless, InputFormat, OutputFormat, ProviderKind},
    show,
};

const EXAMPLES: &str = "\
Examples:
  haft -p 'what does this do?'                 let a model work here; `haft -p --help` tells more
  haft demo                                    watch an agent at work, without a key
  haft models                                  which models there are
  haft tools                                   which tools there are
  haft call Grep pattern='fn main' type=rust   one call, shown for people
  haft call Read '{\"file_path\": \"README.md\"}'  the same with JSON
  haft exec --permission-mode acceptEdits      calls on stdin, one a line, answers on stdout

Exit codes:
  0    done
  1    wrong usage, or the session could not be set up; `haft -p`: the run failed
  2    `haft call`: the call's result is an error; `haft -p --fail-on-deny`: a call was refused
  130  interrupted (SIGINT)
  143  told to end (SIGTERM)

Environment:
  HAFT_MAX_TOOL_CONCURRENCY  calls at once (also CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY)
  HAFT_LOG                   what to log on stderr, such as `debug`
  CLAUDE_CONFIG_DIR          where sessions are kept (default ~/.claude)
  NO_COLOR                   no colours

`haft help` lists topics: settings, rules, hooks, the exec protocol and more. `haft help options`: what all commands take.";

const HEADLESS: &str = "\
Examples:
  haft -p 'what does this do?'                    the answer, as text
  git diff | haft -p 'review this'                what comes on stdin is put behind the prompt
  haft -p --output-format stream-json 'fix it'    every message, one JSON object a line
  haft -p --continue 'and now the tests'          the newest conversation of this directory

Exit codes:
  0    done
  1    the run failed, or nothing ran
  2    with --fail-on-deny: a call was refused
  130  interrupted (SIGINT)
  143  told to end (SIGTERM)

Environment:
  ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, ANTHROPIC_BASE_URL, ANTHROPIC_MODEL
  OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL
  CLAUDE_CODE_MAX_TURNS, CLAUDE_CODE_MAX_OUTPUT_TOKENS, MAX_THINKING_TOKENS
  CLAUDE_CODE_MAX_RETRIES, API_TIMEOUT_MS";

/// The hands and eyes of an AI agent: carries out a model's tool calls, safely, fast and exactly.
#[derive(Debug, Parser)]
#[command(name = "haft", after_help = EXAMPLES, disable_version_flag = true)]
#[command(
    arg_required_else_help = true,
    infer_long_args = false,
    disable_help_subcommand = true
)]
#[command(override_usage = "haft -p [OPTIONS] [PROMPT]\n       haft [OPTIONS] COMMAND")]
// Behind a flag that takes several values the command is still one.
#[command(subcommand_precedence_over_arg = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    version: VersionFlags,

    #[command(flatten)]
    session: SessionArgs,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Args)]
struct VersionFlags {
    /// Print the version.
    #[arg(short = 'V', long)]
    version: bool,

    /// Print the version as SDKs read it: the level of the conventions we speak, then our own.
    #[arg(short = 'v')]
    level: bool,
}

impl VersionFlags {
    /// Which line was asked for.
    fn line(&self) -> Option<&'static str> {
        match (self.version, self.level) {
            (true, _) => Some(OWN_VERSION),
            (false, true) => Some(VERSION),
            (false, false) => None,
        }
    }
}

/// What a session is set up with.
#[derive(Debug, Default, Args)]
pub(crate) struct SessionArgs {
    /// Work in this directory instead of the current one.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) cwd: Option<PathBuf>,

    /// One more directory that calls may read and edit; may be given again.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Offer only these built-in tools: names or aliases set off by commas; `default` is all of
    /// them, an empty value none.
    #[arg(long, value_name = "LIST", global = true)]
    pub(crate) tools: Option<String>,

    /// Rules that let calls through without asking, such as `Bash(npm test *)`; set off by commas or
    /// blanks, or given again.
    #[arg(long, alias = "allowedTools", value_name = "RULE", global = true, num_args = 1..)]
    pub(crate) allowed_tools: Vec<String>,

    /// Rules that refuse calls, such as `Read(./.env)`; a tool without more is not offered at all.
    #[arg(long, alias = "disallowedTools", value_name = "RULE", global = true, num_args = 1..)]
    pub(crate) disallowed_tools: Vec<String>,

    /// Further settings: a file, or JSON itself.
    #[arg(long, value_name = "FILE-OR-JSON", global = true)]
    pub(crate) settings: Option<String>,

    /// Which settings files count: of `user`, `project`, `local`, set off by commas; an empty value
    /// none of them. Naming `project` or `local` lets their hooks and variables act.
    #[arg(long, value_name = "LIST", global = true)]
    pub(crate) setting_sources: Option<String>,

    /// Offer only the few tools an agent cannot do without: Bash, Read, Edit, Write.
    #[arg(long, global = true)]
    pub(crate) bare: bool,

    /// How much runs without asking. Default: what the settings say, else `default`.
    #[arg(long, value_name = "MODE", global = true)]
    pub(crate) permission_mode: Option<Mode>,

    /// The same as `--permission-mode bypassPermissions`.
    #[arg(long, global = true, conflicts_with = "permission_mode")]
    pub(crate) dangerously_skip_permissions: bool,

    /// About so many tokens may go to the definitions of tools in each request; the largest beyond it are sent by
    /// name, and the model loads them when it needs them. Default: a tenth of what the model can read.
    #[arg(long, value_name = "TOKENS", global = true)]
    pub(crate) tool_budget: Option<usize>,

    /// How many calls run at once.
    #[arg(long, value_name = "N", global = true)]
    pub(crate) max_concurrency: Option<std::num::NonZeroUsize>,
}

/// `PermissionMode`, as flags spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
pub(crate) enum Mode {
    /// Reads inside the working directories; the rest asks, or is refused when nobody can be asked.
    #[value(alias = "manual")]
    Default,
    /// Also edits inside the working directories.
    AcceptEdits,
    /// Reads only; the rest asks.
    Plan,
    /// Whatever would ask is refused.
    DontAsk,
    /// Everything that is not denied outright.
    BypassPermissions,
    /// A mode of the convention that is not known here: the same as `default`.
    #[value(hide = true)]
    Auto,
}

impl From<Mode> for PermissionMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Default | Mode::Auto => Self::Default,
            Mode::AcceptEdits => Self::AcceptEdits,
            Mode::Plan => Self::Plan,
            Mode::DontAsk => Self::DontAsk,
            Mode::BypassPermissions => Self::BypassPermissions,
        }
    }
}

/// Let a model work here, without a person: what it says goes to stdout.
#[derive(Debug, Parser)]
#[command(name = "haft", disable_version_flag = true, args_override_self = true)]
#[command(override_usage = "haft -p [OPTIONS] [PROMPT]", after_help = HEADLESS)]
struct HeadlessCli {
    #[command(flatten)]
    version: VersionFlags,

    #[command(flatten)]
    session: SessionArgs,

    #[command(flatten)]
    headless: Headless,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Let a model work on a prompt.
    #[command(skip)]
    Headless(Box<Headless>),
    /// Watch an agent at work: no key, no network, real files of a scratch project.
    ///
    /// The model is scripted; the loop, the tools, the rules, the sandbox and the undo journal are those
    /// of every session.
    Demo(Demo),
    /// Carry out calls from stdin, one JSON line each, one answer line each.
    ///
    /// A line is {"id"?, "name", "input"}, answered by {"id", "name", "is_error", "content",
    /// "structured", "duration_ms"}; or an Anthropic assistant message, answered by the user message
    /// with its tool results, or by null if it has no calls; or an OpenAI assistant message with
    /// `tool_calls`, alone or in its ChatCompletion, answered by a list of its tool messages; or what
    /// the Responses API puts out, answered by a list of its function_call_output items. JSON may also
    /// be indented over several lines. The calls of one message run side by side where that is
    /// harmless. What was read and where we are is kept from line to line. A line that cannot be served
    /// gets an error answer, and the next one is served. The end of input ends it; SIGINT cancels what
    /// runs, answers it, and ends.
    #[command(after_help = "\
Example:
  $ echo '{\"name\": \"LS\", \"input\": {\"path\": \".\"}}' | haft exec

With --interactive-json, further lines go out:
  {\"type\": \"permission_request\", \"request_id\", \"id\", \"name\", \"input\", \"reason\", \"rules\"}
      the call waits for an answer; \"rules\" would let calls like it through
  {\"type\": \"progress\", \"id\", \"text\" | \"note\" | \"done\" and \"total\"}
and further lines come in, at any time:
  {\"type\": \"permission_response\", \"request_id\", \"behavior\": \"allow\", \"updated_input\"?, \"rules\"?}
  {\"type\": \"permission_response\", \"request_id\", \"behavior\": \"deny\", \"message\"?}
  {\"type\": \"cancel\", \"id\"}
      the call of this id is cancelled; it still gets its answer")]
    Exec(ExecFlags),
    /// Make one call and show what comes of it.
    ///
    /// On a terminal the result is shown for people, in a pipe as the model would read it. The call
    /// is a session of its own: a file it names counts as read, so that it can be edited.
    Call(CallFlags),
    /// List the tools, or show one.
    Tools(Tools),
    /// Which models can be asked, and which one is.
    ///
    /// The provider is asked for its list, which is then kept for a day. `*` marks the model that a session
    /// asks: that of --model, else of `model` in the settings, else of ANTHROPIC_MODEL (or OPENAI_MODEL), else
    /// the only one there is or the newest of a usual family. Short names (`sonnet`, `opus`, `haiku`) mean the
    /// newest of their family, unless ANTHROPIC_DEFAULT_SONNET_MODEL and its like say which.
    Models(Models),
    /// Take back what calls changed in this directory.
    ///
    /// Without an id the last change, asked again the one before it. Files get exactly the bytes they
    /// had; where one was changed since, nothing is touched and you are shown what was, what was made
    /// and what is now. An undo can be undone.
    Undo(Undo),
    /// What may run here, and why.
    #[command(subcommand)]
    Permissions(Permissions),
    /// Look at what a session here would find: settings, key, model, server, trust, programs, sandbox.
    ///
    /// Starts nothing of the workspace and changes nothing; the model's server is asked for its list, if a
    /// key or an address is set. Exits with 1 if something the settings ask for cannot be had
    /// here.
    Doctor {
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// The conversations of this directory.
    ///
    /// Those of other programs that keep theirs in the same folder are listed, too, and can be continued.
    /// `haft help state` says where everything is kept.
    #[command(subcommand)]
    Sessions(Sessions),
    /// The Model Context Protocol: tools for other programs.
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Print a completion script for a shell: bash, elvish, fish, powershell or zsh.
    #[command(after_help = "\
Examples:
  echo 'source <(haft completions bash)' >> ~/.bashrc
  haft completions zsh > ~/.zfunc/_haft
  haft completions fish > ~/.config/fish/completions/haft.fish")]
    Completions {
        /// Which shell.
        shell: String,
    },
    /// Write manual pages into a directory.
    #[command(after_help = "\
Example:
  haft man ~/.local/share/man/man1")]
    Man {
        /// Where to.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Show the help of a command, or a topic: settings, rules, hooks and more.
    Help {
        /// A command, or a topic.
        #[arg(value_name = "COMMAND-OR-TOPIC")]
        words: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ExecFlags {
    /// Let calls ask, report progress and be cancelled by lines of JSON.
    #[arg(long)]
    pub(crate) interactive_json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Do not pause for somebody who watches.
    #[arg(long)]
    pub(crate) fast: bool,
    /// Leave the scratch project there.
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft models                        what the provider lists
  haft models use NAME               ask this one from now on
  haft models --base-url http://127.0.0.1:8080/v1")]
pub(crate) struct Models {
    /// Print them as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where the models are; as for `haft -p`.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// How they are asked; as for `haft -p`.
    #[arg(long, value_name = "WHICH")]
    pub(crate) provider: Option<ProviderKind>,
    #[command(subcommand)]
    pub(crate) choice: Option<ModelChoiceCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelChoiceCommand {
    /// Ask this model from now on: saved as `model` in your own settings.
    Use {
        /// Its name, or a short one such as `sonnet`.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List them, the newest first.
    List {
        /// Print them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what was said in one.
    Show {
        /// Its id, a clear beginning of it, or its title.
        #[arg(value_name = "SESSION")]
        session: String,
        /// Print its messages as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Give one a title.
    Rename {
        /// Its id, a clear beginning of it, or its title.
        #[arg(value_name = "SESSION")]
        session: String,
        /// The new title.
        title: String,
    },
    /// Write what was said in one as Markdown.
    Export {
        /// Its id, a clear beginning of it, or its title.
        #[arg(value_name = "SESSION")]
        session: String,
        /// Into this file, which must not be there yet. Default: to stdout.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Remove one, with its results and what undo needs of it.
    Delete {
        /// Its id, a clear beginning of it, or its title.
        #[arg(value_name = "SESSION")]
        session: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Permissions {
    /// Explain what would happen to a call: its parts, what they do, and the rule that decides.
    #[command(after_help = "\
Examples:
  haft permissions explain --bash 'git status && git push'
  haft permissions explain Edit file_path=src/main.rs
  haft permissions explain --json --bash 'rg TODO | sort | uniq -c'")]
    Explain {
        /// A command line, as the Bash tool would get it.
        #[arg(long, value_name = "COMMAND", conflicts_with = "call")]
        bash: Option<String>,
        /// The tool's name, then its input as for `haft call`.
        #[arg(value_name = "CALL", required_unless_present = "bash")]
        call: Vec<String>,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Judge command lines: `readonly`, `network`, `mutating` or `unknown`, a tab, and why.
    ///
    /// `network` changes nothing, but asks a service of yours, such as `gh pr list`.
    /// Each line of stdin is {"cmd", "cwd"?}; each is answered by one line, in order, empty ones are
    /// passed over. No rule, no setting and no file is looked at. A line that is not valid is
    /// `unknown`.
    Classify {
        /// Lines of JSON on stdin; the only way there is.
        #[arg(long, required = true)]
        jsonl: bool,
    },
    /// Decide calls by the rules that come with them: `allow`, `ask` or `deny`, a tab, and why.
    ///
    /// Each line of stdin is {"rules": {"allow": [], "ask": [], "deny": []}, "tool", "input", "cwd",
    /// "home"?, "mode"?, "simulate"?}; each is answered by one line, in order, empty ones are passed
    /// over. `cwd` is the workspace, and trusted. `simulate` may name where a WebFetch is sent on to
    /// ("redirect") or what its host resolves to ("address"). A line that is not valid is `deny`.
    Check {
        /// Lines of JSON on stdin; the only way there is.
        #[arg(long, required = true)]
        jsonl: bool,
    },
    /// List the rules in force, with where they come from.
    List {
        /// Print them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Trust this directory: its allow rules, hooks and variables count from now on.
    ///
    /// Shows what would run. If any of it changes later, it is left out until you trust it again.
    Trust {
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft call Read file_path=src/main.rs offset=10 limit=20
  haft call Grep pattern=TODO output_mode=count -- -i=true
  haft call Edit '{\"file_path\": \"a.txt\", \"old_string\": \"x\", \"new_string\": \"y\"}'
  haft call LS ignore:='[\"*.log\"]'    a value that is JSON and not text")]
pub(crate) struct CallFlags {
    /// The tool's name, or an alias.
    #[arg(index = 1)]
    pub(crate) name: String,
    /// The input: one JSON object, or KEY=VALUE for text and KEY:=VALUE for JSON. Numbers and
    /// booleans may be written as text; keys that begin with `-` go behind `--`.
    #[arg(value_name = "INPUT", index = 2)]
    pub(crate) input: Vec<String>,
    /// Print the whole result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft undo --list          what was changed, the newest first
  haft undo --preview       what undoing the last change would do
  haft undo --since 10m     take back the last ten minutes")]
pub(crate) struct Undo {
    /// The change to take back: the id of the call that made it, or a clear beginning of it.
    #[arg(value_name = "CALL_ID")]
    pub(crate) call_id: Option<String>,
    /// List the changes, the newest first.
    #[arg(long, conflicts_with_all = ["call_id", "since", "preview"])]
    pub(crate) list: bool,
    /// Take back everything since then: a span such as 10m, 2h, 1d, or a time such as
    /// 2026-01-31T12:00 (UTC).
    #[arg(long, value_name = "TIME", conflicts_with = "call_id")]
    pub(crate) since: Option<String>,
    /// Only show what would be done.
    #[arg(long)]
    pub(crate) preview: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Only this one, with its parameters.
    pub(crate) name: Option<String>,
    /// Print the definitions as JSON, in Anthropic's shape.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Print the definitions as this provider wants them.
    #[arg(long)]
    pub(crate) format: Option<Provider>,
    /// Print what each definition costs in tokens, the dearest first.
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub(crate) cost: bool,
}

/// `Format`, as flags spell it.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Provider {
    Anthropic,
    Openai,
    Mcp,
}

impl From<Provider> for Format {
    fn from(provider: Provider) -> Self {
        match provider {
            Provider::Anthropic => Self::Anthropic,
            Provider::Openai => Self::OpenAi,
            Provider::Mcp => Self::Mcp,
        }
    }
}

/// What was asked for.
pub(crate) struct RequestedCommand {
    pub(crate) session: SessionArgs,
    pub(crate) command: Command,
}

/// Reads the command line. `None`: it was answered already (help, version).
pub(crate) fn parse() -> anyhow::Result<Option<RequestedCommand>> {
    let args: Vec<OsString> = std::env::args_os().collect();
    // Before flags are read: those of another program's command mean nothing here.
    if let Some(word) = args.get(1).and_then(|word| word.to_str()) {
        if word == "version" {
            show::line(OWN_VERSION)?;
            return Ok(None);
        }
        words::check(word)?;
    }
    if which::is_headless(args.get(1..).unwrap_or_default()) {
        return headless(&args);
    }
    let Some(cli): Option<Cli> = read(&shared::cli(), &args)? else {
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
        None => anyhow::bail!("say what to do: `exec`, `call`, `tools`; `haft --help` tells more"),
    }
}

fn headless(args: &[OsString]) -> anyhow::Result<Option<RequestedCommand>> {
    let Some(cli): Option<HeadlessCli> = read(&shared::headless(), args)? else {
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
    if !said_so && let Some(word) = prompt {
        words::check(word)?;
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
        && let Some(word) = prompt
        && let Some(meant) = which::mistyped(word)
    {
        anyhow::bail!(
            "no command is called {word:?}; did you mean `haft {meant}`? As a prompt: haft -p {word}"
        );
    }
    Ok(Some(RequestedCommand {
        session: cli.session,
        command: Command::Headless(Box::new(cli.headless)),
    }))
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What was parsed; or the help that was asked for, shown. What is wrong ends the process.
fn read<T: FromArgMatches>(parser: &clap::Command, args: &[OsString]) -> anyhow::Result<Option<T>> {
    let parse = |parser: clap::Command| {
        let found = parser.try_get_matches_from(args)?;
        T::from_arg_matches(&found)
    };
    match parse(parser.clone()) {
        Ok(parsed) => Ok(Some(parsed)),
        Err(error) if error.use_stderr() => {
            // The message quotes the arguments. Without styles of its own, whatever in it acts on a
            // terminal is theirs, and is shown.
            let error = parse(parser.clone().styles(Styles::plain()))
                .err()
                .unwrap_or(error);
            show::warn(error.render().ansi().to_string().trim_end());
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
