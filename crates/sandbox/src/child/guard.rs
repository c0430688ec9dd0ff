//! The guard of one command: starts its shell, waits for it, and ends all its processes.
//!
//! The guard is the subreaper of the command, so every orphaned process becomes a child of the
//! guard. No list of processes is needed: every process below the guard belongs to the command.

mod usage;
mod wait;

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    mem,
    net::TcpListener,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::FileExt, net::UnixStream},
    },
    path::{Path, PathBuf},
    process,
    time::{Duration, Instant},
};

use rustix::{
    fs::{MemfdFlags, memfd_create, tell},
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, pidfd_open,
        pidfd_send_signal, set_child_subreaper, setsid, wait, waitpid,
    },
};

use self::{usage::UsageMonitor, wait::GuardWake};
use super::{
    confine::{self, EnforcedConfinement, PreparedConfinement},
    guard_sockets::GuardSockets,
    hidden_file_cover::HiddenFileCover,
    keeper::{SetupFailure, step},
    mediate::{ChangeWitness, Mediator},
    mounts, program,
    shell::{GuardedShell, ShellReport},
};
use crate::{
    Mechanism, NameUse, RefusedWrite, process_tree,
    protocol::{self, GuardEvent, GuardOrder, OsBytes, SandboxPlan},
};

/// The first and the longest interval between checks for processes that are left after the command
/// ended.
const FIRST_CHECK_INTERVAL: Duration = Duration::from_millis(5);
const LOOK_AT_MOST: Duration = Duration::from_millis(250);

/// The maximum number of times that a shell is replaced if it ends before it runs the command.
const REPLACEMENTS: u32 = 3;

/// The parameters of a guard.
pub(super) struct GuardParams<'a> {
    pub(super) plan: &'a SandboxPlan,
    pub(super) confinement: Option<&'a PreparedConfinement>,
    /// The socket to our process.
    pub(super) socket: OwnedFd,
    /// The pipe that the command writes to.
    pub(super) output: OwnedFd,
    /// A handle of the keeper. If the keeper ends, so does the command. `None` if the guard cannot
    /// see it; then the kernel ends the guard.
    pub(super) keeper: Option<OwnedFd>,
    /// The socket on which our process listens for this command alone.
    pub(super) listener: Option<TcpListener>,
}

/// Guards one command until all its processes have ended. Returns a non-zero exit code if some may
/// still run.
pub(super) fn run(params: GuardParams<'_>) -> i32 {
    let plan = params.plan;
    let error_socket = params.socket.try_clone();
    match CommandGuard::new(params) {
        Ok(mut guard) => {
            if !matches!(guard.watch(plan), Ok(WatchEnd::Gone)) {
                guard.kill();
            }
            let all_ended = guard.reap();
            guard.release_remaining_output();
            guard.keep_witness();
            let witness = guard.witness.as_ref().filter(|_| all_ended);
            let witness_failure = witness.and_then(ChangeWitness::end);
            let _ = protocol::write(&mut guard.socket, &GuardEvent::Gone { witness_failure });
            i32::from(!all_ended)
        }
        Err(failed) => {
            if let Ok(socket) = error_socket {
                refuse(socket, failed);
            }
            1
        }
    }
}

/// Reports to our process that its command cannot run, and why.
pub(super) fn refuse(socket: OwnedFd, failed: SetupFailure) {
    let failed = GuardEvent::Unable {
        step: failed.name,
        error: failed.error,
        passing: failed.passing,
    };
    let _ = protocol::write(&mut UnixStream::from(socket), &failed);
}

/// The guard of one command.
struct CommandGuard<'a> {
    socket: UnixStream,
    keeper: Option<OwnedFd>,
    confinement: Option<&'a PreparedConfinement>,
    /// Watches the hidden files.
    cover: Option<HiddenFileCover>,
    /// The sockets on which our process asks whether they are still hidden: one for each pipe that
    /// it reads.
    fences: Vec<UnixStream>,
    /// The link on which our process requests sockets in the command's network.
    sockets: Option<GuardSockets>,
    /// The hidden file that became readable. The command is ended because of it.
    uncovered: Option<PathBuf>,
    /// The refused writes of the command. Set when no further call can arrive.
    refused: Vec<RefusedWrite>,
    /// The witness, while no mediator needs it.
    witness: Option<ChangeWitness>,
    shell: GuardedShell,
    /// The pipe that the command writes to, until only the command needs it.
    output: Option<OwnedFd>,
    /// The file with the command that the shell is to run.
    request: File,
    /// Our process has sent the command, or the guard runs a program.
    ordered: bool,
    /// The guard runs a program instead of a shell command. The program has its arguments from the
    /// start.
    program: bool,
    /// Our process answers questions about guarded names.
    asks: bool,
    /// The number of shells that were replaced.
    replaced: u32,
    /// The exit status of the shell.
    status: Option<WaitStatus>,
    /// The end of the shell was reported.
    ended: bool,
    /// The end of the grace period, if the command is being ended.
    deadline: Option<Instant>,
    /// Measures the resources that the command uses.
    usage: UsageMonitor,
    /// A limit was exceeded and reported to our process.
    exceeded: bool,
}

/// The reason why a guard stops watching.
enum WatchEnd {
    /// No process of the command is left.
    Gone,
    /// Our process or the keeper has exited, or another sandbox is used.
    Unwanted,
}

impl<'a> CommandGuard<'a> {
    fn new(params: GuardParams<'a>) -> Result<Self, SetupFailure> {
        let GuardParams {
            plan,
            confinement,
            socket,
            output,
            keeper,
            listener,
        } = params;
        step("a session", setsid)?;
        step("adopting orphans", || set_child_subreaper(Some(getpid())))?;
        let own = plan.own_processes && confinement.is_some();
        if own && plan.mechanism == Mechanism::Namespaces {
            step(super::PROCESSES, || {
                mounts::processes(prefer_when_out_of_memory)
            })?;
        } else {
            prefer_when_out_of_memory();
        }
        confine::secrecy()?;
        // The guard must do this before it drops the rights to see all directories.
        let cover = match confinement {
            Some(_) => HiddenFileCover::for_plan(plan)?,
            None => None,
        };
        let enforced = match confinement {
            Some(confinement) => confinement.guard()?,
            None => EnforcedConfinement::default(),
        };
        let request = step("", || memfd_create("command", MemfdFlags::CLOEXEC))?;
        let request = File::from(request);
        let mut socket = UnixStream::from(socket);
        let snapshot = plan.snapshot.as_deref();
        let (shell, asks) = if plan.program {
            program::start(plan, confinement, &mut socket)?
        } else {
            let shell = GuardedShell::start(plan, confinement, snapshot, &request, &output)?;
            (shell, false)
        };
        let own_handle = step("", || pidfd_open(getpid(), PidfdFlags::empty()))?;
        let fences = match (&cover, plan.program) {
            (None, _) => 0,
            (Some(_), false) => 1,
            (Some(_), true) => program::FENCES,
        };
        let (sockets, network, link) = match step("", || GuardSockets::for_plan(plan))? {
            Some((sockets, network, link)) => (Some(sockets), Some(network), Some(link)),
            None => (None, None, None),
        };
        let ready = GuardEvent::Standing {
            apart: own || enforced.is_isolated,
            mediated: enforced.mediated,
            witnesses: enforced.mediated && enforced.witnesses,
            fences,
            network,
        };
        let pairs: Result<Vec<_>, SetupFailure> =
            (0..fences).map(|_| step("", UnixStream::pair)).collect();
        let (fences, theirs): (Vec<_>, Vec<_>) = pairs?.into_iter().unzip();
        let mut files = vec![own_handle.as_fd()];
        files.extend(theirs.iter().map(AsFd::as_fd));
        files.extend(link.iter().map(AsFd::as_fd));
        files.extend(listener.iter().map(AsFd::as_fd));
        step("", || {
            protocol::send(&socket, &protocol::frame(&ready)?, &files)
        })?;
        let mut usage = UsageMonitor::new(plan.resources);
        if plan.program {
            usage.start();
        }
        Ok(Self {
            socket,
            keeper,
            confinement,
            cover,
            fences,
            sockets,
            uncovered: None,
            refused: Vec::new(),
            witness: None,
            shell,
            // A program has its pipes already.
            output: (!plan.program).then_some(output),
            request,
            ordered: plan.program,
            program: plan.program,
            asks,
            replaced: 0,
            status: None,
            ended: false,
            deadline: None,
            usage,
            exceeded: false,
        })
    }

    /// Watches the command until all its processes have ended or it is no longer needed.
    fn watch(&mut self, plan: &SandboxPlan) -> io::Result<WatchEnd> {
        let mut interval = FIRST_CHECK_INTERVAL;
        loop {
            let mut pause = self.ended.then_some(interval);
            if let Some(deadline) = self.deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    self.kill();
                    self.deadline = None;
                    continue;
                }
                pause = Some(pause.map_or(left, |pause| pause.min(left)));
            }
            if let Some(exceeded) = self.usage.measure_when_due() {
                if !self.exceeded {
                    self.exceeded = true;
                    protocol::write(&mut self.socket, &GuardEvent::Exceeded(exceeded))?;
                }
                self.kill();
                continue;
            }
            if let Some(left) = self.usage.time_left() {
                pause = Some(pause.map_or(left, |pause| pause.min(left)));
            }
            let GuardWake {
                has_order,
                keeper_ended,
                shell_ended,
                has_report,
                has_call,
                no_more_calls,
                cover_changed,
                ready_fences,
                socket_requested,
            } = self.wait(pause)?;
            if keeper_ended {
                return Ok(WatchEnd::Unwanted);
            }
            if cover_changed && self.is_uncovered(HiddenFileCover::uncovered_by_change)? {
                // No command runs yet: the caller uses another sandbox.
                if !self.ordered && !has_order {
                    return Ok(WatchEnd::Unwanted);
                }
                self.kill();
                continue;
            }
            if !ready_fences.is_empty() && !self.release_output(&ready_fences)? {
                self.kill();
                continue;
            }
            if socket_requested
                && let Some(sockets) = &mut self.sockets
                && !sockets.make_socket()
            {
                self.sockets = None;
            }
            if has_call {
                self.mediate()?;
            }
            if no_more_calls {
                self.keep_witness();
                if let Some(mediator) = self.shell.mediator.take() {
                    self.refused = mediator.refused();
                }
            }
            if has_report {
                self.shell.read_report();
            }
            if shell_ended && !self.ended && !self.replace(plan)? {
                self.end()?;
            }
            if has_order {
                // The open files for a command come before it.
                let files = match self.ordered {
                    true => Vec::new(),
                    false => protocol::receive_files(&self.socket)?,
                };
                match protocol::read(&mut self.socket)? {
                    None => return Ok(WatchEnd::Unwanted),
                    Some(GuardOrder::Run {
                        cwd,
                        sourced,
                        text,
                        judged,
                        witness,
                    }) => {
                        self.asks = judged;
                        if let (Some(order), Some(mediator)) = (witness, &mut self.shell.mediator) {
                            let socket = self.socket.try_clone()?;
                            let witness =
                                ChangeWitness::new(&order, files, plan.writable(), socket)?;
                            mediator.set_witness(Some(witness));
                        }
                        let sourced = sourced.as_ref().map(OsBytes::as_slice);
                        self.start(cwd.as_slice(), sourced, &text)?;
                    }
                    Some(GuardOrder::Judged {
                        id,
                        used,
                        permitted,
                    }) => {
                        let mediator = self.shell.mediator.as_mut();
                        let question =
                            mediator.and_then(|mediator| mediator.on_answer(id, used, permitted));
                        self.ask_about_name(question)?;
                        self.ask_about_storage()?;
                    }
                    Some(GuardOrder::Storage { id, answer }) => {
                        let mediator = self.shell.mediator.as_mut();
                        let questions = mediator.map(|mediator| mediator.on_storage(id, answer));
                        for question in questions.into_iter().flatten() {
                            self.ask_about_name(Some(question))?;
                        }
                        self.ask_about_storage()?;
                    }
                    Some(GuardOrder::Interrupt) if !self.ended => {
                        // The pidfd prevents signalling another process with the same number.
                        let _ = pidfd_send_signal(&self.shell.handle, Signal::INT);
                    }
                    Some(GuardOrder::Interrupt | GuardOrder::Program { .. }) => {}
                    Some(GuardOrder::Kill { grace_ms }) => {
                        process_tree::terminate_below(process::id());
                        self.deadline = Some(Instant::now() + Duration::from_millis(grace_ms));
                    }
                }
            }
            if self.shell.last_report == ShellReport::Took {
                self.output = None;
            }
            if self.ended {
                if self.reap() {
                    return Ok(WatchEnd::Gone);
                }
                interval = (interval * 2).min(LOOK_AT_MOST);
            }
        }
    }

    /// Returns whether a hidden file can be read now. From then on, no output of the command is
    /// released.
    fn is_uncovered(
        &mut self,
        check: impl FnOnce(&mut HiddenFileCover) -> io::Result<Option<PathBuf>>,
    ) -> io::Result<bool> {
        if self.uncovered.is_none()
            && let Some(cover) = &mut self.cover
        {
            self.uncovered = check(cover)?;
            if self.uncovered.is_some() {
                for fence in &mut self.fences {
                    let _ = fence.write_all(&[protocol::UNCOVERED]);
                }
            }
        }
        Ok(self.uncovered.is_some())
    }

    /// Permits our process to use the output that it has read, if no hidden file was readable until now:
    /// output written before this check cannot contain hidden data. Returns `false` if a hidden
    /// file was readable.
    fn release_output(&mut self, fences: &[usize]) -> io::Result<bool> {
        if self.is_uncovered(HiddenFileCover::uncovered)? {
            return Ok(false);
        }
        // Back to front, so that removing a fence does not change the other indices.
        for &number in fences.iter().rev() {
            let Some(fence) = self.fences.get_mut(number) else {
                continue;
            };
            let read = fence.read(&mut [0])?;
            if read == 0 || fence.write_all(&[protocol::COVERED]).is_err() {
                self.fences.remove(number); // that output is no longer read
            }
        }
        Ok(true)
    }

    /// Releases all output that is still in the pipes. No process of the command runs any longer.
    fn release_remaining_output(&mut self) {
        if matches!(self.is_uncovered(HiddenFileCover::uncovered), Ok(false)) {
            for fence in &mut self.fences {
                let _ = fence.write_all(&[protocol::COVERED_TO_THE_END]);
            }
        }
    }

    /// Carries out a call of the command, or asks our process first.
    fn mediate(&mut self) -> io::Result<()> {
        let Some(mediator) = &mut self.shell.mediator else {
            return Ok(());
        };
        let question = mediator.receive_call(self.asks)?;
        self.ask_about_name(question)?;
        self.ask_about_storage()
    }

    /// Asks our process about files that could not be stored.
    fn ask_about_storage(&mut self) -> io::Result<()> {
        let mediator = self.shell.mediator.as_mut();
        let questions = mediator.map(Mediator::take_storage_questions);
        for (id, file) in questions.into_iter().flatten() {
            protocol::write(&mut self.socket, &GuardEvent::CannotStore { id, file })?;
        }
        Ok(())
    }

    fn ask_about_name(&mut self, question: Option<(u32, NameUse)>) -> io::Result<()> {
        match question {
            Some((id, used)) => protocol::write(&mut self.socket, &GuardEvent::Asks { id, used }),
            None => Ok(()),
        }
    }

    /// Sends the command to the waiting shell.
    fn start(&mut self, cwd: &[u8], sourced: Option<&[u8]>, text: &str) -> io::Result<()> {
        if self.ordered {
            return Ok(()); // a shell runs only one command
        }
        let parts = [cwd, sourced.unwrap_or_default(), text.as_bytes()];
        let mut request = Vec::new();
        for part in parts {
            request.extend(part);
            request.push(0);
        }
        // Writes at a fixed offset, because the shell shares the file position and reads from
        // there.
        self.request.write_all_at(&request, 0)?;
        self.ordered = true;
        self.usage.start();
        self.send_command();
        Ok(())
    }

    fn send_command(&mut self) {
        // If the shell has exited, the poll loop notices it and starts another one.
        if let Some(go) = &mut self.shell.go {
            let _ = go.write_all(b"\n");
        }
    }

    /// Returns whether the shell began to read its command. The guard shares the file position with
    /// it.
    fn shell_took_command(&self) -> bool {
        self.program || tell(&self.request).is_ok_and(|place| place > 0)
    }

    /// Starts another shell if the current one ended before it took the command, because the
    /// snapshot ended it or another command killed all shells that it could see. Returns `false` if
    /// the command ran or is no longer needed.
    fn replace(&mut self, plan: &SandboxPlan) -> io::Result<bool> {
        let Some(output) = self.output.as_ref() else {
            return Ok(false);
        };
        if self.shell_took_command() || self.deadline.is_some() || self.replaced == REPLACEMENTS {
            return Ok(false);
        }
        let ended = waitpid(Some(self.shell.pid), WaitOptions::empty())?;
        self.replaced += 1;
        let killed = ended.is_some_and(|(_, status)| status.signaled());
        let with_snapshot = self.shell.with_snapshot && killed && self.replaced < REPLACEMENTS;
        let snapshot = plan.snapshot.as_deref().filter(|_| with_snapshot);
        if self.shell.with_snapshot && !with_snapshot {
            report_missing_snapshot(plan.snapshot.as_deref(), output);
        }
        let shell = GuardedShell::start(plan, self.confinement, snapshot, &self.request, output)
            .map_err(|failed| io::Error::other(failed.error))?;
        self.keep_witness();
        self.shell = shell;
        if let Some(mediator) = &mut self.shell.mediator {
            mediator.set_witness(self.witness.take());
        }
        if self.ordered {
            self.send_command();
        }
        Ok(true)
    }

    /// Takes the witness from the mediator, which is about to be dropped.
    fn keep_witness(&mut self) {
        let mediator = self.shell.mediator.as_mut();
        if let Some(witness) = mediator.and_then(Mediator::take_witness) {
            self.witness = Some(witness);
        }
    }

    /// Reports that the command's own process ended.
    fn end(&mut self) -> io::Result<()> {
        // Must come before the other children are reaped, which would consume this status.
        let status = match self.status {
            None => waitpid(Some(self.shell.pid), WaitOptions::empty())?.map(|(_, status)| status),
            status => status,
        };
        self.ended = true;
        // The last read of a hidden file may not have been reported yet. Processes that a program
        // started must not stay.
        if self.is_uncovered(HiddenFileCover::uncovered)? || self.program {
            process_tree::kill_below(process::id(), &[], || self.reap());
        }
        self.output = None;
        if self.shell.last_report == ShellReport::Nothing {
            self.shell.read_report();
        }
        let mut report_text = Vec::new();
        // Reads only the data that is available: a process that still holds the other end must not
        // block the guard.
        if let Some(report) = &mut self.shell.report {
            let _ = report.read_to_end(&mut report_text);
        }
        let cwd = report_text
            .strip_suffix(b"\n")
            .filter(|path| !path.is_empty());
        // Scanning all processes of the machine takes time and is rarely needed.
        let left = if self.reap() {
            0
        } else {
            process_tree::below(process::id()).len()
        };
        // The exit code of a shell that ran nothing would wrongly report success.
        let code = status
            .and_then(WaitStatus::exit_status)
            .filter(|_| self.shell_took_command());
        if let Some(mediator) = &self.shell.mediator {
            self.refused = mediator.refused();
        }
        let refused = mem::take(&mut self.refused);
        protocol::write(
            &mut self.socket,
            &GuardEvent::Ended {
                code,
                signal: status.and_then(WaitStatus::terminating_signal),
                cwd: cwd.map(Into::into),
                left: u32::try_from(left).unwrap_or(u32::MAX),
                uncovered: self.uncovered.clone().map(Into::into),
                refused: refused
                    .into_iter()
                    .map(|one| (one.path.into(), one.tentative))
                    .collect(),
            },
        )
    }

    /// Reaps every child that ended. Returns whether none is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.shell.pid && !self.ended => {
                    self.status = Some(status);
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Kills every process below the guard.
    fn kill(&mut self) {
        // As the first process of its PID namespace the guard can signal all others together: no
        // process forks in between.
        if getpid() == Pid::INIT {
            let _ = kill_process_group(Pid::INIT, Signal::KILL); // `kill(-1)`
        }
        process_tree::kill_below(process::id(), &[], || self.reap());
        if !self.ended {
            let _ = self.end();
        }
    }
}

/// Makes the kernel end this process and its children before others when the machine is out of
/// memory. Any process may ask for that. If `/proc` cannot be written, the guard still measures the
/// memory.
fn prefer_when_out_of_memory() {
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

/// Writes a notice to the command's output that the snapshot was left out.
fn report_missing_snapshot(snapshot: Option<&Path>, output: &OwnedFd) {
    let name = snapshot.unwrap_or(Path::new("")).display();
    let text = format!("bash: {name} ended the shell that read it; the command runs without it\n");
    let _ = rustix::io::write(output, text.as_bytes());
}
