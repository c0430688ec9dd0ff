//! `system`: what there is to know beside what is said.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{
    BackgroundTasksMessage, HookEndMessage, HookPrintedMessage, HookStartedMessage, LoadedPlugin,
    TaskOverMessage, TaskProgressMessage, TaskStartedMessage, TaskUpdatedMessage, WireId, lenient,
};

/// A message of type `system`, by its subtype.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum SystemMessage<'a> {
    /// A turn begins, and what with.
    Init(Box<InitMessage<'a>>),
    /// What came before has been summarized.
    CompactBoundary(CompactBoundaryMessage<'a>),
    /// What the session is busy with.
    Status(StatusMessage<'a>),
    /// The provider did not answer; it is asked again.
    ApiRetry(ApiRetryMessage<'a>),
    /// A hook starts.
    HookStarted(HookStartedMessage<'a>),
    /// A hook has printed something.
    HookProgress(HookPrintedMessage<'a>),
    /// A hook has ended.
    HookResponse(HookEndMessage<'a>),
    /// Something a person should know.
    Informational(NoticeMessage<'a>),
    /// The model wants a person to see this now.
    Notification(NotificationMessage<'a>),
    /// What a slash command printed.
    LocalCommandOutput(CommandOutputMessage<'a>),
    /// A call was refused without asking.
    PermissionDenied(PermissionDeniedMessage<'a>),
    /// A task begins.
    TaskStarted(TaskStartedMessage<'a>),
    /// A task goes on.
    TaskProgress(TaskProgressMessage<'a>),
    /// Something about a task has changed.
    TaskUpdated(TaskUpdatedMessage<'a>),
    /// A task is over.
    TaskNotification(TaskOverMessage<'a>),
    /// All tasks in the background.
    BackgroundTasksChanged(BackgroundTasksMessage),
    /// Whether the session is at work.
    SessionStateChanged(SessionStateMessage<'a>),
}

/// A turn begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InitMessage<'a> {
    /// The working directory.
    pub cwd: Cow<'a, str>,
    /// Names of tools.
    pub tools: Vec<Cow<'a, str>>,
    /// MCP servers, and how they are.
    #[serde(default)]
    pub mcp_servers: Vec<ServerState<'a>>,
    /// The model.
    pub model: Cow<'a, str>,
    /// The permission mode.
    #[serde(rename = "permissionMode")]
    pub permission_mode: Cow<'a, str>,
    /// Names of slash commands.
    #[serde(default)]
    pub slash_commands: Cow<'a, [String]>,
    /// Where the key comes from: `ANTHROPIC_API_KEY`, `apiKeyHelper`, `none` …
    #[serde(rename = "apiKeySource")]
    pub api_key_source: Cow<'a, str>,
    /// The level of the conventions that the session keeps to.
    pub claude_code_version: Cow<'a, str>,
    /// How the model is to write.
    #[serde(default)]
    pub output_style: Cow<'a, str>,
    /// Kinds of subagents.
    #[serde(default)]
    pub agents: Cow<'a, [String]>,
    /// Skills.
    #[serde(default)]
    pub skills: Cow<'a, [String]>,
    /// Plugins.
    #[serde(default)]
    pub plugins: Vec<LoadedPlugin>,
    /// What was left out because the directory is not trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<Cow<'a, str>>,
    /// Commands are less confined than they should be: in what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_warning: Option<Cow<'a, str>>,
    /// MCP servers that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_server_errors: Vec<ServerProblem<'a>>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// How an MCP server is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerState<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// `connected`, `failed`, `needs-auth`, `pending`, `disabled`.
    pub status: Cow<'a, str>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
}

/// An MCP server that was left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerProblem<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// What is wrong, in a word.
    pub category: Cow<'a, str>,
    /// What is wrong, for people.
    pub message: Cow<'a, str>,
}

/// What came before has been summarized.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactBoundaryMessage<'a> {
    /// How.
    pub compact_metadata: CompactMetadata<'a>,
    /// The message: its line in the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
}

/// How the conversation was summarized.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactMetadata<'a> {
    /// `manual` or `auto`.
    pub trigger: Cow<'a, str>,
    /// Tokens before.
    pub pre_tokens: u64,
    /// Tokens after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_tokens: Option<u64>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// What the session is busy with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusMessage<'a> {
    /// `compacting`, `requesting`; nothing when it is over.
    pub status: Option<Cow<'a, str>>,
    /// The permission mode, where that has changed.
    #[serde(
        default,
        rename = "permissionMode",
        skip_serializing_if = "Option::is_none"
    )]
    pub permission_mode: Option<Cow<'a, str>>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// The provider did not answer; it is asked again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiRetryMessage<'a> {
    /// The how-manieth attempt comes next.
    pub attempt: u32,
    /// How many there are at most.
    pub max_retries: u32,
    /// How long until then.
    pub retry_delay_ms: u64,
    /// The HTTP status, where there was one.
    pub error_status: Option<u16>,
    /// What went wrong, in a word.
    pub error: Cow<'a, str>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// Something a person should know: `informational`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeMessage<'a> {
    /// `info`, `notice`, `suggestion`, `warning`.
    pub level: Cow<'a, str>,
    /// What.
    pub content: Cow<'a, str>,
    /// The subagent that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// What a slash command printed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOutputMessage<'a> {
    /// What.
    pub content: Cow<'a, str>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// The model wants a person to see this now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationMessage<'a> {
    /// What sort it is: a later one of the same takes its place.
    pub key: Cow<'a, str>,
    /// What it says, one line.
    pub text: Cow<'a, str>,
    /// How much it matters: `low`, `medium`, `high`.
    #[serde(default)]
    pub priority: Cow<'a, str>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// A call was refused without asking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionDeniedMessage<'a> {
    /// The tool.
    pub tool_name: Cow<'a, str>,
    /// The call.
    pub tool_use_id: Cow<'a, str>,
    /// What refused it: `rule`, `mode`, `hook`, `workingDir`, `safetyCheck` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason_type: Option<Cow<'a, str>>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_reason: Option<Cow<'a, str>>,
    /// What the model reads.
    pub message: Cow<'a, str>,
    /// Whose call it was, if a subagent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

/// Whether the session is at work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStateMessage<'a> {
    /// `idle`, `running`, `requires_action`.
    pub state: Cow<'a, str>,
    /// It is for the program at the other end only.
    #[serde(default, skip_serializing_if = "lenient::is_false")]
    pub sdk_host_only: bool,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<WireId>,
    /// The message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<WireId>,
}

impl SystemMessage<'_> {
    /// The session's id and the message's.
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
