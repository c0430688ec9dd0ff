//! The tool contract: the traits that tools implement, and the types that tools and the engine
//! exchange.
//!
//! An author writes a [`Tool`]: a typed input and a few methods, all but one with cautious
//! defaults. [`erase`](fn@erase) turns it into a [`DynTool`], the only form that a pool stores.
//! [`DynTool::bind`] combines a tool with one valid input into a [`BoundCall`]; from there on the
//! input is typed again.
//!
//! This crate depends on no engine, file system or terminal. It changes rarely.
//!
//! # Layout
//! - [`tool`]: the trait authors implement; [`profile`]: the static properties of a tool
//! - [`dyn_tool`]: its object-safe counterpart, for pools and for tools from servers and plugins
//! - [`erase`](mod@erase): converts the first into the second
//! - [`editor_files`]: files that the user has open in an editor
//! - [`effects`]: the files and state that a call touches; the scheduler and the permission check
//!   both read it
//! - [`context`]: the data a running call receives; [`services`]: the services it may use
//! - [`session_state`]: values stored with a session besides its conversation; [`pending_input`]:
//!   user messages that arrive while tools run; [`deferred_tools`]: tools whose definitions are not
//!   sent yet; [`pending_servers`]: servers that are still connecting; [`settings_access`]:
//!   settings
//! - [`calendar`]: dates and times of day
//! - [`confinement`]: the sandbox restrictions of a command that a call starts
//! - [`hooks`]: hook events that a tool fires; [`http`], [`websocket`]: network requests for crates
//!   without an HTTP client
//! - [`approval`]: permission modes, and requests for the user's approval
//! - [`rule_offer`]: rules in questions other than allow rules
//! - [`background_tasks`]: the background tasks of a session and the notices the model reads about
//!   them
//! - [`nested_calls`]: calls that a tool makes itself
//! - [`output`], [`error`]: the result of a call; [`call_follow_up`]: reports to the model after the
//!   calls of a reply
//! - [`subagents`]: delegating work to another model; [`schedules`]: prompts that are submitted
//!   later
//! - [`secrets`]: keys that were removed from the process environment
//! - [`schema`]: the JSON schema of an input type, in the form providers accept
//! - [`progress`]: progress updates of a running call; [`ids`]: ids of sessions and calls
//! - [`secret_files`]: the files in which haft stores secrets; [`user_notifier`]: notifications
//! - [`card`]: cards shown to users; [`web`]: pages and searches
//! - [`worktrees`]: git worktrees in which agents work on a copy of the project

#![warn(missing_docs)]

pub mod approval;
mod arc_serde;
pub mod background_tasks;
pub mod calendar;
pub mod call_follow_up;
pub mod card;
pub mod confinement;
pub mod context;
mod control_files;
pub mod deferred_tools;
pub mod dyn_tool;
pub mod editor_files;
pub mod effects;
pub mod erase;
pub mod error;
mod hidden_files;
pub mod hooks;
mod hosts;
pub mod http;
pub mod ids;
pub mod nested_calls;
pub mod output;
pub mod pending_input;
pub mod pending_servers;
pub mod profile;
pub mod progress;
pub mod rule_offer;
pub mod runtime_task;
pub mod schedules;
pub mod schema;
pub mod secret_files;
pub mod secrets;
pub mod services;
pub mod session_state;
pub mod settings_access;
pub mod subagents;
pub mod tool;
pub mod user_notifier;
pub mod web;
pub mod websocket;
pub mod worktrees;

pub use approval::{
    ApprovalAnswer, ApprovalKind, ApprovalPart, ApprovalRequest, Approver, CheckOutcome, GrantEnd,
    PermissionMode, RuleDestination, RuleOffer, RuleScope, ToolPermission,
};
pub use background_tasks::{
    BackgroundTask, BackgroundTasks, TaskEvent, TaskKind, TaskNotice, TaskStatus, TaskUsage,
};
pub use calendar::CalendarTime;
pub use call_follow_up::{CallFollowUp, CallFollowUpService};
pub use card::{Card, CardSection, DiffHunk};
pub use confinement::{
    Confinement, ConfinementProfile, ConfinementStrength, NetworkAccess, OnWeakSandbox,
    ProbeConfinement,
};
pub use context::{
    AuthorizedPath, AuthorizedPaths, CallContext, PathConstraint, PermissionSnapshot,
};
pub use control_files::{
    ControlAccess, ControlAction, ControlFiles, ControlNames, ControlRules, ControlledFiles,
    HomeControl, PermittedPath,
};
pub use deferred_tools::DeferredTools;
pub use dyn_tool::{BoundCall, BoxFuture, DynTool, ToolSpec};
pub use editor_files::EditorFiles;
pub use effects::{Effects, Idempotency, PathReach};
pub use erase::erase;
pub use error::ToolError;
pub use hidden_files::{GlobStart, HiddenFiles, HiddenFilter, HiddenRules, PathGlob};
pub use hooks::{HookEvent, HookService, HookVerdict};
pub use hosts::{HostEvaluator, HostGlob, HostLists, HostPolicy, HostVerdict};
pub use http::{
    HostResolver, HttpBody, HttpClient, HttpEvent, HttpFailure, HttpMethod, HttpPost, HttpRequest,
    HttpResponse, HttpTextResponse, HttpTransport,
};
pub use ids::{CallId, SessionId};
pub use nested_calls::{NestedCallRunner, NestedCalls, NestedResult};
pub use output::{Content, ContextPatch, InjectedMessage, Role, RuleList, ToolOutput, ToolUse};
pub use pending_input::PendingInput;
pub use pending_servers::PendingServers;
pub use profile::{
    AgentAccess, CallRate, RuleMatch, ServiceNeed, ToolAccess, ToolOrigin, ToolProfile, ToolRole,
    provider_name, server_in_rules,
};
pub use progress::{ProgressSender, ProgressUpdate, ProgressUpdates};
pub use runtime_task::spawn_boxed;
pub use schedules::{NewSchedule, NewWakeup, ScheduleInfo, ScheduleStore, Schedules, WakeupInfo};
pub use secret_files::{PRIVATE_DIRECTORY, SecretFile, SecretPath};
pub use services::Services;
pub use session_state::{SessionState, StateSlot};
pub use settings_access::{SettingChange, SettingRisk, SettingsAccess};
pub use subagents::{
    AgentKind, AgentMessage, AgentReport, AgentStatus, BackgroundHandle, LaunchOutcome,
    LaunchRequest, MessageDelivery, SubagentSpawner, Subagents, TokenCount,
};
pub use tool::{Tool, ToolInput};
pub use user_notifier::{PushedNotification, UserNotifier};
pub use web::{
    SmallModel, WebFetcher, WebQuery, WebRequest, WebSearchBackend, WebSearchResult,
    WebSearchResults, WebSearcher,
};
pub use websocket::{WebSocketConnector, WebSocketMessage, WebSocketMessages, WebSocketRequest};
pub use worktrees::{AgentWorktree, WorktreeOutcome, WorktreeProvider, Worktrees};

// The input type of a tool derives these traits. They are re-exported so that an author needs no
// dependency on a matching version.
pub use schemars;
pub use serde;
pub use serde_json;
pub use tokio_util::sync::CancellationToken;
