//! Programs that are confined for long: language servers, browsers, interpreters.
//!
//! A command of [`Sandbox::start`] is a line for bash whose output is read once. A confined program is started
//! without a shell, with the open files it is given at the numbers it expects, in a sandbox that is its own, and
//! it runs until it ends, is ended, or our process is gone.
//!
//! ```no_run
//! # use haft_sandbox::{ConfinedProgram, Mechanism, Sandbox, SandboxError, SandboxProfile};
//! # use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! # async fn example(sandbox: &Sandbox, profile: &SandboxProfile) -> Result<(), SandboxError> {
//! let mut program = ConfinedProgram::new("/usr/bin/python3", "/home/me/project");
//! program.arguments = vec!["-i".into()];
//! program.env = sandbox.environment(profile); // nothing else is inherited; TMPDIR is added
//! // Chromium would get its pipe so: `program.files = vec![(3, commands), (4, answers)];`
//!
//! // Not started at all where only a weaker way of confining works.
//! let weakest = Mechanism::Bubblewrap;
//! let mut process = sandbox.start_program(profile, program, weakest).await?;
//! let mut input = process.stdin.take().expect("it is given once");
//! input.write_all(b"while True: pass\n").await.map_err(SandboxError::Program)?;
//!
//! let control = process.control(); // for other tasks; it does not keep the program alive
//! control.interrupt(); // SIGINT for python alone, by its guard
//! control.kill(std::time::Duration::from_secs(1)); // asks all of it to end, then makes it
//! println!("{:?}", control.ended().await.how);
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
    CommandEnd, CommandNetwork, CommandOutput, Mechanism, NameJudge, Process, Running, Sandbox,
    SandboxError, SandboxProfile,
    network::Gate,
    protocol::{FILES, Order},
    sandbox::ProgramPurpose,
    scratch::Scratch,
    tree,
};

/// A program that is to be confined for long.
pub struct ConfinedProgram {
    /// The program: absolute, or a name to be found in the `PATH` of [`env`](Self::env).
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub arguments: Vec<OsString>,
    /// Its whole environment, to which `TMPDIR` is added: [`Sandbox::environment`] is a good beginning.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs; absolute.
    pub cwd: PathBuf,
    /// Open files, and the numbers at which the program finds them; at most 12. For 0, 1 and 2 there are pipes
    /// otherwise ([`ConfinedProcess::stdin`] and the other two); nothing else that is open is passed on.
    ///
    /// What the program writes to files of yours is not held back where a hidden file is uncovered, as
    /// [`CommandOutput`] is; the program is ended then.
    pub files: Vec<(RawFd, OwnedFd)>,
    /// A folder for its temporary files, made if it is missing and removed in the end. `None`: one beside that
    /// of the session's commands, with a short name, for sockets have no long ones.
    pub scratch: Option<PathBuf>,
    /// Who decides for [`Network::Proxy`](crate::Network::Proxy). `None`: the one who does for commands.
    pub gate: Option<Arc<dyn Gate>>,
    /// Decides about the profile's guarded names; without it, none may be used.
    pub names: Option<NameJudge>,
}

impl ConfinedProgram {
    /// A program without arguments, with an empty environment.
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

/// A confined program that runs. When this is dropped, all of it ends.
pub struct ConfinedProcess {
    /// To its standard input; `None` if it was given another one.
    pub stdin: Option<pipe::Sender>,
    /// From its standard output; ends at once if it was given another one.
    pub stdout: CommandOutput,
    /// From its standard error. What is not read here must be dropped ([`CommandOutput::take`]): a program
    /// waits when a pipe is full.
    pub stderr: CommandOutput,
    control: ConfinedControl,
    mechanism: Mechanism,
    scratch: PathBuf,
    /// Where the guard is, to find what is below it.
    guard: Option<u32>,
    network: Option<CommandNetwork>,
    /// Without it, the program ends.
    _alive: oneshot::Sender<()>,
}

/// Ends or interrupts a [`ConfinedProcess`], and waits for it, from any task. Cheap to clone; does not keep it
/// alive.
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
    gone: bool,
}

impl Sandbox {
    /// Starts a program in a sandbox of its own, as the profile says, in the best way that works here, or not
    /// at all where only a weaker way than `weakest` does ([`SandboxError::TooWeak`]). When this returns, it is
    /// that program that runs: one that cannot be started is an error.
    pub async fn start_program(
        &self,
        profile: &SandboxProfile,
        program: ConfinedProgram,
        weakest: Mechanism,
    ) -> Result<ConfinedProcess, SandboxError> {
        let scratch = program.scratch.clone();
        let scratch = Arc::new(Scratch::new(scratch.unwrap_or_else(|| self.new_scratch())));
        let pipes = Pipes::beside(&program.files).map_err(SandboxError::Program)?;
        let order = order(&program, &pipes, scratch.path()).map_err(SandboxError::Program)?;
        let given = program.files.iter().map(|(_, file)| file.as_fd());
        let files: Vec<BorrowedFd<'_>> = given.chain(pipes.theirs()).collect();
        let purpose = ProgramPurpose {
            profile,
            weakest,
            scratch: Arc::clone(&scratch),
            gate: program.gate.clone(),
            order,
            files,
        };
        let (world, shell, mut standing) = self.raise_for(&purpose).await?;
        drop(purpose);
        let scratch = scratch.path().to_path_buf();
        let mechanism = world.mechanism();
        let guard = standing.pid();
        let network = standing.network.clone();
        let mut fences = std::mem::take(&mut standing.fences).into_iter();
        let mut output = |pipe: Option<OwnedFd>| {
            let fence = fences.next();
            let pipe = pipe.map(pipe::Receiver::from_owned_fd).transpose()?;
            Ok::<_, io::Error>(CommandOutput::of(pipe, fence))
        };
        let stdout = output(pipes.stdout.map(|(ours, _)| ours)).map_err(SandboxError::Program)?;
        let stderr = output(pipes.stderr.map(|(ours, _)| ours)).map_err(SandboxError::Program)?;
        let stdin = pipes
            .stdin
            .map(|(ours, _)| pipe::Sender::from_owned_fd(ours));
        let stdin = stdin.transpose().map_err(SandboxError::Program)?;
        // What bubblewrap says goes there, and is not the program's.
        drop(shell.output);
        let unread = CommandOutput::of(None, None);
        let running = Running::of(world, shell.guard, standing, unread, program.names);
        let (orders, ordered) = mpsc::unbounded_channel();
        let (report, state) = watch::channel(ConfinedState::default());
        let (alive, unwanted) = oneshot::channel();
        tokio::spawn(attend(running, ordered, report, unwanted));
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
    /// How it is confined.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Where its temporary files are.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// The network that it has for itself: see [`Running::network`].
    pub fn network(&self) -> Option<&CommandNetwork> {
        self.network.as_ref()
    }

    /// For other tasks.
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
        self.control.ended().await
    }

    /// The program and what it started, numbered as our process sees them.
    pub fn processes(&self) -> Vec<Process> {
        if self.control.state.borrow().gone {
            return Vec::new();
        }
        self.guard.map(tree::below).unwrap_or_default()
    }
}

impl ConfinedControl {
    /// Sends SIGINT to the program: to it alone, by its guard. One that was just started may not be ready to
    /// answer it, and then ends by it: wait for a word of it first.
    pub fn interrupt(&self) {
        let _ = self.orders.send(ControlOrder::Interrupt); // it is gone
    }

    /// Asks the program and all that it started to end, and after `grace` ends them.
    pub fn kill(&self, grace: Duration) {
        let _ = self.orders.send(ControlOrder::Kill(grace)); // it is gone
    }

    /// Has the program ended?
    pub fn has_ended(&self) -> bool {
        let state = self.state.borrow();
        state.gone || state.ended.is_some()
    }

    /// Waits until the program has ended. Nothing is lost when the wait is given up.
    pub async fn ended(&self) -> CommandEnd {
        let mut state = self.state.clone();
        let found = state
            .wait_for(|state| state.gone || state.ended.is_some())
            .await;
        let ended = found.ok().and_then(|state| state.ended.clone());
        ended.unwrap_or_else(CommandEnd::lost)
    }

    /// Waits until nothing of it is left. Nothing is lost when the wait is given up.
    pub async fn gone(&self) {
        let mut state = self.state.clone();
        let _ = state.wait_for(|state| state.gone).await; // or no one is there to tell
    }
}

/// Passes orders on to the guard and tells what it says, until nothing is left or no one wants the program.
async fn attend(
    mut running: Running,
    mut orders: mpsc::UnboundedReceiver<ControlOrder>,
    report: watch::Sender<ConfinedState>,
    mut unwanted: oneshot::Receiver<()>,
) {
    loop {
        tokio::select! {
            biased;
            _ = &mut unwanted => break,
            Some(order) = orders.recv() => match order {
                ControlOrder::Interrupt => running.interrupt(),
                ControlOrder::Kill(grace) => running.kill(grace),
            },
            () = running.hear() => {
                let gone = running.is_gone();
                let ended = running.ended().cloned();
                report.send_replace(ConfinedState { ended, gone });
                if gone {
                    break;
                }
            }
        }
    }
}

/// The pipes for what the program was not given, each with our end first.
struct Pipes {
    stdin: Option<(OwnedFd, OwnedFd)>,
    stdout: Option<(OwnedFd, OwnedFd)>,
    stderr: Option<(OwnedFd, OwnedFd)>,
}

impl Pipes {
    fn beside(given: &[(RawFd, OwnedFd)]) -> io::Result<Self> {
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

fn order(program: &ConfinedProgram, pipes: &Pipes, scratch: &Path) -> io::Result<Order> {
    let given = program.files.iter().map(|(number, _)| *number);
    let numbers: Vec<RawFd> = given.chain(pipes.all().map(|(number, _)| number)).collect();
    let twice = |at: usize| numbers[..at].contains(&numbers[at]);
    if numbers.len() > FILES - 1 || numbers.iter().any(|number| !(0..1024).contains(number)) {
        return Err(io::Error::other(
            "too many open files, or a number too high",
        ));
    }
    if (0..numbers.len()).any(twice) {
        return Err(io::Error::other("two open files at one number"));
    }
    let mut env = program.env.clone();
    env.retain(|(name, _)| name != "TMPDIR");
    env.push(("TMPDIR".into(), scratch.into()));
    for (_, file) in &program.files {
        // What our process starts otherwise must not find it.
        fcntl_setfd(file, FdFlags::CLOEXEC)?;
    }
    Ok(Order::Program {
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
