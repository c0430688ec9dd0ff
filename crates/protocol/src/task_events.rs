//! Events of background tasks: `task_started`, `task_progress`, `task_updated`,
//! `task_notification`, `background_tasks_changed`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::WireId;

/// A task has started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStartedMessage<'a> {
    /// The id of the task.
    pub task_id: Cow<'a, str>,
    /// A short description.
    pub description: Cow<'a, str>,
    /// The type: `local_bash`, `local_agent` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<Cow<'a, str>>,
    /// Whether the task runs in the background, so that the model does not wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_backgrounded: Option<bool>,
    /// The call that launched the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<Cow<'a, str>>,
    /// The agent kind of the subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<Cow<'a, str>>,
    /// The prompt of the subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Cow<'a, str>>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// The tokens, calls and time that a task has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskUsageReport {
    /// Input and output tokens.
    pub total_tokens: u64,
    /// The number of tool calls.
    pub tool_uses: u64,
    /// The run time in milliseconds.
    pub duration_ms: u64,
}

/// A task has made progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskProgressMessage<'a> {
    /// The id of the task.
    pub task_id: Cow<'a, str>,
    /// A short description.
    pub description: Cow<'a, str>,
    /// The usage so far.
    pub usage: TaskUsageReport,
    /// The call that launched the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<Cow<'a, str>>,
    /// The tool that the task called last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tool_name: Option<Cow<'a, str>>,
    /// The result so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Cow<'a, str>>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A property of a task has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskUpdatedMessage<'a> {
    /// The id of the task.
    pub task_id: Cow<'a, str>,
    /// The changed properties.
    pub patch: TaskPatch<'a>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// The changed properties of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPatch<'a> {
    /// The status: `pending`, `running`, `completed`, `failed`, `killed`, `paused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Cow<'a, str>>,
    /// A short description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
    /// The end time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<u64>,
    /// The error that ended the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// Whether the task runs in the background, so that the model does not wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_backgrounded: Option<bool>,
}

/// A task has ended: `task_notification`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskNotificationMessage<'a> {
    /// The id of the task.
    pub task_id: Cow<'a, str>,
    /// The status: `completed`, `failed`, `stopped`.
    pub status: Cow<'a, str>,
    /// The file with the task's output; empty if the output is not stored.
    pub output_file: Cow<'a, str>,
    /// A summary of the result.
    pub summary: Cow<'a, str>,
    /// The call that launched the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<Cow<'a, str>>,
    /// The total usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TaskUsageReport>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// All background tasks. Only read: a session reports each task separately.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BackgroundTasksMessage {
    /// The tasks.
    pub tasks: Vec<Value>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}
