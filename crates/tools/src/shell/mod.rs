//! Command lines and interpreters: `Bash`, `Monitor`, `REPL`, `TaskOutput`, `TaskStop`.
//!
//! A call becomes a [`job`]: a process in the sandbox with its output in a [`capture`]. Who holds the
//! job decides what it is: the call that waits for it, or a task in the background.
//!
//! # Layout
//! - `bash`, `monitor`, `task_output`, `task_stop`: the tools; `run` is one command from line to answer
//! - `repl`: interpreters that keep their state
//! - `service`: what the commands of a session share; `program`: who confines them; `tasks`: what runs in the background
//! - `environment`, `snapshot`, `profile`, `limits`, `tool_caches`: what a command gets
//! - `answer`, `text`, `exit_code`, `waiting`, `cwd`, `ports`: what is said of it afterwards
//! - `refused_writes`, `refusal`, `escalate`, `gate`, `host_questions`: what the sandbox keeps it from, which is
//!   then put to a person
//! - `changes`: what it changed, so that it can be undone; `read_tracking`: what it showed

mod answer;
mod bash;
mod capture;
mod changes;
mod cwd;
mod environment;
mod escalate;
mod exit_code;
mod gate;
pub(crate) mod host_questions;
mod job;
mod limits;
mod monitor;
mod output_mask;
pub(crate) mod ports;
pub(crate) mod profile;
mod program;
mod read_tracking;
mod refusal;
mod refused_writes;
mod repl;
mod run;
mod service;
#[cfg(feature = "browser")]
pub(crate) mod session_ports;
mod snapshot;
mod task_output;
mod task_stop;
mod tasks;
mod text;
mod tool_caches;
mod waiting;

pub(crate) use bash::Bash;
pub(crate) use monitor::Monitor;
pub use program::ShellProgram;
pub(crate) use repl::Repl;
pub use service::Shell;
pub(crate) use task_output::TaskOutput;
pub(crate) use task_stop::TaskStop;
pub use tasks::{TaskInfo, Tasks};
