//! `haft mcp`: the Model Context Protocol.

mod serve;
mod servers;

pub(crate) use serve::run as serve;
pub(crate) use servers::tokens as mcp_tokens;

use crate::{
    args::{McpCommand, SessionArgs},
    exit::Exit,
};

pub(crate) async fn run(args: SessionArgs, command: McpCommand) -> anyhow::Result<Exit> {
    match command {
        McpCommand::Serve(flags) => serve::run(args, flags).await,
        McpCommand::Servers(asked) => servers::run(args, asked).await,
    }
}
