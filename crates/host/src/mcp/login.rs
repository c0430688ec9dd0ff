//! Login to MCP servers, and logout.

use anyhow::Context;
use haft_mcp::client::{
    ServerKind,
    oauth::{LoginRequest, OAuthClient, login},
};

use super::{
    approvals::PinDecider,
    check::checked,
    session_host::{http, token_store},
};
use crate::{OpenError, SessionConfig};

/// Logs in to a server; `visit` opens a URL in the user's browser.
pub async fn login_server(
    config: &SessionConfig,
    name: &str,
    visit: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), OpenError> {
    Ok(log_in(config, name, visit).await?)
}

/// Deletes the token of a server. Returns whether there was a token.
pub fn logout_server(config: &SessionConfig, name: &str) -> Result<bool, OpenError> {
    Ok(log_out(config, name)?)
}

async fn log_in(
    config: &SessionConfig,
    name: &str,
    visit: &(dyn Fn(&str) + Send + Sync),
) -> anyhow::Result<()> {
    let (config, servers) = checked(config, Some(name), PinDecider::without_user()).await?;
    let server = servers.server(name).map_err(anyhow::Error::msg)?;
    let (kind, _) = server
        .entry()
        .expanded(&|name| config.environment.raw_variable(name));
    let (ServerKind::Http(remote) | ServerKind::Sse(remote)) = kind else {
        anyhow::bail!("{name} is not a remote server: it has no login");
    };
    let challenge = server.challenge();
    servers.close().await;
    let challenge = challenge
        .with_context(|| format!("{name} does not ask who you are, or cannot be reached"))?;
    let store = token_store(&config.environment, &config.cwd);
    let request = LoginRequest {
        url: &remote.url,
        challenge: &challenge,
        client: OAuthClient::from_entry(&remote.oauth),
        visit,
    };
    let http = http(&config.environment);
    login(&*http, &store, request)
        .await
        .map_err(|why| anyhow::anyhow!("{name}: {why}"))
}

fn log_out(config: &SessionConfig, name: &str) -> anyhow::Result<bool> {
    let (config, _, servers) = super::check::named(config)?;
    let server = servers.server(name).map_err(anyhow::Error::msg)?;
    let (kind, _) = server
        .entry()
        .expanded(&|name| config.environment.raw_variable(name));
    match kind {
        ServerKind::Http(remote) | ServerKind::Sse(remote) => {
            let store = token_store(&config.environment, &config.cwd);
            store.remove_token(&remote.url).map_err(anyhow::Error::msg)
        }
        _ => Ok(false),
    }
}
