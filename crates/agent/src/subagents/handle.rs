//! One subagent, as the session knows it.

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

/// One subagent. It is known as long as the session lives; the agent itself is gone when it is done, and is
/// made again from its transcript.
pub(super) struct Member {
    pub(super) tag: Arc<Tag>,
    pub(super) kind: Arc<AgentDefinition>,
    pub(super) model: String,
    pub(super) control: Control,
    /// Fires to end it.
    pub(super) cancel: CancellationToken,
    /// No one waits for it.
    in_background: AtomicBool,
    /// The person wants its call not to wait for it any longer.
    wish: Notify,
    /// Where its final words are, when it is done.
    pub(super) output_file: PathBuf,
    /// The copy of the project that it works in.
    pub(super) worktree: Option<Arc<dyn AgentWorktree>>,
    stage: watch::Sender<Stage>,
}

/// How far it is.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    Working,
    /// It takes no more messages, and is about to be done.
    Ending,
    Done(Arc<Outcome>),
}

/// How it ended.
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
            wish: Notify::new(),
            output_file,
            worktree,
            stage: watch::Sender::new(Stage::Working),
        }
    }

    /// No one waits for it.
    pub(super) fn is_in_background(&self) -> bool {
        self.in_background.load(Ordering::Relaxed)
    }

    /// A person wants its call not to wait for it any longer. Says whether it does wait.
    pub(super) fn wish_for_background(&self) -> bool {
        let waits = !self.is_in_background() && !self.is_done();
        if waits {
            self.wish.notify_one();
        }
        waits
    }

    /// Returns when a person wants its call not to wait any longer.
    pub(super) async fn wished_for_background(&self) {
        self.wish.notified().await;
    }

    /// From now on no one waits for it. Says no where it is about to be done: then it is waited for.
    pub(super) fn move_to_background(&self) -> bool {
        // Under the lock of the stage: it cannot end in between.
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

    /// How it ended, when it has.
    pub(super) fn outcome(&self) -> Option<Arc<Outcome>> {
        match &*self.stage.borrow() {
            Stage::Done(outcome) => Some(Arc::clone(outcome)),
            Stage::Working | Stage::Ending => None,
        }
    }

    /// Waits until it is done.
    pub(super) async fn done(&self) -> Option<Arc<Outcome>> {
        let mut stage = self.stage.subscribe();
        let is_done = |stage: &Stage| matches!(stage, Stage::Done(_));
        // It cannot fail: the sender is ours.
        let _ = stage.wait_for(is_done).await;
        self.outcome()
    }

    /// Says something to it, if it still listens.
    pub(super) fn tell(&self, content: Vec<Content>) -> bool {
        // Under the lock of the stage: it cannot stop listening in between.
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

    /// It has nothing more to say: what was said to it too late, or it listens no more.
    pub(super) fn end(&self) -> Option<Prompt> {
        let mut late = None;
        self.stage.send_if_modified(|stage| {
            let said = self.control.take_said();
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

    /// It is done.
    pub(super) fn finish(&self, outcome: Outcome) {
        self.stage.send_replace(Stage::Done(Arc::new(outcome)));
    }
}
