//! Background tasks of a session, and the timeouts for waiting on them.

use std::{sync::Arc, time::Duration};

use haft_contract::{BackgroundTasks, TaskKind};
use tokio::time::{Instant, sleep_until, timeout};

use crate::{Environment, SessionEvent, event::EventEmitter};

/// The variable with the maximum time in milliseconds to wait for subagents when no more input
/// comes; 0: unlimited.
const CEILING: &str = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS";
/// The default of [`CEILING`].
const MAX_AGENTS: u32 = 600_000;
/// The maximum time to wait for commands.
const MAX_SHELLS: Duration = Duration::from_secs(5);
/// The time in which a task must end after it was asked to stop.
const WIND_DOWN: Duration = Duration::from_secs(5);

/// Watches the background tasks of a session.
pub(crate) struct BackgroundWatcher {
    notices: Arc<BackgroundTasks>,
    /// The maximum time to wait for subagents.
    ceiling: Option<Duration>,
    /// The deadline; set once no more input comes.
    until: Option<Instant>,
}

impl BackgroundWatcher {
    /// Starts to report each step of the tasks as an event.
    pub(crate) fn watch(
        notices: Arc<BackgroundTasks>,
        events: &Arc<EventEmitter>,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        let ceiling = environment.number(CEILING)?.unwrap_or(MAX_AGENTS);
        let to = Arc::clone(events);
        notices.set_listener(move |event| to.emit(&SessionEvent::Task(event.clone())));
        Ok(Self {
            notices,
            ceiling: (ceiling > 0).then(|| Duration::from_millis(ceiling.into())),
            until: None,
        })
    }

    /// Returns whether no subagent is running and no notice is waiting for the model.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.notices.has_notices() && !self.has_agents()
    }

    /// Waits until there is a notice for the model.
    pub(crate) async fn wait_for_notice(&self) {
        self.notices.wait_for_any_notice().await;
    }

    /// Waits until no subagent is running.
    pub(crate) async fn wait_for_agents(&self) {
        self.notices.wait_until_idle(TaskKind::Agent).await;
    }

    /// Waits for subagents, when no more input comes. Returns whether there is a notice for the
    /// model.
    pub(crate) async fn wait_for_agent_notice(&mut self) -> bool {
        let until = match self.ceiling {
            None => None,
            Some(ceiling) => Some(*self.until.get_or_insert_with(|| Instant::now() + ceiling)),
        };
        let too_long = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            news = self.notices.wait_for_notice(TaskKind::Agent) => news,
            () = too_long => {
                self.stop(TaskKind::Agent).await;
                false
            }
        }
    }

    /// Stops monitors, waits briefly for commands and then stops them, before the session ends.
    pub(crate) async fn close(&self) {
        self.stop(TaskKind::Monitor).await;
        let _ = timeout(MAX_SHELLS, self.notices.wait_until_idle(TaskKind::Shell)).await;
        self.stop(TaskKind::Shell).await;
    }

    async fn stop(&self, kind: TaskKind) {
        for task in self.notices.running() {
            if task.kind == kind {
                task.stop.cancel();
            }
        }
        let _ = timeout(WIND_DOWN, self.notices.wait_until_idle(kind)).await;
    }

    fn has_agents(&self) -> bool {
        let running = self.notices.running();
        running.iter().any(|task| task.kind == TaskKind::Agent)
    }
}

#[cfg(test)]
mod tests {
    use haft_contract::{BackgroundTask, CancellationToken};
    use haft_testkit::tasks::{notice, task};

    use super::*;

    fn agent(notices: &BackgroundTasks) -> CancellationToken {
        let stop = CancellationToken::new();
        notices.begin(BackgroundTask {
            stop: stop.clone(),
            ..task()
        });
        stop
    }

    fn background(ceiling: Option<Duration>) -> BackgroundWatcher {
        BackgroundWatcher {
            notices: Arc::default(),
            ceiling,
            until: None,
        }
    }

    #[tokio::test]
    async fn subagents_are_waited_for_until_the_ceiling_and_then_stopped() {
        let mut background = background(Some(Duration::from_millis(20)));
        let stop = agent(&background.notices);
        let notices = Arc::clone(&background.notices);
        let ending = tokio::spawn(async move {
            stop.cancelled().await;
            notices.finish_reported(notice());
        });
        assert!(!background.wait_for_agent_notice().await);
        ending.await.unwrap();
        assert!(background.is_quiet());
    }

    #[tokio::test]
    async fn what_a_subagent_came_to_is_owed_to_the_model() {
        let mut background = background(None);
        let stop = agent(&background.notices);
        assert!(!background.is_quiet());
        let notices = Arc::clone(&background.notices);
        tokio::spawn(async move { notices.push(notice()) });
        assert!(background.wait_for_agent_notice().await);
        assert!(!stop.is_cancelled());
        background.notices.take_notices();
        assert!(!background.wait_for_agent_notice().await);
    }
}
