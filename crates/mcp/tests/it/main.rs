//! The client with real processes as servers.
//!
//! - `setting`: a server that does what it is told, and a session around it
//! - `stdio`: how it is connected, called, and what it may do wrong
//! - `http`: the same over HTTP

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod setting;
mod stdio;
