//! The servers of a session.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use haft_contract::{CancellationToken, DynTool};
use serde_json::{Map, Value};
use tokio::{sync::watch, task::JoinSet, time::Duration};

use super::{
    ClientHost, ClientOptions, ServerEntry, ServerHandle, ServerKind, ServerLink, ServerScope,
    SkippedServer, definition, entry,
    server::{ClientShared, ServerStatus},
};
use crate::peer::RequestTimeout;

/// The prefix of the names of plugins' servers.
pub const OF_PLUGINS: &str = "plugin:";

/// The servers of a session. They are connected after [`Self::start`]; others can be added and
/// removed later.
#[derive(Default)]
pub struct Servers {
    state: Mutex<ServersState>,
    shared: OnceLock<Arc<ClientShared>>,
}

#[derive(Default)]
struct ServersState {
    servers: Vec<Arc<ServerHandle>>,
    skipped: Vec<SkippedServer>,
}

/// A summary of the servers of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerList {
    /// The valid entries.
    pub servers: Vec<ServerDetails>,
    /// The entries that were left out.
    pub skipped: Vec<SkippedServer>,
}

/// The details of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerDetails {
    /// The name of the server.
    pub name: String,
    /// `pending`, `connected`, `failed`, `needs-auth` or `disabled`.
    pub status: &'static str,
    /// The scope of its entry.
    pub scope: &'static str,
    /// The reason for a failure.
    pub error: Option<String>,
    /// The command or address, in one line.
    pub target: String,
    /// Its entry as written.
    pub config: Value,
    /// Its name and version, once it is connected.
    pub info: Option<Value>,
    /// The agreed revision of the protocol, once it is connected.
    pub revision: Option<&'static str>,
    /// Its instructions for the model.
    pub instructions: Option<String>,
    /// Its listed tools, once it is connected.
    pub tools: Option<Vec<Value>>,
    /// The unapproved changes, with the difference, and how to approve them.
    pub unapproved: Option<String>,
    /// Its prompts as slash commands, once it is connected.
    pub commands: Vec<String>,
    /// The last lines that it wrote besides its answers, or logged.
    pub log: Vec<String>,
}

/// The result of setting servers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerChanges {
    /// The new servers.
    pub added: Vec<String>,
    /// The removed servers.
    pub removed: Vec<String>,
    /// The unusable servers with the reasons.
    pub errors: Vec<(String, String)>,
}

/// The changed tools of a server.
pub struct ToolChange {
    /// The name of the server.
    pub server: String,
    /// All its current tools.
    pub tools: Vec<Arc<dyn DynTool>>,
}

/// The versions of the servers whose tools were already reported, by name.
#[derive(Debug, Default)]
pub struct ToolVersions(Vec<(String, u64)>);

impl Servers {
    /// Adds entries. An entry whose name is taken is ignored, unless its scope has precedence.
    pub fn add(&self, entries: impl IntoIterator<Item = Result<ServerEntry, SkippedServer>>) {
        let mut state = self.state();
        for read in entries {
            match read {
                Err(skipped) => state.skipped.push(skipped),
                Ok(entry) => {
                    let taken = state.find(&entry.name).map(|other| other.entry().scope);
                    if taken.is_none_or(|scope| entry.scope < scope) {
                        state.take(Arc::new(ServerHandle::new(entry, false, false)));
                    }
                }
            }
        }
    }

    /// Disables the servers that the function selects, until they are enabled again.
    pub fn disable(&self, is_off: impl Fn(&ServerEntry) -> bool) {
        for server in &mut self.state().servers {
            if is_off(server.entry()) {
                *server = Arc::new(ServerHandle::new(
                    server.entry().clone(),
                    server.by_request,
                    true,
                ));
            }
        }
    }

    /// Removes the servers for which the function returns a reason.
    pub fn retain(&self, refused: impl Fn(&ServerEntry) -> Option<SkippedServer>) {
        let mut state = self.state();
        let servers = std::mem::take(&mut state.servers);
        for server in servers {
            match refused(server.entry()) {
                Some(skipped) => state.skipped.push(skipped),
                None => state.servers.push(server),
            }
        }
    }

    /// Adds servers that the SDK client runs, by name.
    pub fn add_sdk(&self, names: &[String]) {
        let new: Vec<Arc<ServerHandle>> = {
            let mut state = self.state();
            let new = names.iter().filter(|name| state.find(name).is_none());
            let new =
                new.map(|name| Arc::new(ServerHandle::new(ServerEntry::sdk(name), false, false)));
            let new: Vec<_> = new.collect();
            for server in &new {
                state.take(Arc::clone(server));
            }
            new
        };
        self.start_all(&new);
    }

    /// Replaces the servers that the previous call set. If the session is started, the new servers
    /// are connected immediately. An unchanged server stays connected.
    pub async fn set(&self, servers: &Map<String, Value>) -> ServerChanges {
        let read = entry::entries(servers, ServerScope::Given);
        let mut errors = Vec::new();
        let wanted = read.into_iter().filter_map(|read| {
            let failed = |skipped: SkippedServer| errors.push((skipped.name, skipped.message));
            read.map_err(failed).ok()
        });
        let wanted = wanted
            .map(|entry| ServerHandle::new(entry, true, false))
            .collect();
        let changes = self.replace(wanted, |server| server.by_request).await;
        ServerChanges { errors, ..changes }
    }

    /// Replaces the servers of plugins, as [`Self::set`] does. A name that another server has stays
    /// with that server. `is_off` selects servers that stay disabled until they are enabled.
    pub async fn set_of_plugins(
        &self,
        entries: Vec<Result<ServerEntry, SkippedServer>>,
        is_off: impl Fn(&ServerEntry) -> bool,
    ) -> ServerChanges {
        let is_of_plugin = |server: &ServerHandle| {
            server.entry().scope == ServerScope::Plugin && !server.by_request
        };
        let mut wanted = Vec::new();
        {
            let mut state = self.state();
            let is_of_others = |name: &str| {
                let taken = state.find(name);
                taken.is_some_and(|server| !is_of_plugin(server))
            };
            let mut skipped = Vec::new();
            for read in entries {
                match read {
                    Err(why) => skipped.push(why),
                    Ok(entry) if is_of_others(&entry.name) => {}
                    Ok(entry) => {
                        let off = is_off(&entry);
                        wanted.push(ServerHandle::new(entry, false, off));
                    }
                }
            }
            state
                .skipped
                .retain(|skipped| !skipped.name.starts_with(OF_PLUGINS));
            state.skipped.extend(skipped);
        }
        self.replace(wanted, is_of_plugin).await
    }

    /// Replaces servers; an unchanged one stays connected.
    async fn replace(
        &self,
        wanted: Vec<ServerHandle>,
        is_replaced: impl Fn(&ServerHandle) -> bool,
    ) -> ServerChanges {
        let mut changes = ServerChanges::default();
        let mut new = Vec::new();
        let mut gone: Vec<Arc<ServerHandle>>;
        {
            let mut state = self.state();
            let stays = |server: &Arc<ServerHandle>| {
                !is_replaced(server) || wanted.iter().any(|one| one.entry() == server.entry())
            };
            (state.servers, gone) = std::mem::take(&mut state.servers)
                .into_iter()
                .partition(stays);
            for server in wanted {
                let known = state.find(server.name());
                if known.is_some_and(|known| known.entry() == server.entry()) {
                    continue;
                }
                let replaced = gone.iter().any(|other| other.name() == server.name());
                if !replaced {
                    changes.added.push(server.name().to_owned());
                }
                let server = Arc::new(server);
                if let Some(other) = state.take(Arc::clone(&server)) {
                    gone.push(other);
                }
                new.push(server);
            }
            let is_there = |server: &&Arc<ServerHandle>| state.find(server.name()).is_some();
            let removed = gone.iter().filter(|server| !is_there(server));
            changes.removed = removed.map(|server| server.name().to_owned()).collect();
        }
        for server in gone {
            server.close().await;
        }
        self.start_all(&new);
        if let Some(shared) = self.shared.get() {
            shared.changes.send_modify(|count| *count += 1);
        }
        changes
    }

    /// Starts to connect all servers. Needs a tokio runtime; only the first call has an effect.
    pub fn start(
        &self,
        options: ClientOptions,
        host: Arc<dyn ClientHost>,
        link: Option<Arc<dyn ServerLink>>,
    ) {
        let shared = ClientShared {
            options,
            host,
            link,
            changes: watch::Sender::new(0),
            ended: CancellationToken::new(),
        };
        if self.shared.set(Arc::new(shared)).is_ok() {
            let servers = self.state().servers.clone();
            self.start_all(&servers);
        }
    }

    /// Creates further servers with the same options, for temporary use; their tools are sent in
    /// full. They end at the latest with the servers of `self`. Returns `None` if `self` was not
    /// started.
    pub fn connect_separately(
        &self,
        entries: impl IntoIterator<Item = Result<ServerEntry, SkippedServer>>,
    ) -> Option<Self> {
        let own = self.shared.get()?;
        let shared = ClientShared {
            options: ClientOptions {
                deferred: false,
                ..own.options.clone()
            },
            host: Arc::clone(&own.host),
            link: own.link.clone(),
            changes: watch::Sender::new(0),
            ended: own.ended.child_token(),
        };
        let beside = Self::default();
        beside.add(entries);
        if beside.shared.set(Arc::new(shared)).is_ok() {
            beside.start_all(&beside.all());
        }
        Some(beside)
    }

    fn start_all(&self, servers: &[Arc<ServerHandle>]) {
        if let Some(shared) = self.shared.get() {
            for server in servers {
                server.start(shared);
            }
        }
    }

    /// Waits until the selected servers are connected or have failed, at most for `limit` or until
    /// `until` is cancelled.
    pub async fn wait(
        &self,
        wanted: impl Fn(&ServerEntry) -> bool,
        limit: Duration,
        until: &CancellationToken,
    ) {
        let mut settling = JoinSet::new();
        for server in self
            .state()
            .servers
            .iter()
            .filter(|server| wanted(server.entry()))
        {
            let server = Arc::clone(server);
            settling.spawn(async move { server.settled().await });
        }
        let all = async { while settling.join_next().await.is_some() {} };
        tokio::select! {
            biased;
            () = all => {}
            () = until.cancelled() => {}
            () = tokio::time::sleep(limit) => {}
        }
    }

    /// Returns the tools of all servers, and their versions for [`Self::tool_changes`].
    pub fn tools(&self) -> (Vec<Arc<dyn DynTool>>, ToolVersions) {
        let servers = self.state().servers.clone();
        let (mut tools, mut seen) = (Vec::new(), ToolVersions::default());
        for server in servers {
            seen.0.push((server.name().to_owned(), server.version()));
            tools.extend(server.tools());
        }
        (tools, seen)
    }

    /// Returns the tools of a server once it is connected. The error says why it is not.
    pub async fn tools_of(&self, name: &str) -> Result<Vec<Arc<dyn DynTool>>, String> {
        let server = self.server(name)?;
        server.connected().await?;
        Ok(server.tools())
    }

    /// Waits for tools that were not reported yet, and returns the changes. Returns `None` when the
    /// session ends.
    pub async fn tool_changes(&self, seen: &mut ToolVersions) -> Option<Vec<ToolChange>> {
        let shared = self.shared.get()?;
        let mut changes = shared.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let changed = self.changed_since(seen);
            if !changed.is_empty() {
                return Some(changed);
            }
            tokio::select! {
                changed = changes.changed() => changed.ok()?,
                () = shared.ended.cancelled() => return None,
            }
        }
    }

    fn changed_since(&self, seen: &mut ToolVersions) -> Vec<ToolChange> {
        let servers = self.state().servers.clone();
        let mut changed = Vec::new();
        seen.0.retain(|(name, _)| {
            let is_there = servers.iter().any(|server| server.name() == name);
            if !is_there {
                changed.push(ToolChange {
                    server: name.clone(),
                    tools: Vec::new(),
                });
            }
            is_there
        });
        for server in servers {
            let version = server.version();
            let known = seen.0.iter_mut().find(|(name, _)| name == server.name());
            match known {
                Some((_, known)) if *known == version => continue,
                Some((_, known)) => *known = version,
                None => seen.0.push((server.name().to_owned(), version)),
            }
            changed.push(ToolChange {
                server: server.name().to_owned(),
                tools: server.tools(),
            });
        }
        changed
    }

    /// Connects a server again. The error says why that failed.
    pub async fn reconnect(&self, name: &str) -> Result<(), String> {
        let server = self.server(name)?;
        server.reconnect().await;
        server.connected().await.map(drop)
    }

    /// Enables or disables a server.
    pub async fn toggle(&self, name: &str, enabled: bool) -> Result<(), String> {
        let server = self.server(name)?;
        match (enabled, server.status()) {
            (true, ServerStatus::Disabled) => {
                server.reconnect().await;
                Ok(())
            }
            (true, _) => Ok(()),
            (false, _) => {
                server.disable().await;
                Ok(())
            }
        }
    }

    /// Reports to the servers that the directories of the session changed.
    pub fn roots_changed(&self) {
        for server in self.state().servers.iter() {
            if let Some(connection) = server.connection() {
                connection.roots_changed();
            }
        }
    }

    /// Ends the session: no server is connected any longer, and connected ones end in the
    /// background.
    pub fn close_now(&self) {
        if let Some(shared) = self.shared.get() {
            shared.ended.cancel();
        }
    }

    /// Ends all servers and waits for them.
    pub async fn close(&self) {
        self.close_now();
        let servers = self.state().servers.clone();
        let mut closing = JoinSet::new();
        for server in servers {
            closing.spawn(async move { server.close().await });
        }
        while closing.join_next().await.is_some() {}
    }

    /// Returns the server with this name. The error lists the existing ones.
    pub fn server(&self, name: &str) -> Result<Arc<ServerHandle>, String> {
        let state = self.state();
        state.find(name).cloned().ok_or_else(|| {
            if let Some(left) = state.skipped.iter().find(|left| left.name == name) {
                return format!("the MCP server {name} is left out: {}", left.message);
            }
            let others: Vec<&str> = state.servers.iter().map(|server| server.name()).collect();
            match others.as_slice() {
                [] => format!("no MCP server is named {name:?}; none is configured"),
                others => format!(
                    "no MCP server is named {name:?}; the servers are {}",
                    others.join(", ")
                ),
            }
        })
    }

    /// Returns all servers.
    pub fn all(&self) -> Vec<Arc<ServerHandle>> {
        self.state().servers.clone()
    }

    /// Returns whether there is a server with this name.
    pub fn has(&self, name: &str) -> bool {
        self.state().find(name).is_some()
    }

    /// Returns whether any connected server has resources.
    pub fn have_resources(&self) -> bool {
        let servers = self.state().servers.clone();
        servers.iter().any(|server| {
            let connection = server.connection();
            connection.is_some_and(|connection| {
                connection
                    .server_info()
                    .capabilities
                    .get("resources")
                    .is_some()
            })
        })
    }

    /// Calls a tool by its name in the pool and returns the server's unchanged result.
    pub async fn call(&self, name: &str, arguments: &Value) -> Result<Value, String> {
        let (server, tool) = self.find(name)?;
        let connection = server.connected().await?;
        let called = connection
            .call_tool(&tool, arguments, RequestTimeout::default(), |_| {})
            .await;
        called.map_err(|error| match error {
            crate::peer::PeerError::Answered(error) => error.message,
            error => error.to_string(),
        })
    }

    /// Finds the server of a tool by the tool's name in the pool. Returns the server and its own
    /// name for the tool, or why the tool cannot be called.
    pub fn find(&self, name: &str) -> Result<(Arc<ServerHandle>, String), String> {
        let state = self.state();
        let mut others = Vec::new();
        for server in &state.servers {
            for tool in server.listed_tools() {
                let Some(called) = tool["name"].as_str() else {
                    continue;
                };
                let own = definition::name(server.name(), called);
                if own == name {
                    return Ok((Arc::clone(server), called.to_owned()));
                }
                others.push(own);
            }
            if let ServerStatus::Failed(why) | ServerStatus::NeedsAuth { why, .. } = server.status()
            {
                others.push(format!("(server {}: {why})", server.name()));
            }
        }
        Err(match others.as_slice() {
            [] => format!("{name} is not available: no MCP server is configured"),
            others => format!("{name} is not available. Available: {}", others.join(", ")),
        })
    }

    /// Returns a message for the user about each entry that was left out.
    pub fn left_out(&self) -> Vec<String> {
        let state = self.state();
        let skipped = state.skipped.iter();
        let skipped = skipped.filter(|one| one.is_problem());
        let skipped =
            skipped.map(|one| format!("MCP server {} is left out: {}", one.name, one.message));
        skipped.collect()
    }

    /// Returns the details of all servers.
    pub fn list(&self) -> ServerList {
        let state = self.state();
        let servers = state.servers.iter().map(|server| {
            let (entry, status) = (server.entry(), server.status());
            let mut details = ServerDetails {
                name: entry.name.clone(),
                status: status.name(),
                scope: entry.scope.name(),
                target: entry.in_short(),
                config: entry.config.clone(),
                log: server.log(),
                ..ServerDetails::default()
            };
            match &status {
                ServerStatus::Pending | ServerStatus::Disabled => {}
                ServerStatus::Failed(why) | ServerStatus::NeedsAuth { why, .. } => {
                    details.error = Some(why.clone())
                }
                ServerStatus::Connected(connection) => {
                    let facts = connection.server_info();
                    details.info = Some(facts.info.clone());
                    details.revision = Some(connection.revision().as_str());
                    details.instructions.clone_from(&facts.instructions);
                    details.tools = Some(server.listed_tools());
                    details.unapproved = server.unapproved();
                    let prompts = server.prompts().into_iter();
                    details.commands = prompts.map(|prompt| prompt.command).collect();
                }
            }
            details
        });
        ServerList {
            servers: servers.collect(),
            skipped: state.skipped.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, ServersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServersState {
    fn find(&self, name: &str) -> Option<&Arc<ServerHandle>> {
        self.servers.iter().find(|server| server.name() == name)
    }

    /// Adds a server and returns the one with the same name that it replaces.
    fn take(&mut self, server: Arc<ServerHandle>) -> Option<Arc<ServerHandle>> {
        let at = self
            .servers
            .iter()
            .position(|other| other.name() == server.name());
        match at {
            Some(at) => Some(std::mem::replace(&mut self.servers[at], server)),
            None => {
                self.servers.push(server);
                None
            }
        }
    }
}

/// Returns whether the first turn waits for a server by default: it is run by the SDK client or
/// marked as always loaded.
pub fn is_waited_for(entry: &ServerEntry) -> bool {
    entry.always_load || entry.kind == ServerKind::Sdk
}
