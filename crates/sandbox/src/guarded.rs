//! Servers: programs that run beside ours for long, unconfined, and never longer than ours.

use std::{
    ffi::OsStr,
    os::unix::process::CommandExt,
    path::Path,
    process::{self, Command},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::{child::server_guard, tree};

/// A command that ends with our process, however that ends, and with everything that it started. Arguments,
/// environment, directory and pipes are the caller's to add; it has a process group of its own. `program` is one
/// whose `main` begins with [`child::run_if_asked`](crate::child::run_if_asked).
///
/// Killing the process that this starts would leave the server behind: [`end_guarded`] ends it.
pub fn guarded(program: &Path, command: impl AsRef<OsStr>) -> Command {
    let mut guard = Command::new(program);
    guard
        .arg(server_guard::ARGUMENT)
        .arg(process::id().to_string())
        .arg(command)
        .process_group(0);
    guard
}

/// Ends the server below this guard: asks it to end, or makes it. May take its time where processes hang in the
/// kernel: not for a task that others wait for.
pub fn end_guarded(guard: u32, at_once: bool) {
    if at_once {
        tree::kill_below(guard, &[], || true);
    } else {
        tree::terminate_below(guard);
    }
}

/// The same for a program that was started without a guard, as the first of a process group.
pub fn end_group(leader: u32, at_once: bool) {
    let signal = if at_once { Signal::KILL } else { Signal::TERM };
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal); // it may be gone
    }
}
