//! The background tasks of a session.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::PathBuf,
};

use haft_contract::{BackgroundTasks, TaskKind};

use crate::SessionInput;

/// The maximum number of bytes that are returned from the end of an output.
const TAIL: u64 = 16 << 10;

/// A running task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTask {
    /// Its id.
    pub id: String,
    /// Its kind: a command, a subagent, a monitor or a scheduled prompt.
    pub kind: TaskKind,
    /// A short description.
    pub description: String,
    /// The provider's id of the call that started it.
    pub tool_use_id: Option<String>,
    /// Whether no call waits for it.
    pub in_background: bool,
    /// The file with its output, if any.
    pub output_file: Option<PathBuf>,
}

impl SessionInput {
    /// Returns the running tasks and the scheduled prompts.
    pub fn tasks(&self) -> Vec<RunningTask> {
        let scheduled = self.0.schedules.iter().flat_map(|book| book.all());
        let scheduled = scheduled.map(|job| RunningTask {
            description: format!("{}, next {}: {}", job.words, job.next, job.prompt),
            id: job.id,
            kind: TaskKind::Schedule,
            tool_use_id: None,
            in_background: true,
            output_file: None,
        });
        let services = self.0.access.services();
        let tasks = services.and_then(|services| services.get::<BackgroundTasks>().ok());
        let Some(tasks) = tasks else {
            return scheduled.collect();
        };
        let running = tasks.running().into_iter().map(|task| RunningTask {
            output_file: self.output_file(&task.id),
            id: task.id,
            kind: task.kind,
            description: match task.description.is_empty() {
                true => task.prompt,
                false => task.description,
            },
            tool_use_id: task.tool_use_id.as_deref().map(str::to_owned),
            in_background: task.in_background,
        });
        running.chain(scheduled).collect()
    }

    /// Returns the end of a task's output, whether it is still running or not.
    pub fn task_output(&self, id: &str) -> Result<String, String> {
        let mut scheduled = self.0.schedules.iter().flat_map(|book| book.all());
        if let Some(job) = scheduled.find(|job| job.id == id) {
            return Ok(job.prompt);
        }
        let file = self.output_file(id);
        let file = file.ok_or_else(|| format!("no task {id:?} has an output"))?;
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        let mut opened = File::open(&file).map_err(failed)?;
        let length = opened.metadata().map_err(failed)?.len();
        let from = SeekFrom::Start(length.saturating_sub(TAIL));
        opened.seek(from).map_err(failed)?;
        let mut bytes = Vec::new();
        opened.take(TAIL).read_to_end(&mut bytes).map_err(failed)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[cfg(feature = "shell")]
    fn output_file(&self, id: &str) -> Option<PathBuf> {
        let shell = self.0.access.service::<haft_tools::ShellService>()?;
        let known = shell.tasks().list().into_iter();
        known
            .filter(|task| task.id == id)
            .map(|task| task.output_file)
            .next()
    }

    #[cfg(not(feature = "shell"))]
    fn output_file(&self, _: &str) -> Option<PathBuf> {
        None
    }
}
