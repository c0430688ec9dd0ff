//! The sandbox from outside: real commands, real sockets.
//!
//! - `setting`: a place to run commands in; `running`: how they run and end
//! - `lifetime`: nothing outlives what it belongs to; `outside`: how that is seen
//! - `network`: the proxy, through real sockets on loopback
//! - `scenarios`: attempts to get out, everywhere and by everybody

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod ending;
mod lifetime;
mod network;
mod output;
mod outside;
mod running;
mod scenarios;
mod setting;
mod soak;
