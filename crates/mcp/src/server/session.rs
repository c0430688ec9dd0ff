//! A session with one client.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_contract::{BoxFuture, CancellationToken};
use serde_json::{Map, Value, json};

use super::{
    client_requests::{PendingClientRequest, PendingClientRequests},
    parked::ParkedRequests,
    service::{
        ClientInfo, ClientRequestError, LogLevel, McpService, RequestChannel, RequestContext,
        ServerDescription, ServiceAnswer,
    },
};
use crate::{
    Revision, RpcError, RpcId, RpcMessage,
    message::code,
    revision::meta::{
        CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, SERVER_INFO, SUBSCRIPTION_ID,
    },
};

/// The maximum number of requests that are processed concurrently.
const MAX_INCOMING: usize = 256;

/// Requests of the stateless revision that may be answered with input requests.
const MAY_ASK: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];
/// Requests whose answers contain cache lifetimes.
const CACHEABLE: [&str; 6] = [
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "server/discover",
];
/// Requests that the stateless revision no longer has.
const ONLY_WITH_INITIALIZE: [&str; 5] = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// The target for messages that belong to a request.
pub(super) trait ReplyChannel: Send + Sync {
    /// Sends a message when there is room. Returns `false` if the client has disconnected.
    fn send(&self, message: RpcMessage) -> BoxFuture<'_, bool>;

    /// Sends a message if there is room.
    fn try_send(&self, message: RpcMessage) -> bool;

    /// Closes the waiting connection, if the client can resume later.
    fn disconnect(&self) {}
}

/// A session with one client.
pub(super) struct McpSession {
    service: Arc<dyn McpService>,
    description: ServerDescription,
    state: Mutex<McpSessionState>,
    asks: PendingClientRequests,
    parked: Arc<ParkedRequests>,
    closed: CancellationToken,
}

#[derive(Default)]
struct McpSessionState {
    /// Known after `initialize`.
    client: Option<Arc<ClientInfo>>,
    log_level: Option<LogLevel>,
    /// Requests in progress.
    incoming: HashMap<RpcId, CancellationToken>,
    /// The number of requests in progress or whose answers wait to be sent.
    open: usize,
}

impl McpSession {
    pub(super) fn new(service: Arc<dyn McpService>, parked: Arc<ParkedRequests>) -> Arc<Self> {
        Arc::new(Self {
            description: service.description(),
            service,
            state: Mutex::new(McpSessionState {
                log_level: Some(LogLevel::Info),
                ..McpSessionState::default()
            }),
            asks: PendingClientRequests::default(),
            parked,
            closed: CancellationToken::new(),
        })
    }

    /// Returns the agreed revision, or `None` before `initialize`.
    pub(super) fn revision(&self) -> Option<Revision> {
        self.state().client.as_ref().map(|client| client.revision)
    }

    /// Returns whether the client requested log messages of this level.
    pub(super) fn wants_log(&self, level: LogLevel) -> bool {
        self.state().log_level.is_some_and(|least| level >= least)
    }

    /// Returns the schema of a tool with parameters that are sent as headers.
    pub(super) fn schema_with_headers(&self, tool: &str) -> Option<Value> {
        self.service.schema_with_headers(tool)
    }

    /// Returns whether any request is in progress.
    pub(super) fn is_busy(&self) -> bool {
        !self.state().incoming.is_empty()
    }

    /// Processes a message. Messages that belong to a request are sent to `to`. A returned message
    /// must be sent before the next message is processed, so that a client that reads no answers is
    /// not served further. Needs a tokio runtime.
    #[must_use]
    pub(super) fn receive(
        self: &Arc<Self>,
        message: RpcMessage,
        to: &Arc<dyn ReplyChannel>,
    ) -> Option<RpcMessage> {
        match message {
            RpcMessage::Answer { id, result } => {
                if !self.asks.answered(id.as_ref(), result) {
                    tracing::debug!(?id, "an answer to an unknown request");
                }
                None
            }
            RpcMessage::Notification { method, params } => {
                self.on_notification(&method, &params);
                None
            }
            RpcMessage::Request { id, method, params } => self.on_request(id, method, params, to),
        }
    }

    /// Ends the session with all its requests.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        self.cancel_all();
        self.service.close().await;
    }

    /// Cancels a request of the client.
    pub(super) fn cancel_request(&self, id: &RpcId) {
        let called_off = self.state().incoming.remove(id);
        if let Some(called_off) = called_off {
            called_off.cancel();
        }
    }

    /// Cancels all requests, because the client has disconnected.
    pub(super) fn cancel_all(&self) {
        let incoming = std::mem::take(&mut self.state().incoming);
        for called_off in incoming.into_values() {
            called_off.cancel();
        }
    }

    fn on_notification(&self, method: &str, params: &Value) {
        match method {
            "notifications/cancelled" => {
                if let Some(id) = RpcId::parse(&params["requestId"]) {
                    self.cancel_request(&id);
                }
            }
            // Notifications before `initialize` are ignored.
            method if self.revision().is_some() => self.service.notification(method),
            _ => {}
        }
    }

    fn on_request(
        self: &Arc<Self>,
        id: RpcId,
        method: String,
        params: Value,
        to: &Arc<dyn ReplyChannel>,
    ) -> Option<RpcMessage> {
        // Handled synchronously, because the next messages may not wait for the answer.
        if method == "initialize" && params["_meta"].get(PROTOCOL_VERSION).is_none() {
            let answer = self.initialize(&params);
            return Some(RpcMessage::answer(id, answer));
        }
        let cancel = self.closed.child_token();
        let refused = {
            let mut state = self.state();
            if self.closed.is_cancelled() {
                Some("the session has ended")
            } else if state.incoming.contains_key(&id) {
                Some("a request with this id is in progress")
            } else if state.open >= MAX_INCOMING {
                Some("too many requests at once")
            } else {
                state.incoming.insert(id.clone(), cancel.clone());
                state.open += 1;
                None
            }
        };
        if let Some(why) = refused {
            let error = RpcError::new(code::INVALID_REQUEST, why);
            return Some(RpcMessage::answer(id, Err(error)));
        }
        let (session, to) = (Arc::clone(self), Arc::clone(to));
        // Boxed, because a future that is moved into a task is copied more than once.
        tokio::spawn(Box::pin(async move {
            let _open = OpenRequestGuard(&session);
            let answer = tokio::select! {
                biased;
                // The protocol requires that a cancelled request gets no answer.
                () = cancel.cancelled() => None,
                answer = session.answer(&id, &method, params, &cancel, &to) => Some(answer),
            };
            session.state().incoming.remove(&id);
            if let Some(answer) = answer {
                to.send(RpcMessage::answer(id, answer)).await;
            }
        }));
        None
    }

    async fn answer(
        self: &Arc<Self>,
        id: &RpcId,
        method: &str,
        params: Value,
        cancel: &CancellationToken,
        to: &Arc<dyn ReplyChannel>,
    ) -> ServiceAnswer {
        let is_object = params.is_object() || params.is_null();
        if !is_object {
            return Err(RpcError::invalid_params("`params` must be an object"));
        }
        let is_stateless =
            method == "server/discover" || params["_meta"].get(PROTOCOL_VERSION).is_some();
        let (client, log_level) = match (is_stateless, method) {
            (true, "initialize") => return Err(RpcError::no_method(method)),
            (true, _) => stateless_client(method, &params["_meta"])?,
            (false, "ping") => return Ok(json!({})),
            (false, _) => {
                let state = self.state();
                let client = state.client.clone().ok_or_else(|| {
                    let why = "the session has not begun: send `initialize`, or give the revision in `_meta`";
                    RpcError::new(code::INVALID_REQUEST, why)
                })?;
                (client, state.log_level)
            }
        };
        if method == "logging/setLevel" && self.has("logging") {
            return self.set_level(&params);
        }
        let cx = RequestContext {
            id: id.clone(),
            progress: params["_meta"].get("progressToken").cloned(),
            client: Arc::clone(&client),
            cancel: cancel.clone(),
            log_level,
            channel: Arc::new(DirectChannel {
                session: Arc::clone(self),
                to: Arc::clone(to),
            }),
        };
        if !is_stateless {
            return self.service.request(method, params, &cx).await;
        }
        let answer = match method {
            "server/discover" => Ok(self.discovered()),
            "subscriptions/listen" if self.has_changes() => {
                Box::pin(self.listen(id, &params, &cx)).await
            }
            method if MAY_ASK.contains(&method) => {
                let request = (method, params);
                // Boxed, like everything that few requests need. Otherwise every future would have
                // the size of the largest one.
                Box::pin(self.parked.answer(&self.service, request, cx, to)).await
            }
            method => self.service.request(method, params, &cx).await,
        };
        self.finished(method, answer)
    }

    fn initialize(&self, params: &Value) -> ServiceAnswer {
        let wanted = params["protocolVersion"].as_str().ok_or_else(|| {
            RpcError::invalid_params("`protocolVersion` is missing: a date such as 2025-11-25")
        })?;
        let revision = Revision::answer_to(wanted);
        {
            // The agreed revision stays: requests in progress were started with it.
            let mut state = self.state();
            if state.client.is_some() {
                let why = "the session has started already; a new one needs a new connection";
                return Err(RpcError::new(code::INVALID_REQUEST, why));
            }
            state.client = Some(Arc::new(ClientInfo {
                revision,
                info: params["clientInfo"].clone(),
                capabilities: params["capabilities"].clone(),
            }));
        }
        let mut result = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": self.description.capabilities,
            "serverInfo": self.description.info(),
        });
        if let Some(instructions) = &self.description.instructions {
            result["instructions"] = json!(instructions);
        }
        Ok(result)
    }

    fn set_level(&self, params: &Value) -> ServiceAnswer {
        let level = params["level"].as_str().and_then(LogLevel::parse);
        let level = level.ok_or_else(|| {
            RpcError::invalid_params(
                "`level` must be one of debug, info, notice, warning, error, critical, alert, emergency",
            )
        })?;
        self.state().log_level = Some(level);
        Ok(json!({}))
    }

    fn discovered(&self) -> Value {
        let versions: Vec<&str> = Revision::ALL.into_iter().map(Revision::as_str).collect();
        let mut result = json!({
            "supportedVersions": versions,
            "capabilities": self.description.capabilities,
        });
        if let Some(instructions) = &self.description.instructions {
            result["instructions"] = json!(instructions);
        }
        result
    }

    /// Acknowledges the supported notifications and then waits. Nothing is sent, because the lists
    /// do not change.
    async fn listen(&self, id: &RpcId, params: &Value, cx: &RequestContext) -> ServiceAnswer {
        let about = json!({SUBSCRIPTION_ID: id.to_value()});
        let asked = params["notifications"].as_object();
        let taken: Map<String, Value> = asked
            .into_iter()
            .flatten()
            .filter(|(kind, _)| self.supports_notification(kind))
            .map(|(kind, wanted)| (kind.clone(), wanted.clone()))
            .collect();
        let params = json!({"notifications": taken, "_meta": about.clone()});
        cx.channel
            .notify("notifications/subscriptions/acknowledged", params);
        cx.cancel.cancelled().await;
        Ok(json!({"_meta": about}))
    }

    fn supports_notification(&self, kind: &str) -> bool {
        let capabilities = &self.description.capabilities;
        match kind {
            "toolsListChanged" => capabilities["tools"]["listChanged"] == true,
            "promptsListChanged" => capabilities["prompts"]["listChanged"] == true,
            "resourcesListChanged" => capabilities["resources"]["listChanged"] == true,
            "resourceSubscriptions" => capabilities["resources"]["subscribe"] == true,
            _ => false,
        }
    }

    fn has_changes(&self) -> bool {
        let kinds = [
            "toolsListChanged",
            "promptsListChanged",
            "resourcesListChanged",
            "resourceSubscriptions",
        ];
        kinds
            .into_iter()
            .any(|kind| self.supports_notification(kind))
    }

    fn has(&self, capability: &str) -> bool {
        self.description.capabilities.get(capability).is_some()
    }

    /// Adds the fields that answers of the stateless revision have besides their content.
    fn finished(&self, method: &str, answer: ServiceAnswer) -> ServiceAnswer {
        match answer {
            Ok(Value::Object(mut result)) => {
                if !result.contains_key("resultType") {
                    result.insert("resultType".to_owned(), json!("complete"));
                }
                if CACHEABLE.contains(&method) && result["resultType"] == "complete" {
                    result.entry("ttlMs").or_insert(json!(0));
                    result.entry("cacheScope").or_insert(json!("private"));
                }
                let meta = result.entry("_meta").or_insert_with(|| json!({}));
                if let Some(meta) = meta.as_object_mut() {
                    meta.insert(SERVER_INFO.to_owned(), self.description.info());
                }
                Ok(Value::Object(result))
            }
            Err(mut error) if error.code == code::RESOURCE_NOT_FOUND => {
                error.code = code::INVALID_PARAMS;
                Err(error)
            }
            other => other,
        }
    }

    fn state(&self) -> MutexGuard<'_, McpSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request whose answer is not sent yet. It is counted separately from the requests in progress,
/// because the client may reuse its id before the answer is sent.
struct OpenRequestGuard<'a>(&'a McpSession);

impl Drop for OpenRequestGuard<'_> {
    fn drop(&mut self) {
        self.0.state().open -= 1;
    }
}

/// Returns the client of a request in the stateless revision, and its log level.
fn stateless_client(
    method: &str,
    meta: &Value,
) -> Result<(Arc<ClientInfo>, Option<LogLevel>), RpcError> {
    let version = meta[PROTOCOL_VERSION].as_str();
    let missing = |key: &str| RpcError::invalid_params(format!("`_meta` lacks {key:?}"));
    let version = version.ok_or_else(|| missing(PROTOCOL_VERSION))?;
    let revision = Revision::parse(version).filter(|revision| !revision.has_initialize());
    let revision = revision.ok_or_else(|| {
        let supported: Vec<&str> = Revision::ALL.into_iter().map(Revision::as_str).collect();
        let words = format!("the protocol revision {version} needs `initialize`");
        RpcError::new(code::UNSUPPORTED_REVISION, words)
            .with_data(json!({"requested": version, "supported": supported}))
    })?;
    if ONLY_WITH_INITIALIZE.contains(&method) {
        return Err(RpcError::no_method(method));
    }
    let capabilities = meta.get(CLIENT_CAPABILITIES).filter(|it| it.is_object());
    let capabilities = capabilities.ok_or_else(|| missing(CLIENT_CAPABILITIES))?;
    let client = Arc::new(ClientInfo {
        revision,
        info: meta[CLIENT_INFO].clone(),
        capabilities: capabilities.clone(),
    });
    Ok((client, meta[LOG_LEVEL].as_str().and_then(LogLevel::parse)))
}

/// The channel to a connected client.
struct DirectChannel {
    session: Arc<McpSession>,
    to: Arc<dyn ReplyChannel>,
}

impl RequestChannel for DirectChannel {
    fn notify(&self, method: &str, params: Value) {
        self.to.try_send(RpcMessage::notification(method, params));
    }

    fn disconnect(&self) {
        self.to.disconnect();
    }

    fn ask(
        &self,
        _: Option<&str>,
        method: &str,
        params: Value,
    ) -> BoxFuture<'_, Result<Value, ClientRequestError>> {
        let ask = self.session.asks.begin();
        let message = RpcMessage::request(ask.id.clone(), method, params);
        Box::pin(async move {
            if !self.to.send(message).await {
                return Err(ClientRequestError::Gone);
            }
            let mut unanswered = ClientRequestGuard {
                id: Some(ask.id.clone()),
                to: &*self.to,
            };
            let answer = wait(ask, &self.session.closed).await;
            unanswered.id = None;
            answer
        })
    }
}

async fn wait(
    ask: PendingClientRequest<'_>,
    closed: &CancellationToken,
) -> Result<Value, ClientRequestError> {
    tokio::select! {
        biased;
        () = closed.cancelled() => Err(ClientRequestError::Gone),
        answer = ask.answer() => answer,
    }
}

/// Cancels a request to the client if its caller stops waiting.
struct ClientRequestGuard<'a> {
    id: Option<RpcId>,
    to: &'a dyn ReplyChannel,
}

impl Drop for ClientRequestGuard<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            let params = json!({"requestId": id.to_value(), "reason": "no longer needed"});
            let method = "notifications/cancelled";
            self.to.try_send(RpcMessage::notification(method, params));
        }
    }
}
