//! Is a connection still alive?

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Beats with every piece that is passed on.
#[derive(Debug, Default)]
pub(super) struct IdleClock(AtomicU64);

impl IdleClock {
    pub(super) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns once there was no beat for this long, or for up to twice as long.
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
