//! - `server`: a scripted HTTP server on the loopback
//! - `ask`: asking a model and keeping everything it says
//! - `anthropic`, `openai`: the wire vectors, and what servers do
//! - `bad`: wrong keys, wrong addresses, answers that are none
//! - `pages`: the client for pages; `plain`: the client for others
//! - `assembling`: events in any order
//! - `traffic`: what comes of the streams in the folder of that name
//! - `wrappers`: retries, fallback, scripts, recordings

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop there"
)]

mod anthropic;
mod ask;
mod assembling;
mod bad;
mod openai;
mod pages;
mod plain;
mod traffic;
mod wrappers;
