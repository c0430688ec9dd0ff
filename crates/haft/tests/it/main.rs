//! The front door as embedders use it.
//!
//! - `agent`: the example of a whole agent, as its own program
//! - `examples`: they run, and print what they promise
//! - `messages`: assistant messages of providers, and their answers
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
mod messages;
mod plan;
mod replace;
mod serial;
mod session;
mod swaps;
