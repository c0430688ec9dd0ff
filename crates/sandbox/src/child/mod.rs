//! The processes between ours and a command: the waiter of a sandbox, which stays outside and tidies up,
//! the keeper, which stands in it and makes guards, and the guard of each command, which starts the
//! shell and ends whatever came of it.
//!
//! The keeper is our own program, started with [`ARGUMENT`]; it has one thread, so that it can fork.

mod bubblewrap;
mod close;
mod confine;
mod cover;
mod filter;
mod guard;
mod guard_sockets;
mod keeper;
mod mediate;
mod mounts;
mod namespaces;
mod program;
pub mod readable;
pub(crate) mod server_guard;
mod shell;
mod waiter;

use std::{env, process};

/// The first argument that makes a program with [`run_if_asked`] the keeper of a sandbox.
pub const ARGUMENT: &str = "__sandbox";

/// The step that fails where a process space of one's own cannot be had.
pub(crate) const PROCESSES: &str = "the list of processes";

/// The step that fails where a process cannot carry out the calls of another.
pub(crate) const MEDIATION: &str = "the mediation of files";

/// Turns this process into the keeper of a sandbox or the guard of a server, if its first argument says so,
/// and does not return then. The first thing that `main` calls: there must be no other thread yet.
pub fn run_if_asked() {
    match env::args_os().nth(1) {
        Some(first) if first == ARGUMENT => process::exit(keeper::main()),
        Some(first) if first == server_guard::ARGUMENT => process::exit(server_guard::main()),
        _ => {}
    }
}
