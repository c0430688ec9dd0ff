//! How many calls run at once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A call's right to run. Given back while it waits for a person.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    /// How long it was given back.
    waited: Duration,
}

impl Slot {
    /// Waits for a free slot.
    pub(crate) async fn take(slots: &Arc<Semaphore>) -> Self {
        let mut slot = Self {
            slots: Arc::clone(slots),
            permit: None,
            waited: Duration::ZERO,
        };
        slot.retake().await;
        slot
    }

    /// The right to run inside a call that has one: it takes none away from others, and cannot wait for
    /// the one that waits for it.
    pub(crate) fn inner() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(1)),
            permit: None,
            waited: Duration::ZERO,
        }
    }

    /// Waits for something that is none of our work, with the slot free for others.
    pub(crate) async fn without<T>(&mut self, waiting: impl Future<Output = T>) -> T {
        self.permit = None;
        let since = Instant::now();
        let answer = waiting.await;
        self.waited += since.elapsed();
        self.retake().await;
        answer
    }

    /// How long it was free for others so far.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }

    async fn retake(&mut self) {
        let permit = Arc::clone(&self.slots).acquire_owned().await;
        self.permit = Some(permit.expect("the semaphore is never closed"));
    }
}
