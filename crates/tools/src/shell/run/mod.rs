//! Runs one command, from the command line to the tool result.
//!
//! haft starts the command and waits for it. If the sandbox refused an access, haft asks the user
//! and runs the command again if the user allows the access. `ended` and `background` build the
//! result for each possible outcome of the wait.

mod background;
mod ended;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_contract::{
    CallContext, Confinement, ConfinementProfile, Content, ControlFiles, NetworkAccess,
    ProgressUpdate, Tool, ToolError, ToolOutput, ToolUse,
};
use haft_sandbox::{CommandEnd, ExitKind, NamePolicy, ShellCommand};
use haft_shell::Analysis;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};

use super::{
    ShellService,
    arriving_files::ArrivingFiles,
    bash::{self, Bash, Input},
    capture::OutputCapture,
    change_tracking::{self, ChangeBaseline, UndoCoverage},
    command_output::{self, CommandResult},
    escalate::{self, EscalationOutcome},
    exit_code::{self, TimeoutAction},
    host_questions::NamedCall,
    job::{CommandJob, JobStage, KillCause},
    limits::CommandLimits,
    monitor::LineQueue,
    offline_note,
    output_mask::OutputMask,
    paused_timeout::PausedTimeout,
    refused_writes,
    sandbox_refusals::SandboxRefusal,
    service::WaitingCallGuard,
};
use crate::{blocking::blocking, paths::escaped};

/// The minimum interval between reports of new output.
const PROGRESS: Duration = Duration::from_millis(40);
/// The maximum number of bytes of new output per report; the newest are reported.
const PROGRESS_TAIL: usize = 4 << 10;
/// The maximum number of questions to the user about one command.
const MAX_QUESTIONS: u32 = 3;
/// The number of bytes at the end of the output that are searched for refusals.
const REFUSAL_TAIL: usize = 64 << 10;

/// Runs a command and returns its result.
pub(crate) async fn run(input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
    let shell = cx.services.get::<ShellService>()?;
    let run = CommandRun::new(&shell, input, cx)?;
    run.run(cx.permissions.confinement.clone()).await
}

/// Starts a command whose lines the model receives as they arrive. Returns the id of its task.
pub(crate) async fn monitor(
    input: &Input,
    lifetime: Duration,
    cx: &CallContext,
) -> Result<String, ToolError> {
    let shell = cx.services.get::<ShellService>()?;
    let mut run = CommandRun::new(&shell, input, cx)?;
    if !run.has_background() {
        return Err(ToolError::Refused(
            "Nothing may run in the background here (CLAUDE_CODE_DISABLE_BACKGROUND_TASKS)."
                .to_owned(),
        ));
    }
    run.lines = Some(LineQueue::default());
    let confinement = cx.permissions.confinement.clone();
    let watched = run.unless_cancelled(run.watch(&confinement)).await?;
    let starting = run.start(&confinement, 0, watched.as_ref());
    let job = run.unless_cancelled(starting).await?;
    let due = PendingAnswer {
        job,
        confinement,
        watched,
        undo: None,
        notes: Vec::new(),
        changed_files: 0,
    };
    run.monitored(due, lifetime).await
}

/// One run of a command for one call.
struct CommandRun<'a> {
    shell: &'a ShellService,
    input: &'a Input,
    cx: &'a CallContext,
    analysis: Arc<Analysis>,
    limits: CommandLimits,
    variables: ControlVariables,
    /// Whether the user allowed running the command without the sandbox.
    lifted: bool,
    /// Control files that the command tried to create or change and that were refused.
    refused: Arc<RefusedFiles>,
    /// Control files that it created in directories that it created itself.
    arriving: Arc<ArrivingFiles>,
    /// The lines, if this is a monitor.
    lines: Option<LineQueue>,
}

/// Control files that a command tried to create or change and that were refused.
#[derive(Default)]
struct RefusedFiles(Mutex<Vec<PathBuf>>);

impl RefusedFiles {
    fn record(&self, path: &Path) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() < MAX_REFUSED && !files.iter().any(|known| known == path) {
            files.push(path.to_path_buf());
        }
    }

    /// Returns the files since the last call.
    fn take(&self) -> Vec<PathBuf> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The maximum number of refused control files that are recorded.
const MAX_REFUSED: usize = 20;

/// The outcome of waiting for a command.
enum WaitOutcome {
    Ended(CommandEnd),
    Interrupted,
    TimedOut(Duration),
    /// The user moved the command to the background.
    Detached,
}

/// A command whose call has not been answered yet.
struct PendingAnswer {
    job: Arc<CommandJob>,
    /// The confinement of the last run.
    confinement: Confinement,
    /// The state before the command.
    watched: Option<ChangeBaseline>,
    /// The coverage of its changes by undo, once they are recorded.
    undo: Option<UndoCoverage>,
    /// Notes to add after its output.
    notes: Vec<String>,
    /// The number of files that it changed, if known.
    changed_files: usize,
}

/// Returns the error text for a command that is not started because a directory was not scanned
/// completely for files that deny rules hide.
fn unscanned(directory: &Path) -> String {
    format!(
        "The command was not started: a Read deny rule may hide files below {}, and there are too many directories \
         to scan them in time. Run the command again: the scan continues where it stopped. If that does not help, \
         the user can narrow the rule or start the session in a smaller directory.",
        escaped(directory.as_os_str())
    )
}

impl PendingAnswer {
    /// Returns whether the guard still records changes: processes of the command run.
    fn is_still_witnessed(&self) -> bool {
        let watched = self.watched.as_ref();
        watched.is_some_and(ChangeBaseline::is_witnessed)
            && !matches!(self.job.stage(), JobStage::Gone(_))
    }

    /// Returns the control files to check after the command has ended.
    fn control(&self) -> ControlFiles {
        match self.job.cannot_make_control_files {
            true => ControlFiles::default(),
            false => self.confinement.control.clone(),
        }
    }
}

impl<'a> CommandRun<'a> {
    fn new(
        shell: &'a ShellService,
        input: &'a Input,
        cx: &'a CallContext,
    ) -> Result<Self, ToolError> {
        if cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let confinement = &cx.permissions.confinement;
        if let Some(directory) = &confinement.unscanned {
            return Err(ToolError::Refused(unscanned(directory)));
        }
        let variables = ControlVariables(Arc::clone(&confinement.env));
        Ok(Self {
            analysis: bash::line_analysis(input, &cx.cwd),
            shell,
            input,
            cx,
            limits: CommandLimits::read(|name| variables.get(name)),
            variables,
            // The engine decides whether this is permitted, and has asked the user.
            lifted: input.dangerously_disable_sandbox
                && confinement.profile == ConfinementProfile::Full,
            refused: Arc::default(),
            arriving: Arc::new(ArrivingFiles::for_call(cx)),
            lines: None,
        })
    }

    async fn run(&self, mut confinement: Confinement) -> Result<ToolOutput, ToolError> {
        // Registered first, so that a request to detach is not lost if it arrives before the
        // command runs.
        let detach = self.shell.register_waiting_call(self.cx);
        let mut watched = self.unless_cancelled(self.watch(&confinement)).await?;
        let refused_before = self.refused_hosts(&confinement).await.len();
        let mut attempt = 0;
        loop {
            let job = self
                .unless_cancelled(self.start(&confinement, attempt, watched.as_ref()))
                .await?;
            let mut due = PendingAnswer {
                job,
                confinement,
                watched,
                undo: None,
                notes: Vec::new(),
                changed_files: 0,
            };
            if self.input.run_in_background && self.has_background() {
                return self.in_background(due).await;
            }
            let questions = due.watched.as_ref();
            let questions = questions.and_then(ChangeBaseline::open_questions);
            let waited = self.wait(&due.job, &detach, questions).await;
            let WaitOutcome::Ended(ended) = waited else {
                drop(detach);
                return self.not_ended(due, waited).await;
            };
            due.job.drain_output().await;
            match self.refused(&due, &ended).await {
                Some(EscalationOutcome::Retry(wider)) if attempt < MAX_QUESTIONS => {
                    due.job.kill(KillCause::Leftover, Duration::ZERO);
                    due.job.wait_until_gone().await;
                    attempt += 1;
                    if due
                        .watched
                        .as_ref()
                        .is_some_and(ChangeBaseline::is_witnessed)
                    {
                        self.record(&mut due).await?;
                    }
                    watched = match due.watched {
                        Some(watched) => Some(watched),
                        // The changes of the first run are recorded, or it was read-only.
                        None => self.watch(&wider).await?,
                    };
                    confinement = *wider;
                    continue;
                }
                Some(EscalationOutcome::Declined(note)) => due.notes.push(note),
                Some(EscalationOutcome::Retry(_)) | None => {}
            }
            // Also if the command succeeded: the last program of a pipeline may ignore the failure.
            let refused = self.refused_hosts(&due.confinement).await;
            let new = refused.get(refused_before..).unwrap_or_default();
            due.notes
                .extend(match offline_note::is_offline(&due.confinement) {
                    true => self.offline_note(&due, &ended, new).await,
                    false => hosts_note(new),
                });
            drop(detach);
            return self.ended(due, &ended).await;
        }
    }

    /// Waits for `work` unless the call is cancelled. Used before the command runs, so that an
    /// interrupt takes effect immediately.
    async fn unless_cancelled<T>(
        &self,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        tokio::select! {
            done = work => done,
            () = self.cx.cancel.cancelled() => Err(ToolError::Cancelled),
        }
    }

    /// Prepares the record of the command's changes: by its guard if that is possible, otherwise by the
    /// state of the files that it may change.
    async fn watch(&self, confinement: &Confinement) -> Result<Option<ChangeBaseline>, ToolError> {
        self.shell.created_caches().make(confinement);
        if self.shell.can_witness(confinement).await? {
            let roots = change_tracking::witnessed_roots(confinement);
            let command = &self.input.command;
            let witness =
                change_tracking::begin_witness(roots, command, self.cx, self.named()).await?;
            if witness.is_some() {
                return Ok(witness);
            }
        }
        self.watch_files(confinement).await
    }

    /// Records the state of the files that the command may change.
    async fn watch_files(
        &self,
        confinement: &Confinement,
    ) -> Result<Option<ChangeBaseline>, ToolError> {
        let own = [
            self.shell.folder().to_path_buf(),
            self.shell.scratch_folder(),
        ];
        change_tracking::record_baseline(confinement, &self.analysis, self.cx, own).await
    }

    async fn start(
        &self,
        confinement: &Confinement,
        attempt: u32,
        watched: Option<&ChangeBaseline>,
    ) -> Result<Arc<CommandJob>, ToolError> {
        let witness = watched.map(ChangeBaseline::witness_request).transpose()?;
        let gate = self.shell.gate();
        gate.open_for(self.cx, &confinement.network, &self.named());
        self.shell.created_caches().make(confinement);
        let line = ShellCommand {
            text: match self.variables.get("CLAUDE_CODE_SHELL_PREFIX") {
                Some(prefix) => format!("{prefix} {}", quoted(&self.input.command)),
                None => self.input.command.clone(),
            },
            cwd: self.cx.cwd.to_path_buf(),
            source_file: self.sourced(confinement),
            name_policy: Some(self.judge(confinement)),
        };
        let place = self.shell.output_path(self.cx.call, attempt);
        // A character has at most four bytes.
        let mut capture = OutputCapture::new(place, self.limits.output * 4)
            .masked_by(OutputMask::for_confinement(confinement));
        if let Some(lines) = &self.lines {
            capture = capture.followed_by(lines.clone());
        }
        self.shell
            .start_command(confinement, line, capture, witness.flatten().as_ref())
            .await
    }

    /// Returns the policy that decides about changes of control files and records the refused ones.
    fn judge(&self, confinement: &Confinement) -> NamePolicy {
        let (control, refused) = (confinement.control.clone(), Arc::clone(&self.refused));
        let arriving = Arc::clone(&self.arriving);
        let settings = control.names().and_then(|names| names.settings);
        NamePolicy::from_fn(move |used| {
            let permitted = arriving.permits(&control, used);
            if !permitted {
                // In a new directory, the guard removes unsafe settings instead.
                let is_removed = used.neighbor.is_some() && !used.new_directories.is_empty();
                let settings = settings.as_ref().filter(|_| is_removed);
                match settings {
                    Some((file, _)) => refused.record(&used.path.with_file_name(file)),
                    None => refused.record(&used.path),
                }
            }
            permitted
        })
    }

    /// Returns the file that the command's shell sources first. The session's file includes the
    /// contents of the user's file.
    fn sourced(&self, confinement: &Confinement) -> Option<PathBuf> {
        let is_there = |file: &PathBuf| file.is_file();
        let users = || self.variables.get("CLAUDE_ENV_FILE").map(PathBuf::from);
        let sessions = confinement.sourced.clone().filter(is_there);
        sessions.or_else(|| users().filter(is_there))
    }

    /// Waits for a command. While one of its `questions` is open, its timeout is paused.
    async fn wait(
        &self,
        job: &CommandJob,
        detach: &WaitingCallGuard<'_>,
        questions: Option<watch::Receiver<usize>>,
    ) -> WaitOutcome {
        let longest = self.limits.foreground(self.input.timeout);
        let mut told = 0;
        let is_followed = !self.cx.progress.is_silent();
        let mut ticks = interval(PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let over = PausedTimeout::new(longest, questions).wait();
        tokio::pin!(over);
        loop {
            tokio::select! {
                biased;
                ended = job.wait_for_exit() => return WaitOutcome::Ended(ended),
                () = self.cx.cancel.cancelled() => return WaitOutcome::Interrupted,
                () = detach.wait_for_detach() => return WaitOutcome::Detached,
                () = &mut over => return WaitOutcome::TimedOut(longest),
                _ = ticks.tick(), if is_followed => self.report_output(&job.capture, &mut told),
            }
        }
    }

    /// Reports the end of the output since the last report.
    fn report_output(&self, capture: &OutputCapture, told: &mut u64) {
        let total = capture.total();
        let new = usize::try_from(total - *told).unwrap_or(usize::MAX);
        if new > 0 {
            *told = total;
            let text = command_output::part(&capture.end(new.min(PROGRESS_TAIL)));
            self.cx.progress.report(ProgressUpdate::Text { text });
        }
    }

    /// Returns the result of a command according to the outcome of the wait.
    async fn not_ended(
        &self,
        due: PendingAnswer,
        waited: WaitOutcome,
    ) -> Result<ToolOutput, ToolError> {
        let after = match waited {
            WaitOutcome::Ended(ended) => return self.ended(due, &ended).await,
            WaitOutcome::Interrupted => return self.interrupted(due).await,
            WaitOutcome::Detached => return self.moved(due, None).await,
            WaitOutcome::TimedOut(after) => after,
        };
        match exit_code::when_slow(&self.analysis) {
            TimeoutAction::Background if self.has_background() => {
                self.moved(due, Some(after)).await
            }
            TimeoutAction::Background => self.timed_out(due, after, None).await,
            TimeoutAction::Kill(why) => self.timed_out(due, after, Some(why)).await,
        }
    }

    /// Asks the user about the accesses that the sandbox refused, if any.
    async fn refused(&self, due: &PendingAnswer, ended: &CommandEnd) -> Option<EscalationOutcome> {
        let mut files = self.refused.take();
        let ExitKind::Exited(code) = ended.how else {
            return None;
        };
        let confinement = &due.confinement;
        if confinement.profile == ConfinementProfile::Full {
            return None;
        }
        let seen = refused_writes::seen(&ended.refused, code, confinement);
        for path in seen.control {
            if files.len() < MAX_REFUSED && !files.contains(&path) {
                files.push(path);
            }
        }
        if code == 0 && !files.is_empty() {
            // The command succeeded without the change, so it does not run again. The note informs
            // the model.
            let note = escalate::control_files_note(&files);
            let refused: Vec<SandboxRefusal> =
                seen.others.into_iter().map(SandboxRefusal::Write).collect();
            let asked = match refused.is_empty() {
                true => return note.map(EscalationOutcome::Declined),
                false => self.ask(&refused, confinement).await,
            };
            return Some(match asked {
                EscalationOutcome::Declined(said) => {
                    EscalationOutcome::Declined(format!("{said}\n{}", note.unwrap_or_default()))
                }
                again => again,
            });
        }
        // The output of a read-only command may contain such messages from other sources.
        if code == 0 && confinement.profile == ConfinementProfile::ReadOnly {
            return None;
        }
        let (capture, cwd) = (due.job.capture.clone(), Arc::clone(&self.cx.cwd));
        let confined = confinement.clone();
        let refused = blocking(move || {
            let text = command_output::plain(&capture.end(REFUSAL_TAIL));
            escalate::find_refusals(&text, code, &confined, &cwd, (&files, &seen.others))
        });
        let refused = refused.await.ok().filter(|refused| !refused.is_empty())?;
        Some(self.ask(&refused, confinement).await)
    }

    async fn ask(
        &self,
        refused: &[SandboxRefusal],
        confinement: &Confinement,
    ) -> EscalationOutcome {
        let gate = self.shell.gate();
        escalate::ask(refused, confinement, gate, self.cx, self.named()).await
    }

    /// Returns the description of the call for questions to the user.
    fn named(&self) -> NamedCall {
        NamedCall {
            card: Bash.render_use(self.input).unwrap_or_default(),
            asked: ToolUse {
                id: self.cx.tool_use_id.to_string(),
                name: Bash::NAME.to_owned(),
                input: self.input.written(),
            },
        }
    }

    /// Returns the note on a command that ran without network.
    async fn offline_note(
        &self,
        due: &PendingAnswer,
        ended: &CommandEnd,
        refused: &[String],
    ) -> Option<String> {
        let code = match ended.how {
            ExitKind::Exited(code) => code,
            _ => 1,
        };
        let (capture, cwd) = (due.job.capture.clone(), Arc::clone(&self.cx.cwd));
        let confined = Confinement {
            // The output is read as that of a command without any proxy.
            profile: ConfinementProfile::ReadOnly,
            network: NetworkAccess::Nobody,
            ..due.confinement.clone()
        };
        let seen = blocking(move || {
            let text = command_output::plain(&capture.end(REFUSAL_TAIL));
            escalate::find_refusals(&text, code, &confined, &cwd, (&[], &[]))
        });
        let seen = seen.await.unwrap_or_default();
        offline_note::describe_refusal(&self.analysis, refused, &seen)
    }

    /// Returns the connections that the proxy has refused so far.
    async fn refused_hosts(&self, confinement: &Confinement) -> Vec<String> {
        match confinement.network {
            NetworkAccess::ByRule(_) | NetworkAccess::Only(_) => {
                self.shell.refused_connections(confinement).await
            }
            NetworkAccess::Nobody | NetworkAccess::Anybody => Vec::new(),
        }
    }

    /// Returns whether background tasks are enabled.
    fn has_background(&self) -> bool {
        !self.variables.is_on("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")
    }

    fn answer(&self) -> CommandResult {
        let mut answer = CommandResult::default();
        if self.lifted {
            answer.field("dangerouslyDisableSandbox", true);
        }
        answer
    }
}

/// Variables that configure haft, from the settings or from haft's own environment.
struct ControlVariables(Arc<BTreeMap<String, String>>);

impl ControlVariables {
    /// Returns the value of a variable unless it is empty.
    fn get(&self, name: &str) -> Option<String> {
        let set = self.0.get(name).cloned();
        set.or_else(|| std::env::var(name).ok())
            .filter(|value| !value.trim().is_empty())
    }

    fn is_on(&self, name: &str) -> bool {
        let value = self.get(name);
        value.is_some_and(|value| matches!(value.trim(), "1" | "true"))
    }
}

/// Appends notes to the text for the model.
fn add_notes(output: &mut ToolOutput, due: &PendingAnswer) {
    if let (Some(Value::Object(fields)), 1..) = (&mut output.structured, due.changed_files) {
        fields.insert("changedFiles".to_owned(), due.changed_files.into());
    }
    let notes = &due.notes;
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

/// Returns the note about connections that the proxy refused.
fn hosts_note(refused: &[String]) -> Option<String> {
    let mut different: Vec<&str> = refused.iter().map(String::as_str).collect();
    different.dedup();
    different.truncate(5);
    let lines = different.join("\n");
    (!lines.is_empty()).then(|| format!("The sandbox refused connections:\n{lines}"))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Quotes a text as a single shell word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
