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
use crate::peer::Patience;

/// The names of plugins' servers begin with this.
pub const OF_PLUGINS: &str = "plugin:";

/// The servers of a session. They are connected once it [starts](Self::start); others may come and go later.
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

/// The servers of a session, in short.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerList {
    /// Those that were read.
    pub servers: Vec<ServerDetails>,
    /// Entries that were left out.
    pub skipped: Vec<SkippedServer>,
}

/// What is known of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerDetails {
    /// Its name.
    pub name: String,
    /// `pending`, `connected`, `failed`, `needs-auth` or `disabled`.
    pub status: &'static str,
    /// Where its entry stands.
    pub scope: &'static str,
    /// Why it failed.
    pub error: Option<String>,
    /// What is started or reached, in one line.
    pub target: String,
    /// Its entry, as it was written.
    pub config: Value,
    /// What it says of itself, once it is connected.
    pub info: Option<Value>,
    /// The revision of the protocol that both ends speak, once it is connected.
    pub revision: Option<&'static str>,
    /// What a model should know of it.
    pub instructions: Option<String>,
    /// Its tools as it lists them, once it is connected.
    pub tools: Option<Vec<Value>>,
    /// What of it is not as it was approved, with the difference, and how it is approved.
    pub unapproved: Option<String>,
    /// Its prompts, as the commands that people type, once it is connected.
    pub commands: Vec<String>,
    /// The last lines that it wrote beside its answers, or logged.
    pub log: Vec<String>,
}

/// What came of setting servers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerChanges {
    /// New ones.
    pub added: Vec<String>,
    /// Those that are gone.
    pub removed: Vec<String>,
    /// Those that cannot be used, and why.
    pub errors: Vec<(String, String)>,
}

/// Tools of a server that are others than before.
pub struct ToolChange {
    /// The server.
    pub server: String,
    /// All its tools now.
    pub tools: Vec<Arc<dyn DynTool>>,
}

/// What of the servers was taken over already: by name, and the version of each.
#[derive(Debug, Default)]
pub struct SeenTools(Vec<(String, u64)>);

impl Servers {
    /// Adds entries. One whose name is taken is passed over, unless it is of a stronger scope.
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

    /// Switches off those that this names, until someone switches them on.
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

    /// Takes out the servers for which this says why they may not be used.
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

    /// Adds servers that the other end runs, by their names.
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

    /// Puts these in the place of those that such a request named before; they are connected at once where the
    /// others are. One that stays as it was stays connected.
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

    /// Puts these in the place of those that plugins brought before, as [`Self::set`] does. A name that someone
    /// else has stays theirs. `is_off`: those that are not connected until someone switches them on.
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

    /// Puts servers in the place of others; one that stays as it was stays connected.
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

    /// Begins to connect all of them. Needs a tokio runtime; only the first time counts.
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
            over: CancellationToken::new(),
        };
        if self.shared.set(Arc::new(shared)).is_ok() {
            let servers = self.state().servers.clone();
            self.start_all(&servers);
        }
    }

    /// Further servers that are connected as these are, for one who needs them for a while; their tools are sent in
    /// full. They end with these at the latest. `None`: these were not started.
    pub fn beside(
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
            over: own.over.child_token(),
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

    /// Waits until those that this names are connected or have failed, or it is no longer to be waited for.
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

    /// The tools of all servers, and what was taken over by this.
    pub fn tools(&self) -> (Vec<Arc<dyn DynTool>>, SeenTools) {
        let servers = self.state().servers.clone();
        let (mut tools, mut seen) = (Vec::new(), SeenTools::default());
        for server in servers {
            seen.0.push((server.name().to_owned(), server.version()));
            tools.extend(server.tools());
        }
        (tools, seen)
    }

    /// The tools of one server, once it is connected; why it is not.
    pub async fn tools_of(&self, name: &str) -> Result<Vec<Arc<dyn DynTool>>, String> {
        let server = self.server(name)?;
        server.connected().await?;
        Ok(server.tools())
    }

    /// Waits until something is offered that was not taken over, and says what; `None`: the session is over.
    pub async fn tool_changes(&self, seen: &mut SeenTools) -> Option<Vec<ToolChange>> {
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
                () = shared.over.cancelled() => return None,
            }
        }
    }

    fn changed_since(&self, seen: &mut SeenTools) -> Vec<ToolChange> {
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

    /// Connects a server again. The error says why that cannot be.
    pub async fn reconnect(&self, name: &str) -> Result<(), String> {
        let server = self.server(name)?;
        server.reconnect().await;
        server.connected().await.map(drop)
    }

    /// Switches a server on or off.
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

    /// The directories of the session are others.
    pub fn roots_changed(&self) {
        for server in self.state().servers.iter() {
            if let Some(connection) = server.connection() {
                connection.roots_changed();
            }
        }
    }

    /// The session is over: nothing is connected any more, and what is connected ends by itself.
    pub fn abandon(&self) {
        if let Some(shared) = self.shared.get() {
            shared.over.cancel();
        }
    }

    /// Ends all of them, and waits for that.
    pub async fn close(&self) {
        self.abandon();
        let servers = self.state().servers.clone();
        let mut closing = JoinSet::new();
        for server in servers {
            closing.spawn(async move { server.close().await });
        }
        while closing.join_next().await.is_some() {}
    }

    /// The server of this name. The error names those that there are.
    pub fn server(&self, name: &str) -> Result<Arc<ServerHandle>, String> {
        let state = self.state();
        state.find(name).cloned().ok_or_else(|| {
            if let Some(left) = state.skipped.iter().find(|left| left.name == name) {
                return format!("the MCP server {name} is left out: {}", left.message);
            }
            let others: Vec<&str> = state.servers.iter().map(|server| server.name()).collect();
            match others.as_slice() {
                [] => format!("there is no MCP server {name:?}, nor any other"),
                others => format!(
                    "there is no MCP server {name:?}; there are {}",
                    others.join(", ")
                ),
            }
        })
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<ServerHandle>> {
        self.state().servers.clone()
    }

    /// Is there a server of this name?
    pub fn has(&self, name: &str) -> bool {
        self.state().find(name).is_some()
    }

    /// Does one that is connected say that it has resources?
    pub fn have_resources(&self) -> bool {
        let servers = self.state().servers.clone();
        servers.iter().any(|server| {
            let connection = server.connection();
            connection.is_some_and(|connection| {
                connection.facts().capabilities.get("resources").is_some()
            })
        })
    }

    /// Calls a tool by its name in our pool, and waits for the answer as the server gives it.
    pub async fn call(&self, name: &str, arguments: &Value) -> Result<Value, String> {
        let (server, tool) = self.find(name)?;
        let connection = server.connected().await?;
        let called = connection
            .call_tool(&tool, arguments, Patience::default(), |_| {})
            .await;
        called.map_err(|error| match error {
            crate::peer::PeerError::Answered(error) => error.message,
            error => error.to_string(),
        })
    }

    /// The server to ask in order to call a tool by its name in our pool, and the server's name for it; or why it cannot
    /// be called.
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
            [] => format!("{name} is not available: there is no MCP server"),
            others => format!("{name} is not available. There are: {}", others.join(", ")),
        })
    }

    /// Entries that were left out, for people.
    pub fn left_out(&self) -> Vec<String> {
        let state = self.state();
        let skipped = state.skipped.iter();
        let skipped = skipped.filter(|one| one.is_problem());
        let skipped =
            skipped.map(|one| format!("MCP server {} is left out: {}", one.name, one.message));
        skipped.collect()
    }

    /// What is known of them.
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
                    let facts = connection.facts();
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

    /// Takes a server in; gives the one whose name it takes.
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

/// Is a server one that the first turn waits for by itself: run at the other end, or to be loaded always?
pub fn is_waited_for(entry: &ServerEntry) -> bool {
    entry.always_load || entry.kind == ServerKind::Sdk
}
