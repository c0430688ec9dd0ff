//! Inspection of servers without a session: lists them, and tries to connect them.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_contract::{BoxFuture, CancellationToken};
use haft_mcp::client::{
    ClientHost, ElicitationAnswer, ServerElicitation, ServerEntry, ServerList, ServerScope, Servers,
};
use serde_json::Value;

use super::{
    approvals::{PinDecider, PinnedTools},
    collect_servers, options,
};
use crate::{
    OpenError, SessionConfig, extensions::SessionExtensions, plugins,
    resolved_settings::ResolvedSettings,
};

/// Returns the servers that a session with this configuration would have, without connecting them.
pub fn named_servers(config: &SessionConfig) -> Result<ServerList, OpenError> {
    Ok(named(config)?.2.list())
}

/// Connects each server, or only the named one, and returns the servers with the results. They are
/// disconnected after that.
pub async fn check_servers(
    config: &SessionConfig,
    only: Option<&str>,
) -> Result<ServerList, OpenError> {
    Ok(check(config, only).await?)
}

/// Approves the current state of a server and its tools. Returns the differences from what was
/// approved before.
pub async fn approve_server(config: &SessionConfig, name: &str) -> Result<Vec<String>, OpenError> {
    Ok(approve(config, name).await?)
}

/// Deletes the approvals for the servers of this project; they are asked about or pinned again.
/// Returns whether there were any.
pub fn forget_approvals(config: &SessionConfig) -> Result<bool, OpenError> {
    let forgotten = PinnedTools::for_session(config, PinDecider::without_user()).reset();
    Ok(forgotten.map_err(anyhow::Error::from)?)
}

/// Returns how a project's server differs from the one that was used last; empty if that is not
/// known.
pub(crate) fn project_server_changes(config: &SessionConfig, name: &str, entry: &Value) -> String {
    match ServerEntry::read(name, entry, ServerScope::Project) {
        Ok(entry) => {
            PinnedTools::for_session(config, PinDecider::without_user()).entry_changes(&entry)
        }
        Err(_) => String::new(),
    }
}

async fn approve(config: &SessionConfig, name: &str) -> anyhow::Result<Vec<String>> {
    let approved = Arc::new(Mutex::default());
    let decides = PinDecider::Approve(Arc::clone(&approved));
    let (_, servers) = checked(config, Some(name), decides).await?;
    let server = servers.server(name).map_err(anyhow::Error::msg)?;
    let connected = server.connected().await.map(drop);
    servers.close().await;
    connected.map_err(|why| anyhow::anyhow!("{name}: {why}"))?;
    let mut approved = approved.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *approved))
}

async fn check(config: &SessionConfig, only: Option<&str>) -> anyhow::Result<ServerList> {
    let (_, servers) = checked(config, only, PinDecider::without_user()).await?;
    let list = servers.list();
    servers.close().await;
    Ok(list)
}

/// Returns the servers after each has connected or failed.
pub(super) async fn checked(
    config: &SessionConfig,
    only: Option<&str>,
    decides: PinDecider,
) -> anyhow::Result<(SessionConfig, Servers)> {
    let (config, permitted, servers) = named(config)?;
    servers.disable(|entry| only.is_some_and(|only| entry.name != only));
    let folder = config.environment.temporary_folder();
    let options = options(&config, &permitted, &folder, decides)?;
    let limit = options.connect + Duration::from_secs(1);
    let host = QuietClientHost {
        cwd: config.cwd.clone(),
    };
    servers.start(options, Arc::new(host), None);
    servers
        .wait(|_| true, limit, &CancellationToken::new())
        .await;
    Ok((config, servers))
}

pub(super) fn named(
    config: &SessionConfig,
) -> anyhow::Result<(SessionConfig, ResolvedSettings, Servers)> {
    let permitted = ResolvedSettings::load(config).map_err(OpenError::into_inner)?;
    let config = SessionConfig {
        environment: permitted.environment.clone(),
        ..config.clone()
    };
    let extensions = SessionExtensions::load(&config, &permitted);
    let brought = plugins::additions(&extensions.places, &permitted);
    let servers = collect_servers(&config, &permitted, &brought.servers)?;
    Ok((config, permitted, servers))
}

/// Reports nothing, because the list contains everything.
struct QuietClientHost {
    cwd: PathBuf,
}

impl ClientHost for QuietClientHost {
    fn warn(&self, _: &str) {}

    fn roots(&self) -> Vec<PathBuf> {
        vec![self.cwd.clone()]
    }

    fn can_elicit(&self) -> bool {
        false
    }

    fn elicit(&self, _: ServerElicitation) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(async { ElicitationAnswer::Cancel })
    }
}
