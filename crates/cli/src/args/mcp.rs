//! The arguments of `haft mcp`.

use clap::{Args, Subcommand, ValueEnum};
use haft_host::ServerScope;

use super::McpServeFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    #[command(flatten)]
    Servers(McpServersCommand),
    /// Serve the tools to MCP clients: over stdin and stdout, or over HTTP.
    ///
    /// Each client has its own session: its own directory, read files and undo. Rules, settings and
    /// --permission-mode decide about calls as usual. If they do not decide, haft asks the client with a form
    /// (elicitation); without forms, the call is denied, and the result names the rule that would allow it.
    #[command(after_help = "\
In the configuration of an editor or a desktop app (more: haft help mcp-serve):
  {\"mcpServers\": {\"haft\": {\"command\": \"haft\",
    \"args\": [\"mcp\", \"serve\", \"--cwd\", \"/path/to/project\", \"--permission-mode\", \"acceptEdits\"]}}}

Examples:
  haft mcp serve                                    over stdin and stdout
  haft mcp serve --tools Read,Grep,Glob             only these tools
  haft mcp serve --allowed-tools 'Bash(npm test *)' --permission-mode acceptEdits
  haft mcp serve --http 8123                        on 127.0.0.1:8123, with a printed token

Environment:
  HAFT_MCP_TOKEN  the token that HTTP clients must send")]
    Serve(McpServeFlags),
}

/// Servers whose tools sessions use.
#[derive(Debug, Subcommand)]
pub(crate) enum McpServersCommand {
    /// Add a server: a URL, or a command after `--`.
    #[command(after_help = "\
Examples:
  haft mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  haft mcp add -e API_KEY='${API_KEY}' -s user db -- db-server --read-only
  haft mcp add -t http -H 'X-Team: blue' tracker https://tracker.example.com/mcp")]
    Add(McpAddFlags),
    /// Add a server by its JSON entry: '{\"command\": \"…\", \"args\": […]}' or '{\"type\": \"http\", \"url\": \"…\"}'.
    AddJson {
        /// The name of the server; tools are mcp__NAME__TOOL.
        name: String,
        /// The JSON entry.
        json: String,
        /// The scope of the entry.
        #[arg(short, long, value_enum, default_value_t = McpScope::Local)]
        scope: McpScope,
    },
    /// List all servers with state, protocol revision, tools and their cost in tokens.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Do not connect; only show the configuration.
        #[arg(long)]
        offline: bool,
    },
    /// Show details of one server.
    Get {
        /// The name of the server.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Approve the current state of a server and its tools.
    ///
    /// haft pins tools when it first sees them. A new tool, or one with a changed description, is not available until
    /// you approve it. The same applies to a plugin's server whose command changed.
    Approve {
        /// The name of the server.
        name: String,
    },
    /// Delete all approvals of servers and tools for this project.
    ResetProjectChoices,
    /// Log in to an HTTP server with your browser.
    ///
    /// haft stores the token in haft/mcp-tokens.json of the settings directory (mode 0600) and renews it automatically.
    Login {
        /// The name of the server.
        name: String,
    },
    /// Delete the token of a server.
    Logout {
        /// The name of the server.
        name: String,
    },
    /// Remove a server.
    Remove {
        /// The name of the server.
        name: String,
        /// The scope to remove it from, if several have it.
        #[arg(short, long, value_enum)]
        scope: Option<McpScope>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct McpAddFlags {
    /// The transport. Default: stdio for a command, http for a URL.
    #[arg(short, long, value_enum)]
    pub(crate) transport: Option<McpTransport>,
    /// The scope: you in this project, all users of this project (.mcp.json), or you in all projects.
    #[arg(short, long, value_enum, default_value_t = McpScope::Local)]
    pub(crate) scope: McpScope,
    /// An environment variable, NAME=VALUE; repeatable.
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header for each request, 'Name: value'; repeatable.
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// The name of the server; tools are mcp__NAME__TOOL.
    pub(crate) name: String,
    /// The URL, or the command.
    pub(crate) target: String,
    /// The arguments of the command.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpTransport {
    Stdio,
    Http,
    Sse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpScope {
    Local,
    Project,
    User,
}

impl From<McpScope> for ServerScope {
    fn from(scope: McpScope) -> Self {
        match scope {
            McpScope::Local => Self::Local,
            McpScope::Project => Self::Project,
            McpScope::User => Self::User,
        }
    }
}
