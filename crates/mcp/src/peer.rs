//! One end of a connection: outgoing requests that wait for answers, incoming requests,
//! cancellation, progress.
//!
//! A transport passes incoming messages to a [`Peer`] ([`Peer::receive`]) and sends outgoing ones
//! ([`MessageSink`]). Both ends work in the same way, whether client or server.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use haft_contract::{BoxFuture, CancellationToken};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

use crate::message::{RpcError, RpcId, RpcMessage, code};

/// The maximum number of incoming requests that are processed concurrently.
const MAX_INCOMING: usize = 64;
/// The maximum number of queued progress reports; more are dropped.
const WAITING_PROGRESS: usize = 64;

/// Sends outgoing messages. Sending does not wait; later failures are reported with [`Peer::fail`]
/// or [`Peer::close`].
pub trait MessageSink: Send + Sync {
    /// Sends a message. The error says why it cannot be sent.
    fn send(&self, message: RpcMessage) -> Result<(), PeerError>;
}

/// Handles the messages of the other end.
pub trait PeerHandler: Send + Sync {
    /// Answers a request. The future is dropped if the other end cancels the request.
    fn request<'a>(
        &'a self,
        id: &'a RpcId,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, RpcError>>;

    /// Handles a notification.
    fn notification(&self, method: &str, params: Value);

    /// Reports a protocol violation of the other end.
    fn problem(&self, what: &str);
}

/// The reason why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The other end answered with an error.
    #[error(transparent)]
    Answered(#[from] RpcError),
    /// The connection is closed.
    #[error("{0}")]
    Closed(String),
    /// The request could not be sent, or the answer could not be read.
    #[error("{0}")]
    Transport(String),
    /// The time limit was exceeded.
    #[error("{0}")]
    TimedOut(String),
    /// The server requires authorization.
    #[error("it needs authorization: {reason}")]
    Unauthorized {
        /// The status and further information, as text.
        reason: String,
        /// The `WWW-Authenticate` header.
        challenge: String,
        /// The HTTP status: 401 or 403.
        status: u16,
    },
}

/// The time limits of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestTimeout {
    /// The overall limit.
    pub whole: Option<Duration>,
    /// The limit without a progress report.
    pub idle: Option<Duration>,
}

impl RequestTimeout {
    /// Creates an overall limit.
    pub fn new(whole: Duration) -> Self {
        Self {
            whole: Some(whole),
            idle: None,
        }
    }
}

/// One end of a connection. Cheap to clone; all clones are the same end.
#[derive(Clone)]
pub struct Peer {
    inner: Arc<PeerState>,
}

struct PeerState {
    sink: Arc<dyn MessageSink>,
    handler: Arc<dyn PeerHandler>,
    next: AtomicI64,
    tables: Mutex<PeerTables>,
    closed: CancellationToken,
}

#[derive(Default)]
struct PeerTables {
    /// Outgoing requests without an answer.
    pending: HashMap<RpcId, PendingRequest>,
    /// Incoming requests.
    incoming: HashMap<RpcId, CancellationToken>,
    /// The reason for the close.
    closed: Option<PeerError>,
}

struct PendingRequest {
    answer: oneshot::Sender<Result<Value, PeerError>>,
    progress: Option<mpsc::Sender<Value>>,
}

impl Peer {
    /// Creates an end that sends to `sink` and passes requests to `handler`.
    pub fn new(sink: Arc<dyn MessageSink>, handler: Arc<dyn PeerHandler>) -> Self {
        Self {
            inner: Arc::new(PeerState {
                sink,
                handler,
                next: AtomicI64::new(1),
                tables: Mutex::default(),
                closed: CancellationToken::new(),
            }),
        }
    }

    /// Returns a weak reference, for holders that must not keep the end alive, such as the task
    /// that reads for it.
    pub fn downgrade(&self) -> WeakPeer {
        WeakPeer(Arc::downgrade(&self.inner))
    }

    /// Sends a request and waits for the answer without a time limit. If the future is dropped, the
    /// request is cancelled.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, PeerError> {
        self.request_within(method, params, RequestTimeout::default(), |_| {})
            .await
    }

    /// Like [`Self::request`], but with time limits. `on_progress` receives the parameters of each
    /// progress report. To request reports, `params` must contain `_meta.progressToken`.
    pub async fn request_within(
        &self,
        method: &str,
        mut params: Value,
        patience: RequestTimeout,
        mut on_progress: impl FnMut(Value) + Send,
    ) -> Result<Value, PeerError> {
        let id = RpcId::Number(self.inner.next.fetch_add(1, Ordering::Relaxed));
        if let Some(token) = params.pointer_mut("/_meta/progressToken") {
            *token = id.to_value();
        }
        let (answer, mut answered) = oneshot::channel();
        let (progress, mut reports) = mpsc::channel(WAITING_PROGRESS);
        let pending = PendingRequest {
            answer,
            progress: Some(progress),
        };
        {
            let mut tables = self.inner.tables();
            if let Some(why) = &tables.closed {
                return Err(why.clone());
            }
            tables.pending.insert(id.clone(), pending);
        }
        let mut unanswered = RpcRequestGuard {
            peer: &self.inner,
            id: id.clone(),
            // The protocol forbids cancelling `initialize`.
            is_answered: method != "initialize",
        };
        let message = RpcMessage::request(id, method, params);
        if let Err(error) = self.inner.sink.send(message) {
            unanswered.is_answered = false;
            return Err(error);
        }
        let begun = Instant::now();
        let far = begun + Duration::from_secs(60 * 60 * 24 * 365);
        let whole = patience.whole.map_or(far, |whole| begun + whole);
        let mut idle = patience.idle.map_or(far, |idle| begun + idle);
        loop {
            tokio::select! {
                biased;
                answer = &mut answered => {
                    unanswered.is_answered = false;
                    // Reports that arrived before the answer are passed on before it.
                    while let Ok(report) = reports.try_recv() {
                        on_progress(report);
                    }
                    return answer.unwrap_or_else(|_| Err(self.inner.why_closed()));
                }
                Some(report) = reports.recv() => {
                    idle = patience.idle.map_or(far, |idle| Instant::now() + idle);
                    on_progress(report);
                }
                () = sleep_until(whole) => {
                    let limit = patience.whole.unwrap_or_default();
                    return Err(PeerError::TimedOut(format!("it did not answer within {limit:?}")));
                }
                () = sleep_until(idle) => {
                    let limit = patience.idle.unwrap_or_default();
                    return Err(PeerError::TimedOut(format!("it reported nothing for {limit:?}")));
                }
            }
        }
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: Value) -> Result<(), PeerError> {
        if self.inner.closed.is_cancelled() {
            return Err(self.inner.why_closed());
        }
        self.inner
            .sink
            .send(RpcMessage::notification(method, params))
    }

    /// Processes an incoming message. Needs a tokio runtime.
    pub fn receive(&self, message: RpcMessage) {
        match message {
            RpcMessage::Answer { id, result } => self.on_answer(id, result),
            RpcMessage::Notification { method, params } => self.on_notification(&method, params),
            RpcMessage::Request { id, method, params } => self.on_request(id, method, params),
        }
    }

    /// Processes the text of a message or a batch.
    pub fn receive_text(&self, text: &[u8]) {
        match RpcMessage::parse_all(text) {
            Err(error) => {
                self.malformed(&error);
                self.fail_named(text, &error);
            }
            Ok(messages) => {
                for message in messages {
                    match message {
                        Ok(message) => self.receive(message),
                        Err(error) => self.malformed(&error),
                    }
                }
            }
        }
    }

    /// Fails a request that will not be answered.
    pub fn fail(&self, id: &RpcId, error: PeerError) {
        let pending = self.inner.tables().pending.remove(id);
        if let Some(pending) = pending {
            let _ = pending.answer.send(Err(error)); // the caller may have stopped waiting
        }
    }

    /// Reports a message that was skipped because of its length; `ends` are its beginning and end.
    /// The request that it answered fails, or all pending ones if that one cannot be determined.
    pub fn on_oversized(&self, ends: &[u8], length: usize, longest: usize) {
        let why = format!("it sent a message of {length} bytes; the limit is {longest}");
        self.inner.handler.problem(&why);
        let named = ids_in(ends);
        let mut tables = self.inner.tables();
        let all: Vec<RpcId> = tables.pending.keys().cloned().collect();
        let known: Vec<RpcId> = all
            .iter()
            .filter(|id| named.contains(id))
            .cloned()
            .collect();
        let failed = if known.is_empty() { all } else { known };
        let failed: Vec<PendingRequest> = failed
            .iter()
            .filter_map(|id| tables.pending.remove(id))
            .collect();
        drop(tables);
        for pending in failed {
            let _ = pending.answer.send(Err(PeerError::Transport(why.clone())));
        }
    }

    /// Closes the connection. All pending requests fail with this reason.
    pub fn close(&self, why: impl Into<String>) {
        self.inner.close(PeerError::Closed(why.into()));
    }

    /// Like [`Self::close`], but with another kind of error, such as a missing authorization.
    pub fn close_with(&self, why: PeerError) {
        self.inner.close(why);
    }

    /// Waits until the connection is closed, and returns the reason.
    pub async fn closed(&self) -> String {
        self.inner.closed.cancelled().await;
        self.inner.why_closed().to_string()
    }

    /// Returns whether the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.inner.closed.is_cancelled()
    }

    /// Returns whether an outgoing request waits for its answer.
    pub fn is_waiting_for(&self, id: &RpcId) -> bool {
        self.inner.tables().pending.contains_key(id)
    }

    /// Returns the number of outgoing requests without an answer.
    pub fn waiting(&self) -> usize {
        self.inner.tables().pending.len()
    }

    /// Fails the request that an unreadable message names: the message may have been meant as its
    /// answer.
    fn fail_named(&self, text: &[u8], error: &RpcError) {
        // Other text names no request. A truncated message means that the other end is exiting,
        // which fails all requests.
        let text = text.trim_ascii();
        if !text.starts_with(b"{") || !text.ends_with(b"}") {
            return;
        }
        let ends = match text.len() {
            0..=1024 => text.to_vec(),
            length => [&text[..512], &text[length - 512..]].concat(),
        };
        for id in ids_in(&ends) {
            let why = format!("its response cannot be read: {}", error.message);
            self.fail(&id, PeerError::Transport(why));
        }
    }

    fn malformed(&self, error: &RpcError) {
        self.inner
            .handler
            .problem(&format!("it sent an invalid message: {}", error.message));
    }

    fn on_answer(&self, id: Option<RpcId>, result: Result<Value, RpcError>) {
        let pending = id
            .as_ref()
            .and_then(|id| self.inner.tables().pending.remove(id));
        let Some(pending) = pending else {
            let handler = &self.inner.handler;
            match (id, result) {
                // The protocol permits an answer that crosses with a cancellation.
                (Some(RpcId::Number(id)), _)
                    if (1..self.inner.next.load(Ordering::Relaxed)).contains(&id) => {}
                (Some(id), _) => handler.problem(&format!("it answered the unknown request {id}")),
                (None, Err(error)) => {
                    handler.problem(&format!("it could not read a message: {error}"))
                }
                (None, Ok(_)) => handler.problem("it sent an answer without an id"),
            }
            return;
        };
        let _ = pending.answer.send(result.map_err(PeerError::Answered)); // the caller may be gone
    }

    fn on_notification(&self, method: &str, params: Value) {
        match method {
            "notifications/progress" => {
                let Some(id) = RpcId::parse(&params["progressToken"]) else {
                    return;
                };
                let tables = self.inner.tables();
                let progress = tables
                    .pending
                    .get(&id)
                    .and_then(|pending| pending.progress.as_ref());
                if let Some(progress) = progress {
                    let _ = progress.try_send(params); // excess reports are dropped
                }
            }
            "notifications/cancelled" => {
                let id = RpcId::parse(&params["requestId"]);
                let called_off = id.and_then(|id| self.inner.tables().incoming.remove(&id));
                if let Some(called_off) = called_off {
                    called_off.cancel();
                }
            }
            _ => self.inner.handler.notification(method, params),
        }
    }

    fn on_request(&self, id: RpcId, method: String, params: Value) {
        let called_off = CancellationToken::new();
        {
            let mut tables = self.inner.tables();
            if tables.incoming.len() >= MAX_INCOMING || tables.incoming.contains_key(&id) {
                drop(tables);
                let why = "too many requests at once, or an id that is in use";
                self.answer(id, Err(RpcError::new(code::INVALID_REQUEST, why)));
                return;
            }
            tables.incoming.insert(id.clone(), called_off.clone());
        }
        let peer = self.clone();
        haft_contract::spawn_boxed(async move {
            let handler = Arc::clone(&peer.inner.handler);
            let answer = tokio::select! {
                biased;
                () = called_off.cancelled() => None,
                () = peer.inner.closed.cancelled() => None,
                answer = handler.request(&id, &method, params) => Some(answer),
            };
            peer.inner.tables().incoming.remove(&id);
            if let Some(answer) = answer {
                peer.answer(id, answer);
            }
        });
    }

    fn answer(&self, id: RpcId, result: Result<Value, RpcError>) {
        let sent = self.inner.sink.send(RpcMessage::answer(id, result));
        if let Err(error) = sent {
            tracing::debug!(%error, "an answer could not be sent");
        }
    }
}

/// A weak reference to an end.
#[derive(Clone)]
pub struct WeakPeer(Weak<PeerState>);

impl WeakPeer {
    /// Returns the end, if it still exists.
    pub fn upgrade(&self) -> Option<Peer> {
        self.0.upgrade().map(|inner| Peer { inner })
    }
}

impl PeerState {
    fn tables(&self) -> MutexGuard<'_, PeerTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn why_closed(&self) -> PeerError {
        let why = self.tables().closed.clone();
        why.unwrap_or_else(|| PeerError::Closed("the connection is closed".to_owned()))
    }

    fn close(&self, why: PeerError) {
        let pending = {
            let mut tables = self.tables();
            if tables.closed.is_some() {
                return;
            }
            tables.closed = Some(why.clone());
            std::mem::take(&mut tables.pending)
        };
        for pending in pending.into_values() {
            let _ = pending.answer.send(Err(why.clone())); // the caller may have stopped waiting
        }
        self.closed.cancel();
    }
}

/// Cancels a request on drop if it has no answer yet.
struct RpcRequestGuard<'a> {
    peer: &'a PeerState,
    id: RpcId,
    is_answered: bool,
}

impl Drop for RpcRequestGuard<'_> {
    fn drop(&mut self) {
        let was_pending = self.peer.tables().pending.remove(&self.id).is_some();
        if was_pending && self.is_answered && !self.peer.closed.is_cancelled() {
            let params = json!({
                "requestId": self.id.to_value(),
                "reason": "the result is no longer needed",
            });
            let _ = self
                .peer
                .sink
                .send(RpcMessage::notification("notifications/cancelled", params));
        }
    }
}

/// Returns the ids in the two ends of a skipped message. Wrong ids have no effect, because only
/// pending ones are used.
pub(crate) fn ids_in(ends: &[u8]) -> Vec<RpcId> {
    let text = String::from_utf8_lossy(ends);
    let mut ids = Vec::new();
    for (at, key) in text.match_indices("\"id\"") {
        let rest = text[at + key.len()..].trim_start();
        let Some(rest) = rest.strip_prefix(':') else {
            continue;
        };
        let end = rest.find([',', '}']).unwrap_or(rest.len());
        let value: Option<Value> = serde_json::from_str(rest[..end].trim()).ok();
        ids.extend(value.as_ref().and_then(RpcId::parse));
    }
    ids
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
