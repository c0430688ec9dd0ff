//! One end of a connection: requests that wait for answers, requests that are answered, cancellation, progress.
//!
//! A transport gives a [`Peer`] what comes in ([`Peer::receive`]) and takes what goes out ([`MessageSink`]).
//! Which of both ends is the server makes no difference here.

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

/// More requests of the other end than this are not worked on at once.
const MOST_INCOMING: usize = 64;
/// Reports of progress that wait to be looked at; more are dropped.
const WAITING_PROGRESS: usize = 64;

/// Where messages go. Nothing here waits: what fails later is reported by [`Peer::fail`] or [`Peer::close`].
pub trait MessageSink: Send + Sync {
    /// Sends a message. The error says why it cannot be sent.
    fn send(&self, message: RpcMessage) -> Result<(), PeerError>;
}

/// Who answers what the other end asks.
pub trait PeerHandler: Send + Sync {
    /// Answers a request. Dropped when the other end no longer wants the answer.
    fn request<'a>(
        &'a self,
        id: &'a RpcId,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, RpcError>>;

    /// Something happened.
    fn notification(&self, method: &str, params: Value);

    /// The other end does not keep to the protocol: in words.
    fn problem(&self, what: &str);
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The other end says so.
    #[error(transparent)]
    Answered(#[from] RpcError),
    /// There is no connection any longer.
    #[error("{0}")]
    Closed(String),
    /// It could not be sent, or what came back could not be read.
    #[error("{0}")]
    Transport(String),
    /// It took too long.
    #[error("{0}")]
    TimedOut(String),
    /// It wants to know who asks first.
    #[error("it needs authorization: {reason}")]
    Unauthorized {
        /// The status and what came with it, in words.
        reason: String,
        /// The header `WWW-Authenticate`.
        challenge: String,
        /// The status of the answer: 401 or 403.
        status: u16,
    },
}

/// How long a request is waited for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patience {
    /// In all.
    pub whole: Option<Duration>,
    /// Without a report of progress.
    pub idle: Option<Duration>,
}

impl Patience {
    /// So long in all.
    pub fn of(whole: Duration) -> Self {
        Self {
            whole: Some(whole),
            idle: None,
        }
    }
}

/// One end of a connection. Cheap to clone; every clone means the same end.
#[derive(Clone)]
pub struct Peer {
    inner: Arc<PeerState>,
}

struct PeerState {
    sink: Arc<dyn MessageSink>,
    handler: Arc<dyn PeerHandler>,
    next: AtomicI64,
    tables: Mutex<Tables>,
    closed: CancellationToken,
}

#[derive(Default)]
struct Tables {
    /// Our requests that have no answer yet.
    pending: HashMap<RpcId, Pending>,
    /// Theirs.
    incoming: HashMap<RpcId, CancellationToken>,
    /// Why it is closed.
    closed: Option<PeerError>,
}

struct Pending {
    answer: oneshot::Sender<Result<Value, PeerError>>,
    progress: Option<mpsc::Sender<Value>>,
}

impl Peer {
    /// An end that sends to `sink` and lets `handler` answer.
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

    /// The same end for those that must not keep it alive, such as the task that reads for it.
    pub fn downgrade(&self) -> WeakPeer {
        WeakPeer(Arc::downgrade(&self.inner))
    }

    /// Asks for something and waits as long as it takes. Dropped while it waits, it is called off.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, PeerError> {
        self.request_within(method, params, Patience::default(), |_| {})
            .await
    }

    /// The same, not longer than that. `on_progress` gets the parameters of each report of progress; reports are
    /// asked for by adding `_meta.progressToken` to `params`, which must be an object.
    pub async fn request_within(
        &self,
        method: &str,
        mut params: Value,
        patience: Patience,
        mut on_progress: impl FnMut(Value) + Send,
    ) -> Result<Value, PeerError> {
        let id = RpcId::Number(self.inner.next.fetch_add(1, Ordering::Relaxed));
        if let Some(token) = params.pointer_mut("/_meta/progressToken") {
            *token = id.to_value();
        }
        let (answer, mut answered) = oneshot::channel();
        let (progress, mut reports) = mpsc::channel(WAITING_PROGRESS);
        let pending = Pending {
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
        let mut unanswered = Unanswered {
            peer: &self.inner,
            id: id.clone(),
            // The protocol forbids to call off a greeting.
            is_told: method != "initialize",
        };
        let message = RpcMessage::request(id, method, params);
        if let Err(error) = self.inner.sink.send(message) {
            unanswered.is_told = false;
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
                    unanswered.is_told = false;
                    // What was reported before the answer is passed on before it.
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

    /// Takes what came in. Needs a tokio runtime.
    pub fn receive(&self, message: RpcMessage) {
        match message {
            RpcMessage::Answer { id, result } => self.answered(id, result),
            RpcMessage::Notification { method, params } => self.notified(&method, params),
            RpcMessage::Request { id, method, params } => self.asked(id, method, params),
        }
    }

    /// Takes the text of a message or of a batch.
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

    /// A request will not be answered, and why.
    pub fn fail(&self, id: &RpcId, error: PeerError) {
        let pending = self.inner.tables().pending.remove(id);
        if let Some(pending) = pending {
            let _ = pending.answer.send(Err(error)); // no one may wait for it any more
        }
    }

    /// A message was passed over because of its length; `ends` are its ends. The request that it answered fails,
    /// or all of them where that cannot be known.
    pub fn passed_over(&self, ends: &[u8], length: usize, longest: usize) {
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
        let failed: Vec<Pending> = failed
            .iter()
            .filter_map(|id| tables.pending.remove(id))
            .collect();
        drop(tables);
        for pending in failed {
            let _ = pending.answer.send(Err(PeerError::Transport(why.clone())));
        }
    }

    /// The connection is over, and why. Whatever waits is answered with it.
    pub fn close(&self, why: impl Into<String>) {
        self.inner.close(PeerError::Closed(why.into()));
    }

    /// The same with an error of another kind, such as a refusal of the one who asks.
    pub fn close_with(&self, why: PeerError) {
        self.inner.close(why);
    }

    /// Waits until it is closed; why.
    pub async fn closed(&self) -> String {
        self.inner.closed.cancelled().await;
        self.inner.why_closed().to_string()
    }

    /// Is it closed?
    pub fn is_closed(&self) -> bool {
        self.inner.closed.is_cancelled()
    }

    /// Does this request of ours wait for an answer?
    pub fn is_waiting_for(&self, id: &RpcId) -> bool {
        self.inner.tables().pending.contains_key(id)
    }

    /// How many of our requests wait for an answer.
    pub fn waiting(&self) -> usize {
        self.inner.tables().pending.len()
    }

    /// What cannot be read may have been meant as an answer: the request that it names need not wait for another.
    fn fail_named(&self, text: &[u8], error: &RpcError) {
        // Words that are no message name nothing, and what is cut off ends with its server.
        let text = text.trim_ascii();
        if !text.starts_with(b"{") || !text.ends_with(b"}") {
            return;
        }
        let ends = match text.len() {
            0..=1024 => text.to_vec(),
            length => [&text[..512], &text[length - 512..]].concat(),
        };
        for id in ids_in(&ends) {
            let why = format!("what it answered cannot be read: {}", error.message);
            self.fail(&id, PeerError::Transport(why));
        }
    }

    fn malformed(&self, error: &RpcError) {
        self.inner
            .handler
            .problem(&format!("it sent what is no message: {}", error.message));
    }

    fn answered(&self, id: Option<RpcId>, result: Result<Value, RpcError>) {
        let pending = id
            .as_ref()
            .and_then(|id| self.inner.tables().pending.remove(id));
        let Some(pending) = pending else {
            let handler = &self.inner.handler;
            match (id, result) {
                // The protocol permits an answer that crosses with a cancellation.
                (Some(RpcId::Number(id)), _)
                    if (1..self.inner.next.load(Ordering::Relaxed)).contains(&id) => {}
                (Some(id), _) => handler.problem(&format!("it answered {id}, which was not asked")),
                (None, Err(error)) => {
                    handler.problem(&format!("it could not read a message: {error}"))
                }
                (None, Ok(_)) => handler.problem("it sent an answer without an id"),
            }
            return;
        };
        let _ = pending.answer.send(result.map_err(PeerError::Answered)); // no one may wait for it any more
    }

    fn notified(&self, method: &str, params: Value) {
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
                    let _ = progress.try_send(params); // a flood of them is thinned out
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

    fn asked(&self, id: RpcId, method: String, params: Value) {
        let called_off = CancellationToken::new();
        {
            let mut tables = self.inner.tables();
            if tables.incoming.len() >= MOST_INCOMING || tables.incoming.contains_key(&id) {
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

/// An end that may be gone.
#[derive(Clone)]
pub struct WeakPeer(Weak<PeerState>);

impl WeakPeer {
    /// The end, if it is still there.
    pub fn upgrade(&self) -> Option<Peer> {
        self.0.upgrade().map(|inner| Peer { inner })
    }
}

impl PeerState {
    fn tables(&self) -> MutexGuard<'_, Tables> {
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
            let _ = pending.answer.send(Err(why.clone())); // no one may wait for it any more
        }
        self.closed.cancel();
    }
}

/// A request without an answer: calls it off when no one waits any more.
struct Unanswered<'a> {
    peer: &'a PeerState,
    id: RpcId,
    is_told: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let was_pending = self.peer.tables().pending.remove(&self.id).is_some();
        if was_pending && self.is_told && !self.peer.closed.is_cancelled() {
            let params = json!({
                "requestId": self.id.to_value(),
                "reason": "no one waits for it any more",
            });
            let _ = self
                .peer
                .sink
                .send(RpcMessage::notification("notifications/cancelled", params));
        }
    }
}

/// The ids that stand in the ends of a message that was passed over. Wrong ones do no harm: only those that are
/// waited for count.
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
