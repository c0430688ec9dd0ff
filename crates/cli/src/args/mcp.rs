//! `haft mcp`, as typed.

use clap::{Args, Subcommand, ValueEnum};
use haft_host::ServerScope;

use super::McpServe;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    #[command(flatten)]
    Servers(McpServers),
    /// Serve the tools to MCP clients: over stdin and stdout, or over HTTP.
    ///
    /// Each client has a session of its own: its directory, what it has read and what can be undone are its
    /// own. Calls are permitted as everywhere: by rules, settings and --permission-mode; what those do not
    /// settle is asked at the client if it has forms (elicitation), and refused with the rule that would
    /// allow it if not.
    #[command(after_help = "\
In the configuration of an editor or a desktop app (more: haft help mcp-serve):
  {\"mcpServers\": {\"haft\": {\"command\": \"haft\",
    \"args\": [\"mcp\", \"serve\", \"--cwd\", \"/path/to/project\", \"--permission-mode\", \"acceptEdits\"]}}}

Examples:
  haft mcp serve                                    over stdin and stdout
  haft mcp serve --tools Read,Grep,Glob             only these tools
  haft mcp serve --allowed-tools 'Bash(npm test *)' --permission-mode acceptEdits
  haft mcp serve --http 8123                        on 127.0.0.1:8123, with a token that is printed

Environment:
  HAFT_MCP_TOKEN  the token that HTTP clients must show")]
    Serve(McpServe),
}

/// Servers whose tools sessions use.
#[derive(Debug, Subcommand)]
pub(crate) enum McpServers {
    /// Name a server: an address, or behind `--` a command that starts it.
    #[command(after_help = "\
Examples:
  haft mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  haft mcp add -e API_KEY='${API_KEY}' -s user db -- db-server --read-only
  haft mcp add -t http -H 'X-Team: blue' tracker https://tracker.example.com/mcp")]
    Add(McpAdd),
    /// Name a server by its entry: '{\"command\": \"…\", \"args\": […]}' or '{\"type\": \"http\", \"url\": \"…\"}'.
    AddJson {
        /// What it is called; tools are mcp__NAME__TOOL.
        name: String,
        /// Its entry.
        json: String,
        /// Where it counts.
        #[arg(short, long, value_enum, default_value_t = McpScope::Local)]
        scope: McpScope,
    },
    /// Connect every server and say how it is: state, revision of the protocol, tools and what they cost.
    List {
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
        /// Connect none; say what is named where.
        #[arg(long)]
        offline: bool,
    },
    /// Connect one server and show all that is known of it.
    Get {
        /// Which.
        name: String,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Approve a server and its tools as they are now.
    ///
    /// Tools are pinned the first time they are seen; one whose description changed since, or that is new, is left
    /// out until you approve it. So is a plugin's server that would be started in another way.
    Approve {
        /// Which.
        name: String,
    },
    /// Forget which servers and tools of this project you approved.
    ResetProjectChoices,
    /// Log in to a server at an address, in your browser.
    ///
    /// The token is kept in haft/mcp-tokens.json of the settings folder, for you alone to read, and renewed by itself.
    Login {
        /// Which.
        name: String,
    },
    /// Forget the token of a server.
    Logout {
        /// Which.
        name: String,
    },
    /// Take a server out again.
    Remove {
        /// Which.
        name: String,
        /// Where it is named, if that is in several places.
        #[arg(short, long, value_enum)]
        scope: Option<McpScope>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct McpAdd {
    /// How it is reached. Default: stdio for a command, http for an address.
    #[arg(short, long, value_enum)]
    pub(crate) transport: Option<McpTransport>,
    /// Where it counts: for you in this project, for all who work on this project (.mcp.json), or for you everywhere.
    #[arg(short, long, value_enum, default_value_t = McpScope::Local)]
    pub(crate) scope: McpScope,
    /// A variable for its environment, NAME=VALUE; repeatable.
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header for each request, 'Name: value'; repeatable.
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// What it is called; tools are mcp__NAME__TOOL.
    pub(crate) name: String,
    /// Its address, or its command.
    pub(crate) target: String,
    /// What the command is called with.
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
