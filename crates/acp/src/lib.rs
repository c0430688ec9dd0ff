//! The Agent Client Protocol, version 1: haft as the agent of an editor.
//!
//! This crate is a front end and makes no decisions. [`serve`] reads a client's messages line by
//! line and answers them. Each session is an [`AgentSession`](haft_host::AgentSession), whose
//! events are converted to updates.
//!
//! # Layout
//! - `wire`: JSON-RPC, one message per line, with size limits in both directions; `error`: the
//!   errors of requests
//! - `agent`: handles the requests and notifications of a client, in the order of their arrival;
//!   `sessions`: the client's sessions
//! - `prompt`: the user's prompts, as an editor sends them; `options`: modes, models, effort
//! - `updates`: the only place that converts a session's events to updates; `calls`: the display of
//!   tool calls; `diffs`: the display of changed files; `plan`: the task list
//! - `questions`: asks the user in the editor; `form`: asks with a form, if the editor supports
//!   forms
//! - `buffers`: files as the editor sees them
//! - `replay`: converts an earlier transcript to updates
//!
//! **Invariants.** The response to a request precedes all updates that the request causes; only the
//! replay of `session/load` precedes its response. The updates of a turn precede the response to
//! its prompt. Nothing that a client sends ends the process. Reading messages never waits for a
//! request to finish.

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
