//! Servers: unconfined, long-running programs that never outlive our process.

use std::{
    ffi::OsStr,
    os::unix::process::CommandExt,
    path::Path,
    process::{self, Command},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::{child::server_guard, process_tree};

/// Returns a command that ends with our process, for any reason, together with everything that it
/// started. The caller adds arguments, environment, directory and pipes. The command has its own
/// process group. `program` is a program whose `main` begins with
/// [`child::run_if_asked`](crate::child::run_if_asked).
///
/// Killing the started process would leave the server running: use [`end_guarded`].
pub fn guarded(program: &Path, command: impl AsRef<OsStr>) -> Command {
    let mut guard = Command::new(program);
    guard
        .arg(server_guard::ARGUMENT)
        .arg(process::id().to_string())
        .arg(command)
        .process_group(0);
    guard
}

/// Ends the server below this guard: kills it if `at_once`, otherwise asks it to exit. May take
/// long if processes hang in the kernel, so do not call it in a task that others wait for.
pub fn end_guarded(guard: u32, at_once: bool) {
    if at_once {
        process_tree::kill_below(guard, &[], || true);
    } else {
        process_tree::terminate_below(guard);
    }
}

/// Like [`end_guarded`], but for a program that was started without a guard, as the leader of a
/// process group.
pub fn end_group(leader: u32, at_once: bool) {
    let signal = if at_once { Signal::KILL } else { Signal::TERM };
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, signal); // the group may have exited
    }
}
