//! Running a handler that is a program: a process in its own session, with a timeout.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use haft_contract::secrets;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::{MissedTickBehavior, interval, timeout},
};

use super::{
    config::{HookAction, HookHandler, HookOrigin},
    hook_events::{HookReporter, HookStage},
    output::HookExit,
    reaper::{self, ProcessReaper, ReapedGroup},
};

/// The time between SIGTERM and SIGKILL for a handler that timed out.
const GRACE: Duration = Duration::from_secs(2);

/// The time for reading pipes that other processes hold open after the handler has exited.
const DRAIN: Duration = Duration::from_millis(500);

/// The maximum size of stdout and of stderr, in bytes; the rest is dropped.
const MAX_OUTPUT: usize = 4 * 1024 * 1024;

/// The interval of reports about the handler's output.
const PROGRESS: Duration = Duration::from_secs(1);

/// The paths of `setsid`, which starts a program in its own session. Absolute paths, because a
/// directory in PATH may belong to a workspace.
pub(super) const SETSID: [&str; 3] = [
    "/usr/bin/setsid",
    "/bin/setsid",
    "/run/current-system/sw/bin/setsid",
];

/// The reason why a handler gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RunError {
    /// The handler cannot run here.
    #[error("{0}")]
    Unavailable(String),
    /// The program could not be started.
    #[error("it could not be started: {0}")]
    NotStarted(String),
    /// The handler timed out.
    #[error("it took longer than {0:?}")]
    TimedOut(Duration),
}

/// The process context of a handler: directories, environment and reaper.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessContext<'a> {
    /// The working directory.
    pub(super) cwd: &'a Path,
    /// The project's root.
    pub(super) project: &'a Path,
    /// Environment variables from the settings.
    pub(super) env: &'a BTreeMap<String, String>,
    /// The file for environment variables of later commands.
    pub(super) env_file: Option<&'a Path>,
    /// The effort level of the model.
    pub(super) effort: Option<&'a str>,
    /// Kills the program if our process dies.
    pub(super) reaper: &'a Arc<ProcessReaper>,
}

/// Runs a program, with the input as one line on its stdin.
pub(super) async fn run(
    handler: &HookHandler,
    input: &str,
    limit: Duration,
    surroundings: ProcessContext<'_>,
    teller: &HookReporter,
) -> Result<HookExit, RunError> {
    let mut command = command(handler, surroundings)?;
    // haft removes secret variables from its own environment, but hooks inherit them.
    command.envs(secrets::removed_variables().filter(|(name, _)| !is_telemetry(name)));
    for (name, value) in surroundings.env {
        match value.as_str() {
            // An empty value removes an inherited variable.
            "" => command.env_remove(name),
            value => command.env(name, value),
        };
    }
    command
        .current_dir(surroundings.cwd)
        .env("CLAUDE_PROJECT_DIR", surroundings.project)
        .env("CLAUDECODE", "1")
        .env("CLAUDE_CODE_CHILD_SESSION", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(file) = surroundings.env_file {
        command.env("CLAUDE_ENV_FILE", file);
    }
    if let Some(effort) = surroundings.effort {
        command.env("CLAUDE_EFFORT", effort);
    }
    if let HookOrigin::Plugin(plugin) = &handler.origin {
        command
            .env("CLAUDE_PLUGIN_ROOT", &plugin.root)
            .env("CLAUDE_PLUGIN_DATA", &plugin.data);
        for (name, value) in &plugin.options {
            let name = name.to_ascii_uppercase().replace('-', "_");
            command.env(format!("CLAUDE_PLUGIN_OPTION_{name}"), value);
        }
    }
    for (name, _) in std::env::vars_os() {
        if is_telemetry(&name) {
            command.env_remove(name);
        }
    }
    let mut child = command
        .spawn()
        .map_err(|error| RunError::NotStarted(error.to_string()))?;
    let group = ProcessGroup::for_child(&child, surroundings.reaper);
    let ended = timeout(limit, exchange(&mut child, input, teller)).await;
    match ended {
        Ok(Ok(ended)) => {
            group.done();
            Ok(ended)
        }
        Ok(Err(error)) => Err(RunError::NotStarted(error.to_string())),
        Err(_) => {
            group.signal(Signal::TERM);
            let _ = timeout(GRACE, child.wait()).await;
            Err(RunError::TimedOut(limit))
        }
    }
}

/// Returns whether this is a telemetry variable. These are ours and not passed on to hooks.
fn is_telemetry(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("OTEL_")
}

fn command(handler: &HookHandler, surroundings: ProcessContext<'_>) -> Result<Command, RunError> {
    let filled = |text: &str| filled(text, handler, surroundings);
    let (program, args) = match &handler.action {
        // The shell expands the variables itself, so the text is not changed.
        HookAction::Shell(text) => ("bash".to_owned(), vec!["-c".to_owned(), text.clone()]),
        HookAction::Program(program, args) => {
            let args = args.iter().map(|arg| filled(arg)).collect();
            (filled(program), args)
        }
        HookAction::Unavailable(why) => return Err(RunError::Unavailable(why.clone())),
        _ => return Err(RunError::Unavailable("it is not a program".to_owned())),
    };
    // In its own session the program has no terminal to ask the user on, and all its child
    // processes can be killed with it.
    let setsid = SETSID.iter().find(|place| Path::new(place).is_file());
    let mut words = setsid.iter().copied().chain(reaper::gate()).copied();
    let mut command = match words.next() {
        Some(first) => {
            let mut command = Command::new(first);
            command.args(words).arg(program);
            command
        }
        None => Command::new(program),
    };
    if setsid.is_none() {
        command.process_group(0);
    }
    command.args(args);
    Ok(command)
}

fn filled(text: &str, handler: &HookHandler, surroundings: ProcessContext<'_>) -> String {
    let project = surroundings.project.to_string_lossy();
    let mut text = text.replace("${CLAUDE_PROJECT_DIR}", &project);
    if let HookOrigin::Plugin(plugin) = &handler.origin {
        text = text
            .replace("${CLAUDE_PLUGIN_ROOT}", &plugin.root.to_string_lossy())
            .replace("${CLAUDE_PLUGIN_DATA}", &plugin.data.to_string_lossy());
        for (name, value) in &plugin.options {
            text = text.replace(&format!("${{user_config.{name}}}"), value);
        }
    }
    text
}

/// The output of a process so far.
#[derive(Default)]
struct ProcessOutput {
    stdout: Mutex<Vec<u8>>,
    stderr: Mutex<Vec<u8>>,
}

impl ProcessOutput {
    fn texts(&self) -> (String, String) {
        let text = |bytes: &Mutex<Vec<u8>>| String::from_utf8_lossy(&lock(bytes)).into_owned();
        (text(&self.stdout), text(&self.stderr))
    }

    fn length(&self) -> usize {
        lock(&self.stdout).len() + lock(&self.stderr).len()
    }
}

fn lock(bytes: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    bytes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the input to the process and reads its output until it exits. Its child processes may
/// keep the pipes open; they are read only for [`DRAIN`] longer.
async fn exchange(
    child: &mut Child,
    input: &str,
    teller: &HookReporter,
) -> std::io::Result<HookExit> {
    let stdin = child.stdin.take();
    let write = async move {
        if let Some(mut stdin) = stdin {
            if !reaper::gate().is_empty() {
                let _ = stdin.write_all(b"go\n").await;
            }
            // A handler need not read its input, so errors are ignored.
            let _ = stdin.write_all(input.as_bytes()).await;
            let _ = stdin.write_all(b"\n").await;
            let _ = stdin.shutdown().await;
        }
    };
    let printed = ProcessOutput::default();
    let pipes = (child.stdout.take(), child.stderr.take());
    let read = async {
        tokio::join!(all(pipes.0, &printed.stdout), all(pipes.1, &printed.stderr));
    };
    let status = {
        tokio::pin!(read, write);
        let (mut is_read, mut is_written) = (false, false);
        let mut ticks = interval(PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = 0;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                () = &mut read, if !is_read => is_read = true,
                () = &mut write, if !is_written => is_written = true,
                _ = ticks.tick(), if teller.is_observed() => {
                    let length = printed.length();
                    if length != told {
                        told = length;
                        let (stdout, stderr) = printed.texts();
                        teller.report(HookStage::Printed { stdout, stderr });
                    }
                }
            }
        };
        if !is_read {
            let _ = timeout(DRAIN, read).await;
        }
        status
    };
    let (stdout, stderr) = printed.texts();
    Ok(HookExit {
        code: status.code(),
        stdout,
        stderr,
    })
}

async fn all(pipe: Option<impl tokio::io::AsyncRead + Unpin>, bytes: &Mutex<Vec<u8>>) {
    let Some(mut pipe) = pipe else { return };
    let mut chunk = [0; 8192];
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(length) => {
                let mut bytes = lock(bytes);
                // Output beyond the limit is read and dropped, so that the program does not block.
                let room = MAX_OUTPUT.saturating_sub(bytes.len());
                bytes.extend_from_slice(&chunk[..length.min(room)]);
            }
        }
    }
}

/// The process group of a handler. Remaining processes are killed on drop.
struct ProcessGroup {
    id: Option<Pid>,
    /// Kills the group even if our process dies.
    _reaped: Option<ReapedGroup>,
}

impl ProcessGroup {
    fn for_child(child: &Child, reaper: &Arc<ProcessReaper>) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let id = id.and_then(Pid::from_raw);
        Self {
            id,
            _reaped: id.map(|id| reaper.register(id)),
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.id {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Marks the handler as exited; processes that it left in the background are not killed.
    fn done(mut self) {
        self.id = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
