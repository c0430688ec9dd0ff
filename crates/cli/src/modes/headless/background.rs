//! What runs in the background: how it is told, and how long it is waited for.

use std::{borrow::Cow, sync::Arc, time::Duration};

use haft::{
    BackgroundTask, BackgroundTasks, TaskEvent, TaskKind, TaskNotice, TaskStatus, TaskUsage,
};
use haft_protocol::{
    SystemMessage, TaskOverMessage, TaskPatch, TaskProgressMessage, TaskStartedMessage,
    TaskUpdatedMessage, TaskUsageReport,
};
use tokio::time::{Instant, sleep_until, timeout};

use super::{model, output::Output};

/// How long subagents are waited for when nothing more comes in, in milliseconds; 0: without end.
const CEILING: &str = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS";
const LONGEST_AGENTS: u32 = 600_000;
/// How long commands are.
const LONGEST_SHELLS: Duration = Duration::from_secs(5);
/// How long a task that is told to end may take.
const WIND_DOWN: Duration = Duration::from_secs(5);

/// What runs in the background of a session.
pub(super) struct Background {
    notices: Arc<BackgroundTasks>,
    /// How long subagents are waited for.
    ceiling: Option<Duration>,
    /// Until when; known once nothing more comes in.
    until: Option<Instant>,
}

impl Background {
    /// From now on, each step is told.
    pub(super) fn follow(
        notices: Arc<BackgroundTasks>,
        output: &Arc<Output>,
    ) -> anyhow::Result<Self> {
        let ceiling = model::number(CEILING)?.unwrap_or(LONGEST_AGENTS);
        let to = Arc::clone(output);
        notices.heard_by(move |event| {
            for message in messages(event) {
                to.put(message);
            }
        });
        Ok(Self {
            notices,
            ceiling: (ceiling > 0).then(|| Duration::from_millis(ceiling.into())),
            until: None,
        })
    }

    /// Neither does a subagent run, nor is there anything the model should hear.
    pub(super) fn is_quiet(&self) -> bool {
        !self.notices.is_waiting() && !self.has_agents()
    }

    /// Returns when the model should hear something.
    pub(super) async fn has_news(&self) {
        self.notices.changed().await;
    }

    /// Returns when no subagent runs.
    pub(super) async fn agents_are_over(&self) {
        self.notices.over(TaskKind::Agent).await;
    }

    /// Nothing more comes in: waits for subagents. `true`: the model should hear of one.
    pub(super) async fn news_of_agents(&mut self) -> bool {
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
            news = self.notices.news_of(TaskKind::Agent) => news,
            () = too_long => {
                self.stop(TaskKind::Agent).await;
                false
            }
        }
    }

    /// The end is near: commands may come to theirs, then everything is stopped.
    pub(super) async fn close(&self) {
        let _ = timeout(LONGEST_SHELLS, self.notices.over(TaskKind::Shell)).await;
        self.stop(TaskKind::Shell).await;
    }

    async fn stop(&self, kind: TaskKind) {
        for task in self.notices.running() {
            if task.kind == kind {
                task.stop.cancel();
            }
        }
        let _ = timeout(WIND_DOWN, self.notices.over(kind)).await;
    }

    fn has_agents(&self) -> bool {
        let running = self.notices.running();
        running.iter().any(|task| task.kind == TaskKind::Agent)
    }
}

fn messages(event: &TaskEvent) -> Vec<SystemMessage<'_>> {
    match event {
        TaskEvent::Began(task) => vec![began(task)],
        TaskEvent::Progress {
            task,
            usage: used,
            last_tool,
        } => {
            vec![SystemMessage::TaskProgress(TaskProgressMessage {
                task_id: (&task.id).into(),
                description: (&task.description).into(),
                usage: usage(used),
                tool_use_id: task.tool_use_id.as_deref().map(Cow::Borrowed),
                last_tool_name: last_tool.as_deref().map(Cow::Borrowed),
                ..TaskProgressMessage::default()
            })]
        }
        TaskEvent::MovedToBackground(task) => {
            let patch = TaskPatch {
                is_backgrounded: Some(true),
                ..TaskPatch::default()
            };
            vec![updated(&task.id, patch)]
        }
        TaskEvent::Over(notice) => {
            let patch = TaskPatch {
                status: Some(notice.status.name().into()),
                end_time: Some(now()),
                ..TaskPatch::default()
            };
            vec![updated(&notice.id, patch), over(notice)]
        }
        _ => Vec::new(),
    }
}

fn began(task: &BackgroundTask) -> SystemMessage<'_> {
    let is_agent = task.kind == TaskKind::Agent;
    SystemMessage::TaskStarted(TaskStartedMessage {
        task_id: (&task.id).into(),
        description: (&task.description).into(),
        task_type: Some(task.kind.name().into()),
        is_backgrounded: Some(task.in_background),
        tool_use_id: task.tool_use_id.as_deref().map(Cow::Borrowed),
        subagent_type: task.agent_type.as_deref().map(Cow::Borrowed),
        prompt: is_agent.then(|| (&task.prompt).into()),
        ..TaskStartedMessage::default()
    })
}

fn updated<'a>(id: &'a str, patch: TaskPatch<'a>) -> SystemMessage<'a> {
    SystemMessage::TaskUpdated(TaskUpdatedMessage {
        task_id: id.into(),
        patch,
        ..TaskUpdatedMessage::default()
    })
}

fn over(notice: &TaskNotice) -> SystemMessage<'_> {
    let status = match notice.status {
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Killed | TaskStatus::Running => "stopped",
    };
    let file = notice.output_file.as_deref();
    SystemMessage::TaskNotification(TaskOverMessage {
        task_id: (&notice.id).into(),
        status: status.into(),
        output_file: file.map(|file| file.to_string_lossy()).unwrap_or_default(),
        summary: (&notice.summary).into(),
        tool_use_id: notice.tool_use_id.as_deref().map(Cow::Borrowed),
        usage: notice.usage.as_ref().map(usage),
        ..TaskOverMessage::default()
    })
}

fn usage(used: &TaskUsage) -> TaskUsageReport {
    TaskUsageReport {
        total_tokens: used.total_tokens,
        tool_uses: used.tool_uses,
        duration_ms: used.duration_ms,
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    super::messages::millis(since.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use haft::CancellationToken;
    use haft_protocol::SessionMessage;

    use super::*;

    fn agent(notices: &BackgroundTasks) -> CancellationToken {
        let stop = CancellationToken::new();
        notices.begin(BackgroundTask {
            stop: stop.clone(),
            ..task()
        });
        stop
    }

    fn background(ceiling: Option<Duration>) -> Background {
        Background {
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
            notices.settle(notice());
        });
        assert!(!background.news_of_agents().await);
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
        assert!(background.news_of_agents().await);
        assert!(!stop.is_cancelled());
        background.notices.take();
        assert!(!background.news_of_agents().await);
    }

    fn task() -> BackgroundTask {
        BackgroundTask {
            id: "a1b2".to_owned(),
            kind: TaskKind::Agent,
            description: "Looks around".to_owned(),
            prompt: "Look around.".to_owned(),
            agent_type: Some("Explore".to_owned()),
            tool_use_id: Some("toolu_1".into()),
            in_background: false,
            stop: CancellationToken::new(),
        }
    }

    fn notice() -> TaskNotice {
        TaskNotice {
            id: "a1b2".to_owned(),
            kind: TaskKind::Agent,
            status: TaskStatus::Killed,
            summary: "Agent \"Looks around\" was stopped".to_owned(),
            result: String::new(),
            notes: Vec::new(),
            output_file: None,
            tool_use_id: Some("toolu_1".into()),
            usage: Some(TaskUsage {
                total_tokens: 1200,
                tool_uses: 3,
                duration_ms: 4500,
            }),
        }
    }

    #[test]
    fn each_step_of_a_task_is_a_message() {
        let (task, notice) = (task(), notice());
        let used = notice.usage.unwrap();
        let steps = [
            TaskEvent::Began(task.clone()),
            TaskEvent::Progress {
                task: task.clone(),
                usage: used,
                last_tool: Some("Read".to_owned()),
            },
            TaskEvent::MovedToBackground(task),
            TaskEvent::Over(notice),
        ];
        let mut told: Vec<_> = steps.iter().flat_map(messages).collect();
        if let SystemMessage::TaskUpdated(message) = &mut told[3] {
            message.patch.end_time = Some(0);
        }
        let told = told.into_iter().map(SessionMessage::from);
        let told: Vec<_> = told.flat_map(|told| serde_json::to_string(&told)).collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}
