//! What a tool is.
//!
//! An author writes a [`Tool`]: a typed input and a few methods, all but one with cautious defaults.
//! [`erase`](fn@erase) turns it into a [`DynTool`], the one shape a pool holds; [`DynTool::bind`] joins a tool
//! with one valid input into a [`BoundCall`], and everything after that is typed again.
//!
//! This crate knows nobody: no engine, no file system, no terminal. It changes rarely.
//!
//! # Layout
//! - [`tool`]: the trait authors implement, and what a tool says of itself ([`Profile`])
//! - [`dyn_tool`]: the object-safe twin, for pools and for tools that come from elsewhere
//! - [`erase`](mod@erase): from the first to the second
//! - [`effects`]: what a call touches; the scheduler and the permission check both read it
//! - [`context`]: what a running call is given; [`services`] is what it may reach
//! - [`remembered`]: what a session keeps beside its conversation; [`attention`]: a person wants to be
//!   heard; [`catalogue`]: tools that are there and not loaded; [`configure`]: settings
//! - [`calendar`]: dates and times of day
//! - [`confinement`]: how a command that a call starts is to be confined
//! - [`hooks`]: events that a tool fires; [`http`]: requests without a client of one's own
//! - [`notices`]: what goes on in the background, and what the model hears of it
//! - [`aside`](mod@aside): calls beside the model's own
//! - [`output`], [`error`]: how a call ends
//! - [`subagents`]: handing work to another model
//! - [`secrets`]: keys that were taken out of our own environment
//! - [`schema`]: from an input type to the JSON schema a provider accepts
//! - [`view`]: what a person is shown

#![warn(missing_docs)]

pub mod approval;
pub mod aside;
pub mod attention;
pub mod calendar;
pub mod catalogue;
pub mod configure;
pub mod confinement;
pub mod context;
mod control_files;
pub mod dyn_tool;
pub mod effects;
pub mod erase;
pub mod error;
pub mod hooks;
pub mod http;
pub mod ids;
pub mod notices;
pub mod output;
pub mod progress;
pub mod remembered;
pub mod schema;
pub mod secrets;
pub mod services;
pub mod subagents;
pub mod tool;
pub mod view;

pub use approval::{Answer, Approver, Check, Permission, PermissionMode, Question};
pub use aside::{Aside, Ran, RunAside};
pub use attention::Attention;
pub use calendar::CalendarTime;
pub use catalogue::Catalogue;
pub use configure::{Changed, Configure, Weight};
pub use confinement::{
    Confined, Confinement, ConfinementStrength, Hosts, OnWeakSandbox, Passage, ProbeConfinement,
    Reachable,
};
pub use context::{CallContext, Hidden, JudgedPath, JudgedPaths, MustLead, PermissionSnapshot};
pub use control_files::{ControlAction, ControlFiles, ControlNames, ControlRules, ControlUse};
pub use dyn_tool::{BoundCall, BoxFuture, DynTool, ToolSpec};
pub use effects::{Effects, Reach, Repeat};
pub use erase::erase;
pub use error::ToolError;
pub use hooks::{HookEvent, HookFire, HookVerdict};
pub use http::{HttpAnswer, HttpClient, HttpPost};
pub use ids::{CallId, SessionId};
pub use notices::{BackgroundTask, Notice, Notices, TaskEvent, TaskKind, TaskStatus, TaskUsage};
pub use output::{Content, ContextPatch, Message, Role, RuleList, ToolOutput, ToolUse};
pub use progress::{Progress, Update, Updates};
pub use remembered::{Memo, Remembered};
pub use services::Services;
pub use subagents::{
    Kind, Launch, Launched, Letter, Looked, Receipt, Report, Sent, Spawn, Subagents, Tokens,
};
pub use tool::{Access, Profile, Rate, Tool, ToolInput};
pub use view::{Card, Hunk, Piece};

// A tool's input type derives these; re-exported so that an author needs no version of their own.
pub use schemars;
pub use serde;
pub use serde_json;
pub use tokio_util::sync::CancellationToken;
