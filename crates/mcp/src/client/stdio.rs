//! Servers that are programs: one message per line, on their standard input and output.

use std::{
    collections::{BTreeMap, VecDeque},
    env,
    ffi::{OsStr, OsString},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_contract::BoxFuture;
use tokio::{
    io::{AsyncBufRead, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{mpsc, watch},
    time::timeout,
};

use super::{
    server_log::StderrTail,
    transport::{MAX_WAITING, OpenTransport, ServerLaunch, TransportControl, enqueue},
};
use crate::{
    frames::{FrameReader, LineFrame, MAX_FRAME},
    message::RpcMessage,
    peer::{MessageSink, Peer, PeerError, PeerHandler, WeakPeer},
};

/// The number of bytes of a server's standard error to store.
const KEPT_WORDS: usize = 8 * 1024;
/// The time a server may take to exit after its input was closed, and again after it was asked to
/// exit.
pub(super) const GRACE: Duration = Duration::from_millis(300);
/// The size of the read buffer in bytes.
pub(super) const BUFFER: usize = 64 * 1024;

/// Starts a server. Its environment contains only `environment`.
pub(crate) fn open(
    command: &str,
    args: &[String],
    environment: &BTreeMap<OsString, OsString>,
    launch: &ServerLaunch,
    handler: Arc<dyn PeerHandler>,
) -> Result<OpenTransport, String> {
    let found = find(command, environment, &launch.cwd)?;
    let mut starting = match &launch.guard {
        Some(guard) => Command::from(haft_sandbox::guarded(guard, &found)),
        None => {
            let mut plain = Command::new(&found);
            plain.process_group(0);
            plain
        }
    };
    starting
        .args(args)
        .env_clear()
        .envs(environment)
        .current_dir(&launch.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A guard process must not be killed: its server would survive.
        .kill_on_drop(launch.guard.is_none());
    let mut child = starting
        .spawn()
        .map_err(|error| format!("{command} cannot be started: {error}"))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err("it has no pipes".to_owned());
    };
    let words = Arc::new(Mutex::new(VecDeque::new()));
    let reading_words = haft_contract::spawn_boxed(collect_stderr(stderr, Arc::clone(&words)));
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    let peer = Peer::new(Arc::new(LineSink::new(&sender)), handler);
    haft_contract::spawn_boxed(write(stdin, receiver, peer.downgrade()));
    let (ended, end) = watch::channel(None);
    let program = Arc::new(ServerProgram {
        pid: child.id(),
        is_guarded: launch.guard.is_some(),
        input: Mutex::new(Some(sender)),
        words,
        end,
        name: command.to_owned(),
    });
    haft_contract::spawn_boxed(supervise_program(
        child,
        stdout,
        peer.downgrade(),
        Arc::clone(&program),
        reading_words,
        ended,
    ));
    Ok(OpenTransport {
        peer,
        control: program,
    })
}

/// Returns the path of a command's program. A missing program is an error here, so that haft does
/// not try to start the server again.
pub(super) fn find(
    command: &str,
    environment: &BTreeMap<OsString, OsString>,
    cwd: &Path,
) -> Result<PathBuf, String> {
    if command.contains('/') {
        let path = cwd.join(command);
        return match path.is_file() {
            true => Ok(path),
            false => Err(format!(
                "{command} cannot be started: the file does not exist"
            )),
        };
    }
    let path = environment.get(OsStr::new("PATH"));
    let folders = path
        .map(|path| env::split_paths(path).collect::<Vec<_>>())
        .unwrap_or_default();
    let found = folders
        .iter()
        .map(|folder| folder.join(command))
        .find(|path| {
            let mode = path
                .metadata()
                .map(|found| (found.is_file(), found.permissions().mode()));
            mode.is_ok_and(|(is_file, mode)| is_file && mode & 0o111 != 0)
        });
    found.ok_or_else(|| format!("{command} cannot be started: it is in no folder of PATH"))
}

/// Queues messages to be written.
pub(super) struct LineSink {
    sender: mpsc::WeakSender<RpcMessage>,
}

impl LineSink {
    pub(super) fn new(sender: &mpsc::Sender<RpcMessage>) -> Self {
        Self {
            sender: sender.downgrade(),
        }
    }
}

impl MessageSink for LineSink {
    fn send(&self, message: RpcMessage) -> Result<(), PeerError> {
        let closed = || PeerError::Closed("its input is closed".to_owned());
        let sender = self.sender.upgrade().ok_or_else(closed)?;
        enqueue(&sender, message)
    }
}

async fn write(mut stdin: ChildStdin, mut messages: mpsc::Receiver<RpcMessage>, peer: WeakPeer) {
    while let Some(message) = messages.recv().await {
        let mut bytes = message.to_line();
        // Everything that is already queued is written together.
        while bytes.len() < BUFFER
            && let Ok(next) = messages.try_recv()
        {
            next.write_line(&mut bytes);
        }
        if let Err(error) = stdin.write_all(&bytes).await {
            // The exit of the program, which usually follows, explains more; but it may only have
            // closed its input.
            tokio::time::sleep(GRACE).await;
            if let Some(peer) = peer.upgrade() {
                peer.close(format!("it does not read its input: {error}"));
            }
            return;
        }
    }
}

/// Reads messages until the program exits.
async fn supervise_program(
    mut child: Child,
    stdout: ChildStdout,
    peer: WeakPeer,
    program: Arc<ServerProgram>,
    reading_words: tokio::task::JoinHandle<()>,
    ended: watch::Sender<Option<String>>,
) {
    let failed = read_frames(BufReader::with_capacity(BUFFER, stdout), &peer).await;
    // The output has ended, so the program is of no further use.
    let status = match timeout(GRACE, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            program.end(false).await;
            match timeout(GRACE, child.wait()).await {
                Ok(status) => status,
                Err(_) => {
                    program.end(true).await;
                    child.wait().await
                }
            }
        }
    };
    let _ = timeout(GRACE, reading_words).await; // a grandchild may keep it open
    let why = match (failed, status) {
        (Some(error), _) => format!("its output cannot be read: {error}"),
        (None, Ok(status)) => format!("it ended ({status})"),
        (None, Err(error)) => format!("it ended ({error})"),
    };
    let why = with_last_line(why, &decode_stderr(&program.words));
    let _ = ended.send(Some(why.clone())); // the receiver may be gone
    if let Some(peer) = peer.upgrade() {
        peer.close(why);
    }
}

/// Passes on messages until the end of the output. Returns the error if it cannot be read.
pub(super) async fn read_frames(
    output: impl AsyncBufRead + Unpin,
    peer: &WeakPeer,
) -> Option<String> {
    let mut frames = FrameReader::new(output, MAX_FRAME);
    loop {
        let next = frames.next().await;
        let peer = peer.upgrade()?;
        match next {
            Ok(Some(LineFrame::Line(line))) => peer.receive_text(&line),
            Ok(Some(LineFrame::TooLong { ends, length })) => {
                peer.on_oversized(&ends, length, MAX_FRAME)
            }
            Ok(None) => return None,
            Err(error) => return Some(error.to_string()),
        }
    }
}

/// Returns the reason for an exit, extended by the last line that the server wrote to its standard
/// error.
pub(super) fn with_last_line(why: String, words: &str) -> String {
    match words.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => {
            let line: String = line.trim().chars().take(300).collect();
            format!("{why}; its last output: {line}")
        }
        None => why,
    }
}

/// Returns the stored standard error as text.
pub(super) fn decode_stderr(kept: &Mutex<VecDeque<u8>>) -> String {
    let words = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes: Vec<u8> = words.iter().copied().collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the standard error and stores its last part.
pub(super) async fn collect_stderr(
    mut stderr: impl AsyncRead + Unpin,
    kept: Arc<Mutex<VecDeque<u8>>>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length) = stderr.read(&mut buffer).await {
        if length == 0 {
            return;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..length]);
        let over = kept.len().saturating_sub(KEPT_WORDS);
        kept.drain(..over);
    }
}

/// A started program.
struct ServerProgram {
    pid: Option<u32>,
    is_guarded: bool,
    /// Taking this closes the input after everything was written.
    input: Mutex<Option<mpsc::Sender<RpcMessage>>>,
    words: StderrTail,
    end: watch::Receiver<Option<String>>,
    name: String,
}

impl ServerProgram {
    /// Asks the program to exit, or kills it.
    async fn end(&self, at_once: bool) {
        let Some(pid) = self.pid else { return };
        let is_guarded = self.is_guarded;
        // Reading the process list takes time.
        let ending = tokio::task::spawn_blocking(move || {
            if is_guarded {
                haft_sandbox::end_guarded(pid, at_once);
            } else {
                haft_sandbox::end_group(pid, at_once);
            }
        });
        let _ = ending.await; // a panic there need not cause one here
    }

    fn close_input(&self) {
        self.input
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

impl TransportControl for ServerProgram {
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.close_input();
            let mut end = self.end.clone();
            for at_once in [false, true] {
                if timeout(GRACE, end.wait_for(Option::is_some)).await.is_ok() {
                    return;
                }
                self.end(at_once).await;
            }
            if timeout(GRACE, end.wait_for(Option::is_some)).await.is_err() {
                tracing::warn!(name = self.name, "an MCP server does not end");
            }
        })
    }

    fn stderr_tail(&self) -> Option<StderrTail> {
        Some(Arc::clone(&self.words))
    }
}
