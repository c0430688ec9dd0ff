//! The result of a command that has finished: it exited, was interrupted, or exceeded its timeout.

use std::{path::Path, sync::Arc, time::Duration};

use haft_contract::{ConfinementProfile, ContextPatch, PermissionMode, ToolError, ToolOutput};
use haft_sandbox::{CommandEnd, ExitKind};

use super::{CommandRun, PendingAnswer, add_notes, milliseconds};
use crate::{
    blocking::blocking,
    paths::escaped,
    shell::{
        change_tracking::{self, ChangeBaseline},
        command_output::{self, CommandResult},
        cwd::{self, CwdChange},
        exit_code, interactive_prompts,
        job::{CommandJob, KillCause},
        limits, read_tracking,
        text::TerminalText,
    },
};

/// The first line of an interrupted call's result. Other programs search for this text.
const INTERRUPTED: &str = "[Request interrupted by user for tool use]";
/// The time that a command has to exit after an interrupt, and after its timeout.
const INTERRUPT_GRACE: Duration = Duration::from_millis(50);
const TIMEOUT_GRACE: Duration = Duration::from_secs(2);
/// The maximum time between an interrupt and the result.
const INTERRUPT_ANSWER: Duration = Duration::from_millis(90);
/// The number of bytes at the end of the output that show whether the command waits for input.
const WAITING_TAIL: usize = 2 << 10;

impl CommandRun<'_> {
    /// Returns the result of a command that exited.
    pub(super) async fn ended(
        &self,
        mut due: PendingAnswer,
        ended: &CommandEnd,
    ) -> Result<ToolOutput, ToolError> {
        let job = Arc::clone(&due.job);
        if let Some(path) = &ended.uncovered {
            self.record(&mut due).await?;
            return Err(uncovered(path));
        }
        let mut answer = self.answer();
        let code = match ended.how {
            ExitKind::Exited(code) => code,
            ExitKind::Killed(signal) => 128 + signal,
            ExitKind::Lost if job.exceeded().is_none() => {
                return Err(lost(&job, self.limits.failed_output));
            }
            ExitKind::Lost => 1,
        };
        let meaning = exit_code::exit_meaning(&self.input.command, &self.analysis, code);
        if job.cause() == Some(KillCause::Flood) {
            answer.failed = true;
            answer.first = Some("Killed: it printed more than 5 GB.".to_owned());
        } else if let Some(exceeded) = job.exceeded() {
            answer.failed = true;
            answer.first = Some(format!("Killed: {exceeded}."));
        } else if meaning.failed {
            answer.failed = true;
            answer.first = Some(format!("Exit code {code}"));
            answer
                .notes
                .extend(meaning.text.map(|text| format!("({text})")));
            answer.notes.extend(waits(&job));
        } else if let Some(text) = meaning.text {
            answer.field("returnCodeInterpretation", text);
        }
        let told = job.capture.total();
        let body = match answer.failed {
            true => command_output::failure_body(&job.capture, self.limits.failed_output),
            false => command_output::success_body(&job.capture, self.limits.output).await,
        };
        if !answer.failed && body.stored_file.is_none() {
            read_tracking::record_read(&self.analysis, &self.input.command, self.cx).await;
        }
        if let Some((path, bytes)) = &body.stored_file {
            self.shell.record_stored_output(path.into(), *bytes).await;
        }
        if !due.is_still_witnessed() {
            self.record(&mut due).await?;
        }
        self.left_running(&mut due, told, &mut answer).await?;
        self.record(&mut due).await?;
        if let Some(undo) = due.undo.take() {
            answer.field("undo", undo.to_string());
        }
        let moved = self.moved_to(ended, &mut answer).await?;
        let mut output = answer.with(body);
        output.patches.extend(moved);
        due.notes.extend(self.unseen(&due));
        due.notes.extend(self.arriving.next_note(&self.cx.cwd));
        add_notes(&mut output, &due);
        Ok(output)
    }

    /// Returns the note for a command that lists processes or sockets, if the sandbox hides the
    /// user's processes and sockets from it.
    fn unseen(&self, due: &PendingAnswer) -> Option<String> {
        let name = exit_code::lists_processes(&self.analysis)?;
        let isolated =
            due.confinement.profile != ConfinementProfile::Full && due.job.sees_only_its_own;
        isolated.then(|| {
            format!(
                "{name} ran in a sandbox, which shows only this command's own processes and sockets, \
                 not those of the user. To see all of them, run it with dangerouslyDisableSandbox: true: \
                 the user is then asked."
            )
        })
    }

    /// Returns the result of a command that the user interrupted.
    pub(super) async fn interrupted(
        &self,
        mut due: PendingAnswer,
    ) -> Result<ToolOutput, ToolError> {
        due.job.kill(KillCause::Interrupted, INTERRUPT_GRACE);
        due.job.wait_until_gone_within(INTERRUPT_ANSWER).await;
        let mut answer = self.answer();
        answer.failed = true;
        answer.interrupted = true;
        answer.first = Some(INTERRUPTED.to_owned());
        let body = command_output::failure_body(&due.job.capture, self.limits.failed_output);
        if let Some(watched) = due.watched.take() {
            // The user should not have to wait after an interrupt. The changes are recorded in the
            // background.
            let (control, command) = (due.control(), self.input.command.clone());
            let job = Arc::clone(&due.job);
            haft_contract::spawn_boxed(async move {
                let ended = witnessed_end(&watched, &job).await;
                change_tracking::record_changes(watched, control, command, ended).await
            });
        }
        Ok(answer.with(body))
    }

    /// Returns the result of a command that exceeded its timeout and must not continue.
    pub(super) async fn timed_out(
        &self,
        mut due: PendingAnswer,
        after: Duration,
        why: Option<&str>,
    ) -> Result<ToolOutput, ToolError> {
        let job = Arc::clone(&due.job);
        job.kill(KillCause::TimedOut(after), TIMEOUT_GRACE);
        job.wait_until_gone_within(TIMEOUT_GRACE + Duration::from_secs(2))
            .await;
        let mut answer = self.answer();
        answer.failed = true;
        let time = limits::format(after);
        answer.first = Some(format!("Command timed out after {time}"));
        answer.field("timedOutAfterMs", milliseconds(after));
        if let Some(why) = why {
            answer.add_note(format!(
                "It was killed instead of moved to the background: {why}."
            ));
        }
        answer.notes.extend(waits(&job));
        let body = command_output::failure_body(&job.capture, self.limits.failed_output);
        self.record(&mut due).await?;
        if let Some(undo) = due.undo.take() {
            answer.field("undo", undo.to_string());
        }
        let mut output = answer.with(body);
        add_notes(&mut output, &due);
        Ok(output)
    }

    /// Records the command's changes, and adds the notes about them.
    pub(super) async fn record(&self, due: &mut PendingAnswer) -> Result<(), ToolError> {
        let Some(watched) = due.watched.take() else {
            return Ok(());
        };
        let (control, command) = (due.control(), self.input.command.clone());
        let job = Arc::clone(&due.job);
        // The recording runs to its end, even if the call is cancelled.
        let looking = haft_contract::spawn_boxed(async move {
            let ended = witnessed_end(&watched, &job).await;
            change_tracking::record_changes(watched, control, command, ended).await
        });
        let said = tokio::select! {
            said = looking => said.map_err(|_| ToolError::Cancelled)??,
            () = self.cx.cancel.cancelled() => return Ok(()),
        };
        if self.cx.permissions.mode == PermissionMode::Auto {
            due.changed_files += said.changed_files;
        }
        due.notes.extend(said.notes);
        let uncovered = said
            .uncovered
            .and_then(|why| self.shell.take_undo_warning(&why));
        due.notes.extend(uncovered);
        due.undo = said.undo;
        Ok(())
    }

    /// Returns the change of the session's directory, if any.
    async fn moved_to(
        &self,
        ended: &CommandEnd,
        answer: &mut CommandResult,
    ) -> Result<Option<ContextPatch>, ToolError> {
        let fixed = self
            .variables
            .is_on("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR");
        let (left_in, cwd) = (ended.cwd.clone(), Arc::clone(&self.cx.cwd));
        let directories = Arc::clone(&self.cx.permissions.directories);
        let moved =
            blocking(move || cwd::after(left_in.as_deref(), &cwd, &directories, fixed)).await?;
        Ok(match moved {
            CwdChange::Unchanged => None,
            CwdChange::MovedTo(path) => Some(ContextPatch::SetCwd { path }),
            CwdChange::Reset(path) => {
                answer.add_note(format!(
                    "Shell cwd was reset to {}",
                    command_output::directory(&path)
                ));
                (*path != *self.cx.cwd).then_some(ContextPatch::SetCwd { path })
            }
        })
    }
}

/// Returns the error for a command that could have read a hidden file.
fn uncovered(path: &Path) -> ToolError {
    ToolError::Failed(format!(
        "The command was ended and its output is withheld: {}, which it may not read, was replaced from \
         outside while it ran. Its changes remain. Run it again.",
        escaped(path.as_os_str())
    ))
}

/// Returns the error for a command whose sandbox was ended from outside.
fn lost(job: &CommandJob, limit: usize) -> ToolError {
    let output = command_output::failure_body(&job.capture, limit).text;
    ToolError::Failed(format!(
        "The command was ended from outside, and it is not known how far it got. Its output:\n{output}"
    ))
}

/// Returns a hint for a command that seems to wait for input.
fn waits(job: &CommandJob) -> Option<String> {
    let mut text = TerminalText::default();
    text.push(&job.capture.end(WAITING_TAIL));
    let mut tail = text.take();
    tail.push_str(text.unfinished());
    interactive_prompts::input_hint(&tail)
}

/// Waits until all processes of a command have ended, if its guard records its changes.
async fn witnessed_end(watched: &ChangeBaseline, job: &CommandJob) -> Option<CommandEnd> {
    match watched.is_witnessed() {
        true => Some(job.wait_until_gone().await),
        false => None,
    }
}
