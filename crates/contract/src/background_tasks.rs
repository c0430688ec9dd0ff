//! What goes on in the background of a session, and what the model is to read of it when it is over.
//!
//! Anyone who starts a task in the background, a command or a subagent, announces it with [`BackgroundTasks::begin`]
//! and ends it with [`BackgroundTasks::push`]. The loop takes notices between two requests and tells them to the
//! model. A task that says something while it runs, such as a monitor, does so with [`BackgroundTasks::report`].
//! A program that follows the session learns of each step as it happens
//! ([`BackgroundTasks::heard_by`]).

use std::{
    collections::VecDeque,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The background of one session: a service, kept in [`Services`](crate::Services).
#[derive(Default)]
pub struct BackgroundTasks {
    kept: Mutex<TaskBoard>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct TaskBoard {
    running: Vec<BackgroundTask>,
    waiting: VecDeque<WaitingNotice>,
    listener: Option<Arc<Listener>>,
}

/// What the model is to read.
struct WaitingNotice {
    notice: TaskNotice,
    /// So many lines were said before these and are gone: too much waited.
    dropped: u64,
}

/// How much of what one running task said waits at most, in bytes: the newest.
const MOST_REPORTED: usize = 16 << 10;

type Listener = dyn Fn(&TaskEvent) + Send + Sync;

/// What sort of task it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// A command.
    Shell,
    /// A subagent.
    Agent,
    /// A command or a connection whose lines the model reads as they come.
    Monitor,
    /// A prompt that is to be said later.
    Schedule,
}

impl TaskKind {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shell => "local_bash",
            Self::Agent => "local_agent",
            Self::Monitor => "local_monitor",
            Self::Schedule => "schedule",
        }
    }
}

/// How far a background task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It runs.
    Running,
    /// It ended well.
    Completed,
    /// It ended otherwise.
    Failed,
    /// It was ended.
    Killed,
}

impl TaskStatus {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }
}

/// A task that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// Its id, as the model knows it.
    pub id: String,
    /// What sort it is.
    pub kind: TaskKind,
    /// What it is for, in a few words.
    pub description: String,
    /// The command line, or what the subagent was asked to do.
    pub prompt: String,
    /// Which kind of subagent it is.
    pub agent_type: Option<String>,
    /// The provider's id of the call that started it.
    #[serde(with = "crate::shared::text")]
    pub tool_use_id: Option<Arc<str>>,
    /// No one waits for it. A subagent that its call waits for is a task too.
    pub in_background: bool,
    /// Fires to end it; the one who started it then sees to that, and tells when it is over. A handle, no
    /// part of what is recorded: one that was read ends nothing.
    #[serde(skip)]
    pub stop: CancellationToken,
}

/// A task is over; or it runs ([`TaskStatus::Running`]) and has said something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskNotice {
    /// Its id, as the model knows it.
    pub id: String,
    /// What sort it is.
    pub kind: TaskKind,
    /// How it ended.
    pub status: TaskStatus,
    /// One line: what ended, and how.
    pub summary: String,
    /// What it came to: the end of a command's output, the last words of a subagent.
    pub result: String,
    /// What else there is to say of it, such as files that were taken back.
    pub notes: Vec<String>,
    /// Where all of its output is.
    pub output_file: Option<PathBuf>,
    /// The provider's id of the call that started it.
    #[serde(with = "crate::shared::text")]
    pub tool_use_id: Option<Arc<str>>,
    /// What it took, where that is counted.
    pub usage: Option<TaskUsage>,
}

/// What a task took so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskUsage {
    /// Tokens.
    pub total_tokens: u64,
    /// Calls of tools.
    pub tool_uses: u64,
    /// Time.
    pub duration_ms: u64,
}

/// A step of a task, for the one who follows the session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskEvent {
    /// It runs now.
    Began(BackgroundTask),
    /// It goes on.
    Progress {
        /// The task.
        task: BackgroundTask,
        /// What it took so far.
        usage: TaskUsage,
        /// The tool it called last.
        last_tool: Option<String>,
    },
    /// Its call no longer waits for it.
    MovedToBackground(BackgroundTask),
    /// It runs, and has said something that the model will read.
    Reported(TaskNotice),
    /// It is over.
    Over(TaskNotice),
}

impl BackgroundTasks {
    /// A task runs now.
    pub fn begin(&self, task: BackgroundTask) {
        let mut kept = self.kept();
        kept.running.push(task.clone());
        self.tell(kept, &TaskEvent::Began(task));
    }

    /// A task goes on, and took this much so far.
    pub fn progress(&self, id: &str, usage: TaskUsage, last_tool: Option<String>) {
        let kept = self.kept();
        let Some(task) = kept.running.iter().find(|task| task.id == id).cloned() else {
            return;
        };
        let event = TaskEvent::Progress {
            task,
            usage,
            last_tool,
        };
        self.tell(kept, &event);
    }

    /// From now on no one waits for it.
    pub fn move_to_background(&self, id: &str) {
        let mut kept = self.kept();
        let Some(task) = kept.running.iter_mut().find(|task| task.id == id) else {
            return;
        };
        task.in_background = true;
        let event = TaskEvent::MovedToBackground(task.clone());
        self.tell(kept, &event);
    }

    /// A task that runs has said something, and the model should know. What waits of the same task is read
    /// together with it, and the oldest of it is dropped where that is too much.
    pub fn report(&self, notice: TaskNotice) {
        let mut kept = self.kept();
        let same = |one: &&mut WaitingNotice| {
            one.notice.id == notice.id && one.notice.status == TaskStatus::Running
        };
        match kept.waiting.iter_mut().find(same) {
            Some(waiting) => waiting.join(&notice),
            None => kept.waiting.push_back(WaitingNotice {
                notice: notice.clone(),
                dropped: 0,
            }),
        }
        self.tell(kept, &TaskEvent::Reported(notice));
    }

    /// A task is over, and the model should know.
    pub fn push(&self, notice: TaskNotice) {
        let mut kept = self.kept();
        kept.running.retain(|task| task.id != notice.id);
        kept.waiting.push_back(WaitingNotice {
            notice: notice.clone(),
            dropped: 0,
        });
        self.tell(kept, &TaskEvent::Over(notice));
    }

    /// A task is over, and the model knows it: by the result of a call.
    pub fn settle(&self, notice: TaskNotice) {
        let mut kept = self.kept();
        kept.running.retain(|task| task.id != notice.id);
        self.tell(kept, &TaskEvent::Over(notice));
    }

    /// The model has learned of the end of this task in another way: no notice of it is due any more.
    pub fn withdraw(&self, id: &str) {
        self.kept().waiting.retain(|one| one.notice.id != id);
    }

    /// What the model should read now, the oldest first. Each notice is handed out once.
    pub fn take(&self) -> Vec<TaskNotice> {
        let mut kept = self.kept();
        kept.waiting.drain(..).map(WaitingNotice::taken).collect()
    }

    /// Is there something to take?
    pub fn is_waiting(&self) -> bool {
        !self.kept().waiting.is_empty()
    }

    /// What runs, the oldest first.
    pub fn running(&self) -> Vec<BackgroundTask> {
        self.kept().running.clone()
    }

    /// Asks a task to end. `false`: none of that name runs.
    pub fn stop(&self, id: &str) -> bool {
        let kept = self.kept();
        let task = kept.running.iter().find(|task| task.id == id);
        task.map(|task| task.stop.cancel()).is_some()
    }

    /// Returns when there is something to take; at once, if there is already.
    pub async fn changed(&self) {
        self.until(|kept| !kept.waiting.is_empty()).await;
    }

    /// Returns when no task of this sort runs any more.
    pub async fn over(&self, kind: TaskKind) {
        self.until(|kept| kept.running.iter().all(|task| task.kind != kind))
            .await;
    }

    /// Returns when the task of this id does not run any more.
    pub async fn over_of(&self, id: &str) {
        self.until(|kept| kept.running.iter().all(|task| task.id != id))
            .await;
    }

    /// Waits for the end of a task of this sort. `true`: there is a notice of one to take; `false`: none
    /// runs any more, and there is nothing to say.
    pub async fn news_of(&self, kind: TaskKind) -> bool {
        let has_news = |kept: &TaskBoard| kept.waiting.iter().any(|one| one.notice.kind == kind);
        let none_runs = |kept: &TaskBoard| kept.running.iter().all(|task| task.kind != kind);
        self.until(|kept| has_news(kept) || none_runs(kept)).await;
        has_news(&self.kept())
    }

    /// From now on, this gets each step. It is called by the one who takes the step, so it must be
    /// quick, and it must not call back.
    pub fn heard_by(&self, listener: impl Fn(&TaskEvent) + Send + Sync + 'static) {
        self.kept().listener = Some(Arc::new(listener));
    }

    async fn until(&self, holds: impl Fn(&TaskBoard) -> bool) {
        let mut changes = self.changes.subscribe();
        loop {
            if holds(&self.kept()) {
                return;
            }
            // It cannot fail: the sender is ours.
            let _ = changes.changed().await;
        }
    }

    /// Tells while nothing else can change, so that steps arrive in their order.
    fn tell(&self, kept: MutexGuard<'_, TaskBoard>, event: &TaskEvent) {
        if let Some(listener) = &kept.listener {
            listener(event);
        }
        drop(kept);
        self.changes.send_replace(());
    }

    fn kept(&self) -> MutexGuard<'_, TaskBoard> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingNotice {
    /// The same task says more.
    fn join(&mut self, more: &TaskNotice) {
        let text = &mut self.notice.result;
        text.push('\n');
        text.push_str(&more.result);
        while text.len() > MOST_REPORTED {
            let Some(line) = text.find('\n') else { break };
            text.drain(..=line);
            self.dropped += 1;
        }
        self.notice.notes.extend(more.notes.iter().cloned());
        self.notice.notes.dedup();
    }

    fn taken(self) -> TaskNotice {
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
        let kept = self.kept();
        f.debug_struct("Notices")
            .field("running", &kept.running.len())
            .field("waiting", &kept.waiting.len())
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
        notices.changed().await;
        notices.over(TaskKind::Shell).await;
        assert_eq!(notices.take(), [notice("a")]);
        assert!(notices.take().is_empty());
        assert_eq!(notices.running().len(), 1);
    }

    #[tokio::test]
    async fn who_waits_is_woken_and_what_is_known_already_is_not_told() {
        let notices = Arc::new(BackgroundTasks::default());
        notices.begin(task("a", TaskKind::Shell));
        notices.begin(task("b", TaskKind::Shell));
        let waiting = Arc::clone(&notices);
        let waiting = tokio::spawn(async move { waiting.over(TaskKind::Shell).await });
        notices.settle(notice("a"));
        notices.push(notice("b"));
        notices.withdraw("b");
        waiting.await.unwrap();
        assert!(!notices.is_waiting());
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
        let taken = notices.take();
        assert_eq!((taken.len(), &*taken[0].result), (1, "one\ntwo"));
        assert!(taken[0].notes.is_empty());
        for number in 0..10_000 {
            notices.report(said(&format!("line {number}")));
        }
        notices.push(notice("m"));
        let taken = notices.take();
        assert_eq!(taken.len(), 2);
        assert!(taken[0].result.len() <= MOST_REPORTED);
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
        notices.heard_by(move |event| {
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
        notices.settle(notice("a"));
        let heard = heard.lock().unwrap();
        assert_eq!(
            *heard,
            ["a began", r#"a called Some("Read")"#, "a moved", "a over"]
        );
    }
}
