//! What a tool is.
//!
//! An author writes a [`Tool`]: a typed input and a few methods, all but one with cautious defaults.
//! [`erase`](fn@erase) turns it into a [`DynTool`], the one shape a pool holds; [`DynTool::bind`] joins a tool
//! with one valid input into a [`BoundCall`], and everything after that is typed again.
//!
//! This crate knows no engine, no file system and no terminal. It changes rarely.
//!
//! # Layout
//! - [`tool`]: the trait authors implement; [`profile`]: what a tool says of itself
//! - [`dyn_tool`]: the object-safe twin, for pools and for tools that come from elsewhere
//! - [`erase`](mod@erase): from the first to the second
//! - [`editor_files`]: files as the editor of a person has them
//! - [`effects`]: what a call touches; the scheduler and the permission check both read it
//! - [`context`]: what a running call is given; [`services`] is what it may reach
//! - [`session_state`]: what a session keeps beside its conversation; [`pending_input`]: what a
//!   person said meanwhile; [`deferred_tools`]: tools that are there and not loaded; [`pending_servers`]:
//!   servers whose tools are still to come; [`settings_access`]: settings
//! - [`calendar`]: dates and times of day
//! - [`confinement`]: how a command that a call starts is to be confined
//! - [`hooks`]: events that a tool fires; [`http`], [`websocket`]: requests without a client of one's
//!   own
//! - [`background_tasks`]: what goes on in the background, and what the model reads of it
//! - [`nested_calls`]: calls beside the model's own
//! - [`output`], [`error`]: how a call ends; [`follow_calls`]: what is said when those of a reply are over
//! - [`subagents`]: handing work to another model; [`schedules`]: prompts that are said later
//! - [`secrets`]: keys that were taken out of our own environment
//! - [`schema`]: from an input type to the JSON schema a provider accepts
//! - [`view`]: what a person is shown; [`web`]: pages and searches
//! - [`worktrees`]: copies of a project to work in beside it

#![warn(missing_docs)]

pub mod approval;
pub mod background_tasks;
pub mod calendar;
pub mod confinement;
pub mod context;
mod control_files;
pub mod deferred_tools;
pub mod dyn_tool;
pub mod editor_files;
pub mod effects;
pub mod erase;
pub mod error;
pub mod follow_calls;
mod hidden;
pub mod hooks;
mod hosts;
pub mod http;
pub mod ids;
pub mod nested_calls;
pub mod notifier;
pub mod output;
pub mod pending_input;
pub mod pending_servers;
pub mod profile;
pub mod progress;
pub mod schedules;
pub mod schema;
pub mod secrets;
pub mod services;
pub mod session_state;
pub mod settings_access;
mod shared;
pub mod subagents;
pub mod task;
pub mod tool;
pub mod view;
pub mod web;
pub mod websocket;
pub mod worktrees;

pub use approval::{
    ApprovalAnswer, ApprovalKind, ApprovalPart, ApprovalRequest, Approver, Check, Permission,
    PermissionMode, RulePlace, RuleScope,
};
pub use background_tasks::{
    BackgroundTask, BackgroundTasks, TaskEvent, TaskKind, TaskNotice, TaskStatus, TaskUsage,
};
pub use calendar::CalendarTime;
pub use confinement::{
    Confined, Confinement, ConfinementStrength, NetworkAccess, OnWeakSandbox, ProbeConfinement,
};
pub use context::{CallContext, JudgedPath, JudgedPaths, MustLead, PermissionSnapshot};
pub use control_files::{
    ControlAction, ControlFiles, ControlNames, ControlRules, ControlUse, ControlledFiles,
    PermittedPath,
};
pub use deferred_tools::DeferredTools;
pub use dyn_tool::{BoundCall, BoxFuture, DynTool, ToolSpec};
pub use editor_files::EditorFiles;
pub use effects::{Effects, Idempotency, Reach};
pub use erase::erase;
pub use error::ToolError;
pub use follow_calls::{CallFollower, FollowCalls};
pub use hidden::{GlobStart, Hidden, HiddenFiles, HiddenRules, PathGlob};
pub use hooks::{HookEvent, HookFire, HookVerdict};
pub use hosts::{HostGlob, HostLists, HostVerdict, Hosts, JudgeHosts};
pub use http::{
    HttpAnswer, HttpBody, HttpClient, HttpEvent, HttpFailure, HttpMethod, HttpPost, HttpRequest,
    HttpResponse, HttpStreams, ResolveHosts,
};
pub use ids::{CallId, SessionId};
pub use nested_calls::{NestedCalls, NestedResult, RunNested};
pub use notifier::{PersonNotifier, PushedNotification};
pub use output::{Content, ContextPatch, InjectedMessage, Role, RuleList, ToolOutput, ToolUse};
pub use pending_input::PendingInput;
pub use pending_servers::PendingServers;
pub use profile::{
    Access, AgentAccess, Profile, Rate, RuleMatch, ServiceNeed, ToolOrigin, ToolRole,
};
pub use progress::{Progress, Update, Updates};
pub use schedules::{KeepSchedules, NewSchedule, NewWakeup, ScheduleInfo, Schedules, WakeupInfo};
pub use services::Services;
pub use session_state::{SessionState, StateSlot};
pub use settings_access::{SettingChange, SettingRisk, SettingsAccess};
pub use subagents::{
    AgentKind, AgentMessage, AgentReport, AgentStatus, BackgroundHandle, LaunchOutcome,
    LaunchRequest, MessageDelivery, SpawnAgents, Subagents, TokenCount,
};
pub use task::spawn_boxed;
pub use tool::{Tool, ToolInput};
pub use view::{Card, CardPiece, DiffHunk};
pub use web::{
    FetchWeb, SearchWeb, SmallModel, WebHit, WebHits, WebQuery, WebRequest, WebSearcher,
};
pub use websocket::{OpenWebSockets, WebSocketMessage, WebSocketMessages, WebSocketRequest};
pub use worktrees::{AgentWorktree, MakeWorktrees, WorktreeOutcome, Worktrees};

// A tool's input type derives these; re-exported so that an author needs no version of their own.
pub use schemars;
pub use serde;
pub use serde_json;
pub use tokio_util::sync::CancellationToken;
