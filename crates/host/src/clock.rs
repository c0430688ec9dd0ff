//! The clock of a session, for everything that happens at a set time.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use haft_contract::BoxFuture;
use tokio::sync::watch;

/// The clock that a session uses. Your own implementation can control the time.
pub trait SessionClock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> SystemTime;

    /// Waits until a time; it may return earlier, but never much later.
    fn sleep_until(&self, moment: SystemTime) -> BoxFuture<'_, ()>;
}

/// The interval at which the machine's clock is read again: it may be changed, and the time that a
/// machine sleeps is not measured otherwise.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineClock;

impl SessionClock for MachineClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep_until(&self, moment: SystemTime) -> BoxFuture<'_, ()> {
        let left = moment.duration_since(self.now()).unwrap_or_default();
        Box::pin(tokio::time::sleep(left.min(CLOCK_CHECK_INTERVAL)))
    }
}

/// Returns the machine's clock, for sharing.
pub(crate) fn shared_machine_clock() -> Arc<dyn SessionClock> {
    Arc::new(MachineClock)
}

/// A clock that advances only when it is set, for tests.
#[derive(Debug)]
pub struct ManualClock(watch::Sender<SystemTime>);

impl ManualClock {
    /// Creates a clock that shows this time.
    pub fn new(now: SystemTime) -> Self {
        Self(watch::Sender::new(now))
    }

    /// Sets the time, which may be earlier or later than before.
    pub fn set(&self, now: SystemTime) {
        self.0.send_replace(now);
    }

    /// Advances the time.
    pub fn advance(&self, span: Duration) {
        self.0.send_modify(|now| *now += span);
    }
}

impl SessionClock for ManualClock {
    fn now(&self) -> SystemTime {
        *self.0.borrow()
    }

    fn sleep_until(&self, moment: SystemTime) -> BoxFuture<'_, ()> {
        let mut shown = self.0.subscribe();
        Box::pin(async move {
            let before = *shown.borrow();
            // Return also if the clock is set back.
            let _ = shown.wait_for(|now| *now >= moment || *now < before).await;
        })
    }
}
