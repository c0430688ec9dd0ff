//! The keeper of a sandbox: sets it up, drops the rights that it does not need, and then forks a
//! guard for each command.
//!
//! If the keeper has its own PID namespace, it is the first process in it, and the kernel ends all
//! other processes there when it exits. The keeper exits when our process exits, for any reason.

use std::{
    env, fs, io,
    net::{Ipv4Addr, TcpListener},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{self, Command},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Mode, OFlags, open},
    process::{
        Pid, PidfdFlags, WaitOptions, getpid, pidfd_open, set_child_subreaper, setsid, wait,
        waitpid,
    },
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stderr as own_stderr},
    thread::UnshareFlags,
};
use serde::{Deserialize, Serialize};

use super::{
    bubblewrap,
    confine::{self, PreparedConfinement},
    guard::{self, GuardParams},
    mounts, namespaces, private_tmp, waiter,
};
use crate::{
    Mechanism, PROXY_PORT, SandboxNetwork, SandboxProfile,
    fork::{ForkSide, fork, fork_into},
    process_tree,
    protocol::{self, KeeperReply, SandboxPlan},
    scratch_lease,
};

/// The environment variable that marks a guard started by bubblewrap, which is already inside the
/// sandbox. Its standard output is the file with the plan, and its standard error is the pipe that
/// the command writes to.
const INSIDE: &str = "HAFT_SANDBOX_INSIDE";
/// A failed step of the setup: its name and the error.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SetupFailure {
    pub(super) name: String,
    pub(super) error: String,
    /// The step may succeed the next time.
    pub(super) passing: bool,
}

impl SetupFailure {
    pub(super) fn new(name: &str, error: &io::Error) -> Self {
        Self {
            name: name.to_owned(),
            error: error.to_string(),
            passing: matches!(
                error.raw_os_error(),
                Some(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE)
            ),
        }
    }
}

/// Runs one step of the setup.
pub(super) fn step<T, E: Into<io::Error>>(
    name: &str,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, SetupFailure> {
    work().map_err(|error| SetupFailure::new(name, &error.into()))
}

/// Runs a step for a path that existed before. If the path is missing now, it was moved and may
/// come back, so the failure is marked as temporary: it does not show that the mechanism fails
/// here.
pub(super) fn step_at<T, E: Into<io::Error>>(
    path: &Path,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, SetupFailure> {
    work().map_err(|error| {
        let error = error.into();
        let missing = [libc::ENOENT, libc::ENOTDIR, libc::ESTALE];
        let is_missing = error
            .raw_os_error()
            .is_some_and(|code| missing.contains(&code));
        let failed = SetupFailure::new(&path.display().to_string(), &error);
        SetupFailure {
            passing: failed.passing || is_missing,
            ..failed
        }
    })
}

/// The main function of the waiter and, after the fork, of the keeper. The standard input is the
/// socket to our process.
pub(super) fn main() -> i32 {
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else {
        return 2;
    };
    if env::var_os(INSIDE).is_some() {
        return inside(socket);
    }
    // Leaves the terminal's session: our process handles Ctrl-C.
    let _ = setsid();
    let Ok((plan, file, channel)) = receive(&socket) else {
        return 2;
    };
    // The waiter creates the folder and not our process, so that it is removed even if our process
    // is killed. All processes of the sandbox hold the lock; it is closed on exec.
    let _in_use = match scratch_lease::lock_or_make(&plan.scratch) {
        Ok(lock) => lock,
        Err(error) => {
            let error = format!("{}: {error}", plan.scratch.display());
            return send_reply(&channel, &KeeperReply::NoScratch { error });
        }
    };
    if let Err(error) = private_tmp::prepare(&plan) {
        let error = format!("{}: {error}", plan.scratch.display());
        return send_reply(&channel, &KeeperReply::NoScratch { error });
    }
    // Orphans of a killed keeper become children of the waiter.
    let _ = set_child_subreaper(Some(getpid()));
    let forked = pidfd_open(getpid(), PidfdFlags::empty())
        .map_err(io::Error::from)
        .and_then(|waiter| Ok((fork()?, waiter)));
    match forked {
        Ok((ForkSide::Child, waiter)) => {
            drop(socket);
            enter(channel, &plan, &file, waiter)
        }
        Ok((ForkSide::Parent(keeper), _)) => {
            drop((channel, file));
            waiter::run(&socket, keeper, &plan.scratch)
        }
        Err(error) => answer(&channel, SetupFailure::new("a second process", &error)),
    }
}

/// Reports a failure to our process.
fn answer(socket: &OwnedFd, failed: SetupFailure) -> i32 {
    let failed = KeeperReply::Failed {
        step: failed.name,
        error: failed.error,
        passing: failed.passing,
    };
    send_reply(socket, &failed)
}

fn send_reply(socket: &OwnedFd, failed: &KeeperReply) -> i32 {
    let _ = serde_json::to_vec(failed)
        .map_err(io::Error::from)
        .and_then(|answer| protocol::send(socket, &answer, &[]));
    1
}

/// Receives the plan and the keeper's socket to our process. The plan comes as a file, because it
/// may be long.
fn receive(socket: &OwnedFd) -> io::Result<(SandboxPlan, fs::File, OwnedFd)> {
    let (_, files) = protocol::receive(socket)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut files = files.into_iter();
    let (Some(file), Some(channel)) = (files.next(), files.next()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let file = fs::File::from(file);
    let plan = serde_json::from_reader(io::BufReader::new(&file))?;
    Ok((plan, file, channel))
}

/// The main function of a guard that bubblewrap started.
fn inside(socket: OwnedFd) -> i32 {
    let prepared = (|| {
        let (plan, output) = step("the plan", read_again)?;
        let store = open_witness_store(&plan);
        let confinement = PreparedConfinement::prepare(&plan, store.as_ref())?;
        let listener = listener(&plan)?;
        Ok((plan, output, confinement, listener))
    })();
    match prepared {
        Ok((plan, output, confinement, listener)) => guard::run(GuardParams {
            plan: &plan,
            confinement: confinement.as_ref(),
            socket,
            output,
            keeper: None, // bubblewrap ends the guard itself when the keeper exits
            listener,
        }),
        Err(failed) => {
            guard::refuse(socket, failed);
            1
        }
    }
}

/// Reads the plan from standard output, and takes the command's output from standard error.
/// Commands must inherit neither these nor the socket.
fn read_again() -> io::Result<(SandboxPlan, OwnedFd)> {
    let plan = fs::read("/proc/self/fd/1")?;
    let output = own_stderr().try_clone_to_owned()?;
    let null = fs::File::options().write(true).open("/dev/null")?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    null_stdin()?;
    Ok((serde_json::from_slice(&plan)?, output))
}

/// Enters the namespaces of the sandbox and serves commands there.
fn enter(channel: OwnedFd, plan: &SandboxPlan, file: &fs::File, waiter: OwnedFd) -> i32 {
    // The mounts of the sandbox may hide this folder.
    let store = open_witness_store(plan);
    let entered = (|| {
        // Standard input is the waiter's socket.
        step("standard input", null_stdin)?;
        match plan.mechanism {
            Mechanism::Namespaces if plan.profile != SandboxProfile::Full => {
                namespaces::enter(plan)?;
                let forked = step("the first process", fork)?;
                if matches!(forked, ForkSide::Child) {
                    mounts::set_up(plan)?;
                }
                Ok(forked)
            }
            _ => Ok(ForkSide::Child),
        }
    })();
    match entered {
        Ok(ForkSide::Child) => serve_commands(channel, plan, file, (&waiter, store.as_ref())),
        Ok(ForkSide::Parent(first)) => {
            // Only the first process may hold the socket. This process waits, so that the first one
            // does not stay a zombie.
            drop(channel);
            wait_for(first)
        }
        Err(failed) => answer(&channel, failed),
    }
}

/// Opens the folder where guards store files for undo. Without it, guards store nothing.
fn open_witness_store(plan: &SandboxPlan) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(plan.witness_store.as_ref()?, flags, Mode::empty()).ok()
}

fn null_stdin() -> io::Result<()> {
    let null = fs::File::open("/dev/null")?;
    Ok(dup2_stdin(&null)?)
}

/// Serves commands in the finished sandbox.
fn serve_commands(
    socket: OwnedFd,
    plan: &SandboxPlan,
    file: &fs::File,
    (waiter, store): (&OwnedFd, Option<&OwnedFd>),
) -> i32 {
    let mut plan = plan.clone();
    if let SandboxProfile::Workspace(workspace) = &mut plan.profile
        && plan.mechanism == Mechanism::Reduced
        && workspace.network == SandboxNetwork::Proxy
    {
        // Without its own network namespace a command could bypass the proxy, so it gets no
        // network.
        workspace.network = SandboxNetwork::None;
    }
    match ready(&socket, &plan, store) {
        Ok(confinement) => KeeperServer {
            plan: &plan,
            file,
            confinement: confinement.as_ref(),
            waiter,
        }
        .serve(socket),
        Err(failed) => answer(&socket, failed),
    }
}

/// Prepares the restrictions of all commands and reports to our process that the keeper is ready.
fn ready(
    socket: &OwnedFd,
    plan: &SandboxPlan,
    store: Option<&OwnedFd>,
) -> Result<Option<PreparedConfinement>, SetupFailure> {
    // Bubblewrap creates a network for each command.
    let listener = match plan.mechanism {
        Mechanism::Namespaces => listener(plan)?,
        _ => None,
    };
    step("adopting orphans", || set_child_subreaper(Some(getpid())))?;
    confine::secrecy()?;
    let confinement = PreparedConfinement::prepare(plan, store)?;
    step("answering", || {
        let ready = serde_json::to_vec(&KeeperReply::Ready)?;
        let files: Vec<_> = listener.iter().map(AsFd::as_fd).collect();
        protocol::send(socket, &ready, &files)
    })?;
    Ok(confinement)
}

/// Creates a socket inside the sandbox's network on which our process, outside, can listen.
fn listener(plan: &SandboxPlan) -> Result<Option<TcpListener>, SetupFailure> {
    match &plan.profile {
        // Without its own network namespace, other processes could reach the socket.
        SandboxProfile::Workspace(workspace)
            if workspace.network == SandboxNetwork::Proxy
                && plan.mechanism < Mechanism::Reduced => {}
        _ => return Ok(None),
    }
    if plan.mechanism == Mechanism::Namespaces {
        step("the loopback interface", namespaces::loopback_up)?;
    }
    step("the proxy's socket", || {
        TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT)).map(Some)
    })
}

fn wait_for(process: Pid) -> i32 {
    loop {
        match waitpid(Some(process), WaitOptions::empty()) {
            Ok(Some((_, status))) => return status.exit_status().unwrap_or(1),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return 1,
        }
    }
}

struct GuardProcess {
    pid: Pid,
    handle: OwnedFd,
}

/// The parameters that all guards of a sandbox share.
struct KeeperServer<'a> {
    plan: &'a SandboxPlan,
    /// The file with the plan.
    file: &'a fs::File,
    confinement: Option<&'a PreparedConfinement>,
    waiter: &'a OwnedFd,
}

impl KeeperServer<'_> {
    /// Forks a guard for each packet, until our process or the waiter exits.
    fn serve(&self, socket: OwnedFd) -> i32 {
        let mut guards: Vec<GuardProcess> = Vec::new();
        loop {
            let mut watched = vec![
                PollFd::new(&socket, PollFlags::IN),
                PollFd::new(self.waiter, PollFlags::IN),
            ];
            let first = watched.len();
            watched.extend(
                guards
                    .iter()
                    .map(|guard| PollFd::new(&guard.handle, PollFlags::IN)),
            );
            match poll(&mut watched, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => break,
            }
            let is_ready = |index: usize| {
                watched
                    .get(index)
                    .is_some_and(|fd| !fd.revents().is_empty())
            };
            let has_request = is_ready(0);
            let waiter_ended = is_ready(1);
            let guard_ended = (first..watched.len()).any(is_ready);
            if waiter_ended {
                break;
            }
            if guard_ended {
                reap(&mut guards);
            }
            if has_request {
                let Ok(Some((_, files))) = protocol::receive(&socket) else {
                    break;
                };
                let mut files = files.into_iter();
                let (Some(theirs), Some(output)) = (files.next(), files.next()) else {
                    continue; // a malformed request
                };
                let forked = pidfd_open(getpid(), PidfdFlags::empty())
                    .map_err(io::Error::from)
                    .and_then(|keeper| Ok((self.fork()?, keeper)));
                match forked {
                    Ok((ForkSide::Child, keeper)) => {
                        // With the socket, a guard would keep the sandbox alive.
                        drop(socket);
                        drop(guards);
                        return self.guard(theirs, output, keeper);
                    }
                    Ok((ForkSide::Parent(pid), _)) => match pidfd_open(pid, PidfdFlags::empty()) {
                        Ok(handle) => guards.push(GuardProcess { pid, handle }),
                        Err(_) => break,
                    },
                    Err(error) => guard::refuse(theirs, SetupFailure::new("", &error)),
                }
            }
        }
        process_tree::kill_below(process::id(), &[], reap_all);
        0
    }

    /// Forks the process that becomes a guard. It is the first process of a new PID namespace,
    /// which its command shares. A command therefore cannot see, signal or trace processes of
    /// other commands, and cannot affect its guard.
    fn fork(&self) -> io::Result<ForkSide> {
        let spaces = self.plan.mechanism == Mechanism::Namespaces && self.confinement.is_some();
        if spaces && self.plan.own_processes {
            fork_into(UnshareFlags::NEWPID | UnshareFlags::NEWNS)
        } else {
            fork()
        }
    }

    fn guard(&self, socket: OwnedFd, output: OwnedFd, keeper: OwnedFd) -> i32 {
        if self.plan.mechanism == Mechanism::Bubblewrap && self.confinement.is_some() {
            let failed = self.through_bubblewrap(&socket, &output);
            guard::refuse(socket, failed);
            return 1;
        }
        guard::run(GuardParams {
            plan: self.plan,
            confinement: self.confinement,
            socket,
            output,
            keeper: Some(keeper),
            listener: None,
        })
    }

    /// Replaces this process with bubblewrap, which starts this program again inside. Returns only
    /// if that fails.
    fn through_bubblewrap(&self, socket: &OwnedFd, output: &OwnedFd) -> SetupFailure {
        let executed = (|| {
            let arguments = bubblewrap::arguments(self.plan)?;
            dup2_stdin(socket)?;
            dup2_stdout(self.file)?;
            dup2_stderr(output)?;
            Err::<(), _>(
                Command::new("bwrap")
                    .args(arguments)
                    .env_clear()
                    .env(INSIDE, "1")
                    .env("PATH", "/usr/local/bin:/usr/bin:/bin")
                    .exec(),
            )
        })();
        match executed {
            Ok(()) => SetupFailure::new("bubblewrap", &io::ErrorKind::Other.into()),
            Err(error) => SetupFailure::new("bubblewrap", &error),
        }
    }
}

/// Reaps guards that ended. Processes left by a guard that failed are now children of the keeper,
/// which kills them.
fn reap(guards: &mut Vec<GuardProcess>) {
    let mut killed = reap_some(guards);
    while killed {
        killed = false;
        let spared: Vec<u32> = guards
            .iter()
            .filter_map(|guard| guard.pid.as_raw_nonzero().get().try_into().ok())
            .collect();
        process_tree::kill_below(process::id(), &spared, || {
            killed |= reap_some(guards);
            true
        });
    }
}

/// Reaps ended children. Returns whether a guard among them may have left processes.
fn reap_some(guards: &mut Vec<GuardProcess>) -> bool {
    let mut killed = false;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        let count = guards.len();
        guards.retain(|guard| guard.pid != pid);
        killed |= guards.len() < count && status.exit_status() != Some(0);
    }
    killed
}

/// Reaps every child that ended. Returns whether none is left.
pub(super) fn reap_all() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}
