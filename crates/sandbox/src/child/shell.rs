//! The shell of one command: a bash process that waits for its command, or runs it.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{self, Command, Stdio},
};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::{
    confine::PreparedConfinement,
    keeper::{SetupFailure, step},
    mediate::Mediator,
};
use crate::{
    fork::{ForkSide, fork},
    protocol::{self, SandboxPlan},
};

/// The variable that contains the script of the shell, so that the process list stays readable. It
/// is removed before the command runs.
const SCRIPT: &str = "HAFT_SHELL";

/// The exit code of a process that could not become a shell.
const NOT_FOUND: i32 = 127;

/// A shell that waits for its command or runs it.
pub(super) struct GuardedShell {
    pub(super) pid: Pid,
    pub(super) handle: OwnedFd,
    /// The pipe on which the shell waits for its command. A program has none.
    pub(super) go: Option<File>,
    /// The pipe on which the shell reports. A program has none.
    pub(super) report: Option<File>,
    pub(super) last_report: ShellReport,
    pub(super) with_snapshot: bool,
    /// Opens files for the shell.
    pub(super) mediator: Option<Mediator>,
}

/// The report that a shell has sent so far.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellReport {
    Nothing,
    /// The shell took its command and must not be replaced.
    Took,
    /// The shell will not send another report.
    Silent,
}

impl GuardedShell {
    pub(super) fn start(
        plan: &SandboxPlan,
        confinement: Option<&PreparedConfinement>,
        snapshot: Option<&Path>,
        request: &File,
        output: &OwnedFd,
    ) -> Result<Self, SetupFailure> {
        // These steps have no name: a failure of the shell does not show that the mechanism fails
        // here.
        let (wait_for, go) = step("", || pipe_with(PipeFlags::CLOEXEC))?;
        let (report, report_end) =
            step("", || pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK))?;
        let become_shell = |guard: OwnedFd| {
            let given = [wait_for.as_fd(), request.as_fd(), report_end.as_fd()];
            (
                become_shell(plan, confinement, snapshot, given, output, &guard),
                guard,
            )
        };
        let (pid, handle, mediator) = step("", || fork_to(plan, become_shell))??;
        Ok(Self {
            pid,
            handle,
            go: Some(go.into()),
            report: Some(report.into()),
            last_report: ShellReport::Nothing,
            with_snapshot: snapshot.is_some(),
            mediator,
        })
    }

    /// Reads the report of the shell.
    pub(super) fn read_report(&mut self) {
        let Some(report) = &mut self.report else {
            self.last_report = ShellReport::Silent;
            return;
        };
        self.last_report = match report.read(&mut [0]) {
            Ok(1..) => ShellReport::Took,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ShellReport::Nothing,
            Ok(0) | Err(_) => ShellReport::Silent,
        };
    }
}

/// A new process, its pidfd, and the mediator that opens files for it.
type StartedProcess = (Pid, OwnedFd, Option<Mediator>);

/// Forks a process that executes another program, and waits until it did. `execute` returns only if
/// that fails, with the failed step and the socket to this process that it received.
pub(super) fn fork_to(
    plan: &SandboxPlan,
    execute: impl FnOnce(OwnedFd) -> (SetupFailure, OwnedFd),
) -> io::Result<Result<StartedProcess, SetupFailure>> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let pid = match fork()? {
        ForkSide::Child => {
            drop(ours);
            let (failed, theirs) = execute(theirs);
            let _ = serde_json::to_vec(&failed)
                .map_err(io::Error::from)
                .and_then(|failed| protocol::send(&theirs, &failed, &[]));
            process::exit(NOT_FOUND);
        }
        ForkSide::Parent(pid) => pid,
    };
    drop(theirs);
    // The socket is closed on exec.
    let mut mediator = None;
    while let Some((failed, files)) = protocol::receive(&ours)? {
        match files.into_iter().next() {
            Some(listener) => mediator = Some(Mediator::new(listener, plan)),
            None => return Ok(Err(serde_json::from_slice(&failed)?)),
        }
    }
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    Ok(Ok((pid, handle, mediator)))
}

/// Drops the rights that the command must not have, and executes its shell. Returns only if that fails.
fn become_shell(
    plan: &SandboxPlan,
    confinement: Option<&PreparedConfinement>,
    snapshot: Option<&Path>,
    given: [std::os::fd::BorrowedFd<'_>; 3],
    output: &OwnedFd,
    guard: &OwnedFd,
) -> SetupFailure {
    let prepared = (|| {
        let listener = match confinement {
            Some(confinement) => confinement.shell()?,
            None => None,
        };
        step("", || {
            if let Some(listener) = listener {
                protocol::send(guard, b"listener", &[listener.as_fd()])?;
            }
            for file in given {
                fcntl_setfd(file, FdFlags::empty())?;
            }
            Ok::<_, io::Error>((output.try_clone()?, output.try_clone()?))
        })
    })();
    let (stdout, stderr) = match prepared {
        Ok(outputs) => outputs,
        Err(failed) => return failed,
    };
    let env = plan
        .env
        .iter()
        .map(|(name, value)| (OsString::from(name.clone()), OsString::from(value.clone())));
    let error = Command::new(&plan.shell)
        .arg0("bash")
        .args(["--noprofile", "--norc", "-c"])
        .arg(format!("eval \"${SCRIPT}\""))
        .arg("bash")
        .args(snapshot)
        .env_clear()
        .envs(env)
        .env(SCRIPT, script(given.map(|file| file.as_raw_fd())))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0)
        .exec();
    let text = format!("{}: {error}", plan.shell.display());
    SetupFailure::new("", &io::Error::new(error.kind(), text))
}

/// Returns the script of the shell. It is on one line, so that the command's first line is line 1
/// in error messages.
///
/// The script closes open files that our process inherited, and reads the snapshot. It waits for a
/// line on the first file. From the second file it reads the directory, a file to source, and the
/// command. It reports on the third file that it took the command, runs the command, and reports
/// its final directory there. The three files are closed for the command, so that its processes
/// cannot use them. The script calls builtins with `builtin`, because a snapshot may define
/// functions with any name.
fn script([wait_for, request, report]: [i32; 3]) -> String {
    format!(
        "unset {SCRIPT}; for REPLY in /proc/self/fd/*; do case ${{REPLY##*/}} in \
         [012]|{wait_for}|{request}|{report}|*[!0-9]*) ;; *) eval \"exec ${{REPLY##*/}}<&-\";; esac; done; \
         unset REPLY; [ $# = 0 ] || . \"$1\" >/dev/null 2>&1 </dev/null; builtin set --; \
         builtin read -r -u {wait_for} || builtin exit 0; \
         {{ IFS= builtin read -r -d '' REPLY; builtin echo >&{report}; builtin cd -- \"$REPLY\" || builtin exit 126; \
         builtin unset OLDPWD; IFS= builtin read -r -d '' REPLY; builtin [ -z \"$REPLY\" ] || builtin . \"$REPLY\" </dev/null; \
         IFS= builtin read -r -d '' REPLY; }} <&{request}; \
         builtin eval -- \"$REPLY\" {wait_for}<&- {request}<&- {report}>&-; \
         REPLY=$?; builtin pwd -P >&{report} 2>/dev/null; builtin exit \"$REPLY\""
    )
}
