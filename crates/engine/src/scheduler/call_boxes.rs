//! Memory of calls that are over, for those that come.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use tokio_util::sync::ReusableBoxFuture;

/// So many are kept.
const MOST_KEPT: usize = 16;

/// Boxes of calls that are over. What runs a call is large, and to allocate and free as much for each costs more than
/// many a call does.
#[derive(Debug, Default)]
pub(super) struct CallBoxes(Mutex<Vec<ReusableBoxFuture<'static, ()>>>);

impl CallBoxes {
    /// The work in a box that is given back when it is done. What is dropped before that takes its box along.
    pub(super) fn boxed(
        self: &Arc<Self>,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> BoxedCall {
        let kept = self.kept().pop();
        let work = match kept {
            Some(mut kept) => {
                kept.set(work);
                kept
            }
            None => ReusableBoxFuture::new(work),
        };
        BoxedCall {
            work: Some(work),
            boxes: Arc::clone(self),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<ReusableBoxFuture<'static, ()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in its box.
pub(super) struct BoxedCall {
    /// Until it is done.
    work: Option<ReusableBoxFuture<'static, ()>>,
    boxes: Arc<CallBoxes>,
}

impl Future for BoxedCall {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(work) = &mut self.work {
            ready!(work.poll(cx));
        }
        // Everything in it is dropped already.
        if let Some(done) = self.work.take() {
            let mut kept = self.boxes.kept();
            if kept.len() < MOST_KEPT {
                kept.push(done);
            }
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_box_is_used_again_and_keeps_nothing_of_the_call_before() {
        let boxes = Arc::new(CallBoxes::default());
        let held = Arc::new(());
        for _ in 0..3 {
            let own = Arc::clone(&held);
            let call = boxes.boxed(async move {
                tokio::task::yield_now().await;
                drop(own);
            });
            assert_eq!(boxes.kept().len(), 0);
            call.await;
            assert_eq!((boxes.kept().len(), Arc::strong_count(&held)), (1, 1));
        }
        // One that is not done goes with what it holds.
        let own = Arc::clone(&held);
        drop(boxes.boxed(async move {
            std::future::pending::<()>().await;
            drop(own);
        }));
        assert_eq!((boxes.kept().len(), Arc::strong_count(&held)), (0, 1));
        let many: Vec<_> = (0..2 * MOST_KEPT).map(|_| boxes.boxed(async {})).collect();
        for call in many {
            call.await;
        }
        assert_eq!(boxes.kept().len(), MOST_KEPT);
    }
}
