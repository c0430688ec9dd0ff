//! `haft mcp serve`, as typed.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct McpServe {
    /// Over stdin and stdout; the default.
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Over HTTP on this address; a port alone means 127.0.0.1.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// The token that clients must show is in this file; of several, one a line, each client has its own. Default:
    /// HAFT_MCP_TOKEN, else a new one, which is printed on stderr.
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Take requests without a token; on a loopback address only.
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub(crate) no_token: bool,
    /// What runs for a client that has no connection any more and is not heard of for so long is stopped.
    #[arg(long, value_name = "SECONDS", requires = "http", default_value_t = 30)]
    pub(crate) gone_after: u64,
    /// Also answer to this host name, beside the address itself and localhost; repeatable.
    #[arg(long, value_name = "NAME", requires = "http")]
    pub(crate) allow_host: Vec<String>,
}
