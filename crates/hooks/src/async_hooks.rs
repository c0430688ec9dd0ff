//! Handlers that run beside the session: no one waits for them, and what they say comes later.

use std::{
    collections::VecDeque,
    future::poll_fn,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use tokio::{sync::Notify, task::JoinSet};

use super::job::{Done, Job, cut};

/// What a handler said after the event it was for. It decides nothing any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Late {
    /// What the model should know.
    pub context: Option<String>,
    /// What the person should know.
    pub message: Option<String>,
    /// The model should know it now, also if it has said everything.
    pub wakes: bool,
}

/// What handlers have said that no one has read yet.
#[derive(Debug, Default)]
struct Queue {
    said: Mutex<VecDeque<Late>>,
    came: Notify,
}

impl Queue {
    fn said(&self) -> MutexGuard<'_, VecDeque<Late>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handlers that run beside a session. They are killed with it.
#[derive(Debug, Default)]
pub(super) struct Beside {
    // The tasks hold the queue and not this, so that it can go while they run.
    queue: Arc<Queue>,
    tasks: Mutex<JoinSet<()>>,
}

impl Beside {
    /// Lets it run; what it says comes later, if it was written to run like this. It has started when
    /// this returns, however soon the session ends then.
    pub(super) async fn start(&self, job: Job) {
        let queue = Arc::clone(&self.queue);
        let (delivers, wakes) = (job.handler.in_background, job.handler.wakes);
        let mut run = Box::pin(async move {
            let late = late(job.run().await, wakes);
            if delivers && late != Late::default() {
                queue.said().push_back(late);
                queue.came.notify_one();
            }
        });
        let first = poll_fn(|context| Poll::Ready(run.as_mut().poll(context))).await;
        if first.is_pending() {
            let mut tasks = self.tasks();
            while tasks.try_join_next().is_some() {}
            tasks.spawn(run);
        }
    }

    /// Takes what was said since the last time.
    pub(super) fn take(&self) -> Vec<Late> {
        mem::take(&mut *self.queue.said()).into()
    }

    /// Wants anything said to wake the model?
    pub(super) fn has_waker(&self) -> bool {
        self.queue.said().iter().any(|late| late.wakes)
    }

    /// Returns when something wants to wake the model.
    pub(super) async fn woken(&self) {
        while !self.has_waker() {
            self.queue.came.notified().await;
        }
    }

    /// Kills what still runs, and waits until it is gone.
    pub(super) async fn end(&self) {
        let mut tasks = mem::take(&mut *self.tasks());
        tasks.shutdown().await;
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn late(done: Done, wakes: bool) -> Late {
    if let Some(failure) = &done.said.failure {
        tracing::debug!(failure, "a hook beside the session failed");
    }
    let objection = done.ended.filter(|ended| wakes && ended.code == Some(2));
    if let Some(ended) = objection {
        let texts = [ended.stderr.trim(), ended.stdout.trim()];
        let said = texts.into_iter().find(|text| !text.is_empty());
        let mut said = said
            .unwrap_or("A hook objects and does not say why.")
            .to_owned();
        cut(&mut said);
        return Late {
            context: Some(said),
            message: done.said.message,
            wakes: true,
        };
    }
    Late {
        context: done.said.context,
        message: done.said.message,
        wakes: false,
    }
}
