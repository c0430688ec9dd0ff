//! Both sides, against programs that are not ours where there are any.
//!
//! - `setting`: a server that does what it is told, and a session around it
//! - `stdio`: how it is connected, called, and what it may do wrong
//! - `addresses`: servers at an address; `hostile`: servers that lie and die; `oversized`: servers
//!   with too much
//! - `installed`, `real`: official servers from npm and PyPI; `client_conformance`: the official package, for the client
//! - `fixture`: a server; `server_lines`, `server_http`: what it answers; `attacks`: what it survives; `conformance`:
//!   the official package

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod addresses;
mod attacks;
mod client_conformance;
mod conformance;
mod fixture;
mod hostile;
mod installed;
mod oversized;
mod real;
mod server_http;
mod server_lines;
mod setting;
mod stdio;
