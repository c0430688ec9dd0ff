//! Slots that limit the number of concurrent calls.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A call's slot. It is released while the call waits for the user.
#[derive(Debug)]
pub(crate) struct CallSlot {
    slots: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    /// The time for which the slot was released.
    waited: Duration,
}

impl CallSlot {
    /// Waits for a free slot.
    pub(crate) async fn acquire(slots: &Arc<Semaphore>) -> Self {
        let mut slot = Self {
            slots: Arc::clone(slots),
            permit: None,
            waited: Duration::ZERO,
        };
        slot.reacquire().await;
        slot
    }

    /// Returns a slot for a call inside another call. It does not count towards the limit:
    /// otherwise it could wait for the slot of the call that waits for it.
    pub(crate) fn nested() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(1)),
            permit: None,
            waited: Duration::ZERO,
        }
    }

    /// Releases the slot while a future runs that only waits, for example for the user.
    pub(crate) async fn release_while<T>(&mut self, waiting: impl Future<Output = T>) -> T {
        self.permit = None;
        let since = Instant::now();
        let answer = waiting.await;
        self.waited += since.elapsed();
        self.reacquire().await;
        answer
    }

    /// Returns the time for which the slot was released so far.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }

    async fn reacquire(&mut self) {
        let permit = Arc::clone(&self.slots).acquire_owned().await;
        self.permit = Some(permit.expect("the semaphore is never closed"));
    }
}
