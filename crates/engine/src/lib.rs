//! How calls are run.
//!
//! One tool call, start to finish, is four verbs ([`pipeline`]): `prepare` → `admit` → `execute` →
//! `finish`. Each takes the type the step before it returns, so a call that was never admitted cannot
//! be executed: it does not compile. The [`scheduler`] runs many of them, side by side where the
//! outcome cannot differ from one after the other.
//!
//! # Layout
//! - [`pool`]: which tools there are, which the model sees, in what order
//! - [`pipeline`]: one call
//! - [`scheduler`]: many calls, and the only owner of the session's context
//! - [`permissions`], [`hooks`], [`settings`]: crates of their own; [`conditions`] joins them
//! - [`layers`]: what stands around the execution of a call: timeout, cache, rate limit, trace
//! - [`results`]: what is too long for the model is kept on disk
//! - [`schema`]: whether a value has the shape that a JSON schema asks for
//! - [`session`]: what later calls inherit from earlier ones
//! - [`engine`]: these parts, joined

#![warn(missing_docs)]

pub mod conditions;
pub mod engine;
pub mod layers;
pub mod pipeline;
pub mod pool;
pub mod results;
pub mod scheduler;
pub mod schema;
pub mod session;
mod tighten;

pub use conditions::check_settings;
pub use engine::{Engine, EngineBuilder, EnginePart};
pub use haft_hooks as hooks;
pub use haft_permissions as permissions;
pub use haft_permissions::settings;
pub use pipeline::{ArgumentRepair, CallResult, Denied, Metadata};
pub use pool::{DefinitionError, Filters, Format, Pool, PoolView, Registry};
pub use results::ResultStore;
pub use scheduler::{CallBatch, CallListener, CallObserver, ContextView, EndedCall, Scheduler};
pub use schema::{SchemaError, SchemaProblem, SchemaProblemKind, SchemaValidator};
pub use session::{SessionContext, WorktreePlace};
