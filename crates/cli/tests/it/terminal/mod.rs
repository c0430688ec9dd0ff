//! What arrives at a terminal, on a pseudo-terminal of our own.
//!
//! - `pty`: the binary on a terminal
//! - `interactive`: a session that a person follows, in tmux
//! - `headless`: a model at work where a person watches
//! - `hostile`: texts that would act on one
//! - `modes`: such texts through everything that writes
//! - `plain`: a session in lines
//! - `questions`: what is typed, and what a question shows
//! - `schedules`: prompts that are said later
//! - `sources`: no other way out in the code
//! - `unread`: a terminal that no program reads any longer
//! - `vectors`: what must hold at a terminal, end to end

mod headless;
mod hostile;
mod interactive;
mod modes;
mod plain;
pub(crate) mod pty;
mod questions;
mod schedules;
mod sources;
mod tmux;
mod unread;
mod vectors;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

/// A script in this directory whose turns say one of these each.
fn script_in(cwd: &Path, turns: &[Value]) -> PathBuf {
    haft_testkit::bound_this_process();
    let script = cwd.join(".script.json");
    let turns: Vec<Value> = turns
        .iter()
        .map(|turn| json!({"content": [turn]}))
        .collect();
    fs::write(&script, json!({"turns": turns}).to_string()).unwrap();
    script
}
