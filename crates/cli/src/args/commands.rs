//! The commands, each with its own flags.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use haft::ToolFormat;

use super::McpCommand;
use crate::modes::headless::flags::{HeadlessFlags, ModelFlags, PromptFlags, ProviderKind};

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Let a model work on a prompt.
    #[command(skip)]
    Headless(Box<HeadlessFlags>),
    /// Let a model work with the user at the terminal.
    #[command(skip)]
    Interactive(Box<HeadlessFlags>),
    /// Watch a session in a scratch project: no key, no network.
    ///
    /// The model is scripted. The loop, the tools, the rules, the sandbox and undo are the real ones.
    Demo(DemoFlags),
    /// Run tool calls from stdin: one JSON line per call, one JSON line per result.
    ///
    /// A line is {"id"?, "name", "input"}, answered by {"id", "name", "is_error", "content",
    /// "structured", "duration_ms"}; or an Anthropic assistant message, answered by the user message
    /// with its tool results, or by null if it has no calls; or an OpenAI assistant message with
    /// `tool_calls`, alone or in its ChatCompletion, answered by a list of its tool messages; or an
    /// output of the Responses API, answered by a list of its function_call_output items. JSON may also
    /// be indented over several lines. The calls of one message run in parallel where the outcome
    /// cannot differ from a serial run. Read files and the current directory carry over from line to
    /// line. An invalid line gets an error answer, and haft continues with the next one. haft exits at
    /// end of input; SIGINT cancels the running calls, answers them, and exits.
    #[command(after_help = "\
Example:
  $ echo '{\"name\": \"LS\", \"input\": {\"path\": \".\"}}' | haft exec

With --interactive-json, haft also writes these lines:
  {\"type\": \"permission_request\", \"request_id\", \"id\", \"name\", \"input\", \"reason\", \"rules\"}
      the call waits for an answer; \"rules\" would allow calls like it
  {\"type\": \"progress\", \"id\", \"text\" | \"note\" | \"done\" and \"total\"}
  {\"type\": \"error\", \"message\", \"request_id\"?, \"id\"?}
      an input line has no meaning, such as an answer to no question
and reads these lines at any time:
  {\"type\": \"permission_response\", \"request_id\", \"behavior\": \"allow\", \"updated_input\"?, \"rules\"?}
  {\"type\": \"permission_response\", \"request_id\", \"behavior\": \"deny\", \"message\"?}
  {\"type\": \"cancel\", \"id\"}
      cancels the call with this id; it still gets an answer")]
    Exec(ExecFlags),
    /// Run one tool call and print its result.
    ///
    /// The result is formatted on a terminal, and as the model sees it in a pipe. The call is a
    /// separate session: a file that it names is treated as read, so that it can be edited.
    Call(CallFlags),
    /// List the tools, or show one tool.
    Tools(ToolsFlags),
    /// List models and choose one.
    ///
    /// The list comes from the provider and is cached for a day. `*` marks the model that sessions use: that of
    /// --model, otherwise `model` in the settings, otherwise ANTHROPIC_MODEL (or OPENAI_MODEL), otherwise the
    /// only model or the newest of a common family. Aliases (`sonnet`, `opus`, `haiku`) mean the newest model of
    /// their family, unless ANTHROPIC_DEFAULT_SONNET_MODEL and the like name another.
    Models(ModelsFlags),
    /// Undo changes that calls made in this directory.
    ///
    /// Without an id, haft undoes the last change; run it again for the one before. Files get exactly
    /// their earlier bytes. If a file changed since, haft changes nothing and shows the earlier, the
    /// recorded and the current content. An undo can be undone.
    Undo(UndoFlags),
    /// Show, test and edit permission rules.
    #[command(subcommand)]
    Permissions(PermissionsCommand),
    /// Check the environment of a session: settings, key, model, server, trust, programs, sandbox.
    ///
    /// doctor changes nothing. It runs no program of the workspace except the MCP servers of a trusted
    /// directory. It asks the model provider for its list if a key or a URL is set. It exits with 1 if the
    /// settings require a feature that is unavailable here.
    Doctor {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List, show, export and delete the conversations of this directory.
    ///
    /// Conversations of other programs that use the same directory are included and can be continued.
    /// `haft help state` describes where haft stores data.
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Manage MCP servers, or serve haft's tools over MCP.
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Run as the agent of an editor: the Agent Client Protocol on stdin and stdout.
    ///
    /// An editor starts this command; `haft help editors` has configurations for Zed, Neovim and Emacs. A session that
    /// began in a terminal can be continued in an editor, and the other way round.
    Acp(Box<AcpFlags>),
    /// Store an API key of the model provider.
    ///
    /// You type the key (it is not echoed) or pass it on stdin. haft stores it in a file that only you can read, uses
    /// it if neither ANTHROPIC_AUTH_TOKEN nor ANTHROPIC_API_KEY is set and your settings have no `apiKeyHelper`, and
    /// sends it only to the provider's own address. `haft doctor` shows which key is used.
    Login,
    /// Delete the API key that `haft login` stored.
    Logout,
    /// Print a completion script for a shell: bash, elvish, fish, powershell or zsh.
    #[command(after_help = "\
Examples:
  echo 'source <(haft completions bash)' >> ~/.bashrc
  haft completions zsh > ~/.zfunc/_haft
  haft completions fish > ~/.config/fish/completions/haft.fish")]
    Completions {
        /// The shell.
        shell: String,
    },
    /// Write manual pages into a directory.
    #[command(after_help = "\
Example:
  haft man ~/.local/share/man/man1")]
    Man {
        /// The directory.
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
    /// Ask questions, report progress and accept cancellations as JSON lines.
    #[arg(long)]
    pub(crate) interactive_json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoFlags {
    /// Do not pause between the steps.
    #[arg(long)]
    pub(crate) fast: bool,
    /// Keep the scratch project.
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft models                        list the models of the provider
  haft models use NAME               use this model from now on
  haft models --base-url http://127.0.0.1:8080/v1")]
pub(crate) struct ModelsFlags {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The URL of the model server, as for `haft -p`.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The API of the server, as for `haft -p`.
    #[arg(long, value_name = "WHICH")]
    pub(crate) provider: Option<ProviderKind>,
    #[command(subcommand)]
    pub(crate) choice: Option<ModelChoiceCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelChoiceCommand {
    /// Use this model from now on: saved as `model` in your own settings.
    Use {
        /// The name of the model, or an alias such as `sonnet`.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the conversations, newest first.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a conversation.
    Show {
        /// A session id, a unique beginning of one, or a title.
        #[arg(value_name = "SESSION")]
        session: String,
        /// Print its messages as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Rename a conversation.
    Rename {
        /// A session id, a unique beginning of one, or a title.
        #[arg(value_name = "SESSION")]
        session: String,
        /// The new title.
        title: String,
    },
    /// Export a conversation as a web page or as Markdown.
    #[command(after_help = "\
Examples:
  haft sessions export 01a1e348 --html session.html   one self-contained page
  haft sessions export 01a1e348 --md                  as Markdown, to stdout

Files have mode 0600; existing files are replaced only with --force. See `haft help export`.")]
    Export {
        /// A session id, a unique beginning of one, or a title.
        #[arg(value_name = "SESSION")]
        session: String,
        /// The output file: a page if it ends in .html, otherwise Markdown. Default: Markdown to stdout.
        #[arg(value_name = "FILE", conflicts_with_all = ["html", "md"])]
        file: Option<PathBuf>,
        /// Write a page to this file; - is stdout.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// Write Markdown to this file, or to stdout.
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        md: Option<Option<PathBuf>>,
        /// Replace existing files.
        #[arg(long)]
        force: bool,
    },
    /// Show statistics: tokens, cost, calls, denials, time by tool.
    #[command(after_help = "\
Examples:
  haft sessions stats             all sessions of this directory
  haft sessions stats 01a1e348    one session
  haft sessions stats --all       all directories
  haft sessions stats --json      as JSON

`haft help telemetry` describes the figures, and how to send them to a collector during a session.")]
    Stats {
        /// A session id, a unique beginning of one, or a title. Default: all of this directory.
        #[arg(value_name = "SESSION", conflicts_with = "all")]
        session: Option<String>,
        /// Include all directories.
        #[arg(long)]
        all: bool,
        /// Print the figures as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Delete a conversation with its stored results and undo data.
    Delete {
        /// A session id, a unique beginning of one, or a title.
        #[arg(value_name = "SESSION")]
        session: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// Explain the decision about a call: its parts, their effects, and the rule that decides.
    #[command(after_help = "\
Examples:
  haft permissions explain --bash 'git status && git push'
  haft permissions explain Edit file_path=src/main.rs
  haft permissions explain --json --bash 'rg TODO | sort | uniq -c'")]
    Explain {
        /// A command line, as for the Bash tool.
        #[arg(long, value_name = "COMMAND", conflicts_with = "call")]
        bash: Option<String>,
        /// The name of the tool, then its input as for `haft call`.
        #[arg(value_name = "CALL", required_unless_present = "bash")]
        call: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Classify command lines: prints `readonly`, `network`, `mutating` or `unknown`, a tab, and the reason.
    ///
    /// `network` means: changes nothing, but sends a request to a service, such as `gh pr list`.
    /// Each line of stdin is {"cmd", "cwd"?} and is answered by one line, in order; empty lines are
    /// skipped. Rules, settings and files are not read. An invalid line is `unknown`.
    Classify {
        /// Read JSON lines from stdin; required, because it is the only input format.
        #[arg(long, required = true)]
        jsonl: bool,
    },
    /// Decide calls by the rules in each line: prints `allow`, `ask` or `deny`, a tab, and the reason.
    ///
    /// Each line of stdin is {"rules": {"allow": [], "ask": [], "deny": []}, "tool", "input", "cwd",
    /// "home"?, "mode"?, "simulate"?} and is answered by one line, in order; empty lines are skipped.
    /// `cwd` is the workspace, and trusted. `simulate` may name the target of a WebFetch redirect
    /// ("redirect") or the address of its host ("address"). An invalid line is `deny`.
    Check {
        /// Read JSON lines from stdin; required, because it is the only input format.
        #[arg(long, required = true)]
        jsonl: bool,
    },
    /// Try an allow rule on past questions: how many it would have answered, and which of them you denied.
    ///
    /// Past questions are the calls in the conversations of this project, and of their subagents, about
    /// which haft asked you. haft decides them again from the recorded input. No command runs.
    #[command(after_help = "\
Examples:
  haft permissions try 'Bash(cargo test *)'
  haft permissions try --since 30d --json 'Bash(git add *)' 'Bash(git commit *)'")]
    Try {
        /// The rules, which are tried together.
        #[arg(value_name = "RULE", required = true)]
        rules: Vec<String>,
        /// Use questions since then: a span such as 12h or 30d, or a time. Default: 90 days, at most 5,000
        /// questions.
        #[arg(long, value_name = "WHEN")]
        since: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Find rules that have no effect, are risky, or can be merged.
    ///
    /// Reports rules that never match (dead), that another rule always decides for (shadowed), that allow more
    /// than they seem to or contain a key (risky), and that one rule can replace (mergeable). The exit
    /// code is 0 without findings, and 1 if findings remain.
    Doctor {
        /// Print JSON.
        #[arg(long, conflicts_with = "fix")]
        json: bool,
        /// Show the changes that resolve findings in your settings and the local settings, and make them if
        /// you agree. Other files are never changed.
        #[arg(long)]
        fix: bool,
    },
    /// List the rules in force and their sources.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Trust this directory: its allow rules, hooks and variables take effect from now on.
    ///
    /// Shows what would run. If any of it changes later, haft ignores it until you trust it again.
    Trust {
        /// Do not ask for confirmation.
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
  haft call LS ignore:='[\"*.log\"]'    a value that is JSON instead of text")]
pub(crate) struct CallFlags {
    /// The name of a tool, or an alias.
    #[arg(index = 1)]
    pub(crate) name: String,
    /// The input: one JSON object, or KEY=VALUE for text and KEY:=VALUE for JSON. Numbers and
    /// booleans may be written as text; keys that begin with `-` must follow `--`.
    #[arg(value_name = "INPUT", index = 2)]
    pub(crate) input: Vec<String>,
    /// Print the whole result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft undo --list          list the changes, newest first
  haft undo --preview       show what undoing the last change would do
  haft undo --since 10m     undo the last ten minutes")]
pub(crate) struct UndoFlags {
    /// The change to undo: its number in the list (1 is the newest), its id there, or the id of the
    /// call that made it.
    #[arg(value_name = "CHANGE")]
    pub(crate) change: Option<String>,
    /// List the changes, newest first.
    #[arg(long, conflicts_with_all = ["change", "since", "preview", "file"])]
    pub(crate) list: bool,
    /// Undo everything since then: a span such as 10m, 2h, 1d, or a time such as
    /// 2026-01-31T12:00 (UTC).
    #[arg(long, value_name = "TIME", conflicts_with = "change")]
    pub(crate) since: Option<String>,
    /// Undo only the last change of this file, or of the files in this directory.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["change", "since", "preview"])]
    pub(crate) file: Option<PathBuf>,
    /// Only show what undo would do.
    #[arg(long)]
    pub(crate) preview: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsFlags {
    /// The tool to show, with its parameters.
    pub(crate) name: Option<String>,
    /// Print the definitions as JSON in Anthropic's format.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Print the definitions in the format of this provider.
    #[arg(long)]
    pub(crate) format: Option<ToolFormatArg>,
    /// Print the size of each definition in tokens, largest first.
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub(crate) cost: bool,
}

/// The values of `--format`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ToolFormatArg {
    Anthropic,
    Openai,
    Mcp,
}

impl From<ToolFormatArg> for ToolFormat {
    fn from(provider: ToolFormatArg) -> Self {
        match provider {
            ToolFormatArg::Anthropic => Self::Anthropic,
            ToolFormatArg::Openai => Self::OpenAi,
            ToolFormatArg::Mcp => Self::Mcp,
        }
    }
}

/// The options for the sessions of an editor.
#[derive(Debug, Args)]
pub(crate) struct AcpFlags {
    /// MCP servers in addition to the editor's: files, or JSON, {"mcpServers": {"NAME": {…}}}.
    #[arg(long, value_name = "FILE-OR-JSON", num_args = 1..)]
    pub(crate) mcp_config: Vec<String>,

    /// Use only those servers and the editor's, none of projects or plugins.
    #[arg(long)]
    pub(crate) strict_mcp_config: bool,

    /// The directory of a plugin; repeatable.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,

    /// Permit a later switch to bypassPermissions.
    #[arg(long)]
    pub(crate) allow_dangerously_skip_permissions: bool,

    #[command(flatten)]
    pub(crate) model: ModelFlags,

    #[command(flatten)]
    pub(crate) prompts: PromptFlags,
}
