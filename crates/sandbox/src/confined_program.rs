//! Long-running confined programs: language servers, browsers, interpreters.
//!
//! [`Sandbox::start`] runs a bash command whose output is read once. A confined program is started
//! without a shell, in its own sandbox, with the given open files at the numbers it expects. It
//! runs until it exits, is ended, or our process ends.
//!
//! ```no_run
//! # use haft_sandbox::{ConfinedProgram, Mechanism, Sandbox, SandboxError, SandboxProfile};
//! # use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! # async fn example(sandbox: &Sandbox, profile: &SandboxProfile) -> Result<(), SandboxError> {
//! let mut program = ConfinedProgram::new("/usr/bin/python3", "/home/me/project");
//! program.arguments = vec!["-i".into()];
//! program.env = sandbox.environment(profile); // nothing else is inherited; TMPDIR is added
//! // The pipes of Chromium would be passed like this:
//! // `program.files = vec![(3, commands), (4, answers)];`
//!
//! // Fails if only a weaker mechanism works here.
//! let weakest = Mechanism::Bubblewrap;
//! let mut process = sandbox.start_program(profile, program, weakest).await?;
//! let mut input = process.stdin.take().expect("stdin is taken only once");
//! input.write_all(b"while True: pass\n").await.map_err(SandboxError::Program)?;
//!
//! let control = process.control(); // for other tasks; it does not keep the program alive
//! control.interrupt(); // the guard sends SIGINT to python only
//! control.kill(std::time::Duration::from_secs(1)); // asks all processes to exit, kills them after 1 s
//! println!("{:?}", control.wait_for_end().await.how);
//! # Ok(()) }
//! // When `process` is dropped, everything that the program started ends too.
//! ```

use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    pipe::{PipeFlags, pipe_with},
};
use tokio::{
    net::unix::pipe,
    sync::{mpsc, oneshot, watch},
};

use crate::{
    CommandEnd, CommandHandle, CommandNetwork, CommandOutput, Mechanism, NamePolicy, ProcessInfo,
    Sandbox, SandboxError, SandboxProfile,
    network::NetworkGate,
    process_tree,
    protocol::{FILES, GuardOrder},
    sandbox::ProgramRequest,
    scratch::ScratchFolder,
};

/// A program that is to run in its own sandbox.
pub struct ConfinedProgram {
    /// The program: an absolute path, or a name to search in the `PATH` of [`env`](Self::env).
    pub program: PathBuf,
    /// The arguments, without the program's own name.
    pub arguments: Vec<OsString>,
    /// The whole environment; `TMPDIR` is added to it. [`Sandbox::environment`] is a good start.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory; absolute.
    pub cwd: PathBuf,
    /// Open files with their numbers in the program; at most 12. Numbers 0, 1 and 2 are pipes if
    /// they are not given ([`ConfinedProcess::stdin`] and the other two). No other open file is
    /// inherited.
    ///
    /// Unlike [`CommandOutput`], data that the program writes to these files is not withheld if a
    /// hidden file becomes readable; the program is ended then.
    pub files: Vec<(RawFd, OwnedFd)>,
    /// The folder for temporary files. It is created if it is missing, and removed at the end. With
    /// `None`, a folder next to that of the session's commands is used; its name is short, because
    /// socket paths must be short.
    pub scratch: Option<PathBuf>,
    /// Decides about connections for [`SandboxNetwork::Proxy`](crate::SandboxNetwork::Proxy). With `None`, the
    /// gate of the session's commands decides.
    pub gate: Option<Arc<dyn NetworkGate>>,
    /// Decides about the profile's guarded names. Without it, none may be used.
    pub names: Option<NamePolicy>,
}

impl ConfinedProgram {
    /// Creates a program without arguments and with an empty environment.
    pub fn new(program: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            env: Vec::new(),
            cwd: cwd.into(),
            files: Vec::new(),
            scratch: None,
            gate: None,
            names: None,
        }
    }
}

/// A running confined program. Dropping this ends all its processes.
pub struct ConfinedProcess {
    /// The program's standard input; `None` if another file was given.
    pub stdin: Option<pipe::Sender>,
    /// The program's standard output. Ends immediately if another file was given.
    pub stdout: CommandOutput,
    /// The program's standard error. Unread output must be discarded ([`CommandOutput::take`]): a
    /// program blocks when a pipe is full.
    pub stderr: CommandOutput,
    control: ConfinedControl,
    mechanism: Mechanism,
    scratch: PathBuf,
    /// The process ID of the guard, below which the program's processes are.
    guard: Option<u32>,
    network: Option<CommandNetwork>,
    /// Dropping this ends the program.
    _alive: oneshot::Sender<()>,
}

/// Ends or interrupts a [`ConfinedProcess`], and waits for it, from any task. Cheap to clone; does
/// not keep the program alive.
#[derive(Clone)]
pub struct ConfinedControl {
    orders: mpsc::UnboundedSender<ControlOrder>,
    state: watch::Receiver<ConfinedState>,
}

enum ControlOrder {
    Interrupt,
    Kill(Duration),
}

#[derive(Clone, Default)]
struct ConfinedState {
    ended: Option<CommandEnd>,
    finished: bool,
}

impl Sandbox {
    /// Starts a program in its own sandbox with this profile and the best mechanism that works
    /// here. Fails with [`SandboxError::TooWeak`] if that is weaker than `weakest`. When this
    /// returns, the program was executed: a program that cannot be started is an error.
    pub async fn start_program(
        &self,
        profile: &SandboxProfile,
        program: ConfinedProgram,
        weakest: Mechanism,
    ) -> Result<ConfinedProcess, SandboxError> {
        let scratch = program.scratch.clone();
        let scratch = Arc::new(ScratchFolder::new(
            scratch.unwrap_or_else(|| self.new_scratch_path()),
        ));
        let pipes = ProgramPipes::for_missing(&program.files).map_err(SandboxError::Program)?;
        let order = order(&program, &pipes, scratch.path()).map_err(SandboxError::Program)?;
        let given = program.files.iter().map(|(_, file)| file.as_fd());
        let files: Vec<BorrowedFd<'_>> = given.chain(pipes.theirs()).collect();
        let purpose = ProgramRequest {
            profile,
            weakest,
            scratch: Arc::clone(&scratch),
            gate: program.gate.clone(),
            order,
            files,
        };
        let (instance, shell, mut ready_guard) = self.set_up_and_start_program(&purpose).await?;
        drop(purpose);
        let scratch = scratch.path().to_path_buf();
        let mechanism = instance.mechanism();
        let guard = ready_guard.pid();
        let network = ready_guard.network.clone();
        let mut fences = std::mem::take(&mut ready_guard.fences).into_iter();
        let mut output = |pipe: Option<OwnedFd>| {
            let fence = fences.next();
            let pipe = pipe.map(pipe::Receiver::from_owned_fd).transpose()?;
            Ok::<_, io::Error>(CommandOutput::from_optional_pipe(pipe, fence))
        };
        let stdout = output(pipes.stdout.map(|(ours, _)| ours)).map_err(SandboxError::Program)?;
        let stderr = output(pipes.stderr.map(|(ours, _)| ours)).map_err(SandboxError::Program)?;
        let stdin = pipes
            .stdin
            .map(|(ours, _)| pipe::Sender::from_owned_fd(ours));
        let stdin = stdin.transpose().map_err(SandboxError::Program)?;
        // Bubblewrap writes its messages there; they are not output of the program.
        drop(shell.output);
        let unread = CommandOutput::from_optional_pipe(None, None);
        let handle =
            CommandHandle::from_parts(instance, shell.guard, ready_guard, unread, program.names);
        let (orders, received_orders) = mpsc::unbounded_channel();
        let (report, state) = watch::channel(ConfinedState::default());
        let (alive, dropped) = oneshot::channel();
        tokio::spawn(relay_orders(handle, received_orders, report, dropped));
        Ok(ConfinedProcess {
            stdin,
            stdout,
            stderr,
            control: ConfinedControl { orders, state },
            mechanism,
            scratch,
            guard,
            network,
            _alive: alive,
        })
    }
}

impl ConfinedProcess {
    /// Returns the mechanism that confines the program.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Returns the folder for the program's temporary files.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Returns the program's own network: see [`CommandHandle::network`].
    pub fn network(&self) -> Option<&CommandNetwork> {
        self.network.as_ref()
    }

    /// Returns a control for use in other tasks.
    pub fn control(&self) -> ConfinedControl {
        self.control.clone()
    }

    /// See [`ConfinedControl::interrupt`].
    pub fn interrupt(&self) {
        self.control.interrupt();
    }

    /// See [`ConfinedControl::kill`].
    pub fn kill(&self, grace: Duration) {
        self.control.kill(grace);
    }

    /// Waits until the program has ended.
    pub async fn wait(&self) -> CommandEnd {
        self.control.wait_for_end().await
    }

    /// Returns the program and the processes that it started, with their process IDs outside the
    /// sandbox.
    pub fn processes(&self) -> Vec<ProcessInfo> {
        if self.control.state.borrow().finished {
            return Vec::new();
        }
        self.guard.map(process_tree::below).unwrap_or_default()
    }
}

impl ConfinedControl {
    /// Sends SIGINT to the program only, through its guard. A program that was just started may not
    /// handle the signal yet and would be ended by it: wait for its first output.
    pub fn interrupt(&self) {
        let _ = self.orders.send(ControlOrder::Interrupt); // fails if the program has ended
    }

    /// Asks the program and all processes that it started to exit, and kills them after `grace`.
    pub fn kill(&self, grace: Duration) {
        let _ = self.orders.send(ControlOrder::Kill(grace)); // fails if the program has ended
    }

    /// Returns whether the program has ended.
    pub fn has_ended(&self) -> bool {
        let state = self.state.borrow();
        state.finished || state.ended.is_some()
    }

    /// Waits until the program has ended. Cancel safe.
    pub async fn wait_for_end(&self) -> CommandEnd {
        let mut state = self.state.clone();
        let found = state
            .wait_for(|state| state.finished || state.ended.is_some())
            .await;
        let ended = found.ok().and_then(|state| state.ended.clone());
        ended.unwrap_or_else(CommandEnd::lost)
    }

    /// Waits until all processes of the program have ended. Cancel safe.
    pub async fn wait_until_finished(&self) {
        let mut state = self.state.clone();
        let _ = state.wait_for(|state| state.finished).await; // fails if the reporting task has ended
    }
}

/// Forwards orders to the guard and publishes its events, until no process is left or the program
/// is dropped.
async fn relay_orders(
    mut handle: CommandHandle,
    mut orders: mpsc::UnboundedReceiver<ControlOrder>,
    report: watch::Sender<ConfinedState>,
    mut dropped: oneshot::Receiver<()>,
) {
    loop {
        tokio::select! {
            biased;
            _ = &mut dropped => break,
            Some(order) = orders.recv() => match order {
                ControlOrder::Interrupt => handle.interrupt(),
                ControlOrder::Kill(grace) => handle.kill(grace),
            },
            () = handle.next_event() => {
                let finished = handle.is_finished();
                let ended = handle.ended().cloned();
                report.send_replace(ConfinedState { ended, finished });
                if finished {
                    break;
                }
            }
        }
    }
}

/// The pipes for standard files that were not given, each with our end first.
struct ProgramPipes {
    stdin: Option<(OwnedFd, OwnedFd)>,
    stdout: Option<(OwnedFd, OwnedFd)>,
    stderr: Option<(OwnedFd, OwnedFd)>,
}

impl ProgramPipes {
    /// Creates the pipes for the standard files that are not given.
    fn for_missing(given: &[(RawFd, OwnedFd)]) -> io::Result<Self> {
        let missing = |number: RawFd| !given.iter().any(|(other, _)| *other == number);
        let pipe = |number| {
            missing(number)
                .then(|| pipe_with(PipeFlags::CLOEXEC))
                .transpose()
        };
        Ok(Self {
            stdin: pipe(0)?.map(|(read, write)| (write, read)),
            stdout: pipe(1)?,
            stderr: pipe(2)?,
        })
    }

    fn all(&self) -> impl Iterator<Item = (RawFd, &OwnedFd)> {
        let pipes = [&self.stdin, &self.stdout, &self.stderr];
        (0..)
            .zip(pipes)
            .filter_map(|(number, pipe)| Some((number, &pipe.as_ref()?.1)))
    }

    fn theirs(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.all().map(|(_, file)| file.as_fd())
    }
}

fn order(
    program: &ConfinedProgram,
    pipes: &ProgramPipes,
    scratch: &Path,
) -> io::Result<GuardOrder> {
    let given = program.files.iter().map(|(number, _)| *number);
    let numbers: Vec<RawFd> = given.chain(pipes.all().map(|(number, _)| number)).collect();
    let is_repeated = |index: usize| numbers[..index].contains(&numbers[index]);
    if numbers.len() > FILES - 1 || numbers.iter().any(|number| !(0..1024).contains(number)) {
        return Err(io::Error::other(
            "there are too many open files, or a number is too high",
        ));
    }
    if (0..numbers.len()).any(is_repeated) {
        return Err(io::Error::other("two open files have the same number"));
    }
    let mut env = program.env.clone();
    env.retain(|(name, _)| name != "TMPDIR");
    env.push(("TMPDIR".into(), scratch.into()));
    for (_, file) in &program.files {
        // Other processes that our process starts must not inherit it.
        fcntl_setfd(file, FdFlags::CLOEXEC)?;
    }
    Ok(GuardOrder::Program {
        program: program.program.clone().into(),
        arguments: program.arguments.iter().cloned().map(Into::into).collect(),
        env: env
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        cwd: program.cwd.clone().into(),
        numbers,
        judged: program.names.is_some(),
    })
}
