//! The arguments of `haft mcp serve`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct McpServeFlags {
    /// Serve over stdin and stdout (the default).
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Serve over HTTP on this address; a port alone means 127.0.0.1.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// A file with the token that clients must send, or with several tokens, one per line, for separate clients. Default:
    /// HAFT_MCP_TOKEN, otherwise a new token, which is printed on stderr.
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Accept requests without a token; only on a loopback address.
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub(crate) no_token: bool,
    /// The number of seconds after which the calls of a disconnected client are stopped.
    #[arg(long, value_name = "SECONDS", requires = "http", default_value_t = 30)]
    pub(crate) gone_after: u64,
    /// Also accept this host name, besides the address and localhost; repeatable.
    #[arg(long, value_name = "NAME", requires = "http")]
    pub(crate) allow_host: Vec<String>,
}
