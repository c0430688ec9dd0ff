//! Stopping a session from outside.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use haft_contract::CancellationToken;

/// The kind of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopKind {
    /// An interrupt by the user: the current run still has a result.
    Interrupt,
    /// Termination by the system: as soon as possible, without a result.
    Terminate,
}

/// The signal that stops a session. Cheap to clone; all clones share the signal.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopSignal {
    token: CancellationToken,
    kind: Arc<AtomicU8>,
}

impl StopSignal {
    /// Requests a stop. The last requested kind wins.
    pub(crate) fn request(&self, kind: StopKind) {
        self.kind.store(kind as u8, Ordering::Relaxed);
        self.token.cancel();
    }

    /// Waits until a stop is requested.
    pub(crate) async fn wait(&self) {
        self.token.cancelled().await;
    }

    /// Returns the requested kind of stop, if any.
    pub(crate) fn requested(&self) -> Option<StopKind> {
        if !self.token.is_cancelled() {
            return None;
        }
        match self.kind.load(Ordering::Relaxed) {
            kind if kind == StopKind::Terminate as u8 => Some(StopKind::Terminate),
            _ => Some(StopKind::Interrupt),
        }
    }

    /// Runs a future until a stop is requested.
    pub(crate) async fn run_until_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.wait() => None,
        }
    }
}
