//! Fallback models, used if the first model fails.
//!
//! [`Fallback`] switches to the next model when a model is overloaded or does not exist. It does
//! not switch back on its own: each switch costs the prompt cache. Wrap the inner models in a
//! [`RetryPolicy`](crate::RetryPolicy) with `max_overloaded`; otherwise the first model is retried
//! ten times before the second one is used.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::StreamExt;
use haft_contract::CancellationToken;

use crate::{
    ErrorKind, EventStream, Model, ModelError, ModelEvent, ModelRequest,
    reply_progress::ReplyProgress,
    stream_block::{StreamSender, generate},
};

/// Models that are tried one after the other.
#[derive(Debug, Clone)]
pub struct Fallback {
    first: Arc<dyn Model>,
    others: Vec<(Arc<dyn Model>, String)>,
    /// The number of models that have failed so far.
    failed: Arc<AtomicUsize>,
}

impl Fallback {
    /// Creates a fallback with only one model. This model receives requests unchanged.
    pub fn new(first: Arc<dyn Model>) -> Self {
        Self {
            first,
            others: Vec::new(),
            failed: Arc::default(),
        }
    }

    /// Adds a model after the others. Requests to it contain `name` as the model.
    #[must_use]
    pub fn then(mut self, model: Arc<dyn Model>, name: impl Into<String>) -> Self {
        self.others.push((model, name.into()));
        self
    }

    /// Switches back to the first model.
    pub fn reset(&self) {
        self.failed.store(0, Ordering::Relaxed);
    }

    async fn run(
        self,
        mut request: ModelRequest,
        cancel: CancellationToken,
        out: StreamSender,
    ) -> Result<(), ModelError> {
        let first = request.model.clone();
        let mut current = self.failed.load(Ordering::Relaxed).min(self.others.len());
        loop {
            let model = match current.checked_sub(1) {
                None => &self.first,
                Some(other) => {
                    let (model, name) = &self.others[other];
                    request.model.clone_from(name);
                    model
                }
            };
            let mut handed_out = ReplyProgress::default();
            let mut events = model.stream(request.clone(), cancel.clone());
            let error = loop {
                match events.next().await {
                    None => return Ok(()),
                    Some(Err(error)) => break error,
                    Some(Ok(event)) => {
                        handed_out.record(&event);
                        out.send(event).await;
                    }
                }
            };
            let may_help = matches!(error.kind, ErrorKind::Overloaded | ErrorKind::NotFound);
            if !may_help || handed_out.has_call || current == self.others.len() {
                return Err(error);
            }
            if handed_out.has_content {
                out.send(ModelEvent::Discard).await;
            }
            let from = match current.checked_sub(1) {
                None => first.clone(),
                Some(other) => self.others[other].1.clone(),
            };
            let to = self.others[current].1.clone();
            current += 1;
            self.failed.fetch_max(current, Ordering::Relaxed);
            out.send(ModelEvent::Fallback { from, to, error }).await;
        }
    }
}

impl Model for Fallback {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let fallback = self.clone();
        generate(move |out| fallback.run(request, cancel, out))
    }
}
