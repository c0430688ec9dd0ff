//! Sessions as a front end drives them.
//!
//! - `rig`: a session with a scripted model, and what comes out of it
//! - `interactive`: what an interactive front end needs
//! - `input`: what can be done to one while it runs
//! - `questions`: who is asked, and as what
//! - `schedules`: prompts that are said later
//! - `side_by_side`: ten in one process
//! - `web`: pages of servers that play every bad case, and searches

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop there"
)]

mod input;
mod interactive;
mod questions;
mod rig;
mod schedules;
mod side_by_side;
mod timed_grants;
mod web;
