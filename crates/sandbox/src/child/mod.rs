//! The processes between ours and a command. The waiter of a sandbox stays outside and cleans up.
//! The keeper runs inside the sandbox and forks guards. The guard of each command starts its shell
//! and ends all processes of the command.
//!
//! The keeper is our own program, started with [`ARGUMENT`]. It has one thread, so that it can
//! fork.

mod bubblewrap;
mod closed_directories;
mod confine;
mod filter;
mod guard;
mod guard_sockets;
mod hidden_file_cover;
mod keeper;
mod mediate;
mod mounts;
mod namespaces;
mod private_tmp;
mod program;
pub mod readable;
pub(crate) mod server_guard;
mod shell;
mod waiter;

use std::{env, process};

pub(crate) use closed_directories::outermost;

/// The first argument that makes a program with [`run_if_asked`] the keeper of a sandbox.
pub const ARGUMENT: &str = "__sandbox";

/// The name of the step that fails if a PID namespace is not available.
pub(crate) const PROCESSES: &str = "the list of processes";

/// The name of the step that fails if a process cannot perform the calls of another one.
pub(crate) const MEDIATION: &str = "the mediation of files";

/// Returns the path of this program.
pub(crate) fn own_program() -> Option<std::path::PathBuf> {
    env::current_exe().ok()
}

/// Turns this process into the keeper of a sandbox or the guard of a server if its first argument
/// requests it; does not return in that case. `main` must call this first, while there is only one
/// thread.
pub fn run_if_asked() {
    match env::args_os().nth(1) {
        Some(first) if first == ARGUMENT => process::exit(keeper::main()),
        Some(first) if first == server_guard::ARGUMENT => process::exit(server_guard::main()),
        _ => {}
    }
}
