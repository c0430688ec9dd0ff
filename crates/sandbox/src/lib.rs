//! Confined processes: a command gets the part of the machine that its profile names, the kernel holds
//! it to that, and when it is to end, all of it ends.
//!
//! # Who starts whom
//! ```text
//! our process ─ waiter ─ keeper ─┬─ guard ─ bash ─ what the command starts
//!                                ├─ guard ─ bash ─ …
//!                                └─ guard ─ bash    (waits for the next command)
//! ```
//! The *waiter* stays outside, where no confined command can reach it. It ends what a killed keeper
//! leaves behind, and when our process dies, it ends everything and removes the temporary files.
//! The *keeper* sets a sandbox up once, with its own name spaces, mounts, filters, and stands in it. For
//! each command it forks a *guard*, which starts a fresh shell and adopts every process that the command
//! lets go of. A shell is started before it is needed, so that a command does not wait for one.
//!
//! **Invariant:** no process outlives its guard, no guard its keeper, no keeper our process, however
//! any of them ends.
//!
//! # Layout
//! - [`Sandbox`], [`CommandHandle`]: what is started and what runs; [`SandboxProfile`]: what it may touch
//! - [`ConfinedProgram`], [`ConfinedProcess`]: programs that are confined for long, with open files of their own
//! - [`CommandNetwork`]: what listens in the network that a command has for itself
//! - [`guarded`]: programs that run beside ours, unconfined, and end with it
//! - [`network`]: the proxy through which a command talks to those it may
//! - [`probe`]: finds out by trying what holds here
//! - [`child`]: the waiter, the keeper and the guard
//! - `fork`, `memory`, `notify`: all unsafe code there is

#![warn(missing_docs)]

pub mod child;
mod command_handle;
mod command_network;
mod confined_program;
mod error;
mod fork;
mod guard_link;
mod guarded_names;
mod guarded_server;
mod instance;
mod limits;
mod mechanism_probe;
mod memory;
pub mod network;
mod notify;
mod output;
mod probe;
mod process_tree;
mod profile;
mod protocol;
mod sandbox;
mod scratch;
mod scratch_lease;
mod sockets;
mod waiting_shell;

pub use command_handle::{CommandEnd, CommandHandle, ExitKind, RefusedWrite};
pub use command_network::{CommandNetwork, NetworkId};
pub use confined_program::{ConfinedControl, ConfinedProcess, ConfinedProgram};
pub use error::SandboxError;
pub use fork::take_variables;
pub use guarded_names::{
    DirectorySettings, GuardedNames, HomeNames, NameAction, NamePolicy, NameUse,
};
pub use guarded_server::{end_group, end_guarded, guarded};
pub use limits::{ExceededLimit, ResourceLimits};
pub use mechanism_probe::{available, is_doubtful, strongest};
pub use memory::trim_freed_buffers;
pub use output::CommandOutput;
pub use probe::{ProbeFinding, ProbeReport, probe};
pub use process_tree::{PinnedProcess, Process};
pub use profile::{
    ClosedDirectories, ReadOnlyProfile, SandboxNetwork, SandboxProfile, WorkspaceProfile,
};
pub use sandbox::{
    Mechanism, ProfileEnvironment, Sandbox, SandboxSetup, ShellCommand, SilenceLimits, system_shell,
};
pub use scratch_lease::ScratchLease;

/// Where the proxy is for commands with [`SandboxNetwork::Proxy`]: on this port of their loopback interface.
pub const PROXY_PORT: u16 = 3128;
