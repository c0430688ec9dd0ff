//! The status line: our own row, or the output of the user's command (setting `statusLine`).
//!
//! The command runs on a separate thread and receives the current facts as JSON on its stdin.
//! Changes within 300 ms are combined. A run is killed if it takes longer than 5 s or if the next
//! one begins.

mod row;
mod runner;

pub(crate) use row::{StatusRow, status_row};
pub(crate) use runner::StatusLine;

use std::{path::PathBuf, time::Duration};

use serde::Serialize;
use serde_json::Value;

/// The maximum number of output rows that are shown.
const MAX_ROWS: usize = 3;

/// The configuration of the command. The caller must have checked that its settings file may run
/// code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusLineConfig {
    pub(crate) command: String,
    /// The number of spaces before each row.
    pub(crate) padding: usize,
    /// The interval after which the command runs again without any change.
    pub(crate) refresh: Option<Duration>,
    pub(crate) cwd: PathBuf,
}

impl StatusLineConfig {
    /// Parses `{"type": "command", "command": …, "padding": …, "refreshInterval": …}`; the interval
    /// is in seconds.
    pub(crate) fn from_json(value: &Value, cwd: PathBuf) -> Option<Self> {
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
            // At least one second.
            refresh: seconds.map(|seconds| Duration::from_secs_f64(seconds.clamp(1.0, 86_400.0))),
            cwd,
        })
    }
}

/// The input that the command reads from stdin.
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
    /// The size of the terminal, which the command gets as `COLUMNS` and `LINES` instead of on
    /// stdin.
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
    /// The token usage of the last request, if any.
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
