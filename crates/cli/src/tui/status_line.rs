//! The status row: our own, or what the person's command prints (`statusLine` of the settings).
//!
//! The command runs on a thread of its own, with what is known as JSON on its stdin. Changes are gathered for
//! 300 ms; a run that is still going when the next begins is ended, and so is one that takes longer than 5 s.

mod row;
mod runner;

pub(crate) use row::{StatusRow, status_row};
pub(crate) use runner::StatusLine;

use std::{path::PathBuf, time::Duration};

use serde::Serialize;
use serde_json::Value;

/// So many rows of what a command prints are shown.
const MOST_ROWS: usize = 3;

/// How the command is run. Who makes one has made sure that the settings it comes from may run code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusLineConfig {
    pub(crate) command: String,
    /// Blanks before each row.
    pub(crate) padding: usize,
    /// It is run again after this, even if nothing happened.
    pub(crate) refresh: Option<Duration>,
    pub(crate) cwd: PathBuf,
}

impl StatusLineConfig {
    /// `{"type": "command", "command": …, "padding": …, "refreshInterval": …}`, the last in seconds.
    pub(crate) fn of(value: &Value, cwd: PathBuf) -> Option<Self> {
        let command = value["command"].as_str()?.trim();
        let is_command = value["type"].as_str().is_none_or(|kind| kind == "command");
        if command.is_empty() || !is_command {
            return None;
        }
        let seconds = value["refreshInterval"].as_f64();
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        Some(Self {
            command: command.to_owned(),
            padding: value["padding"].as_u64().unwrap_or(0).min(40) as usize,
            // No one needs it more often.
            refresh: seconds.map(|seconds| Duration::from_secs_f64(seconds.clamp(1.0, 86_400.0))),
            cwd,
        })
    }
}

/// What the command reads on its stdin.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct StatusFacts {
    pub(crate) session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_name: Option<String>,
    pub(crate) transcript_path: String,
    pub(crate) cwd: String,
    pub(crate) version: String,
    pub(crate) model: StatusModel,
    pub(crate) workspace: StatusWorkspace,
    pub(crate) output_style: StatusName,
    pub(crate) cost: StatusCost,
    pub(crate) context_window: StatusContext,
    pub(crate) exceeds_200k_tokens: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effort: Option<StatusEffort>,
    pub(crate) thinking: StatusThinking,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vim: Option<StatusVim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<StatusName>,
    /// Not for stdin: the size of the terminal, as COLUMNS and LINES.
    #[serde(skip)]
    pub(crate) size: (u16, u16),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct StatusModel {
    pub(crate) id: String,
    pub(crate) display_name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct StatusWorkspace {
    pub(crate) current_dir: String,
    pub(crate) project_dir: String,
    pub(crate) added_dirs: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct StatusName {
    pub(crate) name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct StatusCost {
    pub(crate) total_cost_usd: f64,
    pub(crate) total_duration_ms: u64,
    pub(crate) total_api_duration_ms: u64,
    pub(crate) total_lines_added: u64,
    pub(crate) total_lines_removed: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct StatusContext {
    pub(crate) total_input_tokens: u64,
    pub(crate) total_output_tokens: u64,
    pub(crate) context_window_size: u64,
    pub(crate) used_percentage: Option<f64>,
    pub(crate) remaining_percentage: Option<f64>,
    /// Tokens of the last request; none before the first.
    pub(crate) current_usage: Option<StatusUsage>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct StatusUsage {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cache_creation_input_tokens: u64,
    pub(crate) cache_read_input_tokens: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct StatusEffort {
    pub(crate) level: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct StatusThinking {
    pub(crate) enabled: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct StatusVim {
    pub(crate) mode: String,
}

#[cfg(test)]
#[path = "status_line/status_line_tests.rs"]
mod tests;
