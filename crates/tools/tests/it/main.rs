//! The built-in tools from outside, as the engine calls them.
//!
//! - `again`: a second Read of the same
//! - `session`: a project, services and one call after the other
//! - `schemas`: the definitions the model is sent
//! - `texts`: what the model reads of results and errors
//! - `vectors`: the spec's test vectors, and that none is without a test
//! - `undo`: changes taken back, and where calls may write
//! - `cards`: what a person sees
//! - `structured`: what programs read
//! - `effects`: what a call touches, and how it ends when cancelled
//! - `code`: language servers
//! - `contract`: what every tool must keep to
//! - `media`: pictures and notebooks; `pdf`: PDFs
//! - `shell`: commands; `child.rs` is the program that confines them
//! - `planning`: the task list, plan mode, questions, notes, settings
//! - `skill`: instructions that people wrote
//! - `parts`: a file larger than an answer, read to its end
//! - `replace`: many files by a regular expression
//! - `grep`: the same text as ripgrep's
//! - `wording`: where a call meets something unusual

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod again;
mod cards;
mod code;
mod code_problems;
mod code_servers;
mod contract;
mod effects;
mod grep;
mod media;
mod parts;
#[cfg(feature = "pdf")]
mod pdf;
mod planning;
mod replace;
mod schemas;
mod session;
mod shell;
mod skill;
mod structured;
mod texts;
mod undo;
mod vectors;
mod wording;
