//! Control requests to the SDK client, and its answers.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use haft_protocol::{
    ControlCancel, ControlOutcome, ControlRequest, ControlResponse, RequestId, SessionAnswer,
    SessionMessage, SessionRequest,
};
use serde_json::Value;
use tokio::sync::oneshot;

use super::output::HeadlessOutput;

/// The reason that a request gets no answer.
pub(super) const CLOSED: &str = "the client has closed its input";

/// The connection for control messages to the client.
pub(super) struct ControlChannel {
    pub(super) output: Arc<HeadlessOutput>,
    next: AtomicU64,
    /// Set once the client has sent `initialize`.
    is_initialized: AtomicBool,
    waiting: Mutex<PendingControlRequests>,
}

#[derive(Default)]
struct PendingControlRequests {
    /// Unanswered requests by id.
    requests: HashMap<String, oneshot::Sender<Result<Value, String>>>,
    /// Set once the client has closed its input: no answer can arrive any longer.
    closed: bool,
}

impl ControlChannel {
    pub(super) fn new(output: Arc<HeadlessOutput>) -> Self {
        Self {
            output,
            next: AtomicU64::new(1),
            is_initialized: AtomicBool::new(false),
            waiting: Mutex::default(),
        }
    }

    /// Sends a request and waits indefinitely for the answer. If dropped while waiting, cancels the
    /// request.
    pub(super) async fn ask(&self, request: SessionRequest<'_>) -> Result<Value, String> {
        let (sender, receiver) = oneshot::channel();
        let id = self.id();
        {
            let mut waiting = self.waiting();
            if waiting.closed {
                return Err(CLOSED.to_owned());
            }
            waiting.requests.insert(id.clone(), sender);
        }
        let taken_back = ControlRequestGuard { channel: self, id };
        self.put(&taken_back.id, request);
        receiver.await.unwrap_or_else(|_| Err(CLOSED.to_owned()))
    }

    /// Sends a request without waiting for the answer.
    pub(super) fn notify(&self, request: SessionRequest<'_>) {
        if !self.waiting().closed {
            self.put(&self.id(), request);
        }
    }

    fn id(&self) -> String {
        format!("haft_{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn put(&self, id: &str, request: SessionRequest<'_>) {
        let request_id = id.into();
        self.output
            .put_control(&SessionMessage::ControlRequest(ControlRequest {
                request_id,
                request,
            }));
    }

    /// Handles an answer. Answers that no request waits for are ignored.
    pub(super) fn answered(&self, response: ControlOutcome<Value>) {
        let id = response.request_id().as_str();
        let Some(sender) = self.waiting().requests.remove(id) else {
            return;
        };
        let _ = sender.send(response.into_result());
    }

    /// Answers a request of the client.
    pub(super) fn respond(&self, id: RequestId, served: Result<SessionAnswer, String>) {
        let response = ControlOutcome::new(id, served);
        self.output
            .put_control(&SessionMessage::ControlResponse(ControlResponse {
                response,
            }));
    }

    /// Records that the client has sent `initialize`.
    pub(super) fn initialized(&self) {
        self.is_initialized.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_initialized(&self) -> bool {
        self.is_initialized.load(Ordering::Relaxed)
    }

    /// Returns whether the client has closed its input.
    pub(super) fn is_closed(&self) -> bool {
        self.waiting().closed
    }

    /// Fails all open requests: the client has closed its input.
    pub(super) fn close(&self) {
        let mut waiting = self.waiting();
        waiting.closed = true;
        waiting.requests.clear();
    }

    fn waiting(&self) -> MutexGuard<'_, PendingControlRequests> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ControlRequestGuard<'a> {
    channel: &'a ControlChannel,
    id: String,
}

impl Drop for ControlRequestGuard<'_> {
    fn drop(&mut self) {
        let unanswered = self.channel.waiting().requests.remove(&self.id).is_some();
        if unanswered {
            let request_id = std::mem::take(&mut self.id).into();
            let message = SessionMessage::ControlCancelRequest(ControlCancel { request_id });
            self.channel.output.put_control(&message);
        }
    }
}
