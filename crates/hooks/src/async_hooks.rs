//! Handlers that run in the background: nothing waits for them, and their output is delivered
//! later.

use std::{
    collections::VecDeque,
    future::poll_fn,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use tokio::{sync::Notify, task::JoinSet};

use super::job::{HookJob, HookJobResult, cut};

/// The output of a background handler after its event. It can no longer change a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AsyncHookOutput {
    /// Text for the model.
    pub context: Option<String>,
    /// Text for the user.
    pub message: Option<String>,
    /// Whether the model must get it immediately, even if its turn has ended.
    pub wakes: bool,
}

/// Outputs of background handlers that were not fetched yet.
#[derive(Debug, Default)]
struct AsyncOutputQueue {
    outputs: Mutex<VecDeque<AsyncHookOutput>>,
    output_arrived: Notify,
}

impl AsyncOutputQueue {
    fn outputs(&self) -> MutexGuard<'_, VecDeque<AsyncHookOutput>> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The background handlers of a session. They are killed when the session ends.
#[derive(Debug, Default)]
pub(super) struct AsyncHooks {
    // The tasks share only the queue, so that this value can be dropped while they run.
    queue: Arc<AsyncOutputQueue>,
    tasks: Mutex<JoinSet<()>>,
}

impl AsyncHooks {
    /// Starts a handler in the background. Its output is delivered later if it was configured as a
    /// background handler. The handler has been started when this returns, even if the session ends
    /// right after that.
    pub(super) async fn start(&self, job: HookJob) {
        let queue = Arc::clone(&self.queue);
        let (delivers, wakes) = (job.handler.in_background, job.handler.wakes);
        let mut run = Box::pin(async move {
            let output = to_async_output(job.run().await, wakes);
            if delivers && output != AsyncHookOutput::default() {
                queue.outputs().push_back(output);
                queue.output_arrived.notify_one();
            }
        });
        let first = poll_fn(|context| Poll::Ready(run.as_mut().poll(context))).await;
        if first.is_pending() {
            let mut tasks = self.tasks();
            while tasks.try_join_next().is_some() {}
            tasks.spawn(run);
        }
    }

    /// Takes the outputs since the last call.
    pub(super) fn take_outputs(&self) -> Vec<AsyncHookOutput> {
        mem::take(&mut *self.queue.outputs()).into()
    }

    /// Returns whether an output is waiting that wakes the model.
    pub(super) fn has_waker(&self) -> bool {
        self.queue.outputs().iter().any(|output| output.wakes)
    }

    /// Waits for an output that wakes the model.
    pub(super) async fn wait_for_wake(&self) {
        while !self.has_waker() {
            self.queue.output_arrived.notified().await;
        }
    }

    /// Kills all running handlers and waits until they have exited.
    pub(super) async fn shutdown(&self) {
        let mut tasks = mem::take(&mut *self.tasks());
        tasks.shutdown().await;
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn to_async_output(result: HookJobResult, wakes: bool) -> AsyncHookOutput {
    if let Some(failure) = &result.output.failure {
        tracing::debug!(failure, "a background hook failed");
    }
    let objection = result.exit.filter(|ended| wakes && ended.code == Some(2));
    if let Some(ended) = objection {
        let texts = [ended.stderr.trim(), ended.stdout.trim()];
        let reason = texts.into_iter().find(|text| !text.is_empty());
        let mut reason = reason
            .unwrap_or("A hook objects and gives no reason.")
            .to_owned();
        cut(&mut reason);
        return AsyncHookOutput {
            context: Some(reason),
            message: result.output.message,
            wakes: true,
        };
    }
    AsyncHookOutput {
        context: result.output.context,
        message: result.output.message,
        wakes: false,
    }
}
