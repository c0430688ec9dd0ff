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
//! - [`permissions`]: may it run? one pure function
//! - [`hooks`]: programs of the user's that have a say
//! - [`settings`]: settings files, and what of them counts
//! - [`layers`]: what stands around the execution of a call: timeout, cache, rate limit, trace
//! - [`results`]: what is too long for the model is kept on disk
//! - [`session`]: what later calls inherit from earlier ones
//! - [`engine`]: these parts, joined

pub mod engine;
pub mod hooks;
pub mod layers;
mod nearby;
pub mod permissions;
pub mod pipeline;
pub mod pool;
mod resolve;
pub mod results;
pub mod scheduler;
pub mod session;
pub mod settings;

pub use engine::{Engine, EngineBuilder, EnginePart};
pub use pipeline::{ArgumentRepair, CallResult, Denied, Metadata};
pub use pool::{DefinitionError, Filters, Format, Pool, Registry};
pub use results::ResultStore;
pub use scheduler::{CallBatch, CallObserver, ContextView, Scheduler};
pub use session::SessionContext;
