//! What time it is, for everything that happens at a time.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use haft_contract::BoxFuture;
use tokio::sync::watch;

/// A clock that a session goes by. One of your own makes time pass as you like.
pub trait SessionClock: Send + Sync {
    /// What time it is.
    fn now(&self) -> SystemTime;

    /// Waits until then; it may return earlier, and never much later.
    fn until(&self, moment: SystemTime) -> BoxFuture<'_, ()>;
}

/// So often the clock of the machine is looked at: it may be set, and a machine that slept does not count.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineClock;

impl SessionClock for MachineClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn until(&self, moment: SystemTime) -> BoxFuture<'_, ()> {
        let left = moment.duration_since(self.now()).unwrap_or_default();
        Box::pin(tokio::time::sleep(left.min(LOOK_AGAIN)))
    }
}

/// The same, to share.
pub(crate) fn of_machine() -> Arc<dyn SessionClock> {
    Arc::new(MachineClock)
}

/// A clock that stands still until it is set: for tests.
#[derive(Debug)]
pub struct ManualClock(watch::Sender<SystemTime>);

impl ManualClock {
    /// It shows this.
    pub fn new(now: SystemTime) -> Self {
        Self(watch::Sender::new(now))
    }

    /// From now on it shows this, be it earlier or later.
    pub fn set(&self, now: SystemTime) {
        self.0.send_replace(now);
    }

    /// Time passes.
    pub fn advance(&self, span: Duration) {
        self.0.send_modify(|now| *now += span);
    }
}

impl SessionClock for ManualClock {
    fn now(&self) -> SystemTime {
        *self.0.borrow()
    }

    fn until(&self, moment: SystemTime) -> BoxFuture<'_, ()> {
        let mut shown = self.0.subscribe();
        Box::pin(async move {
            let before = *shown.borrow();
            // One that is put back is worth a look, too.
            let _ = shown.wait_for(|now| *now >= moment || *now < before).await;
        })
    }
}
