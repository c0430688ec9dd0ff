//! An event stream written as an async block that sends its items.
//!
//! No task is spawned. The block runs only while the stream is polled. Dropping the stream drops
//! the block together with its connection.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures_util::{Stream, StreamExt};
use haft_contract::BoxFuture;

use crate::{EventStream, ModelError, ModelEvent};

/// The sending side of the stream: a slot into which the block puts its events.
#[derive(Clone)]
pub(crate) struct StreamSender {
    slot: Arc<Mutex<Option<ModelEvent>>>,
}

impl StreamSender {
    /// Hands the event to the stream's reader. Returns after the reader has received it.
    pub(crate) async fn send(&self, event: ModelEvent) {
        *self.slot() = Some(event);
        // No waker is stored: the reader that takes the event polls the block again for the next
        // one.
        poll_fn(|_| match *self.slot() {
            None => Poll::Ready(()),
            Some(_) => Poll::Pending,
        })
        .await;
    }

    fn slot(&self) -> MutexGuard<'_, Option<ModelEvent>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a stream of the events that the block sends. If the block ends with an error, the error
/// is the last item.
pub(crate) fn generate<F>(block: impl FnOnce(StreamSender) -> F) -> EventStream
where
    F: Future<Output = Result<(), ModelError>> + Send + 'static,
{
    let out = StreamSender {
        slot: Arc::default(),
    };
    GeneratedStream {
        future: Some(Box::pin(block(out.clone()))),
        out,
    }
    .boxed()
}

struct GeneratedStream {
    out: StreamSender,
    future: Option<BoxFuture<'static, Result<(), ModelError>>>,
}

impl Stream for GeneratedStream {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(future) = &mut self.future else {
            return Poll::Ready(None);
        };
        match future.as_mut().poll(context) {
            Poll::Ready(ended) => {
                self.future = None;
                Poll::Ready(ended.err().map(Err))
            }
            Poll::Pending => match self.out.slot().take() {
                Some(event) => Poll::Ready(Some(Ok(event))),
                None => Poll::Pending,
            },
        }
    }
}
