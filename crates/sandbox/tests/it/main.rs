//! The sandbox from outside.
//!
//! - `network`: the proxy, through real sockets on loopback

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod network;
