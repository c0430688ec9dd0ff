//! The handle of a subagent.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use haft_contract::{AgentReport, AgentWorktree, CancellationToken, Content, TaskStatus};
use haft_extensions::AgentDefinition;
use tokio::sync::{Notify, watch};

use super::event_forwarder::SubagentInfo;
use crate::{AgentHandle, Prompt};

/// A handle on a subagent. It outlives the agent itself, which is dropped when its task is done and
/// is created again from its transcript if it is resumed.
pub(super) struct SubagentHandle {
    pub(super) tag: Arc<SubagentInfo>,
    pub(super) kind: Arc<AgentDefinition>,
    pub(super) model: String,
    pub(super) control: AgentHandle,
    /// Ends the subagent.
    pub(super) cancel: CancellationToken,
    /// Whether no call waits for the subagent.
    in_background: AtomicBool,
    /// Wakes the waiting call when the user asks to move the subagent to the background.
    background_request: Notify,
    /// The file with its final text, written when its task is done.
    pub(super) output_file: PathBuf,
    /// The worktree that it works in, if it is isolated.
    pub(super) worktree: Option<Arc<dyn AgentWorktree>>,
    stage: watch::Sender<SubagentStage>,
}

/// The stage of a subagent.
#[derive(Debug, Clone)]
pub(super) enum SubagentStage {
    Working,
    /// It no longer accepts messages and is about to end.
    Ending,
    Done(Arc<SubagentOutcome>),
}

/// The outcome of a subagent's task.
#[derive(Debug)]
pub(super) struct SubagentOutcome {
    pub(super) status: TaskStatus,
    pub(super) report: AgentReport,
}

impl SubagentHandle {
    pub(super) fn new(
        tag: SubagentInfo,
        kind: Arc<AgentDefinition>,
        model: String,
        cancel: CancellationToken,
        in_background: bool,
        output_file: PathBuf,
        worktree: Option<Arc<dyn AgentWorktree>>,
    ) -> Self {
        Self {
            tag: Arc::new(tag),
            kind,
            model,
            control: AgentHandle::default(),
            cancel,
            in_background: AtomicBool::new(in_background),
            background_request: Notify::new(),
            output_file,
            worktree,
            stage: watch::Sender::new(SubagentStage::Working),
        }
    }

    /// Returns whether no call waits for the subagent.
    pub(super) fn is_in_background(&self) -> bool {
        self.in_background.load(Ordering::Relaxed)
    }

    /// Asks the waiting call to move the subagent to the background. Returns whether a call is
    /// waiting.
    pub(super) fn request_background(&self) -> bool {
        let waits = !self.is_in_background() && !self.is_done();
        if waits {
            self.background_request.notify_one();
        }
        waits
    }

    /// Waits until the user asks to move the subagent to the background.
    pub(super) async fn background_requested(&self) {
        self.background_request.notified().await;
    }

    /// Moves the subagent to the background. Returns `false` if it is about to end, so that the
    /// call must keep waiting.
    pub(super) fn move_to_background(&self) -> bool {
        // Under the lock of the stage, so that it cannot end concurrently.
        let mut moved = false;
        self.stage.send_if_modified(|stage| {
            if matches!(stage, SubagentStage::Working) {
                self.in_background.store(true, Ordering::Relaxed);
                moved = true;
            }
            false
        });
        moved
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(*self.stage.borrow(), SubagentStage::Done(_))
    }

    /// Returns the outcome, if the task is done.
    pub(super) fn outcome(&self) -> Option<Arc<SubagentOutcome>> {
        match &*self.stage.borrow() {
            SubagentStage::Done(outcome) => Some(Arc::clone(outcome)),
            SubagentStage::Working | SubagentStage::Ending => None,
        }
    }

    /// Waits until the task is done.
    pub(super) async fn done(&self) -> Option<Arc<SubagentOutcome>> {
        let mut stage = self.stage.subscribe();
        let is_done = |stage: &SubagentStage| matches!(stage, SubagentStage::Done(_));
        // Waiting cannot fail, because `self` owns the sender.
        let _ = stage.wait_for(is_done).await;
        self.outcome()
    }

    /// Sends a message to the subagent. Returns whether it still accepts messages.
    pub(super) fn send_message(&self, content: Vec<Content>) -> bool {
        // Under the lock of the stage, so that it cannot stop accepting concurrently.
        let mut heard = false;
        self.stage.send_if_modified(|stage| {
            if matches!(stage, SubagentStage::Working) {
                self.control.steer(content);
                heard = true;
            }
            false
        });
        heard
    }

    /// Returns the messages that arrived too late for the run that has just ended. Without such
    /// messages, or if it was cancelled, the subagent no longer accepts messages.
    pub(super) fn stop_accepting(&self) -> Option<Prompt> {
        let mut late = None;
        self.stage.send_if_modified(|stage| {
            let said = self.control.take_queued();
            let said: Vec<Content> = said.into_iter().flat_map(|one| one.content).collect();
            if said.is_empty() || self.cancel.is_cancelled() {
                *stage = SubagentStage::Ending;
            } else {
                late = Some(Prompt::from(said));
            }
            false
        });
        late
    }

    /// Sets the outcome.
    pub(super) fn finish(&self, outcome: SubagentOutcome) {
        self.stage
            .send_replace(SubagentStage::Done(Arc::new(outcome)));
    }
}
