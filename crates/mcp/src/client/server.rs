//! One server: connects it, reconnects it after failures, and records what it offers.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use haft_contract::{CancellationToken, DynTool};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{
    ApprovedTools, ClientHost, ClientOptions, Connection, ServerEntry, ServerKind, ServerLink,
    cache::{self, CachedToolList},
    connection::HandshakeKind,
    definition::{ServerToolDefinition, ToolDefaults},
    handler::{ClientHandler, ListChanges},
    server_log::ServerLog,
    tool::ServerTool,
};
use crate::{
    peer::{PeerError, RequestTimeout},
    revision::Revision,
};

/// The maximum number of restarts in a row.
const MAX_RESTARTS: u32 = 5;
/// The first pause before a restart; each following pause is twice as long.
const FIRST_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The duration of a connection after which the number of restarts is counted from zero again.
const LIVED: Duration = Duration::from_secs(60);
/// The time to collect change notifications before a list is requested again.
const SETTLED: Duration = Duration::from_millis(50);

/// The state that all servers of a session share.
pub(super) struct ClientShared {
    pub(super) options: ClientOptions,
    pub(super) host: Arc<dyn ClientHost>,
    pub(super) link: Option<Arc<dyn ServerLink>>,
    /// Counts changes of what servers offer.
    pub(super) changes: watch::Sender<u64>,
    /// Cancelled when the session ends.
    pub(super) ended: CancellationToken,
}

/// The status of a server.
#[derive(Clone)]
pub(super) enum ServerStatus {
    /// It is being connected.
    Pending,
    Connected(Arc<Connection>),
    Failed(String),
    /// The user must log in first.
    NeedsAuth {
        why: String,
        challenge: String,
    },
    Disabled,
}

impl ServerStatus {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connected(_) => "connected",
            Self::Failed(_) => "failed",
            Self::NeedsAuth { .. } => "needs-auth",
            Self::Disabled => "disabled",
        }
    }

    fn is_pending(&self) -> bool {
        matches!(self, Self::Pending)
    }
}

/// A server of a session.
pub struct ServerHandle {
    entry: ServerEntry,
    /// True if it was added by a request that sets servers; the next such request replaces it.
    pub(super) by_request: bool,
    status: watch::Sender<ServerStatus>,
    offered: Mutex<OfferedItems>,
    version: AtomicU64,
    shared: OnceLock<Arc<ClientShared>>,
    stop: Mutex<CancellationToken>,
    log: Arc<ServerLog>,
}

/// A server that has just been connected.
struct ConnectedServer {
    connection: Arc<Connection>,
    news: watch::Receiver<ListChanges>,
    /// Its tools, approved or not.
    tools: Vec<Value>,
    prompts: Vec<Value>,
}

/// The tools and prompts that a server offers.
#[derive(Default, Clone)]
struct OfferedItems {
    tools: Vec<Value>,
    /// The description of unapproved changes.
    unapproved: Option<String>,
    prompts: Vec<Value>,
}

impl ServerHandle {
    pub(super) fn new(entry: ServerEntry, by_request: bool, is_disabled: bool) -> Self {
        let status = match is_disabled {
            true => ServerStatus::Disabled,
            false => ServerStatus::Pending,
        };
        Self {
            entry,
            by_request,
            status: watch::Sender::new(status),
            offered: Mutex::default(),
            version: AtomicU64::new(0),
            shared: OnceLock::new(),
            stop: Mutex::default(),
            log: Arc::default(),
        }
    }

    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// Returns the entry of the server.
    pub fn entry(&self) -> &ServerEntry {
        &self.entry
    }

    /// Waits for the connection and returns it. The error says why it failed.
    pub async fn connected(&self) -> Result<Arc<Connection>, String> {
        let mut status = self.status.subscribe();
        let limit = self
            .shared
            .get()
            .map_or(super::options::CONNECT, |shared| shared.options.connect);
        // A closed connection has this status until the supervisor notices it.
        let is_settled = |status: &ServerStatus| match status {
            ServerStatus::Pending => false,
            ServerStatus::Connected(connection) => !connection.is_closed(),
            _ => true,
        };
        let settled = timeout(limit, status.wait_for(is_settled)).await;
        let Ok(Ok(status)) = settled else {
            return Err("it is not connected yet; try again later".to_owned());
        };
        match &*status {
            ServerStatus::Connected(connection) => Ok(Arc::clone(connection)),
            ServerStatus::Failed(why) => Err(format!("it is not connected: {why}")),
            ServerStatus::NeedsAuth { why, .. } => Err(format!(
                "it is not connected: {why}; the user can log in with `haft mcp login {}`",
                self.name()
            )),
            ServerStatus::Disabled => Err("it is disabled".to_owned()),
            ServerStatus::Pending => Err("it is not connected yet; try again later".to_owned()),
        }
    }

    /// Returns the `WWW-Authenticate` header if the server requires authorization.
    pub fn challenge(&self) -> Option<String> {
        match &*self.status.borrow() {
            ServerStatus::NeedsAuth { challenge, .. } => Some(challenge.clone()),
            _ => None,
        }
    }

    /// Returns the current connection, if any.
    pub(super) fn connection(&self) -> Option<Arc<Connection>> {
        match &*self.status.borrow() {
            ServerStatus::Connected(connection) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    pub(super) fn status(&self) -> ServerStatus {
        self.status.borrow().clone()
    }

    /// Waits until the server is connected or has failed.
    pub(super) async fn settled(&self) {
        let mut status = self.status.subscribe();
        let _ = status.wait_for(|status| !status.is_pending()).await; // `self` owns the sender
    }

    /// Shows a notice about the server to the user.
    pub(super) fn notice(&self, text: &str) {
        if let Some(shared) = self.shared.get() {
            shared.host.notice(text);
        }
    }

    /// Returns a number that changes when the offered tools or prompts change.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the listed tools; until the server is connected, the cached ones.
    pub(super) fn listed_tools(&self) -> Vec<Value> {
        self.offered().tools.clone()
    }

    /// Returns the description of unapproved changes.
    pub(super) fn unapproved(&self) -> Option<String> {
        self.offered().unapproved.clone()
    }

    /// Returns the last output besides its answers.
    pub(super) fn log(&self) -> Vec<String> {
        self.log.lines()
    }

    /// Returns the listed prompts.
    pub(super) fn listed_prompts(&self) -> Vec<Value> {
        self.offered().prompts.clone()
    }

    /// Returns the tools for a pool. A server that failed or is disabled has none.
    pub(super) fn tools(self: &Arc<Self>) -> Vec<Arc<dyn DynTool>> {
        let Some(shared) = self.shared.get() else {
            return Vec::new();
        };
        if !matches!(
            &*self.status.borrow(),
            ServerStatus::Connected(_) | ServerStatus::Pending
        ) {
            return Vec::new();
        }
        let options = &shared.options;
        let timeout = self.entry.timeout.unwrap_or(options.call);
        let idle = match &self.entry.kind {
            ServerKind::Http(_) | ServerKind::Sse(_) | ServerKind::WebSocket(_) => {
                options.network_idle
            }
            ServerKind::Stdio { .. } | ServerKind::Sdk => options.idle,
        };
        let defaults = ToolDefaults {
            result_cap: options.result_cap,
            timeout,
            deferred: options.deferred && !self.entry.always_load,
        };
        let offered = self.offered();
        let definitions = offered
            .tools
            .iter()
            .filter_map(|tool| ServerToolDefinition::new(self.name(), tool, defaults));
        let tools = definitions.map(|definition| -> Arc<dyn DynTool> {
            Arc::new(ServerTool {
                definition,
                server: Arc::clone(self),
                folder: options.folder.clone(),
                // The engine enforces the overall limit as well.
                timeout: RequestTimeout {
                    whole: Some(timeout),
                    idle,
                },
            })
        });
        tools.collect()
    }

    /// Starts to connect the server. Needs a tokio runtime.
    pub(super) fn start(self: &Arc<Self>, shared: &Arc<ClientShared>) {
        let shared = Arc::clone(self.shared.get_or_init(|| Arc::clone(shared)));
        if let Some(kept) = self.cached_list(&shared) {
            *self.offered() = OfferedItems {
                tools: kept.tools,
                ..OfferedItems::default()
            };
            self.version.fetch_add(1, Ordering::AcqRel);
        }
        if matches!(&*self.status.borrow(), ServerStatus::Disabled) {
            return;
        }
        self.supervise_anew(shared);
    }

    fn supervise_anew(self: &Arc<Self>, shared: Arc<ClientShared>) {
        let stop = shared.ended.child_token();
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = stop.clone();
        let server = Arc::clone(self);
        haft_contract::spawn_boxed(async move {
            let ended = stop.clone();
            tokio::select! {
                biased;
                () = ended.cancelled() => {}
                () = server.supervise(&shared, &stop) => {}
            }
        });
    }

    /// Connects the server again, regardless of its current state.
    pub(super) async fn reconnect(self: &Arc<Self>) {
        self.halt(ServerStatus::Pending).await;
        if let Some(shared) = self.shared.get() {
            self.supervise_anew(Arc::clone(shared));
        }
    }

    /// Disables the server.
    pub(super) async fn disable(&self) {
        self.halt(ServerStatus::Disabled).await;
        self.changed();
    }

    async fn halt(&self, status: ServerStatus) {
        self.stop
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .cancel();
        if let ServerStatus::Connected(connection) = self.status.send_replace(status) {
            connection.close().await;
        }
    }

    /// Ends the server permanently.
    pub(super) async fn close(&self) {
        self.halt(ServerStatus::Disabled).await;
    }

    /// Sets the status, unless the server was halted; then `halt` sets it.
    fn set_status(&self, status: ServerStatus, stop: &CancellationToken) {
        self.status.send_if_modified(|is| {
            // `halt` cancels first and then replaces the status, which waits for this closure.
            let counts = !stop.is_cancelled();
            if counts {
                *is = status;
            }
            counts
        });
    }

    /// Connects the server, and connects it again whenever the connection is lost, until that has
    /// no prospect of success.
    async fn supervise(&self, shared: &Arc<ClientShared>, stop: &CancellationToken) {
        if let Some(approvals) = &shared.options.approvals
            && let Err(why) = approvals.may_start(&self.entry).await
        {
            self.failed(shared, &PeerError::Transport(why), stop);
            return;
        }
        let (mut failures, mut has_lived) = (0, false);
        loop {
            let attempt = timeout(shared.options.connect, self.connect(shared)).await;
            let attempt = attempt.unwrap_or_else(|_| {
                let limit = shared.options.connect;
                Err(PeerError::TimedOut(format!(
                    "it did not answer within {limit:?} (MCP_TIMEOUT)"
                )))
            });
            match attempt {
                Ok(greeted) => {
                    // Approval may ask the user, so it has no time limit.
                    let (connection, news) = self.publish_items(shared, greeted, stop).await;
                    let began = Instant::now();
                    let why = self.supervise_connection(shared, &connection, news).await;
                    if began.elapsed() > LIVED {
                        failures = 0;
                    }
                    if failures == 0 {
                        shared.host.notice(&format!(
                            "MCP server {}: {why}; haft reconnected to it",
                            self.name()
                        ));
                    }
                    has_lived = true;
                    self.set_status(ServerStatus::Pending, stop);
                }
                Err(error) => {
                    let is_over = failures >= MAX_RESTARTS || !is_passing(&error);
                    // Until its first connection, no caller should wait for further attempts.
                    if is_over || !has_lived {
                        self.failed(shared, &error, stop);
                    }
                    if is_over {
                        return;
                    }
                }
            }
            sleep(FIRST_RETRY_PAUSE * 2_u32.pow(failures.min(8))).await;
            failures += 1;
        }
    }

    /// Records and reports a failure, once.
    fn failed(&self, shared: &ClientShared, error: &PeerError, stop: &CancellationToken) {
        if self.status.borrow().is_pending() {
            shared
                .host
                .warn(&format!("MCP server {}: {error}", self.name()));
            let status = match error {
                PeerError::Unauthorized { challenge, .. } => ServerStatus::NeedsAuth {
                    why: error.to_string(),
                    challenge: challenge.clone(),
                },
                error => ServerStatus::Failed(error.to_string()),
            };
            self.set_status(status, stop);
            self.changed();
        }
    }

    /// Handles a connection until it is closed, and returns the reason.
    async fn supervise_connection(
        &self,
        shared: &Arc<ClientShared>,
        connection: &Arc<Connection>,
        mut news: watch::Receiver<ListChanges>,
    ) -> String {
        let listening = connection.listen();
        tokio::pin!(listening);
        let mut is_listening = true;
        let mut seen = ListChanges::default();
        loop {
            tokio::select! {
                why = connection.closed() => return why,
                _ = &mut listening, if is_listening => is_listening = false,
                Ok(()) = news.changed() => {
                    // Changes often come in groups.
                    sleep(SETTLED).await;
                    let now = *news.borrow_and_update();
                    // Approval may ask the user; the connection may be lost in the meantime.
                    tokio::select! {
                        why = connection.closed() => return why,
                        () = self.refresh(shared, connection, seen, now) => seen = now,
                    }
                }
            }
        }
    }

    /// Requests the changed lists again; if that fails, the old ones stay.
    async fn refresh(
        &self,
        shared: &Arc<ClientShared>,
        connection: &Connection,
        seen: ListChanges,
        now: ListChanges,
    ) {
        let limit = RequestTimeout::new(shared.options.connect);
        if now.tools != seen.tools {
            match connection.list_tools(limit).await {
                Ok(tools) => {
                    let approved = self.approved(shared, tools).await;
                    self.cache_list(shared, connection, &approved.tools);
                    {
                        let mut offered = self.offered();
                        offered.tools = approved.tools;
                        offered.unapproved = approved.unapproved;
                    }
                    self.changed();
                }
                Err(error) => {
                    tracing::warn!(server = self.name(), %error, "cannot list its tools; they stay unchanged")
                }
            }
        }
        if now.prompts != seen.prompts
            && let Ok(prompts) = connection.list_prompts(limit).await
        {
            self.offered().prompts = prompts;
            self.changed();
        }
    }

    /// Connects the server once and requests its lists.
    async fn connect(&self, shared: &Arc<ClientShared>) -> Result<ConnectedServer, PeerError> {
        let kept = self.cached_list(shared);
        let is_old = kept.is_some_and(|kept| {
            Revision::parse(&kept.revision).is_some_and(Revision::has_initialize)
        });
        let mut handshake = match &self.entry.kind {
            ServerKind::Sdk | ServerKind::Sse(_) => HandshakeKind::Initialize,
            _ if is_old => HandshakeKind::Initialize,
            _ => HandshakeKind::Newest,
        };
        let capabilities = capabilities(&*shared.host);
        let (connection, news) = loop {
            let (sender, news) = watch::channel(ListChanges::default());
            let (name, host) = (self.name(), &shared.host);
            let handler = Arc::new(ClientHandler::new(name, host, sender, &self.log));
            let opened = self.open(shared, &handler).await;
            let opened = opened.map_err(PeerError::Transport)?;
            self.log.set_stderr(opened.control.stderr_tail());
            match Connection::handshake(opened, handshake, &capabilities, handler).await {
                Ok(connection) => break (Arc::new(connection), news),
                Err(failed) if failed.is_old => handshake = HandshakeKind::Initialize,
                Err(failed) => return Err(failed.error),
            }
        };
        let limit = RequestTimeout::new(shared.options.connect);
        let tools = connection.list_tools(limit).await?;
        // Prompts are less important than tools, so they get less time.
        let limit = RequestTimeout::new(shared.options.connect / 3);
        let prompts = match connection.list_prompts(limit).await {
            Err(gone @ PeerError::Closed(_)) => return Err(gone),
            prompts => prompts.unwrap_or_default(),
        };
        Ok(ConnectedServer {
            connection,
            news,
            tools,
            prompts,
        })
    }

    /// Offers the approved tools of a new connection.
    async fn publish_items(
        &self,
        shared: &ClientShared,
        greeted: ConnectedServer,
        stop: &CancellationToken,
    ) -> (Arc<Connection>, watch::Receiver<ListChanges>) {
        let ConnectedServer {
            connection,
            news,
            tools,
            prompts,
        } = greeted;
        let approved = self.approved(shared, tools).await;
        self.cache_list(shared, &connection, &approved.tools);
        *self.offered() = OfferedItems {
            tools: approved.tools,
            unapproved: approved.unapproved,
            prompts,
        };
        self.set_status(ServerStatus::Connected(Arc::clone(&connection)), stop);
        self.changed();
        (connection, news)
    }

    async fn approved(&self, shared: &ClientShared, tools: Vec<Value>) -> ApprovedTools {
        match &shared.options.approvals {
            Some(approvals) => approvals.approved(&self.entry, tools).await,
            None => tools.into(),
        }
    }

    fn cached_list(&self, shared: &ClientShared) -> Option<CachedToolList> {
        cache::read(shared.options.cache.as_deref()?, &self.entry)
    }

    fn cache_list(&self, shared: &ClientShared, connection: &Connection, tools: &[Value]) {
        if let (Some(folder), false) = (&shared.options.cache, self.entry.kind == ServerKind::Sdk) {
            let kept = CachedToolList {
                revision: connection.revision().as_str().to_owned(),
                tools: tools.to_vec(),
            };
            cache::write(folder, &self.entry, &kept);
        }
    }

    fn changed(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
        if let Some(shared) = self.shared.get() {
            shared.changes.send_modify(|count| *count += 1);
        }
    }

    fn offered(&self) -> MutexGuard<'_, OfferedItems> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether another attempt may succeed.
fn is_passing(error: &PeerError) -> bool {
    match error {
        PeerError::Closed(_) | PeerError::TimedOut(_) | PeerError::Answered(_) => true,
        PeerError::Transport(_) | PeerError::Unauthorized { .. } => false,
    }
}

/// Returns the client capabilities.
fn capabilities(host: &dyn ClientHost) -> Value {
    let mut capabilities = json!({"roots": {"listChanged": true}});
    if host.can_elicit() {
        capabilities["elicitation"] = json!({"form": {}, "url": {}});
    }
    capabilities
}
