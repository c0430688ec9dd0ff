//! Runs tool calls.
//!
//! One tool call has four steps ([`pipeline`]): `prepare` → `admit` → `execute` → `finish`. Each
//! step takes the type that the step before it returns. Code that executes a call that was never
//! admitted does not compile. The [`scheduler`] runs the calls of a batch, concurrently where the
//! results cannot differ from running them one after the other.
//!
//! # Layout
//! - [`pool`]: the available tools, which of them the model sees, and in what order
//! - [`pipeline`]: one call
//! - [`scheduler`]: batches of calls; the only owner of the session's context
//! - [`permissions`], [`hooks`], [`settings`]: separate crates; [`hook_conditions`] connects them
//! - [`layers`]: wrappers around the execution of a call: timeout, cache, rate limit, trace
//! - [`results`]: storage on disk for results that are too long for the model
//! - [`schema`]: JSON schema validation
//! - [`session`]: the context that later calls inherit from earlier ones
//! - [`timed_grants`]: permissions that end after a time or with a task
//! - [`engine`]: combines these parts

#![warn(missing_docs)]

pub mod engine;
pub mod hook_conditions;
pub mod layers;
pub mod pipeline;
pub mod pool;
pub mod results;
pub mod scheduler;
pub mod schema;
pub mod session;
mod settings_tightening;
pub mod timed_grants;

pub use engine::{Engine, EngineBuilder, SubagentEngineParts};
pub use haft_hooks as hooks;
pub use haft_permissions as permissions;
pub use haft_permissions::settings;
pub use hook_conditions::check_settings;
pub use pipeline::{ArgumentRepair, CallResult, DenialSource, Metadata};
pub use pool::{DefinitionError, Pool, PoolView, ToolFilters, ToolFormat, ToolRegistry};
pub use results::ResultStore;
pub use scheduler::{CallBatch, CallListener, CallObserver, ContextView, EndedCall, Scheduler};
pub use schema::{SchemaError, SchemaProblem, SchemaProblemKind, SchemaValidator};
pub use session::{ActiveWorktree, SessionContext};
pub use timed_grants::{GrantClock, GrantedRule, TimedGrants};
