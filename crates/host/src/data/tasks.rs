//! Tasks that run beside the conversation.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::PathBuf,
};

use haft_contract::{BackgroundTasks, TaskKind};

use crate::SessionInput;

/// At most this much of the end of an output is given.
const TAIL: u64 = 16 << 10;

/// A task that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTask {
    /// Its id.
    pub id: String,
    /// A command, a subagent, a monitor; or a prompt that is said later.
    pub kind: TaskKind,
    /// What it is for, in a few words.
    pub description: String,
    /// The call that started it, as the provider names it.
    pub tool_use_id: Option<String>,
    /// No one waits for it.
    pub in_background: bool,
    /// Where its output goes, where it has one.
    pub output_file: Option<PathBuf>,
}

impl SessionInput {
    /// The tasks that run, and what is said later.
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

    /// The end of what a task has printed, whether it still runs or not.
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
        let shell = self.0.access.service::<haft_tools::Shell>()?;
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
