//! A pool of reusable task allocations for calls.

use std::{
    convert::Infallible,
    future::poll_fn,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

/// The maximum number of allocations that are kept for reuse.
const MAX_STORED: usize = 16;

/// A task that the pool can run.
pub(super) trait PoolableTask: Send + 'static {
    fn run(self) -> impl Future<Output = ()> + Send;
}

/// A pool of allocations for call tasks. The future that runs a call is large. Allocating and
/// freeing it for each call, or copying it into a box, costs more than many calls themselves.
/// Therefore one allocation runs one call after the other and only receives the data of each.
pub(super) struct CallTaskPool<W>(Mutex<Vec<ReusableTask<W>>>);

impl<W> Default for CallTaskPool<W> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<W: PoolableTask> CallTaskPool<W> {
    /// Wraps a task in a pooled allocation, which returns to the pool when the task is finished. If
    /// the wrapper is dropped earlier, the allocation is dropped with it.
    pub(super) fn boxed(self: &Arc<Self>, work: W) -> PooledCall<W> {
        let kept = self.pooled().pop();
        let own = kept.unwrap_or_else(ReusableTask::new);
        *own.slot() = TaskSlot::Ready(work);
        PooledCall {
            task: Some(own),
            pool: Arc::clone(self),
        }
    }

    fn pooled(&self) -> MutexGuard<'_, Vec<ReusableTask<W>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot through which a task is handed to an allocation.
enum TaskSlot<W> {
    /// A task waits to run.
    Ready(W),
    /// The task is running.
    Running,
    /// The last task has finished and was dropped.
    Empty,
}

struct ReusableTask<W> {
    runs: Pin<Box<dyn Future<Output = Infallible> + Send>>,
    slot: Arc<Mutex<TaskSlot<W>>>,
}

impl<W: PoolableTask> ReusableTask<W> {
    fn new() -> Self {
        let slot = Arc::new(Mutex::new(TaskSlot::<W>::Empty));
        let own = Arc::clone(&slot);
        let runs = Box::pin(async move {
            loop {
                // This future is only polled after a task was put into the slot, so it needs no waker.
                let work = poll_fn(|_| take(&own)).await;
                work.run().await;
                *locked(&own) = TaskSlot::Empty;
            }
        });
        Self { runs, slot }
    }

    fn slot(&self) -> MutexGuard<'_, TaskSlot<W>> {
        locked(&self.slot)
    }
}

fn locked<W>(desk: &Mutex<TaskSlot<W>>) -> MutexGuard<'_, TaskSlot<W>> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take<W>(desk: &Mutex<TaskSlot<W>>) -> Poll<W> {
    let mut desk = locked(desk);
    match mem::replace(&mut *desk, TaskSlot::Running) {
        TaskSlot::Ready(work) => Poll::Ready(work),
        other => {
            *desk = other;
            Poll::Pending
        }
    }
}

/// A call that runs in a pooled allocation.
pub(super) struct PooledCall<W> {
    /// The allocation; `None` once the call has finished.
    task: Option<ReusableTask<W>>,
    pool: Arc<CallTaskPool<W>>,
}

impl<W: PoolableTask> Future for PooledCall<W> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(own) = &mut self.task {
            let Poll::Pending = own.runs.as_mut().poll(cx);
            if !matches!(*own.slot(), TaskSlot::Empty) {
                return Poll::Pending;
            }
        }
        if let Some(done) = self.task.take() {
            let mut kept = self.pool.pooled();
            if kept.len() < MAX_STORED {
                kept.push(done);
            }
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Held {
        held: Arc<()>,
        ends: bool,
    }

    impl PoolableTask for Held {
        async fn run(self) {
            tokio::task::yield_now().await;
            if !self.ends {
                std::future::pending::<()>().await;
            }
            drop(self.held);
        }
    }

    #[tokio::test]
    async fn a_box_is_used_again_and_keeps_nothing_of_the_call_before() {
        let boxes = Arc::new(CallTaskPool::default());
        let held = Arc::new(());
        let work = |ends| Held {
            held: Arc::clone(&held),
            ends,
        };
        for _ in 0..3 {
            let call = boxes.boxed(work(true));
            assert_eq!(boxes.pooled().len(), 0);
            call.await;
            assert_eq!((boxes.pooled().len(), Arc::strong_count(&held)), (1, 1));
        }
        // One that is not done goes with what it holds, whether or not it has begun.
        drop(boxes.boxed(work(true)));
        assert_eq!((boxes.pooled().len(), Arc::strong_count(&held)), (0, 1));
        let mut begun = boxes.boxed(work(false));
        for _ in 0..3 {
            assert!(futures_util::poll!(&mut begun).is_pending());
        }
        assert_eq!(Arc::strong_count(&held), 2);
        drop(begun);
        assert_eq!((boxes.pooled().len(), Arc::strong_count(&held)), (0, 1));
        let many: Vec<_> = (0..2 * MAX_STORED)
            .map(|_| boxes.boxed(work(true)))
            .collect();
        for call in many {
            call.await;
        }
        assert_eq!(boxes.pooled().len(), MAX_STORED);
    }
}
