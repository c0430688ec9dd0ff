//! Tools for command lines and interpreters: `Bash`, `Monitor`, `REPL`, `TaskOutput`, `TaskStop`.
//!
//! A call starts a [`job`]: a process in the sandbox with its output in a [`capture`]. The owner of
//! the job is either the call that waits for it or a background task.
//!
//! # Layout
//! - `bash`, `monitor`, `task_output`, `task_stop`: the tools; `run` handles one command from start
//!   to answer
//! - `repl`: interpreters that keep their state
//! - `service`: state shared by the commands of a session; `program`: the program that confines
//!   them; `tasks`: background tasks
//! - `environment`, `snapshot`, `profile`, `limits`, `tool_caches`: the inputs of a command
//! - `command_output`, `text`, `output_mask`, `exit_code`, `interactive_prompts`, `cwd`, `ports`,
//!   `session_ports`: the result of a command
//! - `refused_writes`, `sandbox_refusals`, `escalate`, `gate`, `host_questions`: accesses that the
//!   sandbox refused, and questions to the user about them
//! - `change_tracking`: file changes, so that they can be undone; `read_tracking`: files that the
//!   command showed

mod arriving_files;
mod bash;
mod capture;
mod change_tracking;
mod command_output;
mod cwd;
mod environment;
mod escalate;
mod exit_code;
mod gate;
pub(crate) mod host_questions;
mod interactive_prompts;
mod job;
mod limits;
mod monitor;
mod offline_note;
mod output_mask;
mod paused_timeout;
pub(crate) mod ports;
pub(crate) mod profile;
mod program;
mod read_tracking;
mod refused_writes;
mod repl;
mod run;
mod sandbox_refusals;
mod service;
#[cfg(feature = "browser")]
pub(crate) mod session_ports;
mod snapshot;
mod storage_questions;
mod task_output;
mod task_stop;
mod tasks;
mod text;
mod tool_caches;

pub(crate) use bash::Bash;
pub(crate) use monitor::Monitor;
pub use program::ShellProgram;
pub(crate) use repl::Repl;
pub use service::ShellService;
pub(crate) use task_output::TaskOutput;
pub(crate) use task_stop::TaskStop;
pub use tasks::{ShellTasks, TaskInfo};
