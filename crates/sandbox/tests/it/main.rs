//! Commands in real sandboxes.
//!
//! - `setting`: a place to run commands in; `outside`: what is to be seen of them from outside
//! - `running`: how commands run; `ending`: with what they end, and where; `output`: what they write
//! - `lifetime`: nothing outlives whom it belongs to; `soak`: hundreds of commands leave nothing
//! - `network`: the proxy, through real sockets on loopback
//! - `confined`: programs that are confined for long
//! - `closed`: directories of which hardly anything is seen
//! - `scenarios`: attempts to get out, everywhere and by everyone

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod closed;
mod confined;
mod ending;
mod exact_undo;
mod lifetime;
mod network;
mod output;
mod outside;
mod private_tmp;
mod running;
mod scenarios;
mod setting;
mod soak;
mod storage;
mod witness;
