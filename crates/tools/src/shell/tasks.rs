//! The background tasks of a session: commands that were started in the background, that exceeded
//! their timeout, or that left processes running.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use haft_contract::{
    BackgroundTask, BackgroundTasks, BoxFuture, CancellationToken, TaskKind, TaskNotice, TaskStatus,
};
use haft_sandbox::{CommandEnd, ExitKind};
use tokio::time::{sleep, timeout};

use super::{
    command_output::plain,
    job::{CommandJob, JobStage, KillCause},
    limits,
    monitor::{EventRate, LineQueue, MonitorEvent},
};

/// The number of bytes at the end of an output that a notice shows.
const NOTICE_TAIL: usize = 2_000;
/// The time that a stopped task has to exit.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// The time within which lines of a monitor are merged into one event.
pub(crate) const TOGETHER: Duration = Duration::from_millis(200);
/// The maximum number of finished tasks that are stored.
const REMEMBERED: usize = 200;

/// The background tasks of a session.
#[derive(Debug)]
pub struct ShellTasks {
    table: Mutex<TaskTable>,
    notices: Arc<BackgroundTasks>,
}

#[derive(Debug, Default)]
struct TaskTable {
    tasks: BTreeMap<u64, ShellTask>,
    made: u64,
}

#[derive(Debug)]
struct ShellTask {
    /// A command, or a monitor whose lines the model receives as they arrive.
    kind: TaskKind,
    /// The lines of a monitor.
    lines: Option<LineQueue>,
    description: String,
    command: String,
    output_file: PathBuf,
    tool_use_id: Option<Arc<str>>,
    job: Arc<CommandJob>,
    /// The offset up to which the output was returned.
    read: u64,
    /// The model was informed of the task's end.
    end_reported: bool,
    /// Notes on the end of the task, such as files that were reverted.
    notes: Vec<String>,
}

/// The description and state of a background task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskInfo {
    /// The id of the task, such as `bash_1`.
    pub id: String,
    /// A command, or a monitor.
    pub kind: TaskKind,
    /// A short description of the task.
    pub description: String,
    /// The command line.
    pub command: String,
    /// The path of the output file.
    pub output_file: PathBuf,
    /// The task's state.
    pub status: TaskStatus,
    /// The exit code, if the command exited on its own.
    pub exit_code: Option<i32>,
    /// A text about the end of the task: `exit code 0`, `killed by signal 9`, `stopped`.
    pub ended: Option<String>,
    /// Further notes, such as files that were reverted.
    pub notes: Vec<String>,
}

/// The new output of a task.
#[derive(Debug)]
pub(crate) struct TaskOutputChunk {
    pub(crate) info: TaskInfo,
    pub(crate) bytes: Vec<u8>,
    /// The number of bytes before these that were skipped, because there was too much output.
    pub(crate) skipped: u64,
    /// The reason why the output file is incomplete, if so.
    pub(crate) file_error: Option<String>,
}

/// A task to be registered.
pub(crate) struct NewTask {
    /// The lines, if the task is a monitor. The model receives them as they arrive.
    pub(crate) lines: Option<LineQueue>,
    pub(crate) description: String,
    pub(crate) command: String,
    pub(crate) output_file: PathBuf,
    /// The provider's id of the call that started the task.
    pub(crate) tool_use_id: Arc<str>,
    pub(crate) job: Arc<CommandJob>,
    /// The maximum time that the task may run from now on.
    pub(crate) lifetime: Duration,
    /// The offset up to which the output is already known.
    pub(crate) read: u64,
    /// A future that runs when the task has ended and returns notes on it. It must not keep the
    /// session alive.
    pub(crate) at_end: Option<BoxFuture<'static, Vec<String>>>,
}

impl ShellTasks {
    pub(crate) fn new(notices: Arc<BackgroundTasks>) -> Self {
        Self {
            table: Mutex::default(),
            notices,
        }
    }

    /// Returns all tasks, the oldest first.
    pub fn list(&self) -> Vec<TaskInfo> {
        let kept = self.lock_table();
        kept.tasks.iter().map(|(id, task)| task.info(*id)).collect()
    }

    /// Ends all running tasks.
    pub async fn stop_all(&self) {
        let running: Vec<Arc<CommandJob>> = {
            let kept = self.lock_table();
            let running = kept.tasks.values().filter(|task| task.is_running());
            running.map(|task| Arc::clone(&task.job)).collect()
        };
        for job in &running {
            job.kill(KillCause::Stopped, STOP_GRACE);
        }
        for job in running {
            let _ = timeout(STOP_GRACE + Duration::from_secs(1), job.wait_until_gone()).await;
        }
    }

    /// Ends a running task. Returns its state, or an error if it has already ended.
    pub(crate) async fn stop(&self, id: &str) -> Result<TaskInfo, StopTaskError> {
        let (job, before) = {
            let kept = self.lock_table();
            let Some((number, task)) = kept.find(id) else {
                return Err(StopTaskError::Unknown);
            };
            (Arc::clone(&task.job), task.info(number))
        };
        if before.status != TaskStatus::Running {
            return Err(StopTaskError::AlreadyEnded(before));
        }
        job.kill(KillCause::Stopped, STOP_GRACE);
        // The kill is certain; the timeout is for a process that the kernel cannot end.
        let _ = timeout(STOP_GRACE + Duration::from_secs(3), job.wait_until_gone()).await;
        let mut kept = self.lock_table();
        if let Some((_, task)) = kept.find_mut(id) {
            task.end_reported = true;
            self.notices.drop_notice(id);
        }
        let info = kept.find(id).map(|(number, task)| task.info(number));
        Ok(info.unwrap_or(before))
    }

    /// Returns the jobs of all running tasks, with the id and the command line of each.
    #[cfg(feature = "browser")]
    pub(crate) fn jobs(&self) -> Vec<(String, String, Arc<CommandJob>)> {
        let kept = self.lock_table();
        let running = kept
            .tasks
            .iter()
            .filter(|(_, task)| !matches!(task.job.stage(), JobStage::Gone(_)));
        running
            .map(|(number, task)| {
                let id = id(task.kind, *number);
                (id, task.command.clone(), Arc::clone(&task.job))
            })
            .collect()
    }

    /// Returns the job of a task, to wait for it.
    pub(crate) fn job(&self, id: &str) -> Option<Arc<CommandJob>> {
        let kept = self.lock_table();
        kept.find(id).map(|(_, task)| Arc::clone(&task.job))
    }

    /// Returns the new output of a task, at most the last `most` bytes. Waits for the disk.
    pub(crate) fn take_output(&self, id: &str, most: usize) -> Option<TaskOutputChunk> {
        let mut kept = self.lock_table();
        let (number, task) = kept.find_mut(id)?;
        let info = task.info(number);
        let captured = task.job.capture.snapshot();
        let end = captured
            .file
            .as_ref()
            .map_or(captured.total, |(_, end)| *end);
        let from = task.read.max(end.saturating_sub(most as u64));
        let bytes = task.job.capture.read_at(from, most).unwrap_or_default();
        let skipped = from.saturating_sub(task.read);
        task.read = task.read.max(from + bytes.len() as u64);
        // Above the size limit of the file, only the end of the output is available.
        let mut trouble = captured.file_error;
        if captured.total > end && trouble.is_none() {
            trouble = Some(format!(
                "its output file ends after {end} bytes; {} more came",
                captured.total - end
            ));
        }
        if info.status != TaskStatus::Running {
            task.end_reported = true;
            self.notices.drop_notice(&info.id);
        }
        Some(TaskOutputChunk {
            info,
            bytes,
            skipped,
            file_error: trouble,
        })
    }

    /// Registers a task and starts watching it. Returns its id.
    pub(crate) fn add(self: &Arc<Self>, new: NewTask) -> String {
        let stop = CancellationToken::new();
        let kind = match new.lines {
            Some(_) => TaskKind::Monitor,
            None => TaskKind::Shell,
        };
        let tool_use_id = Some(new.tool_use_id).filter(|id| !id.is_empty());
        let number = {
            let mut kept = self.lock_table();
            kept.made += 1;
            let number = kept.made;
            kept.tasks.insert(
                number,
                ShellTask {
                    kind,
                    lines: new.lines.clone(),
                    description: new.description.clone(),
                    command: new.command.clone(),
                    output_file: new.output_file,
                    tool_use_id: tool_use_id.clone(),
                    job: Arc::clone(&new.job),
                    read: new.read,
                    end_reported: false,
                    notes: Vec::new(),
                },
            );
            kept.forget_oldest();
            number
        };
        self.notices.begin(BackgroundTask {
            id: id(kind, number),
            kind,
            description: new.description,
            prompt: new.command,
            agent_type: None,
            tool_use_id,
            in_background: true,
            stop: stop.clone(),
        });
        // The watcher must not keep the task alive: a task ends with its session.
        let (tasks, job) = (Arc::downgrade(self), Arc::downgrade(&new.job));
        if let Some(lines) = new.lines {
            haft_contract::spawn_boxed(pass_on(tasks.clone(), job.clone(), number, lines));
        }
        let task = (kind, number);
        haft_contract::spawn_boxed(watch(tasks, job, task, stop, new.lifetime, new.at_end));
        id(kind, number)
    }

    /// Returns an id for a monitor that does not run a command.
    pub(crate) fn new_monitor(&self) -> String {
        let mut kept = self.lock_table();
        kept.made += 1;
        id(TaskKind::Monitor, kept.made)
    }

    /// Returns the receiver of the tasks' events.
    pub(crate) fn notices(&self) -> &Arc<BackgroundTasks> {
        &self.notices
    }

    /// Reports a monitor's new lines, and returns the number of bytes. Holds the lock, so that no
    /// event follows the task's end.
    fn report(&self, number: u64, lines: &LineQueue) -> Option<u64> {
        let kept = self.lock_table();
        let task = kept.tasks.get(&number)?;
        let event = lines.take()?;
        let bytes = event.bytes;
        if !task.end_reported && !event.text.is_empty() {
            self.notices.report(task.report(number, event));
        }
        Some(bytes)
    }

    fn record_end(&self, number: u64, notes: Vec<String>) {
        let mut kept = self.lock_table();
        let Some(task) = kept.tasks.get_mut(&number) else {
            return;
        };
        if let Some(lines) = &task.lines {
            lines.finish();
            let is_news = |event: &MonitorEvent| !task.end_reported && !event.text.is_empty();
            if let Some(event) = lines.take().filter(is_news) {
                self.notices.report(task.report(number, event));
            }
        }
        // The model has not seen these notes yet.
        let told = task.end_reported && notes.is_empty();
        task.notes = notes;
        let notice = task.notice(number);
        drop(kept);
        match told {
            true => self.notices.finish_reported(notice),
            false => self.notices.push(notice),
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, TaskTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the end of a task, and ends it on a stop request or when its lifetime has expired.
async fn watch(
    tasks: Weak<ShellTasks>,
    job: Weak<CommandJob>,
    (kind, number): (TaskKind, u64),
    stop: CancellationToken,
    lifetime: Duration,
    at_end: Option<BoxFuture<'static, Vec<String>>>,
) {
    let Some(mut gone) = job.upgrade().map(|job| job.stages()) else {
        return;
    };
    let over = |stage: &JobStage| matches!(stage, JobStage::Gone(_));
    let ended = |stage: &JobStage| match stage {
        JobStage::Running => false,
        // A monitor ends with its command, even if the command leaves processes running.
        JobStage::Exited(_) => kind == TaskKind::Monitor,
        JobStage::Gone(_) => true,
    };
    let cause = tokio::select! {
        _ = gone.wait_for(ended) => None,
        () = stop.cancelled() => Some(KillCause::Stopped),
        () = sleep(lifetime) => Some(KillCause::TimedOut(lifetime)),
    };
    if let Some(cause) = cause {
        if let Some(job) = job.upgrade() {
            job.kill(cause, STOP_GRACE);
        }
    } else if timeout(TOGETHER, gone.wait_for(over)).await.is_err()
        && let Some(job) = job.upgrade()
    {
        job.end_leftovers();
    }
    let _ = gone.wait_for(over).await;
    let notes = match at_end {
        Some(at_end) => at_end.await,
        None => Vec::new(),
    };
    if let (Some(tasks), Some(job)) = (tasks.upgrade(), job.upgrade()) {
        job.drain_output().await;
        tasks.record_end(number, notes);
    }
}

/// Reports the lines of a monitor; lines that arrive together form one event. Ends a monitor with
/// too many events.
async fn pass_on(tasks: Weak<ShellTasks>, job: Weak<CommandJob>, number: u64, lines: LineQueue) {
    let Some(mut gone) = job.upgrade().map(|job| job.stages()) else {
        return;
    };
    let over = |stage: &JobStage| matches!(stage, JobStage::Gone(_));
    let mut rate = EventRate::default();
    loop {
        tokio::select! {
            biased;
            // Remaining lines are reported when the task ends.
            _ = gone.wait_for(over) => return,
            () = lines.any() => {}
        }
        sleep(TOGETHER).await;
        let (Some(tasks), Some(job)) = (tasks.upgrade(), job.upgrade()) else {
            return;
        };
        let Some(bytes) = tasks.report(number, &lines) else {
            continue;
        };
        if let Some(why) = rate.record_event(Instant::now(), bytes) {
            job.kill(KillCause::TooManyEvents(why), STOP_GRACE);
            return;
        }
    }
}

/// The reason why a task could not be stopped.
#[derive(Debug)]
pub(crate) enum StopTaskError {
    /// No task has this id.
    Unknown,
    /// The task has already ended.
    AlreadyEnded(TaskInfo),
}

fn id(kind: TaskKind, number: u64) -> String {
    match kind {
        TaskKind::Monitor => format!("monitor_{number}"),
        _ => format!("bash_{number}"),
    }
}

impl TaskTable {
    fn find(&self, id: &str) -> Option<(u64, &ShellTask)> {
        let (kind, number) = read_id(id)?;
        let task = self.tasks.get(&number).filter(|task| task.kind == kind)?;
        Some((number, task))
    }

    fn find_mut(&mut self, id: &str) -> Option<(u64, &mut ShellTask)> {
        let (kind, number) = read_id(id)?;
        let task = self.tasks.get_mut(&number);
        let task = task.filter(|task| task.kind == kind)?;
        Some((number, task))
    }

    fn forget_oldest(&mut self) {
        while self.tasks.len() > REMEMBERED {
            let over = self.tasks.iter().find(|(_, task)| !task.is_running());
            let Some((&oldest, _)) = over else { return };
            self.tasks.remove(&oldest);
        }
    }
}

fn read_id(id: &str) -> Option<(TaskKind, u64)> {
    let (word, number) = id.trim().rsplit_once('_')?;
    let kind = match word {
        "bash" => TaskKind::Shell,
        "monitor" => TaskKind::Monitor,
        _ => return None,
    };
    Some((kind, number.parse().ok()?))
}

impl ShellTask {
    /// Returns the notice for an event of a monitor.
    fn report(&self, number: u64, event: MonitorEvent) -> TaskNotice {
        TaskNotice {
            id: id(self.kind, number),
            kind: self.kind,
            status: TaskStatus::Running,
            summary: format!("Monitor {:?}", self.description),
            result: event.text,
            notes: Vec::new(),
            output_file: None,
            tool_use_id: self.tool_use_id.clone(),
            usage: None,
        }
    }

    /// Returns the notice for the end of a task.
    fn notice(&self, number: u64) -> TaskNotice {
        let info = self.info(number);
        let ended = info.ended.unwrap_or_default();
        let is_monitor = self.kind == TaskKind::Monitor;
        let what = match is_monitor {
            true => "Monitor",
            false => "Background command",
        };
        TaskNotice {
            id: info.id,
            kind: self.kind,
            status: info.status,
            summary: format!("{what} {:?} has ended: {ended}", info.description),
            // The output of a monitor was already reported line by line.
            result: match is_monitor {
                true => String::new(),
                false => plain(&self.job.capture.end(NOTICE_TAIL)),
            },
            notes: info.notes,
            output_file: Some(info.output_file),
            tool_use_id: self.tool_use_id.clone(),
            usage: None,
        }
    }

    fn is_running(&self) -> bool {
        !matches!(self.job.stage(), JobStage::Gone(_))
    }

    fn info(&self, number: u64) -> TaskInfo {
        let ended = match self.job.stage() {
            JobStage::Gone(ended) => Some(ended),
            JobStage::Running | JobStage::Exited(_) => None,
        };
        let cause = self.job.cause();
        let (status, exit_code, words) = match &ended {
            None => (TaskStatus::Running, None, None),
            Some(ended) => {
                let (status, code) = status(ended, cause);
                (status, code, Some(end_description(ended, cause)))
            }
        };
        TaskInfo {
            id: id(self.kind, number),
            kind: self.kind,
            description: self.description.clone(),
            command: self.command.clone(),
            output_file: self.output_file.clone(),
            status,
            exit_code,
            ended: words,
            notes: self.notes.clone(),
        }
    }
}

fn status(ended: &CommandEnd, cause: Option<KillCause>) -> (TaskStatus, Option<i32>) {
    if ended.exceeded.is_some() {
        return (TaskStatus::Killed, None);
    }
    match (cause, ended.how) {
        (Some(_), ExitKind::Exited(code)) => (TaskStatus::Killed, Some(code)),
        (Some(_), _) | (None, ExitKind::Killed(_)) => (TaskStatus::Killed, None),
        (None, ExitKind::Exited(0)) => (TaskStatus::Completed, Some(0)),
        (None, ExitKind::Exited(code)) => (TaskStatus::Failed, Some(code)),
        (None, ExitKind::Lost) => (TaskStatus::Failed, None),
    }
}

fn end_description(ended: &CommandEnd, cause: Option<KillCause>) -> String {
    if let Some(exceeded) = ended.exceeded {
        return format!("stopped: {exceeded}");
    }
    match (cause, ended.how) {
        (Some(KillCause::Stopped | KillCause::Interrupted | KillCause::Leftover), _) => {
            "stopped".to_owned()
        }
        (Some(KillCause::TimedOut(after)), _) => {
            format!("stopped: it ran longer than {}", limits::format(after))
        }
        (Some(KillCause::TooManyEvents(why)), _) => format!("stopped: {why}"),
        (Some(KillCause::Flood), _) => "stopped: it wrote more than 5 GB".to_owned(),
        (None, ExitKind::Exited(code)) => format!("exit code {code}"),
        (None, ExitKind::Killed(signal)) => format!("killed by signal {signal}"),
        (None, ExitKind::Lost) => "it is not known how it ended".to_owned(),
    }
}
