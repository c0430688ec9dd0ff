//! A sandbox instance: its keeper, and the shells that wait for a command in it.

use std::{
    collections::VecDeque,
    fs, io,
    net::TcpListener,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::{fs::MetadataExt, net::UnixStream as BlockingStream},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, SeekFrom, memfd_create, seek},
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    pipe::{PipeFlags, fcntl_setpipe_size, pipe_with},
};
use tokio::{
    net::{UnixStream, unix::pipe},
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    time::timeout,
};

use crate::{
    CommandHandle, Mechanism, ProcessTimeouts, SandboxError, SandboxProfile, SandboxSetup,
    ShellCommand, WitnessRequest,
    child::ARGUMENT,
    guard_link::GuardLink,
    network::{GateLogEntry, ListenerGuard, Proxy, ProxyOptions, RuleGate},
    protocol::{self, GuardEvent, GuardOrder, KeeperReply, SandboxPlan},
    sandbox::{FIRST_RETRY_PAUSE, MAX_SETUP_RETRIES},
    scratch::{self, ScratchFolder},
    waiting_shell::{GuardStartError, ReadyGuard, WaitingShell},
};

/// The number of shells that wait for a command.
const WAITING: usize = 2;
/// The time limit for the setup, which usually takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The size in bytes of the pipe for a command's output.
const PIPE: usize = 1 << 20;
/// The time limit for the end of a sandbox.
pub(crate) const FAREWELL: Duration = Duration::from_secs(5);

/// A sandbox that is set up. Dropping it ends all its processes.
pub(crate) struct SandboxInstance {
    plan: SandboxPlan,
    pub(crate) timeouts: ProcessTimeouts,
    /// The identities of the hidden and protected files. If a process outside replaces one of these
    /// files, as many programs do to write it, the kernel removes the mount over it.
    guarded: Vec<Option<GuardedFileIdentity>>,
    /// The process ID of the waiter.
    pid: u32,
    /// Dropping the link ends the sandbox.
    link: Mutex<Option<KeeperLink>>,
    child: Mutex<Option<Child>>,
    waiting: Mutex<VecDeque<WaitingShell>>,
    /// The proxy, for commands that may use the network only through it.
    proxy: Option<Proxy>,
    /// Whether shells may wait for their command, because no other command can reach them.
    is_isolated: AtomicBool,
    /// Whether guards can store what a command changes.
    is_witnessing: AtomicBool,
    scratch: Arc<ScratchFolder>,
}

/// The device, inode and birth time of a file. The time is needed because inode numbers are reused.
type GuardedFileIdentity = (u64, u64, Option<SystemTime>);

/// The sockets to the keeper and the waiter. When they are closed, both exit, and so do all
/// processes in the sandbox.
struct KeeperLink {
    keeper: OwnedFd,
    waiter: OwnedFd,
    /// Whether no other instance uses the temporary files. If so, the waiter removes them when no
    /// process is left, as it does when our process dies.
    last: bool,
}

impl Drop for KeeperLink {
    fn drop(&mut self) {
        if !self.last {
            let _ = protocol::send(&self.waiter, b"bye", &[]);
        }
    }
}

impl SandboxInstance {
    /// Sets up a sandbox.
    pub(crate) async fn set_up(
        setup: &SandboxSetup,
        limits: ProcessTimeouts,
        plan: SandboxPlan,
        scratch: Arc<ScratchFolder>,
    ) -> Result<Self, SandboxError> {
        let program = &setup.program;
        if let Some(store) = &plan.witness_store
            && let Err(error) = scratch::make(store)
        {
            tracing::warn!(%error, "commands cannot be witnessed: no folder for what they change");
        }
        // Must come before the setup, so that the next command notices every later change.
        let guarded = guarded(&plan.profile);
        let failed = |step: &str, error: &io::Error| SandboxError::Unavailable {
            step: step.to_owned(),
            error: error.to_string(),
        };
        let (link, child) = start(program, &plan).map_err(|error| {
            let text = format!("{}: {error}", program.display());
            SandboxError::Shell(io::Error::new(error.kind(), text))
        })?;
        let answer = receive(&link.keeper)
            .await
            .map_err(|error| failed("its keeper does not answer", &error))?;
        let Some((answer, files)) = answer else {
            let silent = io::Error::other("its keeper exited without an answer");
            return Err(match plan.mechanism {
                // Bubblewrap exits without an answer if it cannot work here.
                Mechanism::Bubblewrap => failed(plan.mechanism.name(), &silent),
                // The keeper was killed: that does not show that the mechanism fails here.
                _ => SandboxError::Shell(silent),
            });
        };
        match serde_json::from_slice(&answer) {
            Ok(KeeperReply::Ready) => scratch.hold(),
            Ok(KeeperReply::NoScratch { error }) => {
                return Err(SandboxError::Scratch(io::Error::other(error)));
            }
            Ok(KeeperReply::Failed {
                step,
                error,
                passing,
            }) => {
                let text = format!("{step}: {error}");
                return Err(if passing && step.starts_with('/') {
                    SandboxError::Shell(io::Error::new(io::ErrorKind::BrokenPipe, text))
                } else if passing {
                    SandboxError::Shell(io::Error::other(text))
                } else {
                    SandboxError::Unavailable { step, error }
                });
            }
            Err(error) => return Err(failed("its keeper's answer", &error.into())),
        }
        // Decides about the proxy's connections. Without a gate of the caller, all are refused.
        let gate = setup
            .gate
            .clone()
            .unwrap_or_else(|| Arc::new(RuleGate::default()));
        let listener = files.into_iter().next().map(TcpListener::from);
        let proxy = match listener {
            Some(listener) => {
                Some(Proxy::serve(listener, gate).map_err(|error| failed("the proxy", &error))?)
            }
            // Each command adds its own listener.
            None if plan.mechanism == Mechanism::Bubblewrap => {
                Some(Proxy::with(gate, ProxyOptions::default()))
            }
            None => None,
        };
        Ok(Self {
            plan,
            timeouts: limits,
            guarded,
            pid: child.id().unwrap_or_default(),
            link: Mutex::new(Some(link)),
            child: Mutex::new(Some(child)),
            waiting: Mutex::default(),
            proxy,
            is_isolated: AtomicBool::new(false),
            is_witnessing: AtomicBool::new(false),
            scratch,
        })
    }

    /// Starts the one program of this sandbox, and waits until it was executed.
    pub(crate) async fn start_program(
        &self,
        order: &GuardOrder,
        files: &[BorrowedFd<'_>],
    ) -> Result<(WaitingShell, ReadyGuard), SandboxError> {
        let mut shell = self.shell().map_err(SandboxError::Program)?;
        let sent = shell.guard.send_files(files);
        let sent = sent.and_then(|()| shell.guard.send(order));
        let is_gone = |error: &io::Error| {
            let kind = error.kind();
            kind == io::ErrorKind::BrokenPipe || kind == io::ErrorKind::ConnectionReset
        };
        match sent {
            // A guard that cannot confine the program reports the reason and exits before it reads
            // the order.
            Err(error) if !is_gone(&error) => return Err(SandboxError::Program(error)),
            _ => {}
        }
        match timeout(TIMEOUT, shell.receive_ready(self)).await {
            Ok(Ok(guard)) if self.is_current() => Ok((shell, guard)),
            // A hidden or protected file was replaced in the meantime.
            Ok(Ok(_)) => Err(SandboxError::Shell(io::ErrorKind::BrokenPipe.into())),
            Ok(Err(GuardStartError::Confinement { step, error })) => {
                Err(SandboxError::Unavailable { step, error })
            }
            Ok(Err(GuardStartError::Shell(error))) if error.kind() == io::ErrorKind::BrokenPipe => {
                Err(SandboxError::Shell(error))
            }
            Ok(Err(GuardStartError::Shell(error))) => Err(SandboxError::Program(error)),
            Err(_) => Err(SandboxError::Program(no_answer_error())),
        }
    }

    /// Checks that commands can be confined, by preparing a shell for one. Does nothing if commands
    /// are not confined.
    pub(crate) async fn first_shell(&self) -> Result<(), SandboxError> {
        if self.plan.mechanism == Mechanism::None || self.plan.profile == SandboxProfile::Full {
            return Ok(());
        }
        let mut shell = self.shell().map_err(SandboxError::Shell)?;
        let guard = match timeout(TIMEOUT, shell.receive_ready(self)).await {
            Ok(Ok(guard)) => guard,
            Ok(Err(GuardStartError::Confinement { step, error })) => {
                return Err(SandboxError::Unavailable { step, error });
            }
            Ok(Err(GuardStartError::Shell(error))) => return Err(SandboxError::Shell(error)),
            Err(_) => return Err(SandboxError::Shell(no_answer_error())),
        };
        if self.may_wait() {
            shell.ready_guard = Some(guard);
            locked(&self.waiting).push_back(shell);
        }
        Ok(())
    }

    /// Returns whether the hidden, protected and open files are still those for which the sandbox
    /// was set up.
    pub(crate) fn is_current(&self) -> bool {
        self.guarded == guarded(&self.plan.profile)
    }

    /// Returns whether commands with this profile can run here: the profile is the same, its files are
    /// unchanged, and all these sockets are hidden.
    pub(crate) fn matches(&self, profile: &SandboxProfile, sockets: &[PathBuf]) -> bool {
        // A socket that no longer exists may stay hidden.
        self.plan.profile == *profile
            && self.is_current()
            && sockets
                .iter()
                .all(|socket| self.plan.sockets.contains(socket))
    }

    pub(crate) fn profile(&self) -> &SandboxProfile {
        &self.plan.profile
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        self.plan.mechanism
    }

    /// Returns the process ID of the waiter, the ancestor of all processes of the sandbox.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the recent decisions of the proxy.
    pub(crate) fn network_log(&self) -> Vec<GateLogEntry> {
        self.proxy.as_ref().map(Proxy::log).unwrap_or_default()
    }

    /// Records whether commands here cannot reach waiting shells.
    pub(crate) fn set_isolated(&self, isolated: bool) {
        self.is_isolated.store(isolated, Ordering::Relaxed);
    }

    /// Records whether guards can store what a command changes.
    pub(crate) fn set_witnessing(&self, witnessing: bool) {
        self.is_witnessing.store(witnessing, Ordering::Relaxed);
    }

    /// Returns the folder where guards may store files for undo.
    pub(crate) fn witness_store(&self) -> Option<&Path> {
        self.plan.witness_store.as_deref()
    }

    /// Lets the proxy serve one more listener: that of a command with its own network.
    pub(crate) fn accept_from(&self, listener: TcpListener) -> io::Result<Option<ListenerGuard>> {
        let proxy = self.proxy.as_ref();
        proxy.map(|proxy| proxy.accept_from(listener)).transpose()
    }

    /// Returns whether guards here store what a command changes.
    pub(crate) fn has_witness(&self) -> bool {
        self.is_witnessing.load(Ordering::Relaxed)
    }

    /// Sends a command to a waiting shell, and prepares another shell.
    pub(crate) async fn start(
        self: &Arc<Self>,
        command: &ShellCommand,
        witness: Option<&WitnessRequest>,
    ) -> io::Result<CommandHandle> {
        if command.text.contains('\0') {
            let text = "the command contains a NUL byte, which no command line can: remove it";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let storage = witness.and_then(|witness| witness.policy.clone());
        let (witness, files) = witness.map(WitnessRequest::order).transpose()?.unzip();
        let files = files.unwrap_or_default();
        let order = GuardOrder::Run {
            cwd: command.cwd.clone().into(),
            sourced: command.source_file.clone().map(Into::into),
            text: command.text.clone(),
            judged: command.name_policy.is_some(),
            witness,
        };
        let mut retries = 0;
        let handle = loop {
            let waiting = locked(&self.waiting).pop_front();
            let is_new = waiting.is_none();
            let shell = match waiting {
                Some(shell) => shell,
                None => self.shell()?,
            };
            let names = command.name_policy.clone();
            let starting = CommandHandle::start(Arc::clone(self), shell, (&order, &files), names);
            let started = match timeout(self.timeouts.start, starting).await {
                Ok(started) => started,
                // The guard seems to be stopped. It may still run the command, so no other guard
                // must run it.
                Err(_) => break Err(no_answer_error()),
            };
            // Bubblewrap exits if a socket that it must hide disappears during the setup. The command
            // has not run then.
            if self.mechanism() == Mechanism::Bubblewrap
                && started.is_err()
                && retries < MAX_SETUP_RETRIES
            {
                retries += 1;
                tokio::time::sleep(FIRST_RETRY_PAUSE * retries).await;
                continue;
            }
            // A waiting shell may have been killed before it received its command. A new shell is tried
            // then.
            if started.is_ok() || is_new {
                break started;
            }
        };
        let mut waiting = locked(&self.waiting);
        let max = match self.may_wait() {
            true => WAITING,
            false => 0,
        };
        while waiting.len() < max {
            match self.shell() {
                Ok(shell) => waiting.push_back(shell),
                Err(_) => break, // the next command will report the error
            }
        }
        drop(waiting);
        handle.map(|mut handle| {
            handle.set_storage_policy(storage);
            handle
        })
    }

    /// Returns whether shells may wait for their command. They may not if another command could reach
    /// them: it would control the next command. They may not with bubblewrap either, which must see the
    /// state of the files at the start of the command.
    fn may_wait(&self) -> bool {
        self.is_isolated.load(Ordering::Relaxed) && self.mechanism() != Mechanism::Bubblewrap
    }

    /// Makes the keeper fork a guard with a shell.
    fn shell(&self) -> io::Result<WaitingShell> {
        let (ours, theirs) = BlockingStream::pair()?;
        ours.set_nonblocking(true)?;
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        // A large pipe allows large reads. If the user's limit for large pipes is reached, the pipe
        // stays small.
        let _ = fcntl_setpipe_size(&read, PIPE);
        let link = locked(&self.link);
        let link = link.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        protocol::send(&link.keeper, b"guard", &[theirs.as_fd(), write.as_fd()])?;
        Ok(WaitingShell {
            guard: GuardLink::new(UnixStream::from_std(ours)?),
            output: pipe::Receiver::from_owned_fd(read)?,
            ready_guard: None,
        })
    }

    /// Ends everything in the sandbox, removes its temporary files, and waits until both are done.
    pub(crate) async fn close(&self) {
        locked(&self.waiting).clear();
        if let Some(mut link) = locked(&self.link).take() {
            link.last = true;
        }
        let child = locked(&self.child).take();
        if let Some(mut child) = child
            && timeout(FAREWELL, child.wait()).await.is_err()
        {
            let _ = child.kill().await;
        }
    }
}

impl Drop for SandboxInstance {
    fn drop(&mut self) {
        if let Some(mut link) = locked(&self.link).take() {
            link.last = scratch::is_last(&self.scratch);
        }
    }
}

/// Returns the identities of the files that a profile hides, protects and opens.
fn guarded(profile: &SandboxProfile) -> Vec<Option<GuardedFileIdentity>> {
    let (hidden, protected, writable, open) = match profile {
        SandboxProfile::ReadOnly(reading) => {
            (&reading.hidden[..], &[][..], &[][..], &reading.closed.open)
        }
        SandboxProfile::Workspace(workspace) => (
            &workspace.hidden[..],
            &workspace.protected[..],
            &workspace.writable[..],
            &workspace.closed.open,
        ),
        SandboxProfile::Full => return Vec::new(),
    };
    // The identities of symlinks are included: a symlink with a new target leads to another file.
    hidden
        .iter()
        .chain(protected)
        .chain(writable)
        .chain(open)
        .flat_map(|path| [fs::symlink_metadata(path), fs::metadata(path)])
        .map(|metadata| {
            metadata
                .ok()
                .map(|file| (file.dev(), file.ino(), file.created().ok()))
        })
        .collect()
}

/// Starts the keeper and sends it the plan.
fn start(program: &Path, plan: &SandboxPlan) -> io::Result<(KeeperLink, Child)> {
    let (link, command) = call(program, plan)?;
    // Our process may have inherited an ignored SIGCHLD. The keeper would inherit that, too, and
    // lose the exit status of its children. A signal handler here becomes the default action there.
    let _ = signal(SignalKind::child());
    Ok((link, Command::from(command).spawn()?))
}

/// Returns the command that starts the keeper, with the plan already sent to its socket.
fn call(program: &Path, plan: &SandboxPlan) -> io::Result<(KeeperLink, std::process::Command)> {
    let pair = || {
        socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
    };
    let (keeper, keepers) = pair()?;
    let (waiter, waiters) = pair()?;
    let file = memfd_create("plan", MemfdFlags::CLOEXEC)?;
    let mut file = fs::File::from(file);
    io::Write::write_all(&mut file, &serde_json::to_vec(plan)?)?;
    seek(&file, SeekFrom::Start(0))?;
    // Sent before the keeper is started: it knows what to clean up even if our process ends right
    // away.
    protocol::send(&waiter, b"plan", &[file.as_fd(), keepers.as_fd()])?;
    let mut command = std::process::Command::new(program);
    command
        .arg(ARGUMENT)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(waiters))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let link = KeeperLink {
        keeper,
        waiter,
        last: false,
    };
    Ok((link, command))
}

/// Returns the keeper's answer with its files; `None` if it exited.
async fn receive(channel: &OwnedFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let channel = channel.try_clone()?;
    let waiting = tokio::task::spawn_blocking(move || answer(&channel));
    waiting.await.map_err(io::Error::other)?
}

/// Like [`receive`], but blocks the thread.
fn answer(channel: &OwnedFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let limit = Timespec {
        tv_sec: TIMEOUT.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: 0,
    };
    let mut watched = [PollFd::new(channel, PollFlags::IN)];
    while let Err(Errno::INTR) = poll(&mut watched, Some(&limit)) {}
    if watched[0].revents().is_empty() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    match protocol::receive(channel) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        received => received,
    }
}

/// Returns whether a sandbox with this plan can be set up. Sets it up and removes it again.
pub(crate) fn can_set_up(program: &Path, plan: &SandboxPlan) -> bool {
    let Ok((link, mut command)) = call(program, plan) else {
        return false;
    };
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    drop(command); // it has the other end of the socket
    let is_ready = guard_is_ready(&link.keeper);
    drop(link);
    let _ = child.wait();
    is_ready.unwrap_or(false)
}

/// Returns whether the keeper can fork a guard with a shell.
fn guard_is_ready(keeper: &OwnedFd) -> io::Result<bool> {
    let Some((ready, _)) = answer(keeper)? else {
        return Ok(false);
    };
    if !matches!(serde_json::from_slice(&ready)?, KeeperReply::Ready) {
        return Ok(false);
    }
    let (mut ours, theirs) = BlockingStream::pair()?;
    let (_read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    protocol::send(keeper, b"guard", &[theirs.as_fd(), write.as_fd()])?;
    drop(theirs);
    ours.set_read_timeout(Some(TIMEOUT))?;
    let event: Option<GuardEvent> = protocol::read(&mut ours)?;
    Ok(matches!(event, Some(GuardEvent::Standing { .. })))
}

/// Returns the error for a keeper or guard that does not answer in time.
fn no_answer_error() -> io::Error {
    let text = "its sandbox does not answer; the next command gets a new sandbox";
    io::Error::new(io::ErrorKind::TimedOut, text)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
