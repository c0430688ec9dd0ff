//! A command that runs, with its output: the same thing for a call that waits for it and for a task
//! in the background. Which of the two it is depends only on who holds it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

#[cfg(feature = "browser")]
use haft_sandbox::CommandNetwork;
use haft_sandbox::{
    CommandEnd, CommandOutput, ExceededLimit, Mechanism, Process, Running, Sandbox,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use super::capture::{Capture, Filled};

/// A command that prints more is ended.
const OUTPUT_LIMIT: u64 = 5_000_000_000;

/// How long a stray that still holds the pipe is listened to.
const STRAYS: Duration = Duration::from_millis(100);
/// How long the rest of an output may take to arrive once no one writes any more.
const REST: Duration = Duration::from_secs(5);

/// A command that runs. It is killed with everything it started when its last holder is gone.
#[derive(Debug)]
pub(crate) struct Job {
    /// Its output.
    pub(crate) capture: Capture,
    /// It cannot make control files, so that none need be looked for.
    pub(crate) makes_none: bool,
    /// Other processes are hidden from it.
    pub(crate) sees_only_its_own: bool,
    /// The network that it has for itself.
    #[cfg(feature = "browser")]
    pub(crate) network: Option<CommandNetwork>,
    stage: watch::Receiver<Stage>,
    orders: mpsc::UnboundedSender<Order>,
    cause: Mutex<Option<Cause>>,
    flooded: Arc<AtomicBool>,
}

/// [`Job::exited`], for one that must not keep the job: a command ends when its job is dropped.
pub(crate) async fn exited(stages: watch::Receiver<Stage>) -> CommandEnd {
    reached(stages, |stage| !matches!(stage, Stage::Running)).await
}

async fn reached(
    mut stages: watch::Receiver<Stage>,
    far_enough: impl Fn(&Stage) -> bool,
) -> CommandEnd {
    let reached = stages.wait_for(far_enough).await;
    match reached.as_deref() {
        Ok(Stage::Exited(ended) | Stage::Gone(ended)) => ended.clone(),
        // The runtime is shutting down.
        Ok(Stage::Running) | Err(_) => CommandEnd::lost(),
    }
}

/// How far a command is.
#[derive(Debug, Clone)]
pub(crate) enum Stage {
    /// It runs.
    Running,
    /// It ended; what it started may still run.
    Exited(CommandEnd),
    /// Nothing of it runs any more, and all its output is there.
    Gone(CommandEnd),
}

/// Why we ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Someone interrupted the call.
    Interrupted,
    /// It ran longer than it may.
    TimedOut(Duration),
    /// Someone stopped the task.
    Stopped,
    /// It said too much.
    Flood,
    /// It is a monitor, and said too much for one: why.
    Chatter(&'static str),
    /// It only reads, and left something running.
    Leftover,
}

#[derive(Debug)]
enum Order {
    Kill(Duration),
    Who(oneshot::Sender<Vec<Process>>),
}

impl Job {
    /// Takes charge of a command that was just started.
    pub(crate) fn new(sandbox: Sandbox, mut running: Running, capture: Capture) -> Self {
        let output = running.output.take();
        let makes_none = running.is_mediated();
        let sees_only_its_own = running.mechanism() < Mechanism::Reduced;
        #[cfg(feature = "browser")]
        let network = running.network().cloned();
        let (orders, received) = mpsc::unbounded_channel();
        let (told, stage) = watch::channel(Stage::Running);
        let flooded = Arc::<AtomicBool>::default();
        haft_contract::spawn_boxed(
            Driver {
                _sandbox: sandbox,
                running,
                capture: capture.clone(),
                orders: received,
                stage: told,
                flooded: Arc::clone(&flooded),
            }
            .drive(output),
        );
        Self {
            capture,
            makes_none,
            sees_only_its_own,
            #[cfg(feature = "browser")]
            network,
            stage,
            orders,
            cause: Mutex::default(),
            flooded,
        }
    }

    /// Waits until the command itself ended. What it started may still run.
    pub(crate) async fn exited(&self) -> CommandEnd {
        exited(self.stages()).await
    }

    /// Waits until nothing of it runs any more.
    pub(crate) async fn gone(&self) -> CommandEnd {
        reached(self.stages(), |stage| matches!(stage, Stage::Gone(_))).await
    }

    /// Reports how far it is, without keeping it.
    pub(crate) fn stages(&self) -> watch::Receiver<Stage> {
        self.stage.clone()
    }

    /// How far it is.
    pub(crate) fn stage(&self) -> Stage {
        self.stage.borrow().clone()
    }

    /// After the command ended: waits for what is still on its way. Strays that keep the pipe open
    /// are not waited for.
    pub(crate) async fn settle(&self) {
        let left = match self.stage() {
            Stage::Exited(ended) => ended.left > 0,
            Stage::Running => true,
            Stage::Gone(_) => false,
        };
        self.over_within(if left { STRAYS } else { REST }).await;
    }

    /// The limit that it exceeded, or that what it left running exceeded.
    pub(crate) fn exceeded(&self) -> Option<ExceededLimit> {
        match self.stage() {
            Stage::Exited(ended) | Stage::Gone(ended) => ended.exceeded,
            Stage::Running => None,
        }
    }

    /// Waits until nothing of it runs any more, at most so long.
    pub(crate) async fn over_within(&self, longest: Duration) {
        let _ = timeout(longest, self.gone()).await;
    }

    /// Ends it with everything it started; the first cause stays.
    pub(crate) fn kill(&self, cause: Cause, grace: Duration) {
        self.cause
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(cause);
        let _ = self.orders.send(Order::Kill(grace));
    }

    /// Ends what it has left running; how it ended itself stays what it was.
    pub(crate) fn end_leftovers(&self) {
        let _ = self.orders.send(Order::Kill(Duration::ZERO));
    }

    /// Why we ended it, if we did.
    pub(crate) fn cause(&self) -> Option<Cause> {
        if self.flooded.load(Ordering::Relaxed) {
            return Some(Cause::Flood);
        }
        *self.cause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What of it runs now.
    pub(crate) async fn processes(&self) -> Vec<Process> {
        let (answer, told) = oneshot::channel();
        let _ = self.orders.send(Order::Who(answer));
        told.await.unwrap_or_default()
    }
}

struct Driver {
    /// Everything a sandbox started ends with it, so it is held as long as this runs.
    _sandbox: Sandbox,
    running: Running,
    capture: Capture,
    orders: mpsc::UnboundedReceiver<Order>,
    stage: watch::Sender<Stage>,
    flooded: Arc<AtomicBool>,
}

impl Driver {
    async fn drive(mut self, output: CommandOutput) {
        enum Event {
            Ordered(Option<Order>),
            Filled(Filled),
            Exited(CommandEnd),
            Gone,
        }
        let capture = self.capture.clone();
        let mut filling =
            haft_contract::spawn_boxed(async move { capture.fill(output, OUTPUT_LIMIT).await });
        let mut filled = false;
        let mut exited = false;
        loop {
            let running = &mut self.running;
            let ends = async move {
                if exited {
                    running.gone().await;
                    Event::Gone
                } else {
                    Event::Exited(running.exited().await)
                }
            };
            let event = tokio::select! {
                order = self.orders.recv() => Event::Ordered(order),
                how = &mut filling, if !filled => Event::Filled(how.unwrap_or(Filled::Whole)),
                event = ends => event,
            };
            match event {
                Event::Ordered(Some(Order::Kill(grace))) => self.running.kill(grace),
                Event::Ordered(Some(Order::Who(answer))) => {
                    let _ = answer.send(self.running.processes());
                }
                // No one holds it any more: dropping it kills it.
                Event::Ordered(None) => return,
                Event::Filled(how) => {
                    filled = true;
                    if how == Filled::TooMuch {
                        self.flooded.store(true, Ordering::Relaxed);
                        self.running.kill(Duration::ZERO);
                    }
                }
                Event::Exited(how) => {
                    self.stage.send_replace(Stage::Exited(how));
                    exited = true;
                }
                Event::Gone => {
                    // No one can write any more: what is on its way is all there is.
                    if !filled {
                        let _ = timeout(REST, &mut filling).await;
                    }
                    // With the limit that was exceeded after the shell had exited, if any.
                    let how = self.running.exited().await;
                    self.stage.send_replace(Stage::Gone(how));
                    return;
                }
            }
        }
    }
}
