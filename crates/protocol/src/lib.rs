//! The wire between a session and the program that drives it, the client: one JSON object a line, as types.
//!
//! - [`SessionMessage`]: what a session writes; [`ClientMessage`]: what it reads
//! - `assistant`, `user`, `stream_event`, `system`, `hook_events`, `task_events`, `result`: messages of the
//!   conversation, each with the ids that `ids` describes
//! - `control`: requests and answers between the two programs; `client_request` and `session_request` are
//!   what either may ask, `answers` what a session answers
//! - `permission`: the answer to a question for permission, and updates of permissions
//! - `mcp`: what an MCP server says of its tools and answers to calls
//! - `lenient`: how input is read that is not quite what it should be
//!
//! Two promises. What we write has its keys in the order of the fields here, and readers may pin it. What
//! we read is held to as little as possible: a field of the wrong type counts as absent, a field, subtype
//! or type that is not known is passed over or kept as it was written, and only JSON that is none fails.
//!
//! Types that are written often borrow (`Cow`); whatever is read owns what it holds.

#![warn(missing_docs)]

mod answers;
mod api_message;
mod assistant;
mod client_message;
mod client_request;
mod control;
mod hook_events;
mod ids;
mod lenient;
mod mcp;
mod permission;
mod result;
mod session_message;
mod session_request;
mod stream_event;
mod system;
mod task_events;
mod user;

pub use answers::{
    BinaryVersion, CancelledMessage, ContextCategory, ContextMcpTool, ContextUsageAnswer,
    DescribedAgent, DescribedCommand, FileAnswer, InitializeAnswer, InterruptAnswer, ListedServer,
    ListedServerTool, LoadedPlugin, McpStatusAnswer, ModeAnswer, NoFields, OutputStylesAnswer,
    PluginsAnswer, RewindAnswer, ServersAnswer, SessionAnswer, SkillsAnswer, ToolHints,
};
pub use api_message::{
    ApiMessage, AssistantBlock, CacheWrites, MessageKind, MessageRole, ServerToolUse, UsageReport,
};
pub use assistant::AssistantMessage;
pub use client_message::{ClientMessage, UserInput, UserInputError};
pub use client_request::{
    BackgroundRequest, CallbackMatcher, CancelMessageRequest, ClientRequest, ContextUsageRequest,
    InitializeRequest, InterruptRequest, NamedList, PromptParagraphs, ReadFileRequest,
    ReadStateRequest, ReloadPluginsRequest, RenameRequest, RewindRequest, ServerMessageRequest,
    ServerRequest, SetModeRequest, SetModelRequest, SetServersRequest, SetThinkingRequest,
    SettingsRequest, StopTaskRequest, ToggleServerRequest, UpdateSettingsRequest,
};
pub use control::{ControlCancel, ControlOutcome, ControlRequest, ControlResponse};
pub use hook_events::{HookEndMessage, HookPrintedMessage, HookStartedMessage};
pub use ids::{RequestId, WireId};
pub use lenient::AsWritten;
pub use mcp::{CallAnswer, DescribedTool, ToolAnnotations, ToolMeta};
pub use permission::{
    DirectoryUpdate, PermissionBehavior, PermissionReply, PermissionRule, PermissionUpdate,
    PromptToolInput, RuleUpdate, UpdateDestination,
};
pub use result::{DeferredToolUse, ModelUsageReport, PermissionDenial, ResultMessage};
pub use session_message::{
    ConversationResetMessage, RateLimitMessage, SessionMessage, StreamEventMessage,
    ToolProgressMessage, TranscriptMirror,
};
pub use session_request::{
    CanUseToolRequest, ElicitationReply, ElicitationRequest, HookCallbackRequest, HookReply,
    HookSpecificReply, McpMessageReply, McpMessageRequest, SessionRequest,
};
pub use stream_event::{BlockDelta, StopDelta, StreamEvent};
pub use system::{
    ApiRetryMessage, CommandOutputMessage, CompactBoundaryMessage, CompactMetadata, InitMessage,
    NoticeMessage, NotificationMessage, PermissionDeniedMessage, ServerProblem, ServerState,
    SessionStateMessage, StatusMessage, SystemMessage,
};
pub use task_events::{
    BackgroundTasksMessage, TaskOverMessage, TaskPatch, TaskProgressMessage, TaskStartedMessage,
    TaskUpdatedMessage, TaskUsageReport,
};
pub use user::{
    PlainUserBody, ToolResultBlock, ToolResultContent, UserBlock, UserBody, UserContent,
    UserMessage,
};
