//! The binary as people and programs meet it, and the rules the workspace keeps.
//!
//! - `binary`: runs it
//! - `exec`: calls on stdin, answers on stdout
//! - `bad_input`: whatever comes, an answer and no harm
//! - `call`, `demo`, `listing`: for people; `first_words`: what they type first; `first_hour`: commands they run
//! - `headless`: a model at work
//! - `hostile`: hundreds of commands that attack; `interrupt`: signals; `pdf`: PDFs
//! - `names`: of types; `sources`: files that are held to a rule; `waits`: none without an end
//! - `login`: a key that is kept
//! - `mcp_login`: logging in to MCP servers; `mcp_serve`, `mcp_clients`: MCP clients that use it
//! - `page`: the page of a session, in a browser
//! - `permissions`: rules, settings files, trust
//! - `private_tmp`: the session's own `/tmp`
//! - `process_wide`: what sessions in one process must not touch
//! - `read_once`: what is worked out once for a call
//! - `sdk`: the official SDK drives it; `sdk_repository`: its examples, and what its own tests hold a program to
//! - `secrecy`: what others can find out about it; `weak_sandbox`: machines that cannot confine; `users`:
//!   the same as an ordinary user
//! - `stats`: what sessions came to
//! - `swaps`: links swapped in while calls are answered
//! - `telemetry`: what an independent receiver reads of a session
//! - `terminal`: what arrives at a terminal, and what is typed there; `test_clock`: what time it is
//! - `tool_vectors`: where each vector of tools.md is tested
//! - `undo`: taking changes back
//! - `vectors`: the spec's vectors that take a process
//! - `web`: pages and searches
//! - `words`: of what people and models read; `workspace`: dependency graph, licences, duplicates
//! - `docs`: what the documents say is so; `console`: what they show is what happens; `examples`: what the examples do; `faces`: what the binary leaves to the host

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop there"
)]

mod acp;
mod acp_clients;
mod bad_input;
mod binary;
#[cfg(feature = "browser")]
mod browser;
mod call;
mod clones;
mod console;
mod demo;
mod docs;
mod examples;
mod exec;
#[cfg(target_os = "linux")]
mod first_hour;
mod first_words;
mod front_ends;
mod headless;
mod help;
mod hostile;
mod interrupt;
mod listing;
mod login;
mod mcp_clients;
mod mcp_login;
mod mcp_serve;
mod names;
mod page;
#[cfg(feature = "pdf")]
mod pdf;
mod permissions;
mod planted;
mod private_tmp;
mod process_wide;
mod read_once;
mod repl;
mod sdk;
mod sdk_repository;
#[cfg(target_os = "linux")]
mod secrecy;
mod sources;
mod stats;
mod swaps;
mod tampered;
mod telemetry;
mod terminal;
mod test_clock;
mod tool_vectors;
mod undo;
#[cfg(target_os = "linux")]
mod users;
#[cfg(target_os = "linux")]
mod vectors;
mod waits;
#[cfg(target_os = "linux")]
mod weak_sandbox;
#[cfg(feature = "web")]
mod web;
mod words;
mod workspace;
