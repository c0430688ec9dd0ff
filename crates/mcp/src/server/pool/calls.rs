//! The task that runs the calls of a session.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use haft_contract::{
    CallId, CancellationToken, ProgressUpdate, ToolUse, progress::ProgressUpdates,
};
use haft_engine::{CallObserver, CallResult, Scheduler, pipeline::AdmittedCall};
use tokio::sync::{mpsc, oneshot};

use super::ActiveCalls;
use crate::{RpcError, message::code};

/// The maximum number of calls in a turn: the memory of its calls is freed when it ends.
const MAX_IN_A_TURN: usize = 512;

/// A command to the task.
pub(super) enum CallCommand {
    /// Run a call.
    Run(QueuedCall),
    /// Set the working directories of later calls.
    Directories {
        directories: Vec<PathBuf>,
        done: oneshot::Sender<()>,
    },
}

/// A call to run.
pub(super) struct QueuedCall {
    call: ToolUse,
    answer: oneshot::Sender<CallResult>,
    /// Cancels the call; set once the call has started.
    cancel: Arc<OnceLock<CancellationToken>>,
}

/// Runs a call. If the future is dropped, only this call is cancelled.
pub(super) async fn carry_out(
    calls: &mpsc::Sender<CallCommand>,
    call: ToolUse,
    open: &ActiveCalls,
) -> Result<CallResult, RpcError> {
    let over = || RpcError::new(code::INTERNAL, "the session has ended");
    let (answer, answered) = oneshot::channel();
    let cancel = Arc::new(OnceLock::new());
    let _wanted = ToolCallGuard {
        id: call.id.clone(),
        open,
        cancel: Arc::clone(&cancel),
    };
    let command = CallCommand::Run(QueuedCall {
        call,
        answer,
        cancel,
    });
    calls.send(command).await.map_err(|_| over())?;
    answered.await.map_err(|_| over())
}

/// A call whose caller waits for the result.
struct ToolCallGuard<'a> {
    id: String,
    open: &'a ActiveCalls,
    cancel: Arc<OnceLock<CancellationToken>>,
}

impl Drop for ToolCallGuard<'_> {
    fn drop(&mut self) {
        self.open.all().remove(&self.id);
        // Cancelling a finished call has no effect.
        if let Some(cancel) = self.cancel.get() {
            cancel.cancel();
        }
    }
}

/// Owns the scheduler of a session.
pub(super) struct CallRunner {
    scheduler: Scheduler,
    reports: Arc<CallReports>,
}

impl Drop for CallRunner {
    fn drop(&mut self) {
        // Callers that wait for results are woken with an error.
        self.reports.waiting().clear();
    }
}

impl CallRunner {
    pub(super) fn new(scheduler: Scheduler, updates: ProgressUpdates, open: ActiveCalls) -> Self {
        let reports = Arc::new(CallReports {
            open,
            known: Mutex::default(),
            waiting: Mutex::default(),
        });
        haft_contract::spawn_boxed(Arc::clone(&reports).relay(updates));
        Self { scheduler, reports }
    }

    /// Runs until all senders are dropped or the session ends.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<CallCommand>) {
        let over = self.scheduler.cancel_token();
        loop {
            let first = tokio::select! {
                biased;
                () = over.cancelled() => break,
                first = commands.recv() => match first {
                    Some(first) => first,
                    None => break,
                },
            };
            self.turn(first, &mut commands).await;
        }
        commands.close();
        drop(self.scheduler.start_batch().await);
    }

    /// Runs overlapping calls until none is left.
    async fn turn(&mut self, first: CallCommand, commands: &mut mpsc::Receiver<CallCommand>) {
        let mut turn = self.scheduler.start_batch().await;
        turn.set_observer(Arc::clone(&self.reports) as _);
        let mut pushed = 0;
        let mut next = Some(first);
        loop {
            match next.take() {
                Some(CallCommand::Run(command)) if !command.answer.is_closed() => {
                    pushed += 1;
                    let id = command.call.id.clone();
                    // Registered first, because the call may finish immediately.
                    self.reports.waiting().insert(id.clone(), command.answer);
                    let cancel = turn.push(command.call);
                    let _ = command.cancel.set(cancel.clone());
                    // The client may have disconnected before the token was set.
                    let waiting = self.reports.waiting();
                    if waiting.get(&id).is_none_or(oneshot::Sender::is_closed) {
                        cancel.cancel();
                    }
                }
                Some(CallCommand::Directories { directories, done }) => {
                    turn.set_directories(directories);
                    let _ = done.send(()); // the caller may have stopped waiting
                }
                Some(CallCommand::Run(_)) | None => {}
            }
            tokio::select! {
                biased;
                ended = turn.next_ended() => match ended {
                    None => return,
                    Some(finished) => self.reports.answer(finished),
                },
                command = commands.recv(), if pushed < MAX_IN_A_TURN && !commands.is_closed() => {
                    next = command;
                }
            }
        }
    }
}

/// Reports progress and results of calls to clients.
struct CallReports {
    open: ActiveCalls,
    /// The running calls whose clients requested progress, by the engine's ids.
    known: Mutex<HashMap<CallId, RelayedCall>>,
    /// The receivers of results, by the ids of their calls.
    waiting: Mutex<HashMap<String, oneshot::Sender<CallResult>>>,
}

struct RelayedCall {
    id: String,
    /// The last reported number.
    done: u64,
}

impl CallReports {
    async fn relay(self: Arc<Self>, mut updates: ProgressUpdates) {
        while let Some((call, update)) = updates.recv().await {
            self.report(call, update);
        }
    }

    fn report(&self, call: CallId, update: ProgressUpdate) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(relayed) = known.get_mut(&call) else {
            return;
        };
        let Some(cx) = self.open.find(&relayed.id) else {
            return;
        };
        // The protocol requires progress to increase, even for text-only reports.
        let (done, total, words) = match update {
            ProgressUpdate::Step { done, total } => (done.max(relayed.done + 1), total, None),
            ProgressUpdate::Note { text } | ProgressUpdate::Text { text } => {
                (relayed.done + 1, None, Some(text.trim_end().to_owned()))
            }
        };
        relayed.done = done;
        #[expect(clippy::cast_precision_loss, reason = "progress is a rough number")]
        let (done, total) = (done as f64, total.map(|total| total as f64));
        cx.progress(done, total, words.as_deref());
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<CallResult>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, finished: CallResult) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&finished.call);
        drop(known);
        let answer = self.waiting().remove(&finished.id);
        if let Some(answer) = answer {
            let _ = answer.send(finished); // the caller may have stopped waiting
        }
    }
}

impl CallObserver for CallReports {
    fn on_started(&self, call: &AdmittedCall) {
        let (own, id) = call.call().ids();
        if self.open.wants_progress(&id) {
            let relayed = RelayedCall { id, done: 0 };
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(own, relayed);
        }
    }

    fn on_ended(&self, _: &CallResult) {}

    /// Answers immediately: a client that sends one request after the other waits only for this.
    fn take_result(&self, finished: CallResult) -> Option<CallResult> {
        self.answer(finished);
        None
    }
}
