//! The agent as its users meet it.
//!
//! - `rig`: an agent over steered tools and models in a temporary project
//! - `overlap`: calls run while the model still talks
//! - `turns`: what ends a run, and what the model and the sink are told
//! - `instructions`: what people put in folders
//! - `interrupts`: stopping at any instant; `anything`: the same on random runs
//! - `background`: tasks in the background: when the model hears of their end
//! - `crash`: the process is killed in the middle of a call
//! - `sessions`: transcripts: resume, fork, damage
//! - `compaction`: a conversation that grows too long
//! - `planning`: what outlives a summary and a resume; plan mode
//! - `subagents`: models that work for another's calls
//! - `hooks`: programs of the user's that have a say in the loop

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop there"
)]

mod anything;
mod background;
mod compaction;
mod crash;
mod hooks;
mod instructions;
mod interrupts;
mod overlap;
mod planning;
mod rig;
mod sessions;
mod subagents;
mod turns;
