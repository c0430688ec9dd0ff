//! The Agent Client Protocol, version 1: sessions of haft as the agent of an editor.
//!
//! A face like the others: it decides nothing. [`serve`] reads messages of a client line by line and answers them;
//! each session is an [`AgentSession`](haft_host::AgentSession) of its own, whose events become updates.
//!
//! # Layout
//! - `wire`: JSON-RPC, line by line, bounded both ways; `error`: what a request is refused with
//! - `agent`: the methods of a client, in the order in which they come; `sessions`: its sessions
//! - `prompt`: what a person says, as an editor sends it; `options`: modes, models, effort
//! - `updates`: the events of a session, as updates: the one place where they are mapped; `calls`: how a call of a tool
//!   looks, `diffs`: how a changed file does, `plan`: the list of tasks
//! - `questions`: the person at the editor is asked; `form`: in a form, where the editor has them
//! - `buffers`: files as the editor has them
//! - `replay`: what was said before, as updates
//!
//! **Invariants.** The answer to a request comes before every update that follows from it, and every update of a turn
//! before its answer. Nothing that a client sends ends the process, and nothing is waited for while its messages are read.

#![warn(missing_docs)]

mod agent;
mod buffers;
mod calls;
mod diffs;
mod error;
mod form;
mod options;
mod plan;
mod prompt;
mod questions;
mod replay;
mod sessions;
mod updates;
mod wire;

pub use agent::{AcpAgent, serve};
