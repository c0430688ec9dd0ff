//! The guard of one command: starts its shell, waits for it, and ends everything that came of it.
//!
//! All orphans of the command become children of the guard, whatever they do to get away (it is their
//! subreaper), so that nothing needs to be remembered: what is below the guard belongs to the command.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{fs::FileExt, net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::{self, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, memfd_create, tell},
    io::{FdFlags, fcntl_setfd},
    pipe::{PipeFlags, pipe_with},
    process::{
        Pid, PidfdFlags, WaitOptions, WaitStatus, getpid, getppid, pidfd_open, set_child_subreaper,
        setsid, wait, waitpid,
    },
};

use crate::{
    protocol::{self, Bytes, News, Order, Plan},
    tree,
};

/// What is left after the command ended is looked at this often, at first and at most.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_AT_MOST: Duration = Duration::from_millis(250);

/// The variable in which the shell finds what it has to do: a list of processes stays readable. It is
/// gone before the command runs.
const SCRIPT: &str = "HAFT_SHELL";

/// How often a shell that ended before its command is replaced.
const REPLACEMENTS: u32 = 3;

/// Guards one command until nothing of it is left. Not 0: something may be left.
pub(super) fn run(plan: &Plan, socket: OwnedFd, output: OwnedFd) -> i32 {
    let socket = UnixStream::from(socket);
    let told = socket.try_clone();
    match Guard::new(plan, socket, output) {
        Ok(mut guard) => {
            if !matches!(guard.watch(plan), Ok(Watched::Gone)) {
                guard.kill();
            }
            let nothing_left = guard.reap();
            let _ = protocol::write(&mut guard.socket, &News::Gone);
            i32::from(!nothing_left)
        }
        Err(error) => {
            if let Ok(socket) = told {
                refuse(socket.into(), &error);
            }
            1
        }
    }
}

/// Tells our process that its command cannot run, and why.
pub(super) fn refuse(socket: OwnedFd, error: &io::Error) {
    let error = error.to_string();
    let _ = protocol::write(&mut UnixStream::from(socket), &News::Unable { error });
}

struct Guard {
    socket: UnixStream,
    /// The keeper: when it goes, so does the command.
    keeper: OwnedFd,
    shell: Shell,
    /// What the command writes to; until nobody but the command needs it.
    output: Option<OwnedFd>,
    /// What the shell is to run.
    request: std::fs::File,
    ordered: bool,
    replaced: u32,
    /// How the shell ended.
    status: Option<WaitStatus>,
    /// That it did was told.
    ended: bool,
    deadline: Option<Instant>,
}

/// A shell that waits for its command or runs it.
struct Shell {
    pid: Pid,
    handle: OwnedFd,
    go: std::fs::File,
    report: std::fs::File,
    told: Told,
    with_snapshot: bool,
}

/// What a shell said so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    /// It took its command, and needs no other shell in its place.
    Took,
    /// It will say no more.
    Silent,
}

/// Why a guard stops watching.
enum Watched {
    /// Nothing of the command is left.
    Gone,
    /// Whoever wanted it is gone.
    Unwanted,
}

impl Shell {
    fn start(
        plan: &Plan,
        snapshot: Option<&Path>,
        request: &std::fs::File,
        output: &OwnedFd,
    ) -> io::Result<Self> {
        let (wait_for, go) = pipe_with(PipeFlags::CLOEXEC)?;
        let (report, told) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let inherited = [wait_for.as_raw_fd(), request.as_raw_fd(), told.as_raw_fd()];
        fcntl_setfd(&wait_for, FdFlags::empty())?;
        fcntl_setfd(request, FdFlags::empty())?;
        fcntl_setfd(&told, FdFlags::empty())?;
        let env = plan
            .env
            .iter()
            .map(|(name, value)| (OsString::from(name.clone()), OsString::from(value.clone())));
        let shell = Command::new(&plan.shell)
            .arg0("bash")
            .args(["--noprofile", "--norc", "-c"])
            .arg(format!("eval \"${SCRIPT}\""))
            .arg("bash")
            .args(snapshot)
            .env_clear()
            .envs(env)
            .env(SCRIPT, script(inherited))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let text = format!("{}: {error}", plan.shell.display());
                io::Error::new(error.kind(), text)
            })?;
        fcntl_setfd(request, FdFlags::CLOEXEC)?;
        let pid = i32::try_from(shell.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            pid,
            handle: pidfd_open(pid, PidfdFlags::empty())?,
            go: go.into(),
            report: report.into(),
            told: Told::Nothing,
            with_snapshot: snapshot.is_some(),
        })
    }

    /// Takes note of a shell that took its command.
    fn hear(&mut self) {
        self.told = match self.report.read(&mut [0]) {
            Ok(1..) => Told::Took,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Told::Nothing,
            Ok(0) | Err(_) => Told::Silent,
        };
    }
}

impl Guard {
    fn new(plan: &Plan, mut socket: UnixStream, output: OwnedFd) -> io::Result<Self> {
        let keeper = match getppid() {
            Some(parent) => pidfd_open(parent, PidfdFlags::empty())?,
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        setsid()?;
        set_child_subreaper(Some(getpid()))?;
        let request = std::fs::File::from(memfd_create("command", MemfdFlags::CLOEXEC)?);
        let shell = Shell::start(plan, plan.snapshot.as_deref(), &request, &output)?;
        let pid = process::id();
        protocol::write(&mut socket, &News::Standing { pid })?;
        Ok(Self {
            socket,
            keeper,
            shell,
            output: Some(output),
            request,
            ordered: false,
            replaced: 0,
            status: None,
            ended: false,
            deadline: None,
        })
    }

    /// Until nothing is left, or nobody wants it any more.
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
            let [heard, keeper_gone, shell_ended, told] = self.wait(pause)?;
            if keeper_gone {
                return Ok(Watched::Unwanted);
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
                    Some(Order::Run { cwd, sourced, text }) => {
                        let sourced = sourced.as_ref().map(Bytes::as_slice);
                        self.start(cwd.as_slice(), sourced, &text)?;
                    }
                    Some(Order::Kill { grace_ms }) => {
                        tree::terminate_below(process::id());
                        self.deadline = Some(Instant::now() + Duration::from_millis(grace_ms));
                    }
                }
            }
            if self.shell.told == Told::Took {
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

    /// Waits for our process, the keeper's end, the shell's end, the shell's word.
    fn wait(&self, pause: Option<Duration>) -> io::Result<[bool; 4]> {
        let pause = pause.map(|pause| Timespec {
            tv_sec: pause.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: pause.subsec_nanos().into(),
        });
        let mut watched = vec![
            PollFd::new(&self.socket, PollFlags::IN),
            PollFd::new(&self.keeper, PollFlags::IN),
        ];
        if !self.ended {
            watched.push(PollFd::new(&self.shell.handle, PollFlags::IN));
            if self.shell.told == Told::Nothing {
                watched.push(PollFd::new(&self.shell.report, PollFlags::IN));
            }
        }
        match poll(&mut watched, pause.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok([false; 4]),
            Err(error) => return Err(error.into()),
        }
        let happened = |at: usize| watched.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok([happened(0), happened(1), happened(2), happened(3)])
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
        self.go();
        Ok(())
    }

    fn go(&mut self) {
        // If it is gone, that will be seen, and another one takes its place.
        let _ = self.shell.go.write_all(b"\n");
    }

    /// Did the shell begin to read what it is to run? It reads from where the file stands, for it and us.
    fn taken(&self) -> bool {
        tell(&self.request).is_ok_and(|place| place > 0)
    }

    /// Another shell for one that ended before it could take the command: the snapshot made it end,
    /// or another command killed all shells it saw. `false`: the command ran, or nobody wants it.
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
        self.shell = Shell::start(plan, snapshot, &self.request, output)?;
        if self.ordered {
            self.go();
        }
        Ok(true)
    }

    /// The command's own process ended.
    fn end(&mut self) -> io::Result<()> {
        self.ended = true;
        self.output = None;
        let status = match self.status {
            None => waitpid(Some(self.shell.pid), WaitOptions::empty())?.map(|(_, status)| status),
            status => status,
        };
        if self.shell.told == Told::Nothing {
            self.shell.hear();
        }
        let mut told = Vec::new();
        // Whoever still holds the other end must not hold us: what is there is read, no more.
        let _ = self.shell.report.read_to_end(&mut told);
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
        protocol::write(
            &mut self.socket,
            &News::Ended {
                code,
                signal: status.and_then(WaitStatus::terminating_signal),
                cwd: cwd.map(Into::into),
                left: u32::try_from(left).unwrap_or(u32::MAX),
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
        tree::kill_below(process::id(), &[], || self.reap());
        if !self.ended {
            let _ = self.end();
        }
    }
}

/// Says in a command's output that the snapshot was left out.
fn tell_without(snapshot: Option<&Path>, output: &OwnedFd) {
    let name = snapshot.unwrap_or(Path::new("")).display();
    let text = format!("bash: {name} ended the shell that read it; the command runs without it\n");
    let _ = rustix::io::write(output, text.as_bytes());
}

/// What the shell does. On one line, so that the command's first line is line 1 in its messages. It
/// closes what our process was started with and nobody meant for commands, reads the snapshot, waits for a line on the first file, reads directory, file to source and command
/// from the second, says on the third that it did, runs it, and tells there where it ended up. What it
/// was given is closed before the command runs, so that no process of it holds or finds it. Builtins
/// are named as such: a snapshot may define functions of any name.
fn script([wait_for, request, told]: [i32; 3]) -> String {
    format!(
        "unset {SCRIPT}; for REPLY in /proc/self/fd/*; do case ${{REPLY##*/}} in \
         [012]|{wait_for}|{request}|{told}|*[!0-9]*) ;; *) eval \"exec ${{REPLY##*/}}<&-\";; esac; done; \
         unset REPLY; [ $# = 0 ] || . \"$1\" >/dev/null 2>&1 </dev/null; builtin set --; \
         builtin read -r -u {wait_for} || builtin exit 0; \
         {{ IFS= builtin read -r -d '' REPLY; builtin echo >&{told}; builtin cd -- \"$REPLY\" || builtin exit 126; \
         builtin unset OLDPWD; IFS= builtin read -r -d '' REPLY; builtin [ -z \"$REPLY\" ] || builtin . \"$REPLY\" </dev/null; \
         IFS= builtin read -r -d '' REPLY; }} <&{request}; \
         builtin eval -- \"$REPLY\" {wait_for}<&- {request}<&- {told}>&-; \
         REPLY=$?; builtin pwd -P >&{told} 2>/dev/null; builtin exit \"$REPLY\""
    )
}
