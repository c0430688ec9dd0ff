//! The wire format between a session and the client program that drives it: one JSON object per
//! line, as Rust types.
//!
//! - [`SessionMessage`]: the lines that a session writes; [`ClientMessage`]: the lines that it
//!   reads
//! - `assistant` (with `api_message`), `user`, `stream_event`, `system`, `hook_events`,
//!   `task_events`, `result`: the messages of the conversation, each with the ids that `ids`
//!   describes
//! - `control`: requests and responses between session and client. `client_request` and
//!   `session_request` are the requests of each side, `answers` the session's responses
//! - `permission`: the answer to a permission request, and updates of permissions
//! - `mcp`: an MCP server's descriptions of its tools and its results of calls
//! - `lenient`: helpers for reading input with invalid fields
//!
//! There are two guarantees. The keys of output are in the order of the fields here, and readers
//! may rely on this order. Input is read leniently: a field of the wrong type is treated as absent;
//! an unknown field, subtype or type is ignored or preserved unchanged; only invalid JSON is an
//! error.
//!
//! Types that are written often borrow (`Cow`). Types that are read own their data.

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
pub use hook_events::{HookProgressMessage, HookResponseMessage, HookStartedMessage};
pub use ids::{RequestId, WireId};
pub use lenient::RawOrParsed;
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
    ApiRetryMessage, CompactBoundaryMessage, CompactMetadata, InformationalMessage, InitMessage,
    LocalCommandOutputMessage, NotificationMessage, PermissionDeniedMessage, ServerProblem,
    ServerState, SessionStateMessage, StatusMessage, SystemMessage,
};
pub use task_events::{
    BackgroundTasksMessage, TaskNotificationMessage, TaskPatch, TaskProgressMessage,
    TaskStartedMessage, TaskUpdatedMessage, TaskUsageReport,
};
pub use user::{
    PlainUserBody, ToolResultBlock, ToolResultContent, UserBlock, UserBody, UserContent,
    UserMessage,
};
