//! The client with real processes as servers.
//!
//! - `setting`: a server that does what it is told, and a session around it
//! - `stdio`: how it is connected, called, and what it may do wrong
//! - `installed`, `real`: official servers from npm and PyPI; `conformance`: the official conformance package

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod conformance;
mod installed;
mod real;
mod setting;
mod stdio;
