//! MCP servers of a session, and their tools among ours.
//!
//! - `config`: which servers there are to be
//! - `client`: speaks with one that the other side runs
//! - `definition`, `schema`, `tool`, `result`: its tools as tools of ours
//!
//! Only servers of type `sdk` are connected; others are reported as failed, with the reason.

mod client;
mod config;
mod definition;
mod result;
mod schema;
mod tool;

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use haft_contract::{CancellationToken, DynTool};
use serde_json::{Map, Value};
use tokio::{task::JoinSet, time::timeout};

pub(crate) use client::Client;
pub use config::SkippedServer;
pub use result::text_of;

use self::{
    client::Greeting,
    config::{Entry, TransportKind},
    definition::{Defaults, Definition},
    tool::ServerTool,
};
use crate::{Environment, ServerLink, event::Events};

/// How long a server may take to be connected, in milliseconds.
const CONNECT: u32 = 30_000;
/// How long a call may take where no one says, in milliseconds: more than a day.
const CALL: u32 = 100_000_000;
/// The longest result, in tokens…
const RESULT_TOKENS: u32 = 25_000;
/// …of about so many characters each.
const TOKEN: usize = 4;

/// The servers of a session.
#[derive(Default)]
pub(super) struct Servers {
    state: Mutex<ServersState>,
}

#[derive(Default)]
struct ServersState {
    servers: Vec<Server>,
    skipped: Vec<SkippedServer>,
    /// They are connected, or are being connected: it is too late for others.
    begun: bool,
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
    /// `pending`, `connected` or `failed`.
    pub status: &'static str,
    /// Why it failed.
    pub error: Option<String>,
    /// Its entry, as it was written.
    pub config: Value,
    /// What it says of itself, once it is connected.
    pub info: Option<Value>,
    /// Its tools as it lists them, once it is connected.
    pub tools: Option<Vec<Value>>,
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

struct Server {
    entry: Entry,
    /// It was named by a request that sets servers, which the next one replaces.
    by_request: bool,
    status: Status,
}

enum Status {
    Pending,
    Failed(String),
    Connected(Connected),
}

struct Connected {
    client: Arc<Client>,
    info: Value,
    /// The name in our pool, the server's own, and what it says of the tool.
    tools: Vec<(String, String, Value)>,
}

impl Servers {
    /// Those of `--mcp-config`.
    pub(super) fn read(given: &[String], cwd: &Path) -> anyhow::Result<Self> {
        let servers = Self::default();
        for read in config::read(given, cwd)? {
            servers.state().take(read, false);
        }
        Ok(servers)
    }

    /// Adds servers of a weaker origin: one of a name that is there already is passed over.
    pub(super) fn add(&self, servers: &Map<String, Value>, skipped: Vec<SkippedServer>) {
        let mut state = self.state();
        for read in config::entries(servers) {
            let is_taken = matches!(&read, Ok(entry) if state.find(&entry.name).is_some());
            if !is_taken {
                state.take(read, false);
            }
        }
        state.skipped.extend(skipped);
    }

    /// Adds servers that the other end runs, by their names.
    pub(super) fn add_sdk(&self, names: &[String]) -> Result<(), String> {
        let mut state = self.state();
        let new = names.iter().filter(|name| state.find(name).is_none());
        let new: Vec<&String> = new.collect();
        if state.begun && !new.is_empty() {
            return Err(TOO_LATE.to_owned());
        }
        for name in new {
            state.take(Ok(config::sdk(name)), false);
        }
        Ok(())
    }

    /// Puts these in the place of those that such a request named before.
    pub(super) fn set(&self, servers: &Map<String, Value>) -> Result<ServerChanges, String> {
        let mut state = self.state();
        if state.begun {
            return Err(TOO_LATE.to_owned());
        }
        let before = state.by_request();
        state.servers.retain(|server| !server.by_request);
        let mut errors = Vec::new();
        for read in config::entries(servers) {
            match read {
                Ok(entry) => state.take(Ok(entry), true),
                Err(skipped) => {
                    errors.push((skipped.name, skipped.message));
                }
            }
        }
        let now = state.by_request();
        let but = |all: &[String], others: &[String]| -> Vec<String> {
            let new = all.iter().filter(|name| !others.contains(name));
            new.cloned().collect()
        };
        Ok(ServerChanges {
            added: but(&now, &before),
            removed: but(&before, &now),
            errors,
        })
    }

    /// Connects them all, and gives their tools. `link`: the way to the other side, if there is one;
    /// `until`: who waits no longer. What a server keeps on disk goes to `folder`.
    pub(super) async fn connect(
        &self,
        link: Option<&Arc<dyn ServerLink>>,
        events: &Arc<Events>,
        environment: &Environment,
        folder: &Path,
        until: &CancellationToken,
    ) -> anyhow::Result<Vec<Arc<dyn DynTool>>> {
        let above_zero = |name: &str, otherwise: u32| -> anyhow::Result<u32> {
            // 0 is as good as nothing.
            let given = environment.number(name)?.filter(|given| *given > 0);
            Ok(given.unwrap_or(otherwise))
        };
        let limit = Duration::from_millis(above_zero("MCP_TIMEOUT", CONNECT)?.into());
        let call = Duration::from_millis(above_zero("MCP_TOOL_TIMEOUT", CALL)?.into());
        let tokens = above_zero("MAX_MCP_OUTPUT_TOKENS", RESULT_TOKENS)?;
        let result_cap = usize::try_from(tokens)?.saturating_mul(TOKEN);

        let mut greetings = JoinSet::new();
        for (at, entry) in self.begin().into_iter().enumerate() {
            match (entry.kind, link) {
                (TransportKind::Sdk, Some(link)) => {
                    let client = Arc::new(Client::new(&entry.name, link, events));
                    greetings.spawn(async move {
                        let greeting = timeout(limit, client.greet()).await;
                        let greeting = greeting.unwrap_or_else(|_| {
                            Err(format!("it did not answer within {limit:?} (MCP_TIMEOUT)"))
                        });
                        (at, client, greeting)
                    });
                }
                (TransportKind::Sdk, None) => self.failed(
                    at,
                    "a server of type sdk is run by a program at the other end, and there is none",
                ),
                (TransportKind::External, _) => self.failed(
                    at,
                    "only servers of type sdk can be connected here; this one is not started",
                ),
            }
        }
        let mut tools: Vec<Arc<dyn DynTool>> = Vec::new();
        loop {
            let (at, client, greeting) = tokio::select! {
                next = greetings.join_next() => match next {
                    None => break,
                    Some(greeted) => greeted?,
                },
                () = until.cancelled() => {
                    greetings.shutdown().await;
                    self.give_up();
                    break;
                }
            };
            match greeting {
                Err(why) => self.failed(at, &why),
                Ok(greeting) => {
                    let defaults = Defaults {
                        result_cap,
                        timeout: self.timeout(at).unwrap_or(call),
                    };
                    tools.extend(self.connected(at, client, greeting, defaults, folder));
                }
            }
        }
        Ok(tools)
    }

    /// The entries to be connected; from now on it is too late for others.
    fn begin(&self) -> Vec<Entry> {
        let mut state = self.state();
        state.begun = true;
        state
            .servers
            .iter()
            .map(|server| server.entry.clone())
            .collect()
    }

    fn timeout(&self, at: usize) -> Option<Duration> {
        self.state().servers[at].entry.timeout
    }

    fn failed(&self, at: usize, why: &str) {
        self.state().servers[at].status = Status::Failed(why.to_owned());
    }

    /// No one waits for the rest.
    fn give_up(&self) {
        for server in &mut self.state().servers {
            if matches!(server.status, Status::Pending) {
                server.status = Status::Failed("interrupted while it was connected".to_owned());
            }
        }
    }

    fn connected(
        &self,
        at: usize,
        client: Arc<Client>,
        greeting: Greeting,
        defaults: Defaults,
        folder: &Path,
    ) -> Vec<Arc<dyn DynTool>> {
        let (mut listed, mut tools) = (Vec::new(), Vec::<Arc<dyn DynTool>>::new());
        for tool in greeting.tools {
            let Some(definition) = Definition::new(client.server(), &tool, defaults) else {
                continue;
            };
            listed.push((
                definition.spec.name.clone(),
                definition.called.clone(),
                tool,
            ));
            tools.push(Arc::new(ServerTool {
                definition,
                client: Arc::clone(&client),
                folder: folder.to_path_buf(),
            }));
        }
        self.state().servers[at].status = Status::Connected(Connected {
            client,
            info: greeting.info,
            tools: listed,
        });
        tools
    }

    /// Whom to ask in order to call a tool by its name in our pool, and the server's name for it; or
    /// why it cannot be called.
    pub(super) fn find(&self, name: &str) -> Result<(Arc<Client>, String), String> {
        let state = self.state();
        let mut others = Vec::new();
        for server in &state.servers {
            match &server.status {
                Status::Connected(connected) => {
                    for (own, called, _) in &connected.tools {
                        if own == name {
                            return Ok((Arc::clone(&connected.client), called.clone()));
                        }
                        others.push(own.clone());
                    }
                }
                Status::Failed(why) => {
                    others.push(format!("(server {}: {why})", server.entry.name));
                }
                Status::Pending => {}
            }
        }
        Err(match others.as_slice() {
            [] => format!("{name} is not available: there is no MCP server"),
            others => format!("{name} is not available. There are: {}", others.join(", ")),
        })
    }

    /// Is there a server of this name?
    pub(super) fn has(&self, name: &str) -> bool {
        self.state().find(name).is_some()
    }

    /// What went wrong, for people.
    pub(super) fn problems(&self) -> Vec<String> {
        let state = self.state();
        let failed = state
            .servers
            .iter()
            .filter_map(|server| match &server.status {
                Status::Failed(why) => Some(format!("MCP server {}: {why}", server.entry.name)),
                Status::Pending | Status::Connected(_) => None,
            });
        let skipped = state
            .skipped
            .iter()
            .map(|one| format!("MCP server {} is left out: {}", one.name, one.message));
        failed.chain(skipped).collect()
    }

    /// What is known of them.
    pub(super) fn list(&self) -> ServerList {
        let state = self.state();
        let servers = state.servers.iter().map(|server| {
            let mut details = ServerDetails {
                name: server.entry.name.clone(),
                status: server.status.name(),
                config: server.entry.config.clone(),
                ..ServerDetails::default()
            };
            match &server.status {
                Status::Pending => {}
                Status::Failed(why) => details.error = Some(why.clone()),
                Status::Connected(connected) => {
                    details.info = Some(connected.info.clone());
                    let tools = connected.tools.iter();
                    details.tools = Some(tools.map(|(_, _, listed)| listed.clone()).collect());
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

const TOO_LATE: &str = "MCP servers can be given before the first message only";

impl ServersState {
    fn find(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.entry.name == name)
    }

    /// The names of those that a request has set.
    fn by_request(&self) -> Vec<String> {
        let set = self.servers.iter().filter(|server| server.by_request);
        set.map(|server| server.entry.name.clone()).collect()
    }

    fn take(&mut self, read: Result<Entry, SkippedServer>, by_request: bool) {
        match read {
            Err(skipped) => self.skipped.push(skipped),
            Ok(entry) => {
                self.servers
                    .retain(|server| server.entry.name != entry.name);
                self.servers.push(Server {
                    entry,
                    by_request,
                    status: Status::Pending,
                });
            }
        }
    }
}

impl Status {
    fn name(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Failed(_) => "failed",
            Self::Connected(_) => "connected",
        }
    }
}
