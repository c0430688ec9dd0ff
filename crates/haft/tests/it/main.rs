//! The front door as embedders use it.
//!
//! - `agent`: the example of a whole agent, as its own program
//! - `examples`: they run, and print what they promise
//! - `features`: their table in the documentation
//! - `messages`: assistant messages of providers, and their answers
//! - `new_tool`: a tool that no crate knows of, in one file
//! - `plan`: plan mode, whatever a model tries
//! - `replace`: one change in many files, and its undo
//! - `serial`: a batch of file calls equals a serial run
//! - `session`: what a builder sets up
//! - `swaps`: links put in place between the decision and the tool

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop there"
)]

#[cfg(all(feature = "fs", feature = "shell"))]
mod agent;
mod examples;
mod features;
mod messages;
mod new_tool;
mod plan;
mod replace;
mod serial;
mod session;
mod swaps;
