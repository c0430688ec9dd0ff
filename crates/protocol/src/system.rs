//! `system`: information about the session.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    BackgroundTasksMessage, HookProgressMessage, HookResponseMessage, HookStartedMessage,
    LoadedPlugin, TaskNotificationMessage, TaskProgressMessage, TaskStartedMessage,
    TaskUpdatedMessage, WireId, lenient,
};

/// A message of type `system`, by its subtype.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum SystemMessage<'a> {
    /// A turn starts.
    Init(Box<InitMessage<'a>>),
    /// The earlier messages were replaced by a summary.
    CompactBoundary(CompactBoundaryMessage<'a>),
    /// The current activity of the session.
    Status(StatusMessage<'a>),
    /// A request to the provider failed and is retried.
    ApiRetry(ApiRetryMessage<'a>),
    /// A hook has started.
    HookStarted(HookStartedMessage<'a>),
    /// A hook has printed output.
    HookProgress(HookProgressMessage<'a>),
    /// A hook has ended.
    HookResponse(HookResponseMessage<'a>),
    /// A notice for the user.
    Informational(InformationalMessage<'a>),
    /// A message that the model sends to the user immediately.
    Notification(NotificationMessage<'a>),
    /// The output of a slash command.
    LocalCommandOutput(LocalCommandOutputMessage<'a>),
    /// A call was denied without asking.
    PermissionDenied(PermissionDeniedMessage<'a>),
    /// A task has started.
    TaskStarted(TaskStartedMessage<'a>),
    /// A task has made progress.
    TaskProgress(TaskProgressMessage<'a>),
    /// A property of a task has changed.
    TaskUpdated(TaskUpdatedMessage<'a>),
    /// A task has ended.
    TaskNotification(TaskNotificationMessage<'a>),
    /// All background tasks.
    BackgroundTasksChanged(BackgroundTasksMessage),
    /// The session has started or stopped working.
    SessionStateChanged(SessionStateMessage<'a>),
}

/// A turn starts. The message describes the session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InitMessage<'a> {
    /// The working directory.
    pub cwd: Cow<'a, str>,
    /// The names of the tools.
    pub tools: Vec<Cow<'a, str>>,
    /// The MCP servers with their status.
    #[serde(default)]
    pub mcp_servers: Vec<ServerState<'a>>,
    /// The model.
    pub model: Cow<'a, str>,
    /// The permission mode.
    #[serde(rename = "permissionMode")]
    pub permission_mode: Cow<'a, str>,
    /// The names of the slash commands.
    #[serde(default)]
    pub slash_commands: Cow<'a, [String]>,
    /// The source of the API key: `ANTHROPIC_API_KEY`, `apiKeyHelper`, `none` …
    #[serde(rename = "apiKeySource")]
    pub api_key_source: Cow<'a, str>,
    /// The version of Claude Code whose conventions the session follows.
    pub claude_code_version: Cow<'a, str>,
    /// The output style.
    #[serde(default)]
    pub output_style: Cow<'a, str>,
    /// The names of the agent kinds.
    #[serde(default)]
    pub agents: Cow<'a, [String]>,
    /// The names of the skills.
    #[serde(default)]
    pub skills: Cow<'a, [String]>,
    /// The loaded plugins.
    #[serde(default)]
    pub plugins: Vec<LoadedPlugin>,
    /// A description of what was ignored because the directory is not trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<Cow<'a, str>>,
    /// A description of how the confinement of commands is weaker than configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_warning: Option<Cow<'a, str>>,
    /// The reason why the permission mode is not `auto`, although it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode_warning: Option<Cow<'a, str>>,
    /// The MCP servers that were skipped because of errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_server_errors: Vec<ServerProblem<'a>>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// The status of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerState<'a> {
    /// The name.
    pub name: Cow<'a, str>,
    /// The status: `connected`, `failed`, `needs-auth`, `pending`, `disabled`.
    pub status: Cow<'a, str>,
    /// The error of a failed server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
}

/// An MCP server that was skipped because of an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerProblem<'a> {
    /// The name.
    pub name: Cow<'a, str>,
    /// The kind of error (a single word).
    pub category: Cow<'a, str>,
    /// The human-readable error.
    pub message: Cow<'a, str>,
}

/// The earlier messages were replaced by a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactBoundaryMessage<'a> {
    /// The details.
    pub compact_metadata: CompactMetadata<'a>,
    /// The id of the message, which is a line of the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
}

/// The details of a compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactMetadata<'a> {
    /// The trigger: `manual` or `auto`.
    pub trigger: Cow<'a, str>,
    /// The number of tokens before.
    pub pre_tokens: u64,
    /// The number of tokens after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_tokens: Option<u64>,
    /// The duration in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// The current activity of the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusMessage<'a> {
    /// `compacting` or `requesting`; `None` when the activity has ended.
    pub status: Option<Cow<'a, str>>,
    /// The permission mode, if it has changed.
    #[serde(
        default,
        rename = "permissionMode",
        skip_serializing_if = "Option::is_none"
    )]
    pub permission_mode: Option<Cow<'a, str>>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A request to the provider failed and is retried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiRetryMessage<'a> {
    /// The number of the next retry, from 1.
    pub attempt: u32,
    /// The maximum number of retries.
    pub max_retries: u32,
    /// The wait before the retry, in milliseconds.
    pub retry_delay_ms: u64,
    /// The HTTP status, if a response arrived.
    pub error_status: Option<u16>,
    /// The kind of error (a single word).
    pub error: Cow<'a, str>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A notice for the user: `informational`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InformationalMessage<'a> {
    /// The level: `info`, `notice`, `suggestion`, `warning`.
    pub level: Cow<'a, str>,
    /// The text.
    pub content: Cow<'a, str>,
    /// The id of the subagent that the notice is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// The output of a slash command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalCommandOutputMessage<'a> {
    /// The text.
    pub content: Cow<'a, str>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A message that the model sends to the user immediately.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationMessage<'a> {
    /// The kind of the notification. A later one with the same key replaces it.
    pub key: Cow<'a, str>,
    /// The text, one line.
    pub text: Cow<'a, str>,
    /// The priority: `low`, `medium`, `high`.
    #[serde(default)]
    pub priority: Cow<'a, str>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A call was denied without asking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionDeniedMessage<'a> {
    /// The name of the tool.
    pub tool_name: Cow<'a, str>,
    /// The id of the call.
    pub tool_use_id: Cow<'a, str>,
    /// The cause of the denial: `rule`, `mode`, `hook`, `workingDir`, `safetyCheck` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason_type: Option<Cow<'a, str>>,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<Cow<'a, str>>,
    /// The message that the model receives.
    pub message: Cow<'a, str>,
    /// The id of the subagent, if the call is a subagent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// The session has started or stopped working.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStateMessage<'a> {
    /// The state: `idle`, `running`, `requires_action`.
    pub state: Cow<'a, str>,
    /// Whether the message is only for the program that hosts the session.
    #[serde(default, skip_serializing_if = "lenient::is_false")]
    pub sdk_host_only: bool,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

impl SystemMessage<'_> {
    /// Returns the ids of the session and of the message.
    pub(crate) fn ids(&mut self) -> (&mut Option<WireId>, &mut Option<WireId>) {
        macro_rules! of {
            ($message:expr) => {
                (&mut $message.session_id, &mut $message.uuid)
            };
        }
        match self {
            Self::Init(message) => of!(message),
            Self::CompactBoundary(message) => of!(message),
            Self::Status(message) => of!(message),
            Self::ApiRetry(message) => of!(message),
            Self::HookStarted(message) => of!(message),
            Self::HookProgress(message) => of!(message),
            Self::HookResponse(message) => of!(message),
            Self::Informational(message) => of!(message),
            Self::Notification(message) => of!(message),
            Self::LocalCommandOutput(message) => of!(message),
            Self::PermissionDenied(message) => of!(message),
            Self::TaskStarted(message) => of!(message),
            Self::TaskProgress(message) => of!(message),
            Self::TaskUpdated(message) => of!(message),
            Self::TaskNotification(message) => of!(message),
            Self::BackgroundTasksChanged(message) => of!(message),
            Self::SessionStateChanged(message) => of!(message),
        }
    }
}
