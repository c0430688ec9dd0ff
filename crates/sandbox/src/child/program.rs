//! A program in its own sandbox, started by its guard with given open files and without a shell.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    confine::PreparedConfinement,
    keeper::{SetupFailure, step},
    shell::{GuardedShell, ShellReport, fork_to},
};
use crate::{
    fork::{default_signals, place_files},
    protocol::{self, GuardOrder, OsBytes, SandboxPlan},
};

/// The number of pipes that are read only after the guard's confirmation: standard output and
/// standard error.
pub(super) const FENCES: usize = 2;

/// The program, as our process ordered it.
struct ProgramOrder {
    program: PathBuf,
    arguments: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    files: Vec<(i32, OwnedFd)>,
}

/// Starts the program that our process names on the socket. Returns it, and whether our process
/// answers questions about guarded names.
pub(super) fn start(
    plan: &SandboxPlan,
    confinement: Option<&PreparedConfinement>,
    socket: &mut UnixStream,
) -> Result<(GuardedShell, bool), SetupFailure> {
    let (order, answers_questions) = step("", || receive(socket))?;
    let execute = |guard| become_program(confinement, order, guard);
    let (pid, handle, mediator) = step("", || fork_to(plan, execute))??;
    let program = GuardedShell {
        pid,
        handle,
        go: None,
        report: None,
        last_report: ShellReport::Took,
        with_snapshot: false,
        mediator,
    };
    Ok((program, answers_questions))
}

/// Receives one byte with the open files, then the order.
fn receive(socket: &mut UnixStream) -> io::Result<(ProgramOrder, bool)> {
    let files = protocol::receive_files(&*socket)?;
    let Some(GuardOrder::Program {
        program,
        arguments,
        env,
        cwd,
        numbers,
        judged,
    }) = protocol::read(socket)?
    else {
        return Err(io::Error::other(
            "the first message does not name a program",
        ));
    };
    if files.len() != numbers.len() || numbers.iter().any(|number| *number < 0) {
        return Err(io::Error::other(
            "the number of open files differs from the announced number",
        ));
    }
    let text = |bytes: OsBytes| OsString::from(bytes);
    let order = ProgramOrder {
        program: text(program).into(),
        arguments: arguments.into_iter().map(text).collect(),
        env: env
            .into_iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect(),
        cwd: text(cwd).into(),
        files: numbers.into_iter().zip(files).collect(),
    };
    Ok((order, judged))
}

/// Drops the rights that the program must not have, and executes it. Returns only if that fails.
fn become_program(
    confinement: Option<&PreparedConfinement>,
    order: ProgramOrder,
    guard: OwnedFd,
) -> (SetupFailure, OwnedFd) {
    let listener = match confinement.map(PreparedConfinement::shell).transpose() {
        Ok(listener) => listener.flatten(),
        Err(failed) => return (failed, guard),
    };
    if let Some(listener) = listener
        && let Err(error) = protocol::send(&guard, b"listener", &[listener.as_fd()])
    {
        return (SetupFailure::new("", &error), guard);
    }
    let named = |path: &Path, error: &io::Error| {
        let text = format!("{}: {error}", path.display());
        SetupFailure::new("", &io::Error::new(error.kind(), text))
    };
    // Not left to `exec`, whose error would not show whether the directory or the program is missing.
    if let Err(error) = std::env::set_current_dir(&order.cwd) {
        return (named(&order.cwd, &error), guard);
    }
    let guard = match place_files(order.files, guard) {
        Ok(guard) => guard,
        Err((error, guard)) => return (SetupFailure::new("", &error), guard),
    };
    default_signals();
    let error = Command::new(&order.program)
        .args(&order.arguments)
        .env_clear()
        .envs(order.env)
        .process_group(0)
        .exec();
    (named(&order.program, &error), guard)
}
