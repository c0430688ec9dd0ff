//! The guard of one command: starts its shell, waits for it, and ends everything that came of it.
//!
//! All orphans of the command become children of the guard, whatever they do to get away (it is their
//! subreaper), so that nothing needs to be remembered: what is below the guard belongs to the command.

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

use self::{usage::UsageMonitor, wait::Happened};
use super::{
    confine::{self, Confinement, Held},
    cover::Cover,
    guard_sockets::GuardSockets,
    keeper::{Step, step},
    mounts, program,
    shell::{GuardedShell, ShellRequest},
};
use crate::{
    Mechanism, NameUse, RefusedWrite,
    protocol::{self, Bytes, News, Order, Plan},
    tree,
};

/// What is left after the command ended is looked at this often, at first and at most.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_AT_MOST: Duration = Duration::from_millis(250);

/// How often a shell that ended before its command is replaced.
const REPLACEMENTS: u32 = 3;

/// What a guard is made with.
pub(super) struct Charge<'a> {
    pub(super) plan: &'a Plan,
    pub(super) confinement: Option<&'a Confinement>,
    /// To our process.
    pub(super) socket: OwnedFd,
    /// What the command writes to.
    pub(super) output: OwnedFd,
    /// The keeper: when it goes, so does the command. Where it cannot be seen, the kernel sees to that.
    pub(super) keeper: Option<OwnedFd>,
    /// Where our process is to listen for this command alone.
    pub(super) listener: Option<TcpListener>,
}

/// Guards one command until nothing of it is left. Not 0: something may be left.
pub(super) fn run(charge: Charge<'_>) -> i32 {
    let plan = charge.plan;
    let told = charge.socket.try_clone();
    match Guard::new(charge) {
        Ok(mut guard) => {
            if !matches!(guard.watch(plan), Ok(Watched::Gone)) {
                guard.kill();
            }
            let nothing_left = guard.reap();
            guard.vouch_for_the_rest();
            let _ = protocol::write(&mut guard.socket, &News::Gone);
            i32::from(!nothing_left)
        }
        Err(failed) => {
            if let Ok(socket) = told {
                refuse(socket, failed);
            }
            1
        }
    }
}

/// Tells our process that its command cannot run, and why.
pub(super) fn refuse(socket: OwnedFd, failed: Step) {
    let failed = News::Unable {
        step: failed.name,
        error: failed.error,
        passing: failed.passing,
    };
    let _ = protocol::write(&mut UnixStream::from(socket), &failed);
}

struct Guard<'a> {
    socket: UnixStream,
    keeper: Option<OwnedFd>,
    confinement: Option<&'a Confinement>,
    /// What keeps hidden files hidden.
    cover: Option<Cover>,
    /// Where our process asks whether they are: one for each pipe that it reads.
    fences: Vec<UnixStream>,
    /// Where our process asks for sockets in the command's network.
    sockets: Option<GuardSockets>,
    /// One that no longer is, because of which the command is ended.
    uncovered: Option<PathBuf>,
    /// What the command was kept from writing, once there are no more calls.
    refused: Vec<RefusedWrite>,
    shell: GuardedShell,
    /// What the command writes to; until nothing but the command needs it.
    output: Option<OwnedFd>,
    /// What the shell is to run.
    request: File,
    ordered: bool,
    /// It is a program of its own, which knew what to do when it was started.
    program: bool,
    /// Our process can be asked about guarded names.
    asks: bool,
    replaced: u32,
    /// How the shell ended.
    status: Option<WaitStatus>,
    /// That it did was reported.
    ended: bool,
    deadline: Option<Instant>,
    /// Measures what the command uses.
    usage: UsageMonitor,
    /// A limit was exceeded, and our process knows.
    exceeded: bool,
}

/// Why a guard stops watching.
enum Watched {
    /// Nothing of the command is left.
    Gone,
    /// The one that wanted it is gone.
    Unwanted,
}

impl<'a> Guard<'a> {
    fn new(charge: Charge<'a>) -> Result<Self, Step> {
        let Charge {
            plan,
            confinement,
            socket,
            output,
            keeper,
            listener,
        } = charge;
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
        // Before it gives up what it takes to see all directories.
        let cover = match confinement {
            Some(_) => Cover::of(plan)?,
            None => None,
        };
        let held = match confinement {
            Some(confinement) => confinement.guard()?,
            None => Held::default(),
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
        let itself = step("", || pidfd_open(getpid(), PidfdFlags::empty()))?;
        let fences = match (&cover, plan.program) {
            (None, _) => 0,
            (Some(_), false) => 1,
            (Some(_), true) => program::FENCES,
        };
        let (sockets, network, link) = match step("", || GuardSockets::of(plan))? {
            Some((sockets, network, link)) => (Some(sockets), Some(network), Some(link)),
            None => (None, None, None),
        };
        let standing = News::Standing {
            apart: own || held.apart,
            mediated: held.mediated,
            fences,
            network,
        };
        let pairs: Result<Vec<_>, Step> = (0..fences).map(|_| step("", UnixStream::pair)).collect();
        let (fences, theirs): (Vec<_>, Vec<_>) = pairs?.into_iter().unzip();
        let mut files = vec![itself.as_fd()];
        files.extend(theirs.iter().map(AsFd::as_fd));
        files.extend(link.iter().map(AsFd::as_fd));
        files.extend(listener.iter().map(AsFd::as_fd));
        step("", || {
            protocol::send(&socket, &protocol::frame(&standing)?, &files)
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

    /// Until nothing is left, or no one wants it any more.
    fn watch(&mut self, plan: &Plan) -> io::Result<Watched> {
        let mut look = LOOK_FIRST;
        loop {
            let mut pause = self.ended.then_some(look);
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
                    protocol::write(&mut self.socket, &News::Exceeded(exceeded))?;
                }
                self.kill();
                continue;
            }
            if let Some(left) = self.usage.time_left() {
                pause = Some(pause.map_or(left, |pause| pause.min(left)));
            }
            let Happened {
                heard,
                keeper_gone,
                shell_ended,
                told,
                called,
                no_more_calls,
                changed,
                asked,
                wants_socket,
            } = self.wait(pause)?;
            if keeper_gone {
                return Ok(Watched::Unwanted);
            }
            if changed && self.is_uncovered(Cover::uncovered_by_change)? {
                // Nothing runs yet: the caller takes another sandbox.
                if !self.ordered && !heard {
                    return Ok(Watched::Unwanted);
                }
                self.kill();
                continue;
            }
            if !asked.is_empty() && !self.vouch(&asked)? {
                self.kill();
                continue;
            }
            if wants_socket
                && let Some(sockets) = &mut self.sockets
                && !sockets.give()
            {
                self.sockets = None;
            }
            if called {
                self.mediate()?;
            }
            if no_more_calls && let Some(mediator) = self.shell.mediator.take() {
                self.refused = mediator.refused();
            }
            if told {
                self.shell.hear();
            }
            if shell_ended && !self.ended && !self.replace(plan)? {
                self.end()?;
            }
            if heard {
                match protocol::read(&mut self.socket)? {
                    None => return Ok(Watched::Unwanted),
                    Some(Order::Run {
                        cwd,
                        sourced,
                        text,
                        judged,
                    }) => {
                        self.asks = judged;
                        let sourced = sourced.as_ref().map(Bytes::as_slice);
                        self.start(cwd.as_slice(), sourced, &text)?;
                    }
                    Some(Order::Judged {
                        id,
                        used,
                        permitted,
                    }) => {
                        let mediator = self.shell.mediator.as_mut();
                        let question =
                            mediator.and_then(|mediator| mediator.judged(id, used, permitted));
                        self.ask(question)?;
                    }
                    Some(Order::Interrupt) if !self.ended => {
                        // By its handle, so that no other process can be meant.
                        let _ = pidfd_send_signal(&self.shell.handle, Signal::INT);
                    }
                    Some(Order::Interrupt | Order::Program { .. }) => {}
                    Some(Order::Kill { grace_ms }) => {
                        tree::terminate_below(process::id());
                        self.deadline = Some(Instant::now() + Duration::from_millis(grace_ms));
                    }
                }
            }
            if self.shell.told == ShellRequest::Took {
                self.output = None;
            }
            if self.ended {
                if self.reap() {
                    return Ok(Watched::Gone);
                }
                look = (look * 2).min(LOOK_AT_MOST);
            }
        }
    }

    /// Can a hidden file be read now? Once it can, nothing of the command's output is passed on.
    fn is_uncovered(
        &mut self,
        look: impl FnOnce(&mut Cover) -> io::Result<Option<PathBuf>>,
    ) -> io::Result<bool> {
        if self.uncovered.is_none()
            && let Some(cover) = &mut self.cover
        {
            self.uncovered = look(cover)?;
            if self.uncovered.is_some() {
                for fence in &mut self.fences {
                    let _ = fence.write_all(&[protocol::UNCOVERED]);
                }
            }
        }
        Ok(self.uncovered.is_some())
    }

    /// Lets our process use what it has read, if nothing hidden could be read until now: what was written
    /// before that holds nothing of it. `false`: something could.
    fn vouch(&mut self, asked: &[usize]) -> io::Result<bool> {
        if self.is_uncovered(Cover::uncovered)? {
            return Ok(false);
        }
        // From the last one on, so that the numbers of the others stay what they are.
        for &number in asked.iter().rev() {
            let Some(fence) = self.fences.get_mut(number) else {
                continue;
            };
            let read = fence.read(&mut [0])?;
            if read == 0 || fence.write_all(&[protocol::COVERED]).is_err() {
                self.fences.remove(number); // that output is not read any more
            }
        }
        Ok(true)
    }

    /// The same for all that is still on its way: nothing of the command runs any more.
    fn vouch_for_the_rest(&mut self) {
        if matches!(self.is_uncovered(Cover::uncovered), Ok(false)) {
            for fence in &mut self.fences {
                let _ = fence.write_all(&[protocol::COVERED_TO_THE_END]);
            }
        }
    }

    /// Does what a call of the command's asks for, or asks our process first.
    fn mediate(&mut self) -> io::Result<()> {
        let Some(mediator) = &mut self.shell.mediator else {
            return Ok(());
        };
        let question = mediator.take(self.asks)?;
        self.ask(question)
    }

    fn ask(&mut self, question: Option<(u32, NameUse)>) -> io::Result<()> {
        match question {
            Some((id, used)) => protocol::write(&mut self.socket, &News::Asks { id, used }),
            None => Ok(()),
        }
    }

    /// Hands the command to the shell that waits for it.
    fn start(&mut self, cwd: &[u8], sourced: Option<&[u8]>, text: &str) -> io::Result<()> {
        if self.ordered {
            return Ok(()); // one shell, one command
        }
        let parts = [cwd, sourced.unwrap_or_default(), text.as_bytes()];
        let mut request = Vec::new();
        for part in parts {
            request.extend(part);
            request.push(0);
        }
        // At a place, not at the end of what was written: the shell reads from where the file stands.
        self.request.write_all_at(&request, 0)?;
        self.ordered = true;
        self.usage.start();
        self.go();
        Ok(())
    }

    fn go(&mut self) {
        // If it is gone, that will be seen, and another one takes its place.
        if let Some(go) = &mut self.shell.go {
            let _ = go.write_all(b"\n");
        }
    }

    /// Did the shell begin to read what it is to run? It reads from where the file stands, for it and us.
    fn taken(&self) -> bool {
        self.program || tell(&self.request).is_ok_and(|place| place > 0)
    }

    /// Another shell for one that ended before it could take the command: the snapshot made it end,
    /// or another command killed all shells it saw. `false`: the command ran, or no one wants it.
    fn replace(&mut self, plan: &Plan) -> io::Result<bool> {
        let Some(output) = self.output.as_ref() else {
            return Ok(false);
        };
        if self.taken() || self.deadline.is_some() || self.replaced == REPLACEMENTS {
            return Ok(false);
        }
        let ended = waitpid(Some(self.shell.pid), WaitOptions::empty())?;
        self.replaced += 1;
        let killed = ended.is_some_and(|(_, status)| status.signaled());
        let with_snapshot = self.shell.with_snapshot && killed && self.replaced < REPLACEMENTS;
        let snapshot = plan.snapshot.as_deref().filter(|_| with_snapshot);
        if self.shell.with_snapshot && !with_snapshot {
            tell_without(plan.snapshot.as_deref(), output);
        }
        self.shell = GuardedShell::start(plan, self.confinement, snapshot, &self.request, output)
            .map_err(|failed| io::Error::other(failed.error))?;
        if self.ordered {
            self.go();
        }
        Ok(true)
    }

    /// The command's own process ended.
    fn end(&mut self) -> io::Result<()> {
        // Before others are waited for, which would take it along.
        let status = match self.status {
            None => waitpid(Some(self.shell.pid), WaitOptions::empty())?.map(|(_, status)| status),
            status => status,
        };
        self.ended = true;
        // What it read last may not have been reported yet. What a program started is not left behind.
        if self.is_uncovered(Cover::uncovered)? || self.program {
            tree::kill_below(process::id(), &[], || self.reap());
        }
        self.output = None;
        if self.shell.told == ShellRequest::Nothing {
            self.shell.hear();
        }
        let mut told = Vec::new();
        // A process that still holds the other end must not hold us: what is there is read, no more.
        if let Some(report) = &mut self.shell.report {
            let _ = report.read_to_end(&mut told);
        }
        let cwd = told.strip_suffix(b"\n").filter(|path| !path.is_empty());
        // Looking at every process of the machine takes time, and is hardly ever needed.
        let left = if self.reap() {
            0
        } else {
            tree::below(process::id()).len()
        };
        // The code of a shell that ran nothing would say that all went well.
        let code = status
            .and_then(WaitStatus::exit_status)
            .filter(|_| self.taken());
        if let Some(mediator) = &self.shell.mediator {
            self.refused = mediator.refused();
        }
        let refused = mem::take(&mut self.refused);
        protocol::write(
            &mut self.socket,
            &News::Ended {
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

    /// Takes note of every child that ended. Is none left?
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

    /// Ends everything below.
    fn kill(&mut self) {
        // As the first process of its PID namespace it can signal all others together: no process forks in between.
        if getpid() == Pid::INIT {
            let _ = kill_process_group(Pid::INIT, Signal::KILL); // `kill(-1)`
        }
        tree::kill_below(process::id(), &[], || self.reap());
        if !self.ended {
            let _ = self.end();
        }
    }
}

/// Makes the kernel end this process and those it starts before others when the machine is out of memory. Any process
/// may ask for that; where `/proc` cannot be written, the measurement of the guard remains.
fn prefer_when_out_of_memory() {
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

/// Says in a command's output that the snapshot was left out.
fn tell_without(snapshot: Option<&Path>, output: &OwnedFd) {
    let name = snapshot.unwrap_or(Path::new("")).display();
    let text = format!("bash: {name} ended the shell that read it; the command runs without it\n");
    let _ = rustix::io::write(output, text.as_bytes());
}
