//! The result of a command that continues in the background, or that left processes running.

use std::{sync::Arc, time::Duration};

use haft_contract::{BoxFuture, ToolError, ToolOutput};
use haft_sandbox::ExitKind;

use super::{CommandRun, PendingAnswer, add_notes, milliseconds};
use crate::{
    blocking::blocking,
    plural::counted,
    shell::{
        bash, change_tracking,
        command_output::{self, CommandResult, OutputBody},
        escalate,
        job::{self, JobStage, KillCause},
        limits::{self, CommandLimits},
        ports, refused_writes,
        tasks::NewTask,
    },
};

/// The maximum number of processes that a result names.
const NAMED: usize = 5;

impl CommandRun<'_> {
    /// Returns the result of a command that was started as a background task.
    pub(super) async fn in_background(
        &self,
        mut due: PendingAnswer,
    ) -> Result<ToolOutput, ToolError> {
        let lifetime = CommandLimits::background(self.input.timeout);
        let (id, path) = self.task(&mut due, lifetime, 0).await?;
        let mut answer = self.answer();
        answer.first = Some(format!("Started background task {id}; output file: {path}"));
        self.stays(&mut answer);
        answer.field("backgroundTaskId", id);
        Ok(answer.with(OutputBody::default()))
    }

    /// Registers a command that was started as a monitor. Returns its id.
    pub(super) async fn monitored(
        &self,
        mut due: PendingAnswer,
        lifetime: Duration,
    ) -> Result<String, ToolError> {
        let (id, _) = self.task(&mut due, lifetime, 0).await?;
        Ok(id)
    }

    /// Moves a running command to the background, because of its timeout or at the user's request.
    pub(super) async fn moved(
        &self,
        mut due: PendingAnswer,
        after: Option<Duration>,
    ) -> Result<ToolOutput, ToolError> {
        let mut answer = self.answer();
        let so_far = due.job.capture.total();
        let body = command_output::failure_body(&due.job.capture, self.limits.failed_output);
        self.record_changes(&mut due).await?;
        let (id, path) = self.task(&mut due, limits::BACKGROUND, so_far).await?;
        let why = match after {
            Some(after) => {
                answer.field("timedOutAfterMs", milliseconds(after));
                let time = after.as_secs_f64();
                format!("did not complete within its {time}s timeout and was moved")
            }
            None => {
                answer.field("backgroundedByUser", true);
                "was moved by the user".to_owned()
            }
        };
        let mut first =
            format!("The command {why} to the background: task {id}; output file: {path}");
        if so_far > 0 {
            let size = counted(so_far, "byte");
            first = format!("{first}\nOutput so far ({size}):");
        }
        answer.first = Some(first);
        self.stays(&mut answer);
        answer.field("backgroundTaskId", id);
        let mut output = answer.with(body);
        add_notes(&mut output, &due);
        Ok(output)
    }

    /// Registers the processes that the command left running as a task. If the command is
    /// read-only, they are killed instead.
    pub(super) async fn left_running(
        &self,
        due: &mut PendingAnswer,
        told: u64,
        answer: &mut CommandResult,
    ) -> Result<(), ToolError> {
        if matches!(due.job.stage(), JobStage::Gone(_)) {
            return Ok(());
        }
        if bash::is_read_only(&self.analysis, self.input) || !self.has_background() {
            due.job.kill(KillCause::Leftover, Duration::ZERO);
            return Ok(());
        }
        let processes = due.job.processes().await;
        if processes.is_empty() {
            return Ok(());
        }
        let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
        let ports = blocking(move || ports::listening(pids)).await?;
        let names: Vec<String> = processes
            .iter()
            .take(NAMED)
            .map(|process| format!("{} (pid {})", process.name, process.pid))
            .collect();
        let mut what = names.join(", ");
        if processes.len() > NAMED {
            what += &format!(" and {} more", processes.len() - NAMED);
        }
        if !ports.is_empty() {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            what += &format!(", listening on port {}", ports.join(", "));
        }
        if due.watched.is_none() {
            due.watched = self.watch_files(&due.confinement).await?;
        }
        let (id, path) = self.task(due, limits::BACKGROUND, told).await?;
        answer.add_note(format!(
            "Still running as background task {id}: {what}. Output file: {path}"
        ));
        answer.field("backgroundTaskId", id);
        Ok(())
    }

    /// Records the changes so far. Later changes are recorded when the command ends. A guard records all
    /// of them together.
    async fn record_changes(&self, due: &mut PendingAnswer) -> Result<(), ToolError> {
        if due.watched.is_some() && !due.is_still_witnessed() {
            self.record(due).await?;
            due.watched = self.watch_files(&due.confinement).await?;
        }
        Ok(())
    }

    /// Adds a note that a background command does not change the session's directory.
    fn stays(&self, answer: &mut CommandResult) {
        if bash::may_change_directory(&self.analysis) {
            let hint = format!(
                "Session cwd remains {}; a cd inside a background command does not change it.",
                command_output::directory(&self.cx.cwd)
            );
            answer.add_note(hint.clone());
            answer.field("backgroundCwdHint", hint);
        }
    }

    /// Registers the command as a task whose output was shown up to `read`. Returns the task's id
    /// and output file.
    async fn task(
        &self,
        due: &mut PendingAnswer,
        lifetime: Duration,
        read: u64,
    ) -> Result<(String, String), ToolError> {
        let capture = due.job.capture.clone();
        let output_file = blocking(move || capture.ensure_file()).await?.map_err(|error| {
            due.job.kill(KillCause::Leftover, Duration::ZERO);
            ToolError::Failed(format!(
                "The command was ended: it could not continue in the background, because its output \
                 cannot be stored: {error}"
            ))
        })?;
        let at_end = due.watched.take().map(|watched| -> BoxFuture<'static, _> {
            // This future must not hold the session, because its tasks end when it is dropped.
            let (control, command) = (due.control(), self.input.command.clone());
            let refused = Arc::clone(&self.refused);
            let (arriving, cwd) = (Arc::clone(&self.arriving), Arc::clone(&self.cx.cwd));
            let (stages, confinement) = (due.job.stages(), due.confinement.clone());
            Box::pin(async move {
                let ended = job::wait_for_exit(stages).await;
                let end = Some(ended.clone());
                let said = change_tracking::record_changes(watched, control, command, end).await;
                let mut notes = said.map(|said| said.notes).unwrap_or_default();
                let code = i32::from(ended.how != ExitKind::Exited(0));
                let seen = refused_writes::seen(&ended.refused, code, &confinement);
                let mut files = refused.take();
                files.extend(seen.control);
                files.dedup();
                notes.extend(escalate::control_files_note(&files));
                notes.extend(arriving.next_note(&cwd));
                notes.extend(refused_writes::refused_writes_note(&seen.others));
                notes
            })
        });
        let path = output_file.display().to_string();
        let described = self.input.description.as_deref().map(str::trim);
        let description = described.filter(|text| !text.is_empty());
        let id = self.shell.tasks().add(NewTask {
            lines: self.lines.clone(),
            description: description.unwrap_or(&self.input.command).to_owned(),
            command: self.input.command.clone(),
            output_file,
            tool_use_id: Arc::clone(&self.cx.tool_use_id),
            job: Arc::clone(&due.job),
            lifetime,
            read,
            at_end,
        });
        Ok((id, path))
    }
}
