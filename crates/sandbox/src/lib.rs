//! Confined processes. A command can use only the files and the network that its profile allows; the
//! kernel enforces this. When a command is ended, all its processes end.
//!
//! # Process tree
//! ```text
//! our process ─ waiter ─ keeper ─┬─ guard ─ bash ─ processes of the command
//!                                ├─ guard ─ bash ─ …
//!                                └─ guard ─ bash    (waits for the next command)
//! ```
//! - The *waiter* stays outside of the sandbox, where no confined command can reach it. If the keeper is
//!   killed, the waiter ends the remaining processes. If our process dies, it ends all processes of the
//!   sandbox and removes the temporary files.
//! - The *keeper* sets up one sandbox (namespaces, mounts, system call filters) and runs inside it.
//! - The *guard* is forked by the keeper for one command. It starts a new shell, and adopts every process
//!   whose parent exits. Shells are started in advance, so that no command has to wait for one.
//!
//! The *mechanism* ([`Mechanism`]) is the technique that confines a sandbox: namespaces, bubblewrap, or
//! only Landlock and seccomp.
//!
//! **Invariant:** no process outlives its guard, no guard its keeper, and no keeper our process,
//! regardless of how any of them ends.
//!
//! # Layout
//! - [`Sandbox`]: starts commands; [`CommandHandle`]: a running command; [`SandboxProfile`]: the files and
//!   the network that a command may use
//! - [`ConfinedProgram`], [`ConfinedProcess`]: confined programs that run for long and get their own open
//!   files
//! - [`CommandNetwork`]: the separate network of a command, and connections to servers in it
//! - [`guarded`]: programs that run unconfined and end with our process
//! - [`network`]: the proxy through which commands reach the allowed hosts
//! - [`probe`]: tests which guarantees the sandbox gives on this machine
//! - [`child`]: the waiter, the keeper and the guard
//! - `fork`, `memory`, `notify`: all unsafe code of this crate

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
mod mechanism;
mod mechanism_probe;
mod memory;
pub mod network;
mod notify;
mod output;
mod private_tmp;
mod probe;
mod process_tree;
mod profile;
mod protocol;
mod sandbox;
mod scratch;
mod scratch_lease;
mod sockets;
mod storage_policy;
mod waiting_shell;
mod witness;

pub use command_handle::{CommandEnd, CommandHandle, ExitKind, RefusedWrite};
pub use command_network::{CommandNetwork, NetworkId};
pub use confined_program::{ConfinedControl, ConfinedProcess, ConfinedProgram};
pub use error::SandboxError;
pub use fork::take_variables;
pub use guarded_names::{
    DirectorySettings, GuardedNames, HomeNames, NameAction, NamePolicy, NameUse, NewDirectory,
};
pub use guarded_server::{end_group, end_guarded, guarded};
pub use limits::{ExceededLimit, ResourceLimits};
pub use mechanism::Mechanism;
pub use mechanism_probe::{available, is_doubtful, strongest};
pub use memory::trim_freed_buffers;
pub use output::CommandOutput;
pub use private_tmp::{PrivateDirectory, private_directories};
pub use probe::{ProbeFinding, ProbeReport, probe};
pub use process_tree::{PinnedProcess, ProcessInfo};
pub use profile::{
    ClosedDirectories, ReadOnlyProfile, SandboxNetwork, SandboxProfile, WorkspaceProfile,
};
pub use sandbox::{
    ProcessTimeouts, ProfileEnvironment, Sandbox, SandboxSetup, ShellCommand, system_shell,
};
pub use scratch_lease::ScratchLease;
pub use storage_policy::{StorageAnswer, StorageFuture, StorageLease, StoragePolicy, UnstoredFile};
pub use witness::{WitnessLimits, WitnessRequest};

/// The port of the proxy on the loopback interface of commands with [`SandboxNetwork::Proxy`].
pub const PROXY_PORT: u16 = 3128;
