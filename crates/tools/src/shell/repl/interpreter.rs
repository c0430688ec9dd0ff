//! A running interpreter: a confined program that runs our driver.
//!
//! The driver receives code on descriptor 3 and answers on 4. A shell sets these descriptors up and
//! then replaces itself with the interpreter. Both descriptors, and the printed output, are pipes
//! that the guard controls, like all output of commands.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_contract::{
    CallContext, CallId, Confinement, ConfinementProfile, NetworkAccess, ProgressUpdate, ToolError,
};
use haft_sandbox::{
    CommandEnd, ConfinedProcess, ConfinedProgram, ExitKind, Mechanism, NamePolicy, Sandbox,
};
#[cfg(feature = "browser")]
use haft_sandbox::{CommandNetwork, ProcessInfo};
use serde_json::json;
use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe,
    sync::mpsc,
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, sleep_until, timeout},
};

use super::{
    ReplLanguage,
    frames::{self, DriverAnswer, DriverFrame},
    output::PrintedOutput,
};
use crate::shell::{ShellService, profile};

const PYTHON: &str = include_str!("driver.py");
const NODE: &str = include_str!("driver.js");
/// Moves our pipes away from the standard streams of the code, and becomes the interpreter.
const LAUNCH: &str = "exec \"$@\" 3<&0 4>&1 0</dev/null 1>&2";

/// The timeout for the start of an interpreter.
const START: Duration = Duration::from_secs(60);
/// The time that interrupted code has to end.
const GRACE: Duration = Duration::from_secs(3);
/// Like [`GRACE`], but after an interrupt by the user, who is waiting.
const SHORT_GRACE: Duration = Duration::from_secs(1);
/// The time for the rest of the printed output to arrive.
const REST: Duration = Duration::from_secs(5);
/// The interval between reports of new output.
const PROGRESS: Duration = Duration::from_millis(40);
/// The maximum number of images of one call.
const MAX_IMAGES: usize = 8;

/// An interpreter. When it is dropped, all of its processes end.
pub(super) struct Interpreter {
    process: ConfinedProcess,
    /// Keeps the sandbox alive.
    _sandbox: Sandbox,
    requests: pipe::Sender,
    frames: mpsc::Receiver<DriverFrame>,
    printed: Arc<PrintedOutput>,
    limits: ReplGrants,
    _readers: JoinSet<()>,
}

/// The permissions of an interpreter when it started. A call must not use an interpreter that has
/// more permissions than the call.
#[derive(Debug)]
struct ReplGrants {
    profile: ConfinementProfile,
    network: u8,
    /// Without the caches of tools, which any call may fill and which are created as needed.
    writable: Vec<PathBuf>,
    hidden: Arc<[PathBuf]>,
    protected: Arc<[PathBuf]>,
    closed: Arc<[PathBuf]>,
}

impl ReplGrants {
    fn from_confinement(confinement: &Confinement) -> Self {
        Self {
            profile: confinement.profile,
            network: match confinement.network {
                NetworkAccess::Nobody => 0,
                NetworkAccess::ByRule(_) => 1,
                NetworkAccess::Anybody => 2,
                NetworkAccess::Only(_) => 3,
            },
            writable: confinement
                .writable
                .iter()
                .filter(|path| !confinement.caches.contains(path))
                .cloned()
                .collect(),
            hidden: Arc::clone(&confinement.hidden),
            protected: Arc::clone(&confinement.protected),
            closed: Arc::clone(&confinement.closed),
        }
    }

    /// Returns the reason why an interpreter started under this confinement must not be used under
    /// `now`, or `None` if it may.
    ///
    /// If the guard mediates opens, it also enforces protection that was added since the start. For
    /// hidden paths this is not enough, because the interpreter may already have them open.
    fn why_not_for(&self, now: &Self, mediated: bool) -> Option<String> {
        let missing = |few: &[PathBuf], many: &[PathBuf]| {
            let found = few.iter().find(|one| !many.contains(one));
            found.map(|path| path.display().to_string())
        };
        if self.profile != now.profile {
            return Some("commands are confined differently".to_owned());
        }
        if self.network != now.network {
            return Some("the network access of commands is different".to_owned());
        }
        if let Some(path) = missing(&now.hidden, &self.hidden) {
            return Some(format!("a rule hides {path} from commands"));
        }
        if let Some(path) = missing(&self.writable, &now.writable) {
            return Some(format!("{path} may no longer be written"));
        }
        let protected = missing(&now.protected, &self.protected).filter(|_| !mediated);
        let closed = missing(&now.closed, &self.closed);
        protected
            .or(closed)
            .map(|path| format!("{path} is protected from commands"))
    }
}

/// The outcome of a call.
pub(super) struct ReplOutcome {
    pub(super) printed: String,
    pub(super) answer: DriverAnswer,
    pub(super) images: Vec<Vec<u8>>,
    pub(super) end: ReplEnd,
}

/// The end of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplEnd {
    /// The code has finished, with or without an error.
    Done,
    /// The code exceeded its timeout and was interrupted.
    TimedOut,
    /// The user interrupted the code.
    Interrupted,
    /// The interpreter ended and its state is lost, for this reason.
    Lost(String),
}

impl Interpreter {
    pub(super) async fn start(
        language: ReplLanguage,
        shell: &ShellService,
        confinement: &Confinement,
        cx: &CallContext,
    ) -> Result<Self, ToolError> {
        let (name, words, driver) = match language {
            ReplLanguage::Python => ("python3", ["-c"].as_slice(), PYTHON),
            ReplLanguage::Node => ("node", ["-e"].as_slice(), NODE),
        };
        let mut program = ConfinedProgram::new("/bin/sh", &*cx.cwd);
        let arguments = ["-c", LAUNCH, "sh", name].into_iter();
        let arguments = arguments.chain(words.iter().copied()).chain([driver]);
        program.arguments = arguments.map(Into::into).collect();
        let control = confinement.control.clone();
        program.names = Some(NamePolicy::from_fn(move |used| {
            profile::permits(&control, used, false)
        }));
        let (sandbox, mut process) = shell.start_program(confinement, program).await?;
        let requests = process.stdin.take();
        let requests = requests.ok_or(ToolError::Unavailable("a pipe to the interpreter"))?;
        let printed = Arc::new(PrintedOutput::default());
        let (sender, frames) = mpsc::channel(16);
        let mut readers = JoinSet::new();
        readers.spawn(frames::read_frames(process.stdout.take(), sender));
        readers.spawn(Arc::clone(&printed).read_output(process.stderr.take()));
        let mut started = Self {
            process,
            _sandbox: sandbox,
            requests,
            frames,
            printed,
            limits: ReplGrants::from_confinement(confinement),
            _readers: readers,
        };
        match timeout(START, started.frames.recv()).await {
            Ok(Some(DriverFrame::Ready)) => Ok(started),
            _ => {
                let _ = timeout(REST, started.printed.until_marked()).await;
                let said = started.printed.take();
                Err(ToolError::Failed(format!(
                    "{name} was not started: {}",
                    match said.trim() {
                        "" => "it did not say why".to_owned(),
                        said => said.lines().last().unwrap_or(said).to_owned(),
                    }
                )))
            }
        }
    }

    /// Returns the reason why the interpreter must not be used under this confinement, or `None` if
    /// it may.
    pub(super) fn misfit(&self, confinement: &Confinement) -> Option<String> {
        let now = ReplGrants::from_confinement(confinement);
        self.limits.why_not_for(&now, self.is_mediated())
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.process.control().has_ended()
    }

    /// Returns the interpreter's processes, and its own network, if it has one.
    #[cfg(feature = "browser")]
    pub(super) fn running(&self) -> (Vec<ProcessInfo>, Option<CommandNetwork>) {
        (self.process.processes(), self.process.network().cloned())
    }

    /// Returns whether the guard mediates file access, so that the code cannot create control files
    /// unnoticed.
    pub(super) fn is_mediated(&self) -> bool {
        self.process.mechanism() == Mechanism::Namespaces
    }

    /// Ends the interpreter, and waits for its end.
    pub(super) async fn end(self) {
        let control = self.process.control();
        control.kill(Duration::ZERO);
        let _ = timeout(REST, control.wait_until_finished()).await;
    }

    /// Runs code. After [`ReplEnd::Lost`], the interpreter must not be used again.
    pub(super) async fn run(
        &mut self,
        code: &str,
        longest: Duration,
        cx: &CallContext,
    ) -> ReplOutcome {
        let nonce = CallId::new().0.simple().to_string();
        let mark = format!("\0haft {nonce}\0\n");
        self.printed.begin(&mark);
        let mut request = json!({"nonce": nonce, "mark": mark, "code": code}).to_string();
        request.push('\n');
        let mut images = Vec::new();
        let (end, answer) = self
            .wait_for_answer(&request, &nonce, longest, &mut images, cx)
            .await;
        if !matches!(end, ReplEnd::Lost(_)) {
            let _ = timeout(REST, self.printed.until_marked()).await;
        }
        ReplOutcome {
            printed: self.printed.take(),
            answer,
            images,
            end,
        }
    }

    /// Sends a request, and waits for its answer or any other end of the call.
    async fn wait_for_answer(
        &mut self,
        request: &str,
        nonce: &str,
        longest: Duration,
        images: &mut Vec<Vec<u8>>,
        cx: &CallContext,
    ) -> (ReplEnd, DriverAnswer) {
        let mut unsent = request.as_bytes();
        let mut deadline = (Instant::now() + longest).into();
        let mut end = ReplEnd::Done;
        let mut ticks = interval(PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                frame = self.frames.recv() => match frame {
                    Some(DriverFrame::Done { nonce: of, done }) if of == nonce => {
                        // Code that finished before the interrupt took effect was not interrupted.
                        let end = if done.interrupted { end } else { ReplEnd::Done };
                        return (end, done);
                    }
                    Some(DriverFrame::Image { nonce: of, bytes }) if of == nonce => {
                        if images.len() < MAX_IMAGES {
                            images.push(bytes);
                        }
                    }
                    Some(DriverFrame::Invalid(what)) => {
                        return self.lost(format!(
                            "it wrote to the descriptors of haft's own driver ({what})"
                        ));
                    }
                    // A message of an earlier call.
                    Some(_) => {}
                    None => return self.exited().await,
                },
                sent = self.requests.write(unsent), if !unsent.is_empty() => match sent {
                    Ok(sent) => unsent = &unsent[sent..],
                    Err(_) => return self.exited().await,
                },
                () = cx.cancel.cancelled(), if end == ReplEnd::Done => {
                    end = ReplEnd::Interrupted;
                    self.process.interrupt();
                    deadline = (Instant::now() + SHORT_GRACE).into();
                }
                () = sleep_until(deadline) => match end {
                    ReplEnd::Done => {
                        end = ReplEnd::TimedOut;
                        self.process.interrupt();
                        deadline = (Instant::now() + GRACE).into();
                    }
                    ReplEnd::TimedOut => {
                        return self.lost("its timeout expired, and it could not be interrupted".to_owned());
                    }
                    _ => return self.lost("it was interrupted, but continued".to_owned()),
                },
                _ = ticks.tick() => {
                    if self.printed.is_flood() {
                        return self.lost("it printed more than 200 MB".to_owned());
                    }
                    if !cx.progress.is_silent() && let Some(text) = self.printed.news() {
                        cx.progress.report(ProgressUpdate::Text { text });
                    }
                }
            }
        }
    }

    fn lost(&self, why: String) -> (ReplEnd, DriverAnswer) {
        self.process.kill(Duration::ZERO);
        (ReplEnd::Lost(why), DriverAnswer::default())
    }

    /// Handles the end of the messages: the interpreter has ended, or closed its descriptors.
    async fn exited(&self) -> (ReplEnd, DriverAnswer) {
        let control = self.process.control();
        let ended = tokio::select! {
            ended = control.wait_for_end() => Some(ended),
            () = sleep(Duration::from_secs(1)) => None,
        };
        let why = match ended {
            None => "it closed the descriptors of haft's own driver".to_owned(),
            Some(CommandEnd {
                uncovered: Some(path),
                ..
            }) => format!(
                "{} is hidden from it but could be read, so it was ended",
                path.display()
            ),
            Some(CommandEnd {
                exceeded: Some(exceeded),
                ..
            }) => format!("it was ended: {exceeded}"),
            Some(CommandEnd {
                how: ExitKind::Exited(code),
                ..
            }) => format!("it exited with code {code}"),
            Some(CommandEnd {
                how: ExitKind::Killed(signal),
                ..
            }) => format!("signal {signal} ended it"),
            Some(_) => "it has ended".to_owned(),
        };
        self.process.kill(Duration::ZERO);
        // Wait for the last output.
        let _ = timeout(REST, control.wait_until_finished()).await;
        (ReplEnd::Lost(why), DriverAnswer::default())
    }
}
