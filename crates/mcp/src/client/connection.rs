//! A connection to a server with an agreed revision, and the requests that can be sent over it.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{
    handler::InputRequests,
    transport::{OpenTransport, TransportControl},
};
use crate::{
    frames::MAX_FRAME,
    message::{RpcError, code},
    peer::{Peer, PeerError, RequestTimeout},
    revision::{Revision, meta},
};

/// The maximum number of pages of a list; a server with more pages is assumed to send them without
/// end.
const MAX_PAGES: usize = 100;
/// The maximum number of entries of a list.
const MAX_ENTRIES: usize = 10_000;
/// The maximum size of a list in bytes: the length of its texts plus an estimate for the rest. A
/// single page may be as large.
const MAX_LIST_BYTES: usize = MAX_FRAME;
/// The maximum number of times that a server may request input before it answers (2026-07-28).
const MAX_ROUNDS: usize = 10;
/// The maximum number of addresses to visit for one call.
const MAX_VISITS: usize = 5;
/// The maximum number of attempts to request a list if transient errors occur.
const LIST_TRIES: u32 = 3;
/// The time a server may take to answer the revision query before `initialize` is sent too.
const PROBE: Duration = Duration::from_secs(3);

/// The way a connection starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandshakeKind {
    /// Query the supported revisions first.
    Newest,
    /// Send `initialize`: the server is known not to support newer revisions.
    Initialize,
}

/// A connection to a server.
pub struct Connection {
    peer: Peer,
    control: Arc<dyn TransportControl>,
    revision: Revision,
    server_info: ServerInfo,
    /// The `_meta` of each request in the stateless revision.
    meta: Option<Map<String, Value>>,
    inputs: Arc<dyn InputRequests>,
    is_closing: AtomicBool,
}

/// A server's description of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerInfo {
    /// Its name and version.
    pub info: Value,
    /// Its capabilities.
    pub capabilities: Value,
    /// Its instructions for the model.
    pub instructions: Option<String>,
}

impl ServerInfo {
    /// Returns whether the server has a capability. A server that does not list its capabilities
    /// may have any.
    pub fn has(&self, capability: &str) -> bool {
        match &self.capabilities {
            Value::Object(capabilities) => capabilities.contains_key(capability),
            _ => true,
        }
    }
}

/// The reason why the connection failed.
#[derive(Debug)]
pub(crate) struct HandshakeError {
    pub(crate) error: PeerError,
    /// True if the server exited when it was queried for revisions: it should be started again and
    /// sent `initialize`.
    pub(crate) is_old: bool,
}

impl Connection {
    /// Agrees with the server on a revision. `capabilities` are those of the client.
    pub(crate) async fn handshake(
        opened: OpenTransport,
        greeting: HandshakeKind,
        capabilities: &Value,
        inputs: Arc<dyn InputRequests>,
    ) -> Result<Self, HandshakeError> {
        let OpenTransport { peer, control } = opened;
        let mut closing = CloseGuard(Some(Arc::clone(&control)));
        let mut connection = Self {
            peer,
            control,
            revision: Revision::NEWEST_WITH_INITIALIZE,
            server_info: ServerInfo::default(),
            meta: None,
            inputs,
            is_closing: AtomicBool::new(true),
        };
        let greeted = match greeting {
            HandshakeKind::Newest => connection.negotiate(capabilities).await,
            HandshakeKind::Initialize => connection.initialize(capabilities).await,
        };
        if let Err(error) = greeted {
            let is_old = greeting == HandshakeKind::Newest && matches!(error, PeerError::Closed(_));
            return Err(HandshakeError { error, is_old });
        }
        connection.finish_handshake(&mut closing);
        Ok(connection)
    }

    fn finish_handshake(&self, closing: &mut CloseGuard) {
        closing.0 = None;
        Arc::clone(&self.control).on_handshake_finished();
        self.is_closing.store(false, Ordering::Relaxed);
    }

    /// Queries the revisions that the server supports, and sends `initialize` if it supports no
    /// newer one. If the server does not answer, it may only be slow to start. Then both requests
    /// are pending, and the first successful answer applies.
    async fn negotiate(&mut self, capabilities: &Value) -> Result<(), PeerError> {
        let params = json!({"_meta": own_meta(Revision::NEWEST, capabilities)});
        self.control.on_revision_agreed(Revision::NEWEST);
        let peer = self.peer.clone();
        let mut asking = Box::pin(peer.request("server/discover", params));
        let mut greeting = match timeout(PROBE, &mut asking).await {
            Ok(Err(error @ (PeerError::Closed(_) | PeerError::Unauthorized { .. }))) => {
                return Err(error);
            }
            Ok(asked) => match modern(self.retry_with_revision(asked, capabilities).await) {
                Some(found) => return self.accept_modern(found, capabilities),
                None => {
                    self.control
                        .on_revision_agreed(Revision::NEWEST_WITH_INITIALIZE);
                    return self.initialize(capabilities).await;
                }
            },
            Err(_) => Box::pin(peer.request("initialize", initialize_params(capabilities))),
        };
        self.control
            .on_revision_agreed(Revision::NEWEST_WITH_INITIALIZE);
        tokio::select! {
            asked = &mut asking => match modern(asked) {
                Some(found) => self.accept_modern(found, capabilities),
                None => {
                    let answer = greeting.await?;
                    self.accept_initialize(&answer)
                }
            },
            greeted = &mut greeting => match greeted {
                Ok(answer) => self.accept_initialize(&answer),
                Err(refused) => match modern(asking.await) {
                    Some(found) => self.accept_modern(found, capabilities),
                    None => Err(refused),
                },
            },
        }
    }

    /// Repeats the query in another revision. If a server rejects the revision of the query, its
    /// error may name one that both ends support.
    async fn retry_with_revision(
        &self,
        asked: Result<Value, PeerError>,
        capabilities: &Value,
    ) -> Result<Value, PeerError> {
        let Err(PeerError::Answered(error)) = &asked else {
            return asked;
        };
        let data = error.data.as_ref();
        let named = data
            .map(|data| texts(&data["supported"]))
            .unwrap_or_default();
        let known = Revision::newest_of(named.iter().map(String::as_str));
        match known.filter(|known| !known.has_initialize()) {
            Some(known) if error.code == code::UNSUPPORTED_REVISION => {
                let params = json!({"_meta": own_meta(known, capabilities)});
                self.control.on_revision_agreed(known);
                self.peer.request("server/discover", params).await
            }
            _ => asked,
        }
    }

    fn accept_modern(
        &mut self,
        (revision, answer): (Revision, Value),
        capabilities: &Value,
    ) -> Result<(), PeerError> {
        self.revision = revision;
        self.control.on_revision_agreed(revision);
        self.meta = Some(own_meta(revision, capabilities));
        self.server_info = ServerInfo {
            info: answer["_meta"][meta::SERVER_INFO].clone(),
            capabilities: answer["capabilities"].clone(),
            instructions: answer["instructions"].as_str().map(str::to_owned),
        };
        Ok(())
    }

    async fn initialize(&mut self, capabilities: &Value) -> Result<(), PeerError> {
        let answer = self
            .peer
            .request("initialize", initialize_params(capabilities))
            .await?;
        self.accept_initialize(&answer)
    }

    fn accept_initialize(&mut self, answer: &Value) -> Result<(), PeerError> {
        let date = answer["protocolVersion"].as_str().unwrap_or_default();
        // A revision without `initialize` is not a valid answer to `initialize`.
        let revision = Revision::parse(date).filter(|one| one.has_initialize());
        self.revision = revision.ok_or_else(|| {
            let known: Vec<&str> = Revision::ALL.iter().map(|one| one.as_str()).collect();
            PeerError::Transport(format!(
                "it uses protocol revision {date:?}, which haft does not support (supported: {})",
                known.join(", ")
            ))
        })?;
        self.control.on_revision_agreed(self.revision);
        self.server_info = ServerInfo {
            info: answer["serverInfo"].clone(),
            capabilities: answer["capabilities"].clone(),
            instructions: answer["instructions"].as_str().map(str::to_owned),
        };
        self.peer.notify("notifications/initialized", Value::Null)
    }

    /// Returns the server's description of itself.
    pub fn server_info(&self) -> &ServerInfo {
        &self.server_info
    }

    /// Returns the agreed revision.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Waits until the connection is closed, and returns the reason.
    pub async fn closed(&self) -> String {
        self.peer.closed().await
    }

    /// Returns whether the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.peer.is_closed()
    }

    /// Closes the connection.
    pub async fn close(&self) {
        if !self.is_closing.swap(true, Ordering::Relaxed) {
            self.control.close().await;
            self.peer.close("it was ended");
        }
    }

    /// Calls a tool by the server's name for it. If the future is dropped, the call is cancelled on
    /// the server.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: &Value,
        patience: RequestTimeout,
        on_progress: impl FnMut(Value) + Send,
    ) -> Result<Value, PeerError> {
        let params = json!({
            "name": tool,
            "arguments": arguments,
            "_meta": {"progressToken": null},
        });
        self.ask("tools/call", params, patience, on_progress).await
    }

    /// Returns the tools.
    pub async fn list_tools(&self, patience: RequestTimeout) -> Result<Vec<Value>, PeerError> {
        let listed = self.list("tools", "tools/list", "tools", patience).await?;
        Ok(self.control.usable_tools(listed))
    }

    /// Returns the prompts.
    pub async fn list_prompts(&self, patience: RequestTimeout) -> Result<Vec<Value>, PeerError> {
        self.list("prompts", "prompts/list", "prompts", patience)
            .await
    }

    /// Returns the resources.
    pub async fn list_resources(&self, patience: RequestTimeout) -> Result<Vec<Value>, PeerError> {
        self.list("resources", "resources/list", "resources", patience)
            .await
    }

    /// Returns the resource templates.
    pub async fn list_templates(&self, patience: RequestTimeout) -> Result<Vec<Value>, PeerError> {
        let (method, key) = ("resources/templates/list", "resourceTemplates");
        let listed = self.list("resources", method, key, patience).await;
        match listed {
            // Some servers with resources have no templates.
            Err(PeerError::Answered(error)) if error.code == code::METHOD_NOT_FOUND => {
                Ok(Vec::new())
            }
            listed => listed,
        }
    }

    /// Reads a resource.
    pub async fn read_resource(
        &self,
        uri: &str,
        patience: RequestTimeout,
    ) -> Result<Value, PeerError> {
        self.ask("resources/read", json!({"uri": uri}), patience, |_| {})
            .await
    }

    /// Returns the messages of a prompt.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        patience: RequestTimeout,
    ) -> Result<Value, PeerError> {
        let params = json!({"name": name, "arguments": arguments});
        self.ask("prompts/get", params, patience, |_| {}).await
    }

    /// Checks whether the server responds.
    pub async fn ping(&self, patience: RequestTimeout) -> Result<(), PeerError> {
        if self.revision.has_initialize() {
            self.request("ping", json!({}), patience).await?;
        }
        Ok(())
    }

    /// Notifies the server that the client's roots have changed.
    pub fn roots_changed(&self) {
        if self.revision.has_initialize() {
            let _ = self
                .peer
                .notify("notifications/roots/list_changed", Value::Null); // it may have ended
        }
    }

    /// Subscribes to notifications of changes. In the stateless revision this is a request whose
    /// answer comes only when the subscription ends.
    pub(crate) async fn listen(&self) -> Result<(), PeerError> {
        if self.revision.has_initialize() {
            return Ok(());
        }
        let wanted = json!({
            "notifications": {
                "toolsListChanged": true,
                "promptsListChanged": true,
                "resourcesListChanged": true,
            }
        });
        self.request("subscriptions/listen", wanted, RequestTimeout::default())
            .await?;
        Ok(())
    }

    /// Returns the entries of a list, page by page. The list is empty if the server lacks the
    /// capability.
    async fn list(
        &self,
        capability: &str,
        method: &str,
        key: &str,
        patience: RequestTimeout,
    ) -> Result<Vec<Value>, PeerError> {
        let mut entries = Vec::new();
        if !self.server_info.has(capability) {
            return Ok(entries);
        }
        let (mut params, mut seen) = (json!({}), HashSet::new());
        let mut bytes = 0;
        for _ in 0..MAX_PAGES {
            let mut page = self.list_page(method, params, patience).await?;
            if let Value::Array(listed) = page[key].take() {
                bytes += listed.iter().map(size_of).sum::<usize>();
                if bytes > MAX_LIST_BYTES {
                    let why = format!("its list of {key} is longer than {MAX_LIST_BYTES} bytes");
                    return Err(PeerError::Transport(why));
                }
                entries.extend(listed);
            }
            match page["nextCursor"].take() {
                Value::String(cursor)
                    if !cursor.is_empty()
                        && entries.len() < MAX_ENTRIES
                        && seen.insert(cursor.clone()) =>
                {
                    params = json!({"cursor": cursor});
                }
                _ => break,
            }
        }
        entries.truncate(MAX_ENTRIES);
        Ok(entries)
    }

    async fn list_page(
        &self,
        method: &str,
        params: Value,
        patience: RequestTimeout,
    ) -> Result<Value, PeerError> {
        let mut tried = 1;
        loop {
            let failed = match self.request(method, params.clone(), patience).await {
                Err(error @ PeerError::Transport(_)) if tried < LIST_TRIES => error,
                answered => return answered,
            };
            tracing::debug!(method, %failed, "a list is requested again");
            tokio::time::sleep(Duration::from_millis(200) * tried).await;
            tried += 1;
        }
    }

    /// Sends a request for which the server may first request input (2026-07-28).
    async fn ask(
        &self,
        method: &str,
        mut params: Value,
        patience: RequestTimeout,
        mut on_progress: impl FnMut(Value) + Send,
    ) -> Result<Value, PeerError> {
        for _ in 0..MAX_ROUNDS {
            let asked = self.with_meta(params.clone());
            let answered = self
                .peer
                .request_within(method, asked, patience, &mut on_progress)
                .await;
            let answer = match answered {
                Err(PeerError::Answered(error)) if error.code == code::URL_ELICITATION_REQUIRED => {
                    if !self.visit_required_urls(&error).await {
                        return Err(PeerError::Answered(error));
                    }
                    continue;
                }
                answered => answered?,
            };
            if answer["resultType"] != "input_required" {
                return Ok(answer);
            }
            let mut responses = Map::new();
            for (key, wanted) in answer["inputRequests"].as_object().into_iter().flatten() {
                let wanted_method = wanted["method"].as_str().unwrap_or_default();
                let response = self
                    .inputs
                    .answer(wanted_method, wanted["params"].clone())
                    .await;
                responses.insert(key.clone(), response.map_err(PeerError::Answered)?);
            }
            if let Some(params) = params.as_object_mut() {
                params.insert("inputResponses".to_owned(), Value::Object(responses));
                match answer.get("requestState") {
                    Some(state) => params.insert("requestState".to_owned(), state.clone()),
                    // The state of an earlier round is invalid now.
                    None => params.shift_remove("requestState"),
                };
            }
        }
        let why = format!("it requested more input {MAX_ROUNDS} times without answering");
        Err(PeerError::Transport(why))
    }

    /// Asks the user to visit the addresses that a server requires to be visited first. Returns
    /// whether the user agreed to all of them.
    async fn visit_required_urls(&self, refused: &RpcError) -> bool {
        let data = refused.data.as_ref();
        let wanted = data.and_then(|data| data["elicitations"].as_array());
        let Some(wanted) = wanted.filter(|wanted| (1..=MAX_VISITS).contains(&wanted.len())) else {
            return false;
        };
        for one in wanted {
            let Value::Object(mut params) = one.clone() else {
                return false;
            };
            params.insert("mode".to_owned(), json!("url"));
            let answer = self
                .inputs
                .answer("elicitation/create", params.into())
                .await;
            if !answer.is_ok_and(|answer| answer["action"] == "accept") {
                return false;
            }
        }
        true
    }

    async fn request(
        &self,
        method: &str,
        params: Value,
        patience: RequestTimeout,
    ) -> Result<Value, PeerError> {
        let params = self.with_meta(params);
        self.peer
            .request_within(method, params, patience, |_| {})
            .await
    }

    fn with_meta(&self, mut params: Value) -> Value {
        if let (Some(meta), Some(params)) = (&self.meta, params.as_object_mut()) {
            let own = params.entry("_meta").or_insert_with(|| json!({}));
            if let Some(own) = own.as_object_mut() {
                own.extend(meta.clone());
            }
        }
        params
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.is_closing.swap(true, Ordering::Relaxed) {
            close_later(&self.control);
        }
    }
}

/// Closes the transport on drop, unless the handshake has finished: its future may be dropped.
struct CloseGuard(Option<Arc<dyn TransportControl>>);

impl Drop for CloseGuard {
    fn drop(&mut self) {
        if let Some(control) = &self.0 {
            close_later(control);
        }
    }
}

/// Closes a transport in the background. Without a tokio runtime the process is exiting, and its
/// servers exit with it.
fn close_later(control: &Arc<dyn TransportControl>) {
    let control = Arc::clone(control);
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move { control.close().await });
    }
}

/// Returns the newest revision without `initialize` that the server supports, with the server's
/// answer.
fn modern(asked: Result<Value, PeerError>) -> Option<(Revision, Value)> {
    let answer = asked.ok()?;
    let dates = texts(&answer["supportedVersions"]);
    let newest = Revision::newest_of(dates.iter().map(String::as_str))?;
    (!newest.has_initialize()).then_some((newest, answer))
}

fn initialize_params(capabilities: &Value) -> Value {
    json!({
        "protocolVersion": Revision::NEWEST_WITH_INITIALIZE.as_str(),
        "capabilities": capabilities,
        "clientInfo": own_info(),
    })
}

fn own_info() -> Value {
    json!({"name": "haft", "version": env!("CARGO_PKG_VERSION")})
}

fn own_meta(revision: Revision, capabilities: &Value) -> Map<String, Value> {
    let pairs = [
        (meta::PROTOCOL_VERSION, json!(revision.as_str())),
        (meta::CLIENT_INFO, own_info()),
        (meta::CLIENT_CAPABILITIES, capabilities.clone()),
    ];
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Estimates the size of a value in bytes.
fn size_of(value: &Value) -> usize {
    const PART: usize = 16;
    PART + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size_of).sum(),
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| name.len() + size_of(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
