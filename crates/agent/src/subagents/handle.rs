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

use super::event_forwarder::Tag;
use crate::{Control, Prompt};

/// A handle on a subagent. It lives as long as the session. The agent itself is dropped when its
/// task is done, and is created again from its transcript if it is resumed.
pub(super) struct Member {
    pub(super) tag: Arc<Tag>,
    pub(super) kind: Arc<AgentDefinition>,
    pub(super) model: String,
    pub(super) control: Control,
    /// Ends the subagent.
    pub(super) cancel: CancellationToken,
    /// Whether no call waits for the subagent.
    in_background: AtomicBool,
    /// Is notified when the user asks to move the subagent to the background.
    background_request: Notify,
    /// The file with its final text, written when its task is done.
    pub(super) output_file: PathBuf,
    /// The worktree that it works in, if it is isolated.
    pub(super) worktree: Option<Arc<dyn AgentWorktree>>,
    stage: watch::Sender<Stage>,
}

/// The stage of a subagent.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    Working,
    /// It accepts no more messages and is about to end.
    Ending,
    Done(Arc<Outcome>),
}

/// The outcome of a subagent's task.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) status: TaskStatus,
    pub(super) report: AgentReport,
}

impl Member {
    pub(super) fn new(
        tag: Tag,
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
            control: Control::default(),
            cancel,
            in_background: AtomicBool::new(in_background),
            background_request: Notify::new(),
            output_file,
            worktree,
            stage: watch::Sender::new(Stage::Working),
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
            if matches!(stage, Stage::Working) {
                self.in_background.store(true, Ordering::Relaxed);
                moved = true;
            }
            false
        });
        moved
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Done(_))
    }

    /// Returns the outcome, if the task is done.
    pub(super) fn outcome(&self) -> Option<Arc<Outcome>> {
        match &*self.stage.borrow() {
            Stage::Done(outcome) => Some(Arc::clone(outcome)),
            Stage::Working | Stage::Ending => None,
        }
    }

    /// Waits until the task is done.
    pub(super) async fn done(&self) -> Option<Arc<Outcome>> {
        let mut stage = self.stage.subscribe();
        let is_done = |stage: &Stage| matches!(stage, Stage::Done(_));
        // It cannot fail, because `self` owns the sender.
        let _ = stage.wait_for(is_done).await;
        self.outcome()
    }

    /// Sends a message to the subagent. Returns whether it still accepts messages.
    pub(super) fn send_message(&self, content: Vec<Content>) -> bool {
        // Under the lock of the stage, so that it cannot stop accepting concurrently.
        let mut heard = false;
        self.stage.send_if_modified(|stage| {
            if matches!(stage, Stage::Working) {
                self.control.steer(content);
                heard = true;
            }
            false
        });
        heard
    }

    /// Called after a run. Returns the messages that arrived too late for it. Without any,
    /// the subagent accepts no more messages.
    pub(super) fn stop_accepting(&self) -> Option<Prompt> {
        let mut late = None;
        self.stage.send_if_modified(|stage| {
            let said = self.control.take_queued();
            let said: Vec<Content> = said.into_iter().flat_map(|one| one.content).collect();
            if said.is_empty() || self.cancel.is_cancelled() {
                *stage = Stage::Ending;
            } else {
                late = Some(Prompt::from(said));
            }
            false
        });
        late
    }

    /// Sets the outcome.
    pub(super) fn finish(&self, outcome: Outcome) {
        self.stage.send_replace(Stage::Done(Arc::new(outcome)));
    }
}
