//! What arrives at a terminal, on a pseudo-terminal of our own.
//!
//! - `pty`: the binary on a terminal
//! - `interactive`: a session that a person follows, in tmux
//! - `headless`: a model at work where a person watches
//! - `hostile`: texts that would act on one
//! - `modes`: such texts through everything that writes
//! - `plain`: a session in lines
//! - `questions`: what is typed, and what a question shows
//! - `sources`: no other way out in the code

mod headless;
mod hostile;
mod interactive;
mod modes;
mod plain;
mod pty;
mod questions;
mod sources;
mod tmux;
