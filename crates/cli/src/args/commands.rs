//! The commands, each with its own flags.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use haft::Format;

use super::McpCommand;
use crate::modes::headless::flags::{Headless, ModelFlags, PromptFlags, ProviderKind};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Let a model work on a prompt.
    #[command(skip)]
    Headless(Box<Headless>),
    /// Let a model work with the person at the terminal.
    #[command(skip)]
    Interactive(Box<Headless>),
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
  {\"type\": \"error\", \"message\", \"request_id\"?, \"id\"?}
      a line that came in means nothing, such as an answer to no question
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
    /// Undo what calls changed in this directory.
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
    /// The Model Context Protocol: servers whose tools sessions use.
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Be the agent of an editor: the Agent Client Protocol on stdin and stdout.
    ///
    /// An editor starts this; `haft help editors` has blocks to copy for Zed, Neovim and Emacs. Sessions are those of
    /// every face: one that was begun in a terminal can be continued in an editor, and the other way round.
    Acp(Box<AcpFlags>),
    /// Keep a key of the model's provider for this user.
    ///
    /// The key is typed unseen, or read from stdin, and kept in a file that only you can read. It is used where
    /// neither ANTHROPIC_AUTH_TOKEN nor ANTHROPIC_API_KEY is set and no `apiKeyHelper` is in your settings, and
    /// is sent to the provider's own address only. `haft doctor` says which key is used.
    Login,
    /// Forget the key that `haft login` kept.
    Logout,
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
    /// Do not pause between the steps.
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
    /// Write one as a page for a browser, or as Markdown.
    #[command(after_help = "\
Examples:
  haft sessions export 01a1e348 --html session.html   one page with everything in it
  haft sessions export 01a1e348 --md                  as Markdown, to stdout

Files are for you alone to read, and none is replaced without --force. `haft help export` tells more.")]
    Export {
        /// Its id, a clear beginning of it, or its title.
        #[arg(value_name = "SESSION")]
        session: String,
        /// Into this file: a page if it ends in .html, else Markdown. Default: Markdown to stdout.
        #[arg(value_name = "FILE", conflicts_with_all = ["html", "md"])]
        file: Option<PathBuf>,
        /// As a page into this file; - is stdout.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// As Markdown, into this file or to stdout.
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        md: Option<Option<PathBuf>>,
        /// Replace files that are there already.
        #[arg(long)]
        force: bool,
    },
    /// Count what they came to: tokens, cost, calls, refusals, time by tool.
    #[command(after_help = "\
Examples:
  haft sessions stats             everything that was said in this directory
  haft sessions stats 01a1e348    one session
  haft sessions stats --all       all directories
  haft sessions stats --json      the same for programs

`haft help telemetry` tells what is counted, and how to send it to a collector as it happens.")]
    Stats {
        /// Its id, a clear beginning of it, or its title. Default: all of this directory.
        #[arg(value_name = "SESSION", conflicts_with = "all")]
        session: Option<String>,
        /// Those of all directories.
        #[arg(long)]
        all: bool,
        /// Print the numbers as JSON.
        #[arg(long)]
        json: bool,
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
  haft undo --since 10m     undo the last ten minutes")]
pub(crate) struct Undo {
    /// The change to undo: the id of the call that made it, or a clear beginning of it.
    #[arg(value_name = "CALL_ID")]
    pub(crate) call_id: Option<String>,
    /// List the changes, the newest first.
    #[arg(long, conflicts_with_all = ["call_id", "since", "preview"])]
    pub(crate) list: bool,
    /// Undo everything since then: a span such as 10m, 2h, 1d, or a time such as
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

/// What the sessions of an editor are made with.
#[derive(Debug, Args)]
pub(crate) struct AcpFlags {
    /// MCP servers beside the editor's: files, or JSON itself, {"mcpServers": {"NAME": {…}}}.
    #[arg(long, value_name = "FILE-OR-JSON", num_args = 1..)]
    pub(crate) mcp_config: Vec<String>,

    /// Only those servers and the editor's: none of the project's, none of plugins.
    #[arg(long)]
    pub(crate) strict_mcp_config: bool,

    /// A folder with skills, commands and agents of a plugin; repeatable.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,

    /// Allow a later switch to bypassPermissions.
    #[arg(long)]
    pub(crate) allow_dangerously_skip_permissions: bool,

    #[command(flatten)]
    pub(crate) model: ModelFlags,

    #[command(flatten)]
    pub(crate) prompts: PromptFlags,
}
