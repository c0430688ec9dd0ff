//! `haft acp`: an agent server for editors (Agent Client Protocol).

use std::io::IsTerminal;

use haft_acp::{AcpAgent, serve};
use tokio::io::{BufReader, stdin, stdout};

use super::headless::config;
use crate::{
    VERSION,
    args::{AcpFlags, SessionArgs},
    clock::session_clock,
    exit::Exit,
    session, show,
    signals::StopSignals,
    stdio::pipes,
};

const READ_AT_ONCE: usize = 64 * 1024;

pub(crate) async fn run(args: SessionArgs, flags: AcpFlags) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        !std::io::stdout().is_terminal(),
        "stdout is a terminal: an editor starts this and talks to it (`haft help editors` has blocks to copy)"
    );
    let signals = StopSignals::listen()?;
    let agent = AcpAgent::new(sessions(&args, &flags)?, env!("CARGO_PKG_VERSION"), warn)
        .clock(session_clock());
    let stop = signals.token();
    // Pipes are read without a dedicated thread; anything else goes through tokio's stdin and
    // stdout.
    match pipes() {
        Some((input, output)) => {
            let input = BufReader::with_capacity(READ_AT_ONCE, input);
            serve(agent, input, output, stop).await?;
        }
        None => {
            let input = BufReader::with_capacity(READ_AT_ONCE, stdin());
            serve(agent, input, stdout(), stop).await?;
        }
    }
    Ok(signals.requested_exit().unwrap_or(Exit::Success))
}

/// Returns the configuration that every session starts from.
fn sessions(args: &SessionArgs, flags: &AcpFlags) -> anyhow::Result<haft_host::SessionConfig> {
    let mut config = session::config(args)?;
    config.model = config::model(&flags.model)?;
    config.prompts = config::prompts(&flags.prompts)?;
    config.mcp_servers.clone_from(&flags.mcp_config);
    config.strict_mcp = flags.strict_mcp_config;
    config.plugins = config::absolute_all(&flags.plugin_dir)?;
    config.allow_bypass = flags.allow_dangerously_skip_permissions;
    config.version = VERSION.to_owned();
    Ok(config)
}

fn warn(text: &str) {
    show::warn(&format!("haft: {}", show::clean(text)));
}
