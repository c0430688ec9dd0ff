//! The task that runs the calls of a session.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use haft_contract::{CallId, CancellationToken, ToolUse, Update, progress::Updates};
use haft_engine::{CallObserver, CallResult, Scheduler, pipeline::Admitted};
use tokio::sync::{mpsc, oneshot};

use super::OpenCalls;
use crate::{RpcError, message::code};

/// A turn takes no more calls than this: what it remembers of them goes when it ends.
const MOST_IN_A_TURN: usize = 512;

/// What the task is to do.
pub(super) enum CallCommand {
    /// To run a call.
    Run(WaitingCall),
    /// Calls work in these directories from now on.
    Directories {
        directories: Vec<PathBuf>,
        done: oneshot::Sender<()>,
    },
}

/// A call to be run.
pub(super) struct WaitingCall {
    call: ToolUse,
    answer: oneshot::Sender<CallResult>,
    /// Fires to cancel it; known once it is taken up.
    cancel: Arc<OnceLock<CancellationToken>>,
}

/// Runs a call. Dropped while it waits, it cancels that call and no other.
pub(super) async fn carry_out(
    calls: &mpsc::Sender<CallCommand>,
    call: ToolUse,
    open: &OpenCalls,
) -> Result<CallResult, RpcError> {
    let over = || RpcError::new(code::INTERNAL, "the session is over");
    let (answer, answered) = oneshot::channel();
    let cancel = Arc::new(OnceLock::new());
    let _wanted = WantedCall {
        id: call.id.clone(),
        open,
        cancel: Arc::clone(&cancel),
    };
    let command = CallCommand::Run(WaitingCall {
        call,
        answer,
        cancel,
    });
    calls.send(command).await.map_err(|_| over())?;
    answered.await.map_err(|_| over())
}

/// A call whose result someone waits for.
struct WantedCall<'a> {
    id: String,
    open: &'a OpenCalls,
    cancel: Arc<OnceLock<CancellationToken>>,
}

impl Drop for WantedCall<'_> {
    fn drop(&mut self) {
        self.open.all().remove(&self.id);
        // One that is over does not mind.
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
        // Those who wait for results learn that there will be none.
        self.reports.waiting().clear();
    }
}

impl CallRunner {
    pub(super) fn new(scheduler: Scheduler, updates: Updates, open: OpenCalls) -> Self {
        let reports = Arc::new(CallReports {
            open,
            known: Mutex::default(),
            waiting: Mutex::default(),
        });
        haft_contract::spawn_boxed(Arc::clone(&reports).relay(updates));
        Self { scheduler, reports }
    }

    /// Until no one can call any more, or the session is over.
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
        drop(self.scheduler.turn().await);
    }

    /// Calls that overlap, until none runs.
    async fn turn(&mut self, first: CallCommand, commands: &mut mpsc::Receiver<CallCommand>) {
        let mut turn = self.scheduler.turn().await;
        turn.witnessed_by(Arc::clone(&self.reports) as _);
        let mut pushed = 0;
        let mut next = Some(first);
        loop {
            match next.take() {
                Some(CallCommand::Run(command)) if !command.answer.is_closed() => {
                    pushed += 1;
                    let id = command.call.id.clone();
                    // First: it may be over before the next line is.
                    self.reports.waiting().insert(id.clone(), command.answer);
                    let cancel = turn.push(command.call);
                    let _ = command.cancel.set(cancel.clone());
                    // Its client may have gone before the token was known.
                    let waiting = self.reports.waiting();
                    if waiting.get(&id).is_none_or(oneshot::Sender::is_closed) {
                        cancel.cancel();
                    }
                }
                Some(CallCommand::Directories { directories, done }) => {
                    turn.set_directories(directories);
                    let _ = done.send(()); // no one may wait for it
                }
                Some(CallCommand::Run(_)) | None => {}
            }
            tokio::select! {
                biased;
                ended = turn.next_ended() => match ended {
                    None => return,
                    Some(finished) => self.reports.answer(finished),
                },
                command = commands.recv(), if pushed < MOST_IN_A_TURN && !commands.is_closed() => {
                    next = command;
                }
            }
        }
    }
}

/// Reports to clients how far their calls are, and what they came to.
struct CallReports {
    open: OpenCalls,
    /// The calls that run and whose clients want to know, by the engine's ids.
    known: Mutex<HashMap<CallId, RelayedCall>>,
    /// Who waits for the results of calls, by the ids of these.
    waiting: Mutex<HashMap<String, oneshot::Sender<CallResult>>>,
}

struct RelayedCall {
    id: String,
    /// What was last reported.
    done: u64,
}

impl CallReports {
    async fn relay(self: Arc<Self>, mut updates: Updates) {
        while let Some((call, update)) = updates.recv().await {
            self.report(call, update);
        }
    }

    fn report(&self, call: CallId, update: Update) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(relayed) = known.get_mut(&call) else {
            return;
        };
        let Some(cx) = self.open.find(&relayed.id) else {
            return;
        };
        // The protocol wants it to grow, also where there are only words.
        let (done, total, words) = match update {
            Update::Step { done, total } => (done.max(relayed.done + 1), total, None),
            Update::Note { text } | Update::Text { text } => {
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
            let _ = answer.send(finished); // no one may want it
        }
    }
}

impl CallObserver for CallReports {
    fn started(&self, call: &Admitted) {
        let (own, id) = call.call().ids();
        if self.open.wants_progress(&id) {
            let relayed = RelayedCall { id, done: 0 };
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(own, relayed);
        }
    }

    fn ended(&self, _: &CallResult) {}

    /// At once: a client that asks one thing after the other waits for it, and for nothing else.
    fn take(&self, finished: CallResult) -> Option<CallResult> {
        self.answer(finished);
        None
    }
}
