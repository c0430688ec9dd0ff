//! The background tasks of a session, and the notices that the model reads when one ends.
//!
//! The starter of a background task (a command or a subagent) announces it with
//! [`BackgroundTasks::begin`] and ends it with [`BackgroundTasks::push`]. The agent loop takes the
//! notices between two requests and adds them to the conversation. A task that reports while it
//! runs, such as a monitor, uses [`BackgroundTasks::report`]. A listener receives each step as it
//! happens ([`BackgroundTasks::set_listener`]).

use std::{
    collections::VecDeque,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The background tasks of one session: a service, stored in [`Services`](crate::Services).
#[derive(Default)]
pub struct BackgroundTasks {
    state: Mutex<BackgroundState>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct BackgroundState {
    running: Vec<BackgroundTask>,
    notices: VecDeque<PendingNotice>,
    listener: Option<Arc<TaskListener>>,
}

/// A notice that the model has not read yet.
struct PendingNotice {
    notice: TaskNotice,
    /// The number of earlier lines that were dropped because the notice was too long.
    dropped: u64,
}

/// The maximum size in bytes of the unread reports of one running task; older lines are dropped.
const MAX_REPORTED: usize = 16 << 10;

type TaskListener = dyn Fn(&TaskEvent) + Send + Sync;

/// The kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// A command.
    Shell,
    /// A subagent.
    Agent,
    /// A command or a connection whose lines the model reads as they arrive.
    Monitor,
    /// A prompt that is submitted later.
    Schedule,
}

impl TaskKind {
    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shell => "local_bash",
            Self::Agent => "local_agent",
            Self::Monitor => "local_monitor",
            Self::Schedule => "schedule",
        }
    }
}

/// The state of a background task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It is running.
    Running,
    /// It ended successfully.
    Completed,
    /// It ended with a failure.
    Failed,
    /// It was stopped.
    Killed,
}

impl TaskStatus {
    /// Returns the name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }
}

/// A running task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// Its id, as the model knows it.
    pub id: String,
    /// Its kind.
    pub kind: TaskKind,
    /// A short description of its purpose.
    pub description: String,
    /// The command line, or the prompt of the subagent.
    pub prompt: String,
    /// The agent kind of a subagent.
    pub agent_type: Option<String>,
    /// The provider's id of the call that started it.
    #[serde(with = "crate::arc_serde::text")]
    pub tool_use_id: Option<Arc<str>>,
    /// No call waits for it. A subagent that its call waits for is a task too.
    pub in_background: bool,
    /// Requests its end when cancelled. The starter of the task must then stop it and report when
    /// it has ended. Not serialized: cancelling the token of a deserialized task has no effect.
    #[serde(skip)]
    pub stop: CancellationToken,
}

/// A report that a task has ended or, with [`TaskStatus::Running`], output of a running task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskNotice {
    /// Its id, as the model knows it.
    pub id: String,
    /// Its kind.
    pub kind: TaskKind,
    /// Its state.
    pub status: TaskStatus,
    /// One line: which task ended, and how.
    pub summary: String,
    /// The result: the end of a command's output, or the final message of a subagent.
    pub result: String,
    /// Further remarks, such as files that were reverted.
    pub notes: Vec<String>,
    /// The file with all of its output.
    pub output_file: Option<PathBuf>,
    /// The provider's id of the call that started it.
    #[serde(with = "crate::arc_serde::text")]
    pub tool_use_id: Option<Arc<str>>,
    /// Its usage, if it is measured.
    pub usage: Option<TaskUsage>,
}

/// The usage of a task so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskUsage {
    /// The number of tokens.
    pub total_tokens: u64,
    /// The number of tool calls.
    pub tool_uses: u64,
    /// The duration in milliseconds.
    pub duration_ms: u64,
}

/// A step of a task, for a listener that follows the session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskEvent {
    /// The task has started.
    Began(BackgroundTask),
    /// The task has made progress.
    Progress {
        /// The task.
        task: BackgroundTask,
        /// Its usage so far.
        usage: TaskUsage,
        /// The last tool it called.
        last_tool: Option<String>,
    },
    /// The call of the task no longer waits for it.
    MovedToBackground(BackgroundTask),
    /// The running task has output that the model will read.
    Reported(TaskNotice),
    /// The task has ended.
    Over(TaskNotice),
}

impl BackgroundTasks {
    /// Adds a task that has started.
    pub fn begin(&self, task: BackgroundTask) {
        let mut kept = self.state();
        kept.running.push(task.clone());
        self.notify_listener(kept, &TaskEvent::Began(task));
    }

    /// Reports the progress of a task and its usage so far.
    pub fn progress(&self, id: &str, usage: TaskUsage, last_tool: Option<String>) {
        let kept = self.state();
        let Some(task) = kept.running.iter().find(|task| task.id == id).cloned() else {
            return;
        };
        let event = TaskEvent::Progress {
            task,
            usage,
            last_tool,
        };
        self.notify_listener(kept, &event);
    }

    /// Marks a task as one that no call waits for any longer.
    pub fn move_to_background(&self, id: &str) {
        let mut kept = self.state();
        let Some(task) = kept.running.iter_mut().find(|task| task.id == id) else {
            return;
        };
        task.in_background = true;
        let event = TaskEvent::MovedToBackground(task.clone());
        self.notify_listener(kept, &event);
    }

    /// Queues output of a running task for the model. Unread output of the same task is joined into
    /// one notice. If it exceeds the limit, the oldest lines are dropped.
    pub fn report(&self, notice: TaskNotice) {
        let mut kept = self.state();
        let same = |one: &&mut PendingNotice| {
            one.notice.id == notice.id && one.notice.status == TaskStatus::Running
        };
        match kept.notices.iter_mut().find(same) {
            Some(waiting) => waiting.join(&notice),
            None => kept.notices.push_back(PendingNotice {
                notice: notice.clone(),
                dropped: 0,
            }),
        }
        self.notify_listener(kept, &TaskEvent::Reported(notice));
    }

    /// Removes a task that has ended, and queues a notice for the model.
    pub fn push(&self, notice: TaskNotice) {
        let mut kept = self.state();
        kept.running.retain(|task| task.id != notice.id);
        kept.notices.push_back(PendingNotice {
            notice: notice.clone(),
            dropped: 0,
        });
        self.notify_listener(kept, &TaskEvent::Over(notice));
    }

    /// Removes a task whose end the model already knows from the result of a call.
    pub fn finish_reported(&self, notice: TaskNotice) {
        let mut kept = self.state();
        kept.running.retain(|task| task.id != notice.id);
        self.notify_listener(kept, &TaskEvent::Over(notice));
    }

    /// Drops the queued notices of a task whose end the model has read in another way.
    pub fn drop_notice(&self, id: &str) {
        self.state().notices.retain(|one| one.notice.id != id);
    }

    /// Takes the notices that the model should read now, the oldest first. Each is returned once.
    pub fn take_notices(&self) -> Vec<TaskNotice> {
        let mut kept = self.state();
        kept.notices
            .drain(..)
            .map(PendingNotice::into_notice)
            .collect()
    }

    /// Returns whether there is a notice to take.
    pub fn has_notices(&self) -> bool {
        !self.state().notices.is_empty()
    }

    /// Returns the running tasks, the oldest first.
    pub fn running(&self) -> Vec<BackgroundTask> {
        self.state().running.clone()
    }

    /// Asks a task to end. Returns `false` if no task with this id is running.
    pub fn stop(&self, id: &str) -> bool {
        let kept = self.state();
        let task = kept.running.iter().find(|task| task.id == id);
        task.map(|task| task.stop.cancel()).is_some()
    }

    /// Waits until there is a notice to take; returns immediately if one is queued.
    pub async fn wait_for_any_notice(&self) {
        self.wait_until(|kept| !kept.notices.is_empty()).await;
    }

    /// Waits until no task of this kind is running.
    pub async fn wait_until_idle(&self, kind: TaskKind) {
        self.wait_until(|kept| kept.running.iter().all(|task| task.kind != kind))
            .await;
    }

    /// Waits until the task with this id is not running.
    pub async fn wait_until_finished(&self, id: &str) {
        self.wait_until(|kept| kept.running.iter().all(|task| task.id != id))
            .await;
    }

    /// Waits for a notice of a task of this kind. Returns `true` if one is queued, and `false` if
    /// none is queued and no such task is running.
    pub async fn wait_for_notice(&self, kind: TaskKind) -> bool {
        let has_news =
            |kept: &BackgroundState| kept.notices.iter().any(|one| one.notice.kind == kind);
        let none_runs = |kept: &BackgroundState| kept.running.iter().all(|task| task.kind != kind);
        self.wait_until(|kept| has_news(kept) || none_runs(kept))
            .await;
        has_news(&self.state())
    }

    /// Sets the listener that receives each step. It runs on the thread that reports the step, under
    /// a lock: it must be quick and must not call methods of this type.
    pub fn set_listener(&self, listener: impl Fn(&TaskEvent) + Send + Sync + 'static) {
        self.state().listener = Some(Arc::new(listener));
    }

    async fn wait_until(&self, holds: impl Fn(&BackgroundState) -> bool) {
        let mut changes = self.changes.subscribe();
        loop {
            if holds(&self.state()) {
                return;
            }
            // Cannot fail: `self` owns the sender.
            let _ = changes.changed().await;
        }
    }

    /// Notifies the listener under the lock, so that steps arrive in order.
    fn notify_listener(&self, kept: MutexGuard<'_, BackgroundState>, event: &TaskEvent) {
        if let Some(listener) = &kept.listener {
            listener(event);
        }
        drop(kept);
        self.changes.send_replace(());
    }

    fn state(&self) -> MutexGuard<'_, BackgroundState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingNotice {
    /// Appends more output of the same task.
    fn join(&mut self, more: &TaskNotice) {
        let text = &mut self.notice.result;
        text.push('\n');
        text.push_str(&more.result);
        while text.len() > MAX_REPORTED {
            let Some(line) = text.find('\n') else { break };
            text.drain(..=line);
            self.dropped += 1;
        }
        self.notice.notes.extend(more.notes.iter().cloned());
        self.notice.notes.dedup();
    }

    fn into_notice(self) -> TaskNotice {
        let Self {
            mut notice,
            dropped,
        } = self;
        if dropped > 0 {
            let lines = if dropped == 1 { "line" } else { "lines" };
            notice
                .notes
                .push(format!("{dropped} earlier {lines} are not shown here"));
        }
        notice
    }
}

impl fmt::Debug for BackgroundTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.state();
        f.debug_struct("BackgroundTasks")
            .field("running", &kept.running.len())
            .field("waiting", &kept.notices.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, kind: TaskKind) -> BackgroundTask {
        BackgroundTask {
            id: id.to_owned(),
            kind,
            description: "Counts".to_owned(),
            prompt: "seq 9".to_owned(),
            agent_type: None,
            tool_use_id: None,
            in_background: true,
            stop: CancellationToken::new(),
        }
    }

    fn notice(id: &str) -> TaskNotice {
        TaskNotice {
            id: id.to_owned(),
            kind: TaskKind::Shell,
            status: TaskStatus::Completed,
            summary: "done".to_owned(),
            result: String::new(),
            notes: Vec::new(),
            output_file: None,
            tool_use_id: None,
            usage: None,
        }
    }

    #[test]
    fn events_survive_being_written_and_read() {
        let task = BackgroundTask {
            id: "t1".to_owned(),
            kind: TaskKind::Agent,
            description: "looks around".to_owned(),
            prompt: "look".to_owned(),
            agent_type: Some("Explore".to_owned()),
            tool_use_id: Some("toolu_1".into()),
            in_background: true,
            stop: CancellationToken::new(),
        };
        let usage = TaskUsage {
            total_tokens: 3,
            tool_uses: 2,
            duration_ms: 1,
        };
        let notice = TaskNotice {
            id: "t1".to_owned(),
            kind: TaskKind::Shell,
            status: TaskStatus::Killed,
            summary: "make was ended".to_owned(),
            result: "x".to_owned(),
            notes: vec!["y".to_owned()],
            output_file: Some("/o".into()),
            tool_use_id: None,
            usage: Some(usage),
        };
        let events = [
            TaskEvent::Began(task.clone()),
            TaskEvent::Progress {
                task: task.clone(),
                usage,
                last_tool: Some("Read".to_owned()),
            },
            TaskEvent::MovedToBackground(task),
            TaskEvent::Over(notice.clone()),
        ];
        for event in events {
            let written = serde_json::to_value(&event).unwrap();
            let read: TaskEvent = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), written);
            if let (TaskEvent::Over(_), TaskEvent::Over(read)) = (&event, &read) {
                assert_eq!(*read, notice);
            }
        }
    }

    #[tokio::test]
    async fn a_notice_is_handed_out_once_and_its_task_runs_no_more() {
        let notices = BackgroundTasks::default();
        notices.begin(task("a", TaskKind::Shell));
        notices.begin(task("b", TaskKind::Agent));
        assert!(notices.stop("a"));
        assert!(notices.running()[0].stop.is_cancelled());
        notices.push(notice("a"));
        assert!(!notices.stop("a"));
        notices.wait_for_any_notice().await;
        notices.wait_until_idle(TaskKind::Shell).await;
        assert_eq!(notices.take_notices(), [notice("a")]);
        assert!(notices.take_notices().is_empty());
        assert_eq!(notices.running().len(), 1);
    }

    #[tokio::test]
    async fn who_waits_is_woken_and_what_is_known_already_is_not_told() {
        let notices = Arc::new(BackgroundTasks::default());
        notices.begin(task("a", TaskKind::Shell));
        notices.begin(task("b", TaskKind::Shell));
        let waiting = Arc::clone(&notices);
        let waiting = tokio::spawn(async move { waiting.wait_until_idle(TaskKind::Shell).await });
        notices.finish_reported(notice("a"));
        notices.push(notice("b"));
        notices.drop_notice("b");
        waiting.await.unwrap();
        assert!(!notices.has_notices());
    }

    #[test]
    fn what_a_running_task_says_is_joined_and_bounded() {
        let notices = BackgroundTasks::default();
        notices.begin(task("m", TaskKind::Monitor));
        let said = |text: &str| TaskNotice {
            kind: TaskKind::Monitor,
            status: TaskStatus::Running,
            result: text.to_owned(),
            ..notice("m")
        };
        notices.report(said("one"));
        notices.report(said("two"));
        assert_eq!(notices.running().len(), 1);
        let taken = notices.take_notices();
        assert_eq!((taken.len(), &*taken[0].result), (1, "one\ntwo"));
        assert!(taken[0].notes.is_empty());
        for number in 0..10_000 {
            notices.report(said(&format!("line {number}")));
        }
        notices.push(notice("m"));
        let taken = notices.take_notices();
        assert_eq!(taken.len(), 2);
        assert!(taken[0].result.len() <= MAX_REPORTED);
        assert!(taken[0].result.ends_with("line 9999"));
        let shown = taken[0].result.lines().count();
        let dropped = format!("{} earlier lines are not shown here", 10_000 - shown);
        assert_eq!(taken[0].notes, [dropped]);
    }

    #[test]
    fn each_step_is_heard_in_order() {
        let notices = BackgroundTasks::default();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&heard);
        notices.set_listener(move |event| {
            to.lock().unwrap().push(match event {
                TaskEvent::Began(task) => format!("{} began", task.id),
                TaskEvent::Progress {
                    task, last_tool, ..
                } => format!("{} called {last_tool:?}", task.id),
                TaskEvent::MovedToBackground(task) => format!("{} moved", task.id),
                TaskEvent::Reported(notice) => format!("{} said {}", notice.id, notice.result),
                TaskEvent::Over(notice) => format!("{} over", notice.id),
            });
        });
        notices.begin(task("a", TaskKind::Agent));
        notices.progress("a", TaskUsage::default(), Some("Read".to_owned()));
        notices.progress("unknown", TaskUsage::default(), None);
        notices.move_to_background("a");
        notices.finish_reported(notice("a"));
        let heard = heard.lock().unwrap();
        assert_eq!(
            *heard,
            ["a began", r#"a called Some("Read")"#, "a moved", "a over"]
        );
    }
}
