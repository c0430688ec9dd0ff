//! A running command with its output. A call that waits for a command and a background task both
//! hold a job; the job itself does not know the difference.

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
    CommandEnd, CommandHandle, CommandOutput, ExceededLimit, Mechanism, ProcessInfo, Sandbox,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use super::capture::{CaptureEnd, OutputCapture};

/// The maximum output of a command, in bytes. A command that prints more is killed.
const OUTPUT_LIMIT: u64 = 5_000_000_000;

/// The time for which output is still read if a process that the command left running keeps the
/// pipe open.
const STRAYS: Duration = Duration::from_millis(100);
/// The time for the rest of an output to arrive after all writers have ended.
const REST: Duration = Duration::from_secs(5);

/// A running command. When the last reference is dropped, the command is killed with everything it
/// started.
#[derive(Debug)]
pub(crate) struct CommandJob {
    /// The command's output.
    pub(crate) capture: OutputCapture,
    /// The command cannot create control files (files that decide what other programs run), so haft
    /// need not search for them.
    pub(crate) cannot_make_control_files: bool,
    /// Other processes are hidden from the command.
    pub(crate) sees_only_its_own: bool,
    /// The command's own network, if it has one.
    #[cfg(feature = "browser")]
    pub(crate) network: Option<CommandNetwork>,
    stage: watch::Receiver<JobStage>,
    orders: mpsc::UnboundedSender<JobOrder>,
    cause: Mutex<Option<KillCause>>,
    flooded: Arc<AtomicBool>,
}

/// Waits until a command has exited. Unlike the method of [`CommandJob`], this does not keep the
/// job alive: a command ends when its job is dropped.
pub(crate) async fn wait_for_exit(stages: watch::Receiver<JobStage>) -> CommandEnd {
    reached(stages, |stage| !matches!(stage, JobStage::Running)).await
}

async fn reached(
    mut stages: watch::Receiver<JobStage>,
    far_enough: impl Fn(&JobStage) -> bool,
) -> CommandEnd {
    let reached = stages.wait_for(far_enough).await;
    match reached.as_deref() {
        Ok(JobStage::Exited(ended) | JobStage::Gone(ended)) => ended.clone(),
        // The runtime is shutting down.
        Ok(JobStage::Running) | Err(_) => CommandEnd::lost(),
    }
}

/// The state of a command.
#[derive(Debug, Clone)]
pub(crate) enum JobStage {
    /// The command is running.
    Running,
    /// The command has exited; processes that it started may still run.
    Exited(CommandEnd),
    /// All processes of the command have ended, and all its output has arrived.
    Gone(CommandEnd),
}

/// The reason why haft ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillCause {
    /// The user interrupted the call.
    Interrupted,
    /// The command exceeded its timeout.
    TimedOut(Duration),
    /// The task was stopped.
    Stopped,
    /// The command printed too much.
    Flood,
    /// The command is a monitor and printed too much for one, for this reason.
    TooManyEvents(&'static str),
    /// The processes that the command left running must not continue.
    Leftover,
}

#[derive(Debug)]
enum JobOrder {
    Kill(Duration),
    ListProcesses(oneshot::Sender<Vec<ProcessInfo>>),
}

impl CommandJob {
    /// Creates a job for a command that was just started.
    pub(crate) fn new(
        sandbox: Sandbox,
        mut running: CommandHandle,
        capture: OutputCapture,
    ) -> Self {
        let output = running.output.take();
        let cannot_make_control_files = running.is_mediated();
        let sees_only_its_own = running.mechanism() < Mechanism::Reduced;
        #[cfg(feature = "browser")]
        let network = running.network().cloned();
        let (orders, received) = mpsc::unbounded_channel();
        let (told, stage) = watch::channel(JobStage::Running);
        let flooded = Arc::<AtomicBool>::default();
        haft_contract::spawn_boxed(
            JobDriver {
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
            cannot_make_control_files,
            sees_only_its_own,
            #[cfg(feature = "browser")]
            network,
            stage,
            orders,
            cause: Mutex::default(),
            flooded,
        }
    }

    /// Waits until the command itself has exited. Processes that it started may still run.
    pub(crate) async fn wait_for_exit(&self) -> CommandEnd {
        wait_for_exit(self.stages()).await
    }

    /// Waits until all processes of the command have ended.
    pub(crate) async fn wait_until_gone(&self) -> CommandEnd {
        reached(self.stages(), |stage| matches!(stage, JobStage::Gone(_))).await
    }

    /// Returns a receiver of the command's state that does not keep the job alive.
    pub(crate) fn stages(&self) -> watch::Receiver<JobStage> {
        self.stage.clone()
    }

    /// Returns the command's state.
    pub(crate) fn stage(&self) -> JobStage {
        self.stage.borrow().clone()
    }

    /// Waits for the rest of the output after the command has exited. Waits only briefly if
    /// processes that it left running keep the pipe open.
    pub(crate) async fn drain_output(&self) {
        let left = match self.stage() {
            JobStage::Exited(ended) => ended.left > 0,
            JobStage::Running => true,
            JobStage::Gone(_) => false,
        };
        self.wait_until_gone_within(if left { STRAYS } else { REST })
            .await;
    }

    /// Returns the limit that the command, or a process that it left running, has exceeded.
    pub(crate) fn exceeded(&self) -> Option<ExceededLimit> {
        match self.stage() {
            JobStage::Exited(ended) | JobStage::Gone(ended) => ended.exceeded,
            JobStage::Running => None,
        }
    }

    /// Waits until all processes of the command have ended, for at most `longest`.
    pub(crate) async fn wait_until_gone_within(&self, longest: Duration) {
        let _ = timeout(longest, self.wait_until_gone()).await;
    }

    /// Kills the command and everything it started. Later calls do not change the recorded cause.
    pub(crate) fn kill(&self, cause: KillCause, grace: Duration) {
        self.cause
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(cause);
        let _ = self.orders.send(JobOrder::Kill(grace));
    }

    /// Kills the processes that the command has left running. The command's own exit status is
    /// unchanged.
    pub(crate) fn end_leftovers(&self) {
        let _ = self.orders.send(JobOrder::Kill(Duration::ZERO));
    }

    /// Returns the reason why haft ended the command, if it did.
    pub(crate) fn cause(&self) -> Option<KillCause> {
        if self.flooded.load(Ordering::Relaxed) {
            return Some(KillCause::Flood);
        }
        *self.cause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the command's running processes.
    pub(crate) async fn processes(&self) -> Vec<ProcessInfo> {
        let (answer, told) = oneshot::channel();
        let _ = self.orders.send(JobOrder::ListProcesses(answer));
        told.await.unwrap_or_default()
    }
}

/// The task that runs a command: it reads the output, carries out orders and publishes the stage.
struct JobDriver {
    /// Keeps the sandbox alive: a sandbox that is dropped ends everything it started.
    _sandbox: Sandbox,
    running: CommandHandle,
    capture: OutputCapture,
    orders: mpsc::UnboundedReceiver<JobOrder>,
    stage: watch::Sender<JobStage>,
    flooded: Arc<AtomicBool>,
}

impl JobDriver {
    async fn drive(mut self, output: CommandOutput) {
        enum JobEvent {
            Ordered(Option<JobOrder>),
            Filled(CaptureEnd),
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
                    running.wait_until_finished().await;
                    JobEvent::Gone
                } else {
                    JobEvent::Exited(running.wait_for_exit().await)
                }
            };
            let event = tokio::select! {
                order = self.orders.recv() => JobEvent::Ordered(order),
                how = &mut filling, if !filled => JobEvent::Filled(how.unwrap_or(CaptureEnd::Whole)),
                event = ends => event,
            };
            match event {
                JobEvent::Ordered(Some(JobOrder::Kill(grace))) => self.running.kill(grace),
                JobEvent::Ordered(Some(JobOrder::ListProcesses(answer))) => {
                    let _ = answer.send(self.running.processes());
                }
                // The job was dropped; dropping the driver kills the command.
                JobEvent::Ordered(None) => return,
                JobEvent::Filled(how) => {
                    filled = true;
                    if how == CaptureEnd::TooMuch {
                        self.flooded.store(true, Ordering::Relaxed);
                        self.running.kill(Duration::ZERO);
                    }
                }
                JobEvent::Exited(how) => {
                    self.stage.send_replace(JobStage::Exited(how));
                    exited = true;
                }
                JobEvent::Gone => {
                    // No process can write any longer: only output in transit is left.
                    if !filled {
                        let _ = timeout(REST, &mut filling).await;
                    }
                    // The limit that was exceeded after the shell had exited, if any, is included.
                    let how = self.running.wait_for_exit().await;
                    self.stage.send_replace(JobStage::Gone(how));
                    return;
                }
            }
        }
    }
}
