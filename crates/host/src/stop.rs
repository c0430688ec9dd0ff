//! How a session is ended from outside.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use haft_contract::CancellationToken;

/// How a session is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopKind {
    /// A person interrupts it: the run under way still has its result.
    Interrupt,
    /// The system ends it: as soon as possible, without a result.
    Terminate,
}

/// The way to end a session. Cheap to clone; every clone means the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    token: CancellationToken,
    kind: Arc<AtomicU8>,
}

impl Stop {
    /// It is to end. The last word on how counts.
    pub(crate) fn request(&self, kind: StopKind) {
        self.kind.store(kind as u8, Ordering::Relaxed);
        self.token.cancel();
    }

    /// Returns when it is to end.
    pub(crate) async fn wait(&self) {
        self.token.cancelled().await;
    }

    /// How it is to end, if it is.
    pub(crate) fn requested(&self) -> Option<StopKind> {
        if !self.token.is_cancelled() {
            return None;
        }
        match self.kind.load(Ordering::Relaxed) {
            kind if kind == StopKind::Terminate as u8 => Some(StopKind::Terminate),
            _ => Some(StopKind::Interrupt),
        }
    }

    /// Does this unless it is to end first.
    pub(crate) async fn until<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.wait() => None,
        }
    }
}
