//! Running a handler: a process of its own, with an end.

use std::{collections::BTreeMap, path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

use super::{
    config::{Action, Callback},
    output::Ended,
};

/// How long a handler has between being told to end and being ended.
const GRACE: Duration = Duration::from_secs(2);

/// How long pipes that others hold are read after the process has ended.
const DRAIN: Duration = Duration::from_millis(500);

/// A handler that writes more than this has lost its way.
const MOST_OUTPUT: u64 = 4 * 1024 * 1024;

/// Why a handler gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RunError {
    /// It cannot run here.
    #[error("{0}")]
    Unavailable(String),
    /// It could not be started.
    #[error("it could not be started: {0}")]
    NotStarted(String),
    /// It took too long.
    #[error("it took longer than {0:?}")]
    TimedOut(Duration),
}

/// Where and with what a handler runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// The directory.
    pub(super) cwd: &'a Path,
    /// The project's root.
    pub(super) project: &'a Path,
    /// Variables that the settings name.
    pub(super) env: &'a BTreeMap<String, String>,
}

/// Asks a program that is connected already.
async fn ask(callback: &Callback, input: &str, limit: Duration) -> Result<Ended, RunError> {
    let input = serde_json::from_str(input)
        .map_err(|error| RunError::Unavailable(format!("the event cannot be told: {error}")))?;
    match timeout(limit, (callback.0)(input)).await {
        Err(_) => Err(RunError::TimedOut(limit)),
        Ok(Err(why)) => Err(RunError::Unavailable(why)),
        Ok(Ok(answer)) => Ok(Ended {
            code: Some(0),
            stdout: answer.to_string(),
            stderr: String::new(),
        }),
    }
}

/// Runs a handler: the input on its stdin, one line, then the end.
pub(super) async fn run(
    action: &Action,
    input: &str,
    limit: Duration,
    surroundings: Surroundings<'_>,
) -> Result<Ended, RunError> {
    if let Action::Callback(callback) = action {
        return ask(callback, input, limit).await;
    }
    let mut command = command(action, surroundings)?;
    for (name, value) in surroundings.env {
        match value.as_str() {
            // What was inherited is taken away.
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
        // A group of its own, so that whatever it starts ends with it.
        .process_group(0)
        .kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OTEL_") {
            command.env_remove(name);
        }
    }
    let mut child = command
        .spawn()
        .map_err(|error| RunError::NotStarted(error.to_string()))?;
    let group = Group::of(&child);
    let ended = timeout(limit, talk(&mut child, input)).await;
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

fn command(action: &Action, surroundings: Surroundings<'_>) -> Result<Command, RunError> {
    let filled = |text: &str| {
        let project = surroundings.project.to_string_lossy();
        text.replace("${CLAUDE_PROJECT_DIR}", &project)
    };
    match action {
        // The shell has the variable in its environment: the text stays as it was written.
        Action::Shell(text) => {
            let mut command = Command::new("bash");
            command.arg("-c").arg(text);
            Ok(command)
        }
        Action::Program(program, args) => {
            let mut command = Command::new(filled(program));
            command.args(args.iter().map(|arg| filled(arg)));
            Ok(command)
        }
        Action::Callback(_) => Err(RunError::Unavailable("it is no program".to_owned())),
        Action::Unavailable(why) => Err(RunError::Unavailable(why.clone())),
    }
}

/// Tells the process its input and hears it out. It has ended when the process has: what it left
/// running may hold the pipes, and gets only a moment more.
async fn talk(child: &mut Child, input: &str) -> std::io::Result<Ended> {
    let stdin = child.stdin.take();
    let write = async move {
        if let Some(mut stdin) = stdin {
            // A handler need not read what it is told.
            let _ = stdin.write_all(input.as_bytes()).await;
            let _ = stdin.write_all(b"\n").await;
            let _ = stdin.shutdown().await;
        }
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let pipes = (child.stdout.take(), child.stderr.take());
    let status = {
        let read = async {
            tokio::join!(all(pipes.0, &mut stdout), all(pipes.1, &mut stderr));
        };
        tokio::pin!(read, write);
        let (mut is_read, mut is_written) = (false, false);
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                () = &mut read, if !is_read => is_read = true,
                () = &mut write, if !is_written => is_written = true,
            }
        };
        if !is_read {
            let _ = timeout(DRAIN, read).await;
        }
        status
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ended {
        code: status.code(),
        stdout: text(stdout),
        stderr: text(stderr),
    })
}

async fn all(pipe: Option<impl tokio::io::AsyncRead + Unpin>, bytes: &mut Vec<u8>) {
    if let Some(pipe) = pipe {
        let _ = pipe.take(MOST_OUTPUT).read_to_end(bytes).await;
    }
}

/// The processes of a handler. What is left of them is killed when this goes.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, signal);
        }
    }

    /// It ended by itself; what it left running in the background is its own affair.
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
