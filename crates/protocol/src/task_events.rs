//! What happens in the background: `task_started`, `task_progress`, `task_updated`, `task_notification`,
//! `background_tasks_changed`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::WireId;

/// A task begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStartedMessage<'a> {
    /// Which.
    pub task_id: Cow<'a, str>,
    /// What it is to do, in a few words.
    pub description: Cow<'a, str>,
    /// `local_bash`, `local_agent` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<Cow<'a, str>>,
    /// The model does not wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_backgrounded: Option<bool>,
    /// The call that launched it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<Cow<'a, str>>,
    /// The kind of the subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<Cow<'a, str>>,
    /// What the subagent is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Cow<'a, str>>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// What a task has cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskUsageReport {
    /// Tokens, read and written.
    pub total_tokens: u64,
    /// Calls of tools.
    pub tool_uses: u64,
    /// How long it has run.
    pub duration_ms: u64,
}

/// A task goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskProgressMessage<'a> {
    /// Which.
    pub task_id: Cow<'a, str>,
    /// What it is to do.
    pub description: Cow<'a, str>,
    /// What it has cost so far.
    pub usage: TaskUsageReport,
    /// The call that launched it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<Cow<'a, str>>,
    /// The tool that it called last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tool_name: Option<Cow<'a, str>>,
    /// What it has come to so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Cow<'a, str>>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// Something about a task has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskUpdatedMessage<'a> {
    /// Which.
    pub task_id: Cow<'a, str>,
    /// What has changed.
    pub patch: TaskPatch<'a>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// What has changed about a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPatch<'a> {
    /// `pending`, `running`, `completed`, `failed`, `killed`, `paused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Cow<'a, str>>,
    /// What it is to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
    /// When it ended, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// The model does not wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_backgrounded: Option<bool>,
}

/// A task is over: `task_notification`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOverMessage<'a> {
    /// Which.
    pub task_id: Cow<'a, str>,
    /// `completed`, `failed`, `stopped`.
    pub status: Cow<'a, str>,
    /// What it printed; empty where nothing is kept.
    pub output_file: Cow<'a, str>,
    /// What it came to.
    pub summary: Cow<'a, str>,
    /// The call that launched it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<Cow<'a, str>>,
    /// What it has cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TaskUsageReport>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// All tasks in the background. Read only: we report each by itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BackgroundTasksMessage {
    /// All of them.
    pub tasks: Vec<Value>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}
