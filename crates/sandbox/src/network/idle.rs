//! Detection of idle connections.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Counts the pieces of data that a connection has forwarded.
#[derive(Debug, Default)]
pub(super) struct IdleClock(AtomicU64);

impl IdleClock {
    pub(super) fn reset(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Completes when no data was forwarded for `silence`. May complete up to `silence` later than that.
    pub(super) async fn stops(&self, silence: Duration) {
        loop {
            let before = self.0.load(Ordering::Relaxed);
            tokio::time::sleep(silence).await;
            if self.0.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}
