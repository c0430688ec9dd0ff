//! Servers that are programs in a sandbox. A server is confined like a command and ends with its
//! sandbox.
//!
//! haft reads the output of the server from [`haft_sandbox::CommandOutput`], which returns nothing
//! that was written after a hidden file became readable. A command has no input and only one
//! output; a server also needs an input and a standard error. Both are named pipes in the folder
//! for its temporary files, which only the server can see.

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::{OsStr, OsString},
    fmt::Write as _,
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_contract::BoxFuture;
use haft_sandbox::{
    CommandEnd, CommandHandle, ExitKind, Mechanism, ResourceLimits, Sandbox, SandboxProfile,
    SandboxSetup, ScratchLease, ShellCommand, system_shell,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::unix::pipe,
    sync::{mpsc, watch},
    time::timeout,
};

use super::{
    server_log::StderrTail,
    stdio::{self, BUFFER, GRACE, LineSink},
    transport::{MAX_WAITING, OpenTransport, TransportControl},
};
use crate::{
    message::RpcMessage,
    peer::{Peer, PeerHandler, WeakPeer},
};

/// The time limit for everything in a sandbox to end.
const FAREWELL: Duration = Duration::from_secs(10);

/// The parameters for starting a server.
pub(crate) struct ConfinedStart<'a> {
    /// The program that creates sandboxes (the keeper).
    pub(crate) keeper: &'a Path,
    pub(crate) profile: SandboxProfile,
    /// The resolved path of the server's program.
    pub(crate) program: &'a Path,
    pub(crate) args: &'a [String],
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) cwd: &'a Path,
}

/// Starts a server in its own sandbox. The second part of the result describes restrictions that
/// are not enforced on this machine.
pub(crate) async fn open(
    start: ConfinedStart<'_>,
    handler: Arc<dyn PeerHandler>,
) -> Result<(OpenTransport, Option<String>), String> {
    let failed = |error: String| format!("it cannot be confined as `sandbox` requires: {error}");
    let shell = system_shell().ok_or_else(|| failed("bash was not found".to_owned()))?;
    // Held until the sandbox uses the folder.
    let folder = ScratchLease::create(&std::env::temp_dir());
    let folder = folder.map_err(|error| failed(error.to_string()))?;
    let scratch = folder.path().to_path_buf();
    let environment: Vec<(OsString, OsString)> = start.environment.into_iter().collect();
    let sandbox = Sandbox::new(SandboxSetup {
        program: start.keeper.to_path_buf(),
        shell,
        environment: Arc::new(move |_| environment.clone()),
        scratch: scratch.clone(),
        snapshot: None,
        gate: None,
        strictest_mechanism: Mechanism::Namespaces,
        resource_limits: ResourceLimits::default(),
    });
    let mechanism = sandbox.prepare(&start.profile).await;
    let mechanism = mechanism.map_err(|error| failed(error.to_string()))?;
    if mechanism == Mechanism::None {
        sandbox.close().await;
        return Err(failed(
            "this machine does not support it; `haft doctor` shows the reason".to_owned(),
        ));
    }
    let (input, words) = (scratch.join("in"), scratch.join("err"));
    let piped = || -> io::Result<(pipe::Sender, pipe::Receiver)> {
        for place in [&input, &words] {
            mknodat(CWD, place, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        }
        // Opened for reading and writing, so that neither end blocks until the other opens it.
        let mut options = pipe::OpenOptions::new();
        options.read_write(true);
        Ok((options.open_sender(&input)?, options.open_receiver(&words)?))
    };
    let (stdin, stderr) = piped().map_err(|error| failed(error.to_string()))?;
    let line = ShellCommand {
        text: line(start.program, start.args, &input, &words),
        cwd: start.cwd.to_path_buf(),
        source_file: None,
        name_policy: None,
    };
    let started = sandbox
        .start_no_weaker(&start.profile, line, Mechanism::Reduced)
        .await;
    let mut running = started.map_err(|error| failed(error.to_string()))?;
    let kept = Arc::new(Mutex::new(VecDeque::new()));
    let reading_words =
        haft_contract::spawn_boxed(stdio::collect_stderr(stderr, Arc::clone(&kept)));
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    let peer = Peer::new(Arc::new(LineSink::new(&sender)), handler);
    haft_contract::spawn_boxed(write(stdin, receiver));
    let (ended, end) = watch::channel(None);
    let (ending, wanted) = watch::channel(false);
    let output = running.output.take();
    haft_contract::spawn_boxed(supervise_server(running, sandbox, wanted, ended));
    let program = Arc::new(ConfinedServer {
        input: Mutex::new(Some(sender)),
        words: kept,
        end,
        ending,
    });
    let following = OutputReader {
        peer: peer.downgrade(),
        program: Arc::clone(&program),
    };
    haft_contract::spawn_boxed(async move {
        following.run(output).await;
        reading_words.abort();
    });
    let opened = OpenTransport {
        peer,
        control: program,
    };
    Ok((opened, weakness(mechanism)))
}

/// Describes for the user what is not enforced.
fn weakness(mechanism: Mechanism) -> Option<String> {
    let holes = mechanism.missing_guarantees();
    (!holes.is_empty()).then(|| {
        format!(
            "this machine confines it only in part. Not enforced: {}",
            holes.join("; ")
        )
    })
}

/// Returns the command line for bash.
fn line(program: &Path, args: &[String], input: &Path, words: &Path) -> String {
    let mut line = format!("exec {}", quoted(program.as_os_str()));
    for arg in args {
        let _ = write!(line, " {}", quoted(OsStr::new(arg))); // writing to a string
    }
    let _ = write!(
        line,
        " <{} 2>{}",
        quoted(input.as_os_str()),
        quoted(words.as_os_str())
    ); // writing to a string
    line
}

/// Quotes an argument for bash.
fn quoted(word: &OsStr) -> String {
    let word = String::from_utf8_lossy(word.as_bytes());
    format!("'{}'", word.replace('\'', r"'\''"))
}

async fn write(mut stdin: pipe::Sender, mut messages: mpsc::Receiver<RpcMessage>) {
    while let Some(message) = messages.recv().await {
        if stdin.write_all(&message.to_line()).await.is_err() {
            return; // the end is noticed elsewhere
        }
    }
}

/// Waits for the server to end, or ends it, together with everything that it started.
async fn supervise_server(
    mut running: CommandHandle,
    sandbox: Sandbox,
    mut wanted: watch::Receiver<bool>,
    ended: watch::Sender<Option<String>>,
) {
    let end = tokio::select! {
        end = running.wait_for_exit() => Some(end),
        // Dropping all senders ends the server too.
        _ = wanted.wait_for(|wanted| *wanted) => None,
    };
    running.kill(GRACE);
    let _ = timeout(FAREWELL, running.wait_until_finished()).await; // the sandbox ends what is left
    drop(running);
    let _ = timeout(FAREWELL, sandbox.close()).await; // it ends with this process at the latest
    let how = match end {
        Some(end) => describe_end(&end),
        None => "it was stopped".to_owned(),
    };
    let _ = ended.send(Some(how)); // the receiver may be gone
}

fn describe_end(end: &CommandEnd) -> String {
    if let Some(exceeded) = end.exceeded {
        return format!("it was stopped: {exceeded}");
    }
    match end.how {
        ExitKind::Exited(code) => format!("it ended (exit status: {code})"),
        ExitKind::Killed(signal) => format!("it ended (signal: {signal})"),
        ExitKind::Lost => "it ended together with its sandbox".to_owned(),
    }
}

/// Reads messages until the server ends.
struct OutputReader {
    peer: WeakPeer,
    program: Arc<ConfinedServer>,
}

impl OutputReader {
    async fn run(self, output: haft_sandbox::CommandOutput) {
        let failed = stdio::read_frames(BufReader::with_capacity(BUFFER, output), &self.peer).await;
        let mut end = self.program.end.clone();
        if timeout(GRACE, end.wait_for(Option::is_some)).await.is_err() {
            // Its output has ended, so the server is of no further use.
            self.program.ending.send_replace(true);
            let _ = timeout(FAREWELL, end.wait_for(Option::is_some)).await; // reported below
        }
        let how = end.borrow().clone();
        let how = match failed {
            Some(error) => format!("its output cannot be read: {error}"),
            None => how.unwrap_or_else(|| "it ended".to_owned()),
        };
        if let Some(peer) = self.peer.upgrade() {
            peer.close(stdio::with_last_line(
                how,
                &stdio::decode_stderr(&self.program.words),
            ));
        }
    }
}

struct ConfinedServer {
    /// Taking this closes the input after everything was written.
    input: Mutex<Option<mpsc::Sender<RpcMessage>>>,
    words: StderrTail,
    end: watch::Receiver<Option<String>>,
    ending: watch::Sender<bool>,
}

impl TransportControl for ConfinedServer {
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.input
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let mut end = self.end.clone();
            if timeout(GRACE, end.wait_for(Option::is_some)).await.is_err() {
                self.ending.send_replace(true);
                let _ = timeout(FAREWELL, end.wait_for(Option::is_some)).await; // it ends with haft
            }
        })
    }

    fn stderr_tail(&self) -> Option<StderrTail> {
        Some(Arc::clone(&self.words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_taken_as_it_is() {
        let args = ["a b".to_owned(), "it's".to_owned(), "$(x)\n".to_owned()];
        let line = line(
            Path::new("/p q/x"),
            &args,
            Path::new("/in"),
            Path::new("/err"),
        );
        assert_eq!(
            line,
            "exec '/p q/x' 'a b' 'it'\\''s' '$(x)\n' <'/in' 2>'/err'"
        );
    }
}
