//! The answer to a command that is over: by itself, because it was interrupted, or because its time
//! was.

use std::{path::Path, sync::Arc, time::Duration};

use haft_contract::{Confined, ContextPatch, ToolError, ToolOutput};
use haft_sandbox::{CommandEnd, ExitKind};

use super::{Due, Run, add_notes, milliseconds};
use crate::{
    blocking::blocking,
    paths::escaped,
    shell::{
        answer::{self, CommandAnswer},
        changes,
        cwd::{self, Moved},
        exit_code,
        job::{Cause, Job},
        limits, read_tracking,
        text::Text,
        waiting,
    },
};

/// What is said first of a call that was interrupted; others look for it.
const INTERRUPTED: &str = "[Request interrupted by user for tool use]";
/// How long a command may take to end by itself: when it is interrupted, and when its time is over.
const INTERRUPT_GRACE: Duration = Duration::from_millis(50);
const TIMEOUT_GRACE: Duration = Duration::from_secs(2);
/// How long after an interrupt the answer may come.
const INTERRUPT_ANSWER: Duration = Duration::from_millis(90);
/// How much of the end tells whether it waits for input, in bytes.
const WAITING_TAIL: usize = 2 << 10;

impl Run<'_> {
    /// It ended by itself.
    pub(super) async fn ended(
        &self,
        mut due: Due,
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
        let meaning = exit_code::meaning(&self.input.command, &self.analysis, code);
        if job.cause() == Some(Cause::Flood) {
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
            true => answer::of_failure(&job.capture, self.limits.failed_output),
            false => answer::of_success(&job.capture, self.limits.output).await,
        };
        if !answer.failed && body.kept.is_none() {
            read_tracking::note(&self.analysis, &self.input.command, self.cx).await;
        }
        if let Some((path, bytes)) = &body.kept {
            self.shell.remember(path.into(), *bytes).await;
        }
        self.record(&mut due).await?;
        self.left_running(&mut due, told, &mut answer).await?;
        let moved = self.moved_to(ended, &mut answer).await?;
        let mut output = answer.with(body);
        output.patches.extend(moved);
        due.notes.extend(self.unseen(&due));
        add_notes(&mut output, &due.notes);
        Ok(output)
    }

    /// What the answer of a command that lists processes or sockets leaves out.
    fn unseen(&self, due: &Due) -> Option<String> {
        let name = exit_code::lists_processes(&self.analysis)?;
        let isolated = due.confinement.profile != Confined::Full && due.job.sees_only_its_own;
        isolated.then(|| {
            format!(
                "{name} ran in a sandbox, where only the processes and sockets of this command itself \
                 are seen, and none of the user's. To see those, run it with \
                 dangerouslyDisableSandbox: true, which the user is asked about."
            )
        })
    }

    /// Someone interrupted it.
    pub(super) async fn interrupted(&self, mut due: Due) -> Result<ToolOutput, ToolError> {
        due.job.kill(Cause::Interrupted, INTERRUPT_GRACE);
        due.job.over_within(INTERRUPT_ANSWER).await;
        let mut answer = self.answer();
        answer.failed = true;
        answer.interrupted = true;
        answer.first = Some(INTERRUPTED.to_owned());
        let body = answer::of_failure(&due.job.capture, self.limits.failed_output);
        if let Some(watched) = due.watched.take() {
            // A person who interrupts does not want to wait; it is recorded all the same.
            let command = self.input.command.clone();
            haft_contract::spawn_boxed(changes::after(watched, due.control(), command));
        }
        Ok(answer.with(body))
    }

    /// Its time was over, and it may not go on.
    pub(super) async fn timed_out(
        &self,
        mut due: Due,
        after: Duration,
        why: Option<&str>,
    ) -> Result<ToolOutput, ToolError> {
        let job = Arc::clone(&due.job);
        job.kill(Cause::TimedOut(after), TIMEOUT_GRACE);
        job.over_within(TIMEOUT_GRACE + Duration::from_secs(2))
            .await;
        let mut answer = self.answer();
        answer.failed = true;
        let time = limits::format(after);
        answer.first = Some(format!("Command timed out after {time}"));
        answer.field("timedOutAfterMs", milliseconds(after));
        if let Some(why) = why {
            answer.note(format!(
                "It was killed and not moved to the background: {why}."
            ));
        }
        answer.notes.extend(waits(&job));
        let body = answer::of_failure(&job.capture, self.limits.failed_output);
        self.record(&mut due).await?;
        let mut output = answer.with(body);
        add_notes(&mut output, &due.notes);
        Ok(output)
    }

    /// Records what it changed, and says what there is to say of it.
    pub(super) async fn record(&self, due: &mut Due) -> Result<(), ToolError> {
        let Some(watched) = due.watched.take() else {
            return Ok(());
        };
        let command = self.input.command.clone();
        // What has begun is brought to its end, whether or not anyone waits for it.
        let looking = haft_contract::spawn_boxed(changes::after(watched, due.control(), command));
        let said = tokio::select! {
            said = looking => said.map_err(|_| ToolError::Cancelled)??,
            () = self.cx.cancel.cancelled() => return Ok(()),
        };
        due.notes.extend(said.notes);
        let uncovered = said.uncovered.and_then(|why| self.shell.uncovered(&why));
        due.notes.extend(uncovered);
        Ok(())
    }

    /// Where the session goes.
    async fn moved_to(
        &self,
        ended: &CommandEnd,
        answer: &mut CommandAnswer,
    ) -> Result<Option<ContextPatch>, ToolError> {
        let fixed = self
            .variables
            .is_on("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR");
        let (left_in, cwd) = (ended.cwd.clone(), Arc::clone(&self.cx.cwd));
        let directories = Arc::clone(&self.cx.permissions.directories);
        let moved =
            blocking(move || cwd::after(left_in.as_deref(), &cwd, &directories, fixed)).await?;
        Ok(match moved {
            Moved::Nowhere => None,
            Moved::To(path) => Some(ContextPatch::SetCwd { path }),
            Moved::Back(path) => {
                answer.note(format!(
                    "Shell cwd was reset to {}",
                    answer::directory(&path)
                ));
                (*path != *self.cx.cwd).then_some(ContextPatch::SetCwd { path })
            }
        })
    }
}

/// A file that it may not read could have been read.
fn uncovered(path: &Path) -> ToolError {
    ToolError::Failed(format!(
        "The command was ended, and what it printed is withheld: {}, which it may not read, was replaced \
         from outside while it ran. What it changed stays changed. Run it again.",
        escaped(path.as_os_str())
    ))
}

/// Its sandbox was ended from outside, and it with it.
fn lost(job: &Job, limit: usize) -> ToolError {
    let said = answer::of_failure(&job.capture, limit).text;
    ToolError::Failed(format!(
        "The command was ended from outside; how far it got is not known. What it printed:\n{said}"
    ))
}

/// What to do about a command that waits for someone to type, if it seems to.
fn waits(job: &Job) -> Option<String> {
    let mut text = Text::default();
    text.push(&job.capture.end(WAITING_TAIL));
    let mut tail = text.take();
    tail.push_str(text.unfinished());
    waiting::hint(&tail)
}
