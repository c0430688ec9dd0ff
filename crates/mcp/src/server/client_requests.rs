//! The server's requests to a client that have no answer yet.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use serde_json::Value;
use tokio::sync::oneshot;

use super::service::ClientRequestError;
use crate::{RpcError, RpcId};

/// The pending requests of a session.
#[derive(Debug, Default)]
pub(super) struct PendingClientRequests {
    next: AtomicI64,
    waiting: Mutex<HashMap<RpcId, oneshot::Sender<Result<Value, RpcError>>>>,
}

/// A pending request. It is removed when its caller stops waiting.
pub(super) struct PendingClientRequest<'a> {
    pub(super) id: RpcId,
    asks: &'a PendingClientRequests,
    answer: oneshot::Receiver<Result<Value, RpcError>>,
}

impl PendingClientRequests {
    pub(super) fn begin(&self) -> PendingClientRequest<'_> {
        let id = RpcId::Number(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(id.clone(), sender);
        PendingClientRequest {
            id,
            asks: self,
            answer,
        }
    }

    /// Processes an answer. Returns whether a request waited for it.
    pub(super) fn answered(&self, id: Option<&RpcId>, result: Result<Value, RpcError>) -> bool {
        let waiting = id.and_then(|id| self.waiting().remove(id));
        waiting.is_some_and(|waiting| waiting.send(result).is_ok())
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<RpcId, oneshot::Sender<Result<Value, RpcError>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingClientRequest<'_> {
    pub(super) async fn answer(mut self) -> Result<Value, ClientRequestError> {
        match (&mut self.answer).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(ClientRequestError::Gone),
        }
    }
}

impl Drop for PendingClientRequest<'_> {
    fn drop(&mut self) {
        self.asks.waiting().remove(&self.id);
    }
}
