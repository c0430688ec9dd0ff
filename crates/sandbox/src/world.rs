//! A sandbox that stands: its keeper, and the shells that wait in it.

use std::{
    collections::VecDeque,
    io,
    net::TcpListener,
    os::fd::{AsFd, OwnedFd},
    os::unix::net::UnixStream as BlockingStream,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, SeekFrom, memfd_create, seek},
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    pipe::{PipeFlags, pipe_with},
};
use tokio::{
    net::{UnixStream, unix::pipe},
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    time::timeout,
};

use crate::{
    Line, Mechanism, Profile, Running, SandboxError,
    child::ARGUMENT,
    protocol::{self, Keeper, Order, Plan},
    scratch::{self, Scratch},
};

/// How many shells wait for a command.
const WAITING: usize = 2;
/// How long the setting up, or a shell, may take before it is given up: it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the end of a sandbox is waited for.
const FAREWELL: Duration = Duration::from_secs(5);

pub(crate) struct World {
    plan: Plan,
    pid: u32,
    /// Without it, the sandbox ends.
    link: Mutex<Option<Link>>,
    child: Mutex<Option<Child>>,
    waiting: Mutex<VecDeque<Shell>>,
    /// In the sandbox's network, for our proxy.
    listener: Mutex<Option<TcpListener>>,
    scratch: Arc<Scratch>,
}

/// To the processes that hold the sandbox. They end when it is closed, and so does all that runs there.
struct Link {
    keeper: OwnedFd,
    waiter: OwnedFd,
    /// Nobody else needs the temporary files: the waiter removes them when nothing runs any more, as
    /// it does when our process dies.
    last: bool,
}

impl Drop for Link {
    fn drop(&mut self) {
        if !self.last {
            let _ = protocol::send(&self.waiter, b"bye", &[]);
        }
    }
}

/// A shell that waits for its command.
struct Shell {
    guard: UnixStream,
    output: pipe::Receiver,
}

impl World {
    /// Sets a sandbox up.
    pub(crate) async fn raise(
        program: &Path,
        plan: Plan,
        scratch: Arc<Scratch>,
    ) -> Result<Self, SandboxError> {
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
            let silent = io::Error::other("its keeper ended without a word");
            return Err(match plan.mechanism {
                // It says nothing when it cannot do its work.
                Mechanism::Bubblewrap => failed(plan.mechanism.name(), &silent),
                // Somebody killed it: that says nothing about what can be had here.
                _ => SandboxError::Shell(silent),
            });
        };
        match serde_json::from_slice(&answer) {
            Ok(Keeper::Ready) => {}
            Ok(Keeper::NoScratch { error }) => {
                return Err(SandboxError::Scratch(io::Error::other(error)));
            }
            Ok(Keeper::Failed {
                step,
                error,
                passing,
            }) => {
                return Err(if passing {
                    SandboxError::Shell(io::Error::other(format!("{step}: {error}")))
                } else {
                    SandboxError::Unavailable { step, error }
                });
            }
            Err(error) => return Err(failed("its keeper's answer", &error.into())),
        }
        let world = Self {
            plan,
            pid: child.id().unwrap_or_default(),
            link: Mutex::new(Some(link)),
            child: Mutex::new(Some(child)),
            waiting: Mutex::default(),
            listener: Mutex::new(files.into_iter().next().map(TcpListener::from)),
            scratch,
        };
        Ok(world)
    }

    pub(crate) fn fits(&self, profile: &Profile, sockets: &[PathBuf]) -> bool {
        // A socket that went away may stay hidden.
        self.plan.profile == *profile
            && sockets
                .iter()
                .all(|socket| self.plan.sockets.contains(socket))
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.plan.profile
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        self.plan.mechanism
    }

    /// The number of the process all others are below.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The proxy's socket in the sandbox's network; once.
    pub(crate) fn take_listener(&self) -> Option<TcpListener> {
        locked(&self.listener).take()
    }

    /// Hands a command to a shell that waits, and lets another one get ready.
    pub(crate) async fn start(self: &Arc<Self>, line: &Line) -> io::Result<Running> {
        if line.text.contains('\0') {
            let text = "the command holds a NUL byte, which no command line can: take it out";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let order = protocol::frame(&Order::Run {
            cwd: line.cwd.clone().into(),
            sourced: line.sourced.clone().map(Into::into),
            text: line.text.clone(),
        })?;
        let running = loop {
            let waited = locked(&self.waiting).pop_front();
            let fresh = waited.is_none();
            let shell = match waited {
                Some(shell) => shell,
                None => self.shell()?,
            };
            let starting = Running::start(Arc::clone(self), shell.guard, shell.output, &order);
            let started = match timeout(PATIENCE, starting).await {
                Ok(started) => started,
                // Stopped, it seems. It may yet run the command, so that another must not.
                Err(_) => break Err(silence()),
            };
            // Somebody killed the one that waited, which was never told what to run.
            if started.is_ok() || fresh {
                break started;
            }
        };
        let mut waiting = locked(&self.waiting);
        while waiting.len() < WAITING {
            match self.shell() {
                Ok(shell) => waiting.push_back(shell),
                Err(_) => break, // the next command will tell
            }
        }
        drop(waiting);
        running
    }

    /// Has the keeper make a guard with a shell.
    fn shell(&self) -> io::Result<Shell> {
        let (ours, theirs) = BlockingStream::pair()?;
        ours.set_nonblocking(true)?;
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let link = locked(&self.link);
        let link = link.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        protocol::send(&link.keeper, b"guard", &[theirs.as_fd(), write.as_fd()])?;
        Ok(Shell {
            guard: UnixStream::from_std(ours)?,
            output: pipe::Receiver::from_owned_fd(read)?,
        })
    }

    /// Ends everything in it, with its temporary files, and waits until that is so.
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

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut link) = locked(&self.link).take() {
            link.last = scratch::is_last(&self.scratch);
        }
    }
}

/// Starts the keeper and tells it what to keep.
fn start(program: &Path, plan: &Plan) -> io::Result<(Link, Child)> {
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
    let mut file = std::fs::File::from(file);
    io::Write::write_all(&mut file, &serde_json::to_vec(plan)?)?;
    seek(&file, SeekFrom::Start(0))?;
    // Before it is started: it knows what to tidy up however soon our process ends.
    protocol::send(&waiter, b"plan", &[file.as_fd(), keepers.as_fd()])?;
    // Whoever started our process may have had it ignore the end of children; theirs would then be
    // lost to all who wait for it. A handler here is the default there.
    let _ = signal(SignalKind::child());
    let child = Command::new(program)
        .arg(ARGUMENT)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(waiters))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let last = false;
    let link = Link {
        keeper,
        waiter,
        last,
    };
    Ok((link, child))
}

/// The keeper's answer with its files; `None` when it ended.
async fn receive(channel: &OwnedFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let channel = channel.try_clone()?;
    let waiting = tokio::task::spawn_blocking(move || {
        let patience = Timespec {
            tv_sec: PATIENCE.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: 0,
        };
        let mut watched = [PollFd::new(&channel, PollFlags::IN)];
        while let Err(Errno::INTR) = poll(&mut watched, Some(&patience)) {}
        if watched[0].revents().is_empty() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match protocol::receive(&channel) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            received => received,
        }
    });
    waiting.await.map_err(io::Error::other)?
}

fn silence() -> io::Error {
    let text = "its sandbox does not answer; the next command gets another one";
    io::Error::new(io::ErrorKind::TimedOut, text)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
