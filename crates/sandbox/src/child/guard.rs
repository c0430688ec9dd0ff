//! The guard of one command: starts its shell, waits for it, and ends everything that came of it.
//!
//! All orphans of the command become children of the guard, whatever they do to get away (it is their
//! subreaper), so that nothing needs to be remembered: what is below the guard belongs to the command.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::FileExt, net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, memfd_create},
    io::{FdFlags, fcntl_setfd},
    pipe::{PipeFlags, pipe_with},
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process_group,
        pidfd_open, set_child_subreaper, setsid, wait, waitpid,
    },
};

use crate::{
    protocol::{self, News, Order, Plan},
    tree,
};

/// What is left after the command ended is looked at this often, at first and at most.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_AT_MOST: Duration = Duration::from_millis(250);

/// The variable in which the shell finds what it has to do: a list of processes stays readable. It is
/// gone before the command runs.
const SCRIPT: &str = "HAFT_SHELL";

/// Guards one command until nothing of it is left. Never fails: there is nobody to tell.
pub(super) fn run(plan: &Plan, socket: OwnedFd, output: OwnedFd) -> i32 {
    match Guard::new(plan, UnixStream::from(socket), output) {
        Ok(mut guard) => {
            if !matches!(guard.watch(), Ok(Watched::Gone)) {
                guard.kill();
            }
            let _ = protocol::write(&mut guard.socket, &News::Gone);
            0
        }
        Err(_) => 1,
    }
}

struct Guard {
    socket: UnixStream,
    /// The keeper: when it goes, so does the command.
    keeper: OwnedFd,
    shell: Pid,
    shell_handle: OwnedFd,
    ended: bool,
    request: std::fs::File,
    go: Option<std::fs::File>,
    report: std::fs::File,
    deadline: Option<Instant>,
}

/// Why a guard stops watching.
enum Watched {
    /// Nothing of the command is left.
    Gone,
    /// Whoever wanted it is gone.
    Unwanted,
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
        let (wait_for, go) = pipe_with(PipeFlags::CLOEXEC)?;
        let (report, told) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let inherited = [wait_for.as_raw_fd(), request.as_raw_fd(), told.as_raw_fd()];
        fcntl_setfd(&wait_for, FdFlags::empty())?;
        fcntl_setfd(&request, FdFlags::empty())?;
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
            .args(plan.snapshot.as_deref())
            .env_clear()
            .envs(env)
            .env(SCRIPT, script(inherited))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        fcntl_setfd(&request, FdFlags::CLOEXEC)?;
        drop((wait_for, told));
        let shell = i32::try_from(shell.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(io::ErrorKind::NotFound)?;
        let pid = process::id();
        protocol::write(&mut socket, &News::Standing { pid })?;
        Ok(Self {
            socket,
            keeper,
            shell,
            shell_handle: pidfd_open(shell, PidfdFlags::empty())?,
            ended: false,
            request,
            go: Some(go.into()),
            report: report.into(),
            deadline: None,
        })
    }

    /// Until nothing is left, or nobody wants it any more.
    fn watch(&mut self) -> io::Result<Watched> {
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
            let [heard, keeper_gone, shell_ended] = self.wait(pause)?;
            if keeper_gone {
                return Ok(Watched::Unwanted);
            }
            if shell_ended && !self.ended {
                self.end()?;
            }
            if heard {
                match protocol::read(&mut self.socket)? {
                    None => return Ok(Watched::Unwanted),
                    Some(Order::Run { cwd, sourced, text }) => {
                        self.start(&cwd, sourced.as_deref(), &text)?;
                    }
                    Some(Order::Kill { grace_ms }) => {
                        if self.ended {
                            // Its number may already be another's.
                            tree::terminate_below(process::id());
                        } else {
                            let _ = kill_process_group(self.shell, Signal::TERM);
                            // A stopped process would not hear it.
                            let _ = kill_process_group(self.shell, Signal::CONT);
                        }
                        self.deadline = Some(Instant::now() + Duration::from_millis(grace_ms));
                    }
                }
            }
            if self.ended {
                if self.reap() {
                    return Ok(Watched::Gone);
                }
                look = (look * 2).min(LOOK_AT_MOST);
            }
        }
    }

    /// Waits for news of the three that matter.
    fn wait(&self, pause: Option<Duration>) -> io::Result<[bool; 3]> {
        let pause = pause.map(|pause| Timespec {
            tv_sec: pause.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: pause.subsec_nanos().into(),
        });
        let mut watched = vec![
            PollFd::new(&self.socket, PollFlags::IN),
            PollFd::new(&self.keeper, PollFlags::IN),
        ];
        if !self.ended {
            watched.push(PollFd::new(&self.shell_handle, PollFlags::IN));
        }
        match poll(&mut watched, pause.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened = |at: usize| watched.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok([happened(0), happened(1), happened(2)])
    }

    /// Hands the command to the shell that waits for it.
    fn start(&mut self, cwd: &Path, sourced: Option<&Path>, text: &str) -> io::Result<()> {
        let Some(mut go) = self.go.take() else {
            return Ok(()); // one shell, one command
        };
        let sourced = sourced.map_or(&b""[..], |path| path.as_os_str().as_bytes());
        let parts = [cwd.as_os_str().as_bytes(), sourced, text.as_bytes()];
        let mut request = Vec::new();
        for part in parts {
            request.extend(part);
            request.push(0);
        }
        // At a place, not at the end of what was written: the shell reads from where the file stands.
        self.request.write_all_at(&request, 0)?;
        go.write_all(b"\n")
    }

    /// The command's own process ended.
    fn end(&mut self) -> io::Result<()> {
        self.ended = true;
        let status = waitpid(Some(self.shell), WaitOptions::empty())?.map(|(_, status)| status);
        let mut told = Vec::new();
        // Whoever still holds the other end must not hold us: what is there is read, no more.
        let _ = self.report.read_to_end(&mut told);
        let cwd = told.strip_suffix(b"\n").filter(|path| !path.is_empty());
        // Looking at every process of the machine takes time, and is hardly ever needed.
        let left = if self.reap() {
            0
        } else {
            tree::below(process::id()).len()
        };
        protocol::write(
            &mut self.socket,
            &News::Ended {
                code: status.and_then(WaitStatus::exit_status),
                signal: status.and_then(WaitStatus::terminating_signal),
                cwd: cwd.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))),
                left: u32::try_from(left).unwrap_or(u32::MAX),
            },
        )
    }

    /// Takes note of every child that ended. Is none left?
    fn reap(&self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    /// Ends everything below.
    fn kill(&mut self) {
        let shell_ended = self.ended;
        tree::kill_below(process::id(), &[], || {
            if shell_ended {
                self.reap();
            }
        });
        if !self.ended {
            let _ = self.end();
        }
        self.reap();
    }
}

/// What the shell does. On one line, so that the command's first line is line 1 in its messages. It
/// waits for a line on the first file, reads directory, file to source and command from the second,
/// runs it, and tells the third where it ended up. What it was given is closed before the command
/// runs, so that no process of it holds or finds it.
fn script([wait_for, request, told]: [i32; 3]) -> String {
    format!(
        "builtin unset {SCRIPT}; [ $# = 0 ] || {{ . \"$1\"; shift; }} >/dev/null 2>&1 </dev/null; \
         builtin read -r -u {wait_for} || builtin exit 0; \
         {{ IFS= builtin read -r -d '' REPLY; builtin cd -- \"$REPLY\" || builtin exit 126; \
         IFS= builtin read -r -d '' REPLY; [ -z \"$REPLY\" ] || . \"$REPLY\"; \
         IFS= builtin read -r -d '' REPLY; }} <&{request}; \
         builtin exec {wait_for}<&- {request}<&-; \
         builtin eval \"$REPLY\" {told}>&-; \
         REPLY=$?; builtin pwd -P >&{told}; builtin exit \"$REPLY\""
    )
}
