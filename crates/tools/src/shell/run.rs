//! One command, from its line to its answer.

use std::{path::PathBuf, sync::Arc, time::Duration};

use haft_contract::{
    CallContext, Confined, Confinement, Content, ContextPatch, Tool, ToolError, ToolOutput, Update,
};
use haft_sandbox::{Ended, How, Line};
use haft_shell::Analysis;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::{
    Shell,
    answer::{self, Answer, Body},
    bash::{self, Bash, Input},
    capture::Capture,
    changes,
    cwd::{self, Moved},
    job::{Cause, Job, Stage},
    limits::{self, Limits},
    meaning::{self, Slow},
    ports,
    tasks::NewTask,
    text::Text,
    waiting,
    widen::{self, Asked},
};
use crate::{blocking::blocking, words::counted};

/// What is said first of a call that was interrupted; others look for it.
const INTERRUPTED: &str = "[Request interrupted by user for tool use]";
/// How often the call tells of new output.
const PROGRESS: Duration = Duration::from_millis(250);
/// How much of new output it tells, in bytes: the newest.
const PROGRESS_TAIL: usize = 4 << 10;
/// How often a person is asked to let one command through.
const MOST_QUESTIONS: u32 = 3;
/// How much of the end tells what was refused, in bytes.
const REFUSAL_TAIL: usize = 64 << 10;
/// What is said of a command that goes on.
const UNDO_ENDS: &str =
    "Undo covers what it changed so far, and nothing that it changes from now on.";
/// How much of the end tells whether it waits for input, in bytes.
const WAITING_TAIL: usize = 2 << 10;
/// How long a command may take to end by itself: when it is interrupted, and when its time is over.
const INTERRUPT_GRACE: Duration = Duration::from_millis(50);
const TIMEOUT_GRACE: Duration = Duration::from_secs(2);
/// How long after an interrupt the answer may come.
const INTERRUPT_ANSWER: Duration = Duration::from_millis(90);

/// Runs a command and answers.
pub(crate) async fn run(input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    if cx.cancel.is_cancelled() {
        return Err(ToolError::Cancelled);
    }
    let shell = cx.services.get::<Shell>()?;
    let confinement = cx.permissions.confinement.clone();
    // That it may is the engine's word, which also has asked the person.
    let lifted = input.dangerously_disable_sandbox && confinement.profile == Confined::Full;
    let variables = confinement.env.clone();
    let limits = Limits::read(|name| variable(&variables, name));
    Run {
        analysis: bash::read(input, cx.cwd.to_path_buf()),
        shell: &shell,
        input,
        cx,
        limits,
        lifted,
    }
    .run(confinement)
    .await
}

/// A variable that sets us up: from the settings, else from our own environment.
fn variable(settings: &std::collections::BTreeMap<String, String>, name: &str) -> Option<String> {
    settings
        .get(name)
        .cloned()
        .or_else(|| std::env::var(name).ok())
}

struct Run<'a> {
    shell: &'a Shell,
    input: &'a Input,
    cx: &'a CallContext,
    analysis: Analysis,
    limits: Limits,
    /// The person let it run without the sandbox.
    lifted: bool,
}

/// How the waiting for a command ended.
enum Waited {
    Ended(Ended),
    Interrupted,
    TimedOut(Duration),
    /// The person wants it to go on in the background.
    Wished,
}

impl Run<'_> {
    async fn run(&self, mut confinement: Confinement) -> Result<ToolOutput, ToolError> {
        let (cx, session) = (self.cx, self.shell.folder());
        let mut watched = changes::before(&confinement, &self.analysis, cx, session).await?;
        let mut attempt = 0;
        loop {
            let job = self.start(&confinement, attempt).await?;
            if self.input.run_in_background {
                return self.in_background(job).await;
            }
            let waited = self.wait(&job).await;
            let mut notes = Vec::new();
            if let Waited::Ended(ended) = &waited {
                job.settle().await;
                match self.refused(&job, ended, &confinement).await {
                    Some(Asked::Again(wider)) if attempt < MOST_QUESTIONS => {
                        job.kill(Cause::Leftover, Duration::ZERO);
                        job.gone().await;
                        // What only read was not looked at before.
                        if watched.is_none() {
                            watched = changes::before(&wider, &self.analysis, cx, session).await?;
                        }
                        confinement = wider;
                        attempt += 1;
                        continue;
                    }
                    Some(Asked::Not(note)) => notes.push(note),
                    Some(Asked::Again(_)) | None => {}
                }
            }
            let interrupted = matches!(waited, Waited::Interrupted);
            let mut output = self.finish(job, waited, &mut notes).await?;
            if let Some(watched) = watched.take() {
                let (command, cx) = (self.input.command.clone(), cx.clone());
                let looking = tokio::spawn(changes::after(watched, confinement, command, cx));
                if interrupted {
                    // Whoever interrupts does not want to wait; it is recorded all the same.
                    return Ok(output);
                }
                let said = looking.await.map_err(|_| ToolError::Cancelled)??;
                notes.extend(said.notes);
                notes.extend(said.uncovered.and_then(|why| self.shell.uncovered(&why)));
            }
            add_notes(&mut output, &notes);
            return Ok(output);
        }
    }

    /// What the sandbox kept a command from that failed, put to the person.
    async fn refused(&self, job: &Job, ended: &Ended, confinement: &Confinement) -> Option<Asked> {
        let How::Exited(code) = ended.how else {
            return None;
        };
        if code == 0 || confinement.profile == Confined::Full {
            return None;
        }
        let (head, tail) = (job.capture.captured().head, job.capture.end(REFUSAL_TAIL));
        let (cwd, with) = (Arc::clone(&self.cx.cwd), confinement.clone());
        let refused = blocking(move || {
            let text = answer::plain(if head.len() <= REFUSAL_TAIL {
                &head
            } else {
                &tail
            });
            widen::kept_from(&text, code, &with, &cwd)
        });
        let refused = refused.await.ok().filter(|refused| !refused.is_empty())?;
        let card = Bash.render_use(self.input).unwrap_or_default();
        let gate = self.shell.gate();
        Some(widen::ask(&refused, confinement, gate, self.cx, card).await)
    }

    async fn start(&self, confinement: &Confinement, attempt: u32) -> Result<Arc<Job>, ToolError> {
        let card = Bash.render_use(self.input).unwrap_or_default();
        let gate = self.shell.gate();
        gate.open_for(self.cx, &confinement.network, &card);
        let set =
            |name: &str| variable(&confinement.env, name).filter(|value| !value.trim().is_empty());
        let line = Line {
            text: match set("CLAUDE_CODE_SHELL_PREFIX") {
                Some(prefix) => format!("{prefix} {}", quoted(&self.input.command)),
                None => self.input.command.clone(),
            },
            cwd: self.cx.cwd.to_path_buf(),
            sourced: set("CLAUDE_ENV_FILE")
                .map(PathBuf::from)
                .filter(|file| file.is_file()),
        };
        let place = self.shell.place(self.cx.call, attempt);
        // A character has at most four bytes.
        let capture = Capture::new(place, self.limits.output * 4);
        self.shell.start(confinement, line, capture).await
    }

    /// The answer, in whatever way the waiting ended.
    async fn finish(
        &self,
        job: Arc<Job>,
        waited: Waited,
        notes: &mut Vec<String>,
    ) -> Result<ToolOutput, ToolError> {
        match waited {
            Waited::Ended(ended) => self.ended(job, &ended).await,
            Waited::Interrupted => {
                job.kill(Cause::Interrupted, INTERRUPT_GRACE);
                let over = async {
                    job.gone().await;
                    job.capture.closed().await;
                };
                let _ = timeout(INTERRUPT_ANSWER, over).await;
                Ok(self.interrupted(&job))
            }
            Waited::TimedOut(after) => {
                let why = match meaning::when_slow(&self.input.command) {
                    Slow::Background if self.backgrounds() => {
                        notes.extend(self.undo_ends());
                        return self.moved(job, Some(after)).await;
                    }
                    Slow::Background => None,
                    Slow::Kill(why) => Some(why),
                };
                job.kill(Cause::TimedOut(after), TIMEOUT_GRACE);
                let over = async {
                    job.gone().await;
                    job.capture.closed().await;
                };
                let _ = timeout(TIMEOUT_GRACE + Duration::from_secs(2), over).await;
                Ok(self.timed_out(&job, after, why))
            }
            Waited::Wished => {
                notes.extend(self.undo_ends());
                self.moved(job, None).await
            }
        }
    }

    async fn wait(&self, job: &Job) -> Waited {
        let longest = self.limits.foreground(self.input.timeout);
        let wish = self.shell.wish(self.cx.call);
        let mut told = 0;
        let mut ticks = interval(PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let over = sleep(longest);
        tokio::pin!(over);
        loop {
            tokio::select! {
                biased;
                ended = job.exited() => return Waited::Ended(ended),
                () = self.cx.cancel.cancelled() => return Waited::Interrupted,
                () = wish.told() => return Waited::Wished,
                () = &mut over => return Waited::TimedOut(longest),
                _ = ticks.tick() => self.tell(&job.capture, &mut told),
            }
        }
    }

    /// Tells whoever listens what came since the last time, the end of it.
    fn tell(&self, capture: &Capture, told: &mut u64) {
        let total = capture.total();
        let new = usize::try_from(total - *told).unwrap_or(usize::MAX);
        if new > 0 {
            *told = total;
            let text = answer::plain(&capture.end(new.min(PROGRESS_TAIL)));
            self.cx.progress.report(Update::Text { text });
        }
    }

    /// What is said of undo when a command goes on.
    fn undo_ends(&self) -> Option<String> {
        let harmless = bash::is_harmless(&self.analysis, self.input);
        (!harmless).then(|| UNDO_ENDS.to_owned())
    }

    /// Is there a background at all?
    fn backgrounds(&self) -> bool {
        let off = variable(
            &self.cx.permissions.confinement.env,
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
        );
        !off.is_some_and(|value| matches!(value.trim(), "1" | "true"))
    }

    /// The answer to a command that ended.
    async fn ended(&self, job: Arc<Job>, ended: &Ended) -> Result<ToolOutput, ToolError> {
        let mut answer = self.answer();
        let code = match ended.how {
            How::Exited(code) => code,
            How::Killed(signal) => 128 + signal,
            How::Lost => return Err(lost(&job, self.limits.failed_output)),
        };
        let meaning = meaning::meaning(&self.input.command, code);
        if job.cause() == Some(Cause::Flood) {
            answer.failed = true;
            answer.first = Some("Killed: it printed more than 5 GB.".to_owned());
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
        self.left_running(&job, told, &mut answer).await;
        let moved = self.moved_to(ended, &mut answer).await?;
        let mut output = answer.with(body);
        output.patches.extend(moved);
        Ok(output)
    }

    /// What the command left running becomes a task; what only reads leaves nothing.
    async fn left_running(&self, job: &Arc<Job>, told: u64, answer: &mut Answer) {
        if matches!(job.stage(), Stage::Gone(_)) {
            return;
        }
        if bash::is_harmless(&self.analysis, self.input) || !self.backgrounds() {
            job.kill(Cause::Leftover, Duration::ZERO);
            return;
        }
        let processes = job.processes().await;
        if processes.is_empty() {
            return;
        }
        let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
        let ports = blocking(move || ports::listening(pids)).await;
        let names: Vec<String> = processes
            .iter()
            .take(5)
            .map(|process| format!("{} (pid {})", process.name, process.pid))
            .collect();
        let more = match processes.len().saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let listening = match ports.unwrap_or_default() {
            ports if ports.is_empty() => String::new(),
            ports => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                format!(", listening on port {}", ports.join(", "))
            }
        };
        let what = format!("{}{more}{listening}", names.join(", "));
        match self.task(job, limits::BACKGROUND, told).await {
            Ok((id, path)) => {
                answer.note(format!(
                    "Still running as background task {id}: {what}. Output file: {path}"
                ));
                answer.field("backgroundTaskId", id);
            }
            Err(error) => {
                job.kill(Cause::Leftover, Duration::ZERO);
                answer.note(format!(
                    "It left running {what}; that was ended, because its output cannot be kept: {error}"
                ));
            }
        }
    }

    /// Where the session goes.
    async fn moved_to(
        &self,
        ended: &Ended,
        answer: &mut Answer,
    ) -> Result<Option<ContextPatch>, ToolError> {
        let fixed = variable(
            &self.cx.permissions.confinement.env,
            "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR",
        );
        let fixed = fixed.is_some_and(|value| matches!(value.trim(), "1" | "true"));
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

    fn interrupted(&self, job: &Job) -> ToolOutput {
        let mut answer = self.answer();
        answer.failed = true;
        answer.interrupted = true;
        answer.first = Some(INTERRUPTED.to_owned());
        answer.with(answer::of_failure(&job.capture, self.limits.failed_output))
    }

    fn timed_out(&self, job: &Job, after: Duration, why: Option<&str>) -> ToolOutput {
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
        answer.notes.extend(waits(job));
        answer.with(answer::of_failure(&job.capture, self.limits.failed_output))
    }

    /// The answer to a command that was started as a background task.
    async fn in_background(&self, job: Arc<Job>) -> Result<ToolOutput, ToolError> {
        let lifetime = Limits::background(self.input.timeout);
        let (id, path) = self.task(&job, lifetime, 0).await.map_err(|error| {
            ToolError::Failed(format!(
                "The command was ended again: its output cannot be kept: {error}"
            ))
        })?;
        let mut answer = self.answer();
        answer.first = Some(format!("Started background task {id}; output file: {path}"));
        self.stays(&mut answer);
        answer.field("backgroundTaskId", id);
        Ok(answer.with(Body::default()))
    }

    /// The answer to a command that goes on in the background.
    async fn moved(&self, job: Arc<Job>, after: Option<Duration>) -> Result<ToolOutput, ToolError> {
        let mut answer = self.answer();
        let so_far = job.capture.total();
        let body = answer::of_failure(&job.capture, self.limits.failed_output);
        let task = self.task(&job, limits::BACKGROUND, so_far).await;
        let (id, path) = task.map_err(|error| {
            ToolError::Failed(format!(
                "The command was ended: it should have gone on in the background, but its output \
                 cannot be kept: {error}"
            ))
        })?;
        let why = match after {
            Some(after) => {
                answer.field("timedOutAfterMs", milliseconds(after));
                format!(
                    "did not complete within its {}s timeout and",
                    after.as_secs_f64()
                )
            }
            None => {
                answer.field("backgroundedByUser", true);
                "was not waited for: the user".to_owned()
            }
        };
        let verb = if after.is_some() {
            "was moved"
        } else {
            "moved it"
        };
        answer.first = Some(format!(
            "The command {why} {verb} to the background: task {id}; output file: {path}"
        ));
        self.stays(&mut answer);
        answer.field("backgroundTaskId", id);
        if so_far > 0 {
            answer.first = answer
                .first
                .map(|first| format!("{first}\nOutput so far ({}):", counted(so_far, "byte")));
        }
        Ok(answer.with(body))
    }

    /// A command in the background moves nobody.
    fn stays(&self, answer: &mut Answer) {
        if bash::moves(&self.analysis) {
            let hint = format!(
                "Session cwd remains {}; a cd inside a background command does not change it.",
                answer::directory(&self.cx.cwd)
            );
            answer.note(hint.clone());
            answer.field("backgroundCwdHint", hint);
        }
    }

    /// Makes a task of it, whose output was told up to `read`: its id, and where its output is.
    async fn task(
        &self,
        job: &Arc<Job>,
        lifetime: Duration,
        read: u64,
    ) -> Result<(String, String), ToolError> {
        let capture = job.capture.clone();
        let output_file = blocking(move || capture.keep())
            .await?
            .map_err(|error| ToolError::Failed(error.to_string()))?;
        let path = output_file.display().to_string();
        let described = self.input.description.as_deref().map(str::trim);
        let description = described.filter(|text| !text.is_empty());
        let id = self.shell.tasks().add(NewTask {
            description: description.unwrap_or(&self.input.command).to_owned(),
            command: self.input.command.clone(),
            output_file,
            job: Arc::clone(job),
            lifetime,
            read,
        });
        Ok((id, path))
    }

    fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        if self.lifted {
            answer.field("dangerouslyDisableSandbox", true);
        }
        answer
    }
}

/// Puts notes behind what the model reads.
fn add_notes(output: &mut ToolOutput, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    let notes = notes.join("\n");
    match output.content.last_mut() {
        Some(Content::Text { text }) => {
            text.push('\n');
            text.push_str(&notes);
        }
        _ => output.content.push(Content::text(notes)),
    }
}

/// Its sandbox was ended from outside, and it with it.
fn lost(job: &Job, limit: usize) -> ToolError {
    let said = answer::of_failure(&job.capture, limit).text;
    ToolError::Failed(format!(
        "The command was ended from outside; how far it got is not known. What it printed:\n{said}"
    ))
}

/// What to do about a command that waits for somebody to type, if it seems to.
fn waits(job: &Job) -> Option<String> {
    let mut text = Text::default();
    text.push(&job.capture.end(WAITING_TAIL));
    let mut tail = text.take();
    tail.push_str(text.unfinished());
    waiting::hint(&tail)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// One word for a shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
