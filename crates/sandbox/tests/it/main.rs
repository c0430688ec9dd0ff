//! The sandbox from outside: real commands, real sockets.
//!
//! - `setting`: a place to run commands in; `running`: how they run and end
//! - `network`: the proxy, through real sockets on loopback

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod network;
mod running;
mod setting;
