//! `haft mcp`, as typed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Serve the tools to MCP clients: over stdin and stdout, or over HTTP.
    ///
    /// Each client has a session of its own: its directory, what it has read and what can be undone are its
    /// own. Calls are permitted as everywhere: by rules, settings and --permission-mode; what those do not
    /// settle is asked at the client if it has forms (elicitation), and refused with the rule that would
    /// allow it if not.
    #[command(after_help = "\
Examples:
  haft mcp serve                                    over stdin and stdout
  haft mcp serve --tools Read,Grep,Glob             only these tools
  haft mcp serve --allowed-tools 'Bash(npm test *)' --permission-mode acceptEdits
  haft mcp serve --http 8123                        on 127.0.0.1:8123, with a token that is printed

Environment:
  HAFT_MCP_TOKEN  the token that HTTP clients must show")]
    Serve(McpServe),
}

#[derive(Debug, Args)]
pub(crate) struct McpServe {
    /// Over stdin and stdout; the default.
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Over HTTP on this address; a port alone means 127.0.0.1.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// The token that clients must show is in this file. Default: HAFT_MCP_TOKEN, else a new one, which is
    /// printed on stderr.
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Take requests without a token; on a loopback address only.
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub(crate) no_token: bool,
    /// Also answer to this host name, beside the address itself and localhost; may be given again.
    #[arg(long, value_name = "NAME", requires = "http")]
    pub(crate) allow_host: Vec<String>,
}
