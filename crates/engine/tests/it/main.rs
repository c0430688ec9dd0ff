//! The engine as its users meet it.
//!
//! - `rig`: an engine over toy tools in a temporary project
//! - `judged`: the facts of a call, as the pipeline finds them
//! - `deferral`: tools that are sent by name only
//! - `pool`: definitions, filters, order; `pool_changes`: tools that come and go while a session runs
//! - `pipeline`: one call: repair, validation, permission, results
//! - `hooks`: programs of the user's that have a say
//! - `permission_vectors`: the table of the permission rules; `permission_rows`: its rows that take
//!   files, settings or several calls
//! - `planning`: plan mode, and calls that a person answers
//! - `refusals`: what a model reads of calls that may not run
//! - `links`: where paths really lead; `always`: rules that a person keeps
//! - `machine`: settings files of everyone; `settings`: what they say together; `trust`: what waits
//!   for it; `written`: local settings and who wrote them; `watch`: files that change while a session
//!   runs
//! - `confinement`: how a command is to be confined; `sandbox`: what settings say of it
//! - `layers`: timeout, cache, rate limit; `json_schema_suite`: the official tests of JSON Schema
//! - `wrappers`: programs that the user declared as wrappers
//! - `scheduler`: many calls: order, conflicts, patches, interrupts
//! - `serial`: the guarantee, on random batches: the same as one after the other

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop there"
)]

mod always;
mod aside;
mod confinement;
mod deferral;
mod hooks;
mod json_schema_suite;
#[path = "../../../permissions/tests/it/judged.rs"]
mod judged;
mod layers;
mod links;
mod machine;
mod permission_rows;
mod permission_vectors;
mod pipeline;
mod planning;
mod pool;
mod pool_changes;
mod refusals;
mod rig;
mod sandbox;
mod scheduler;
mod serial;
mod settings;
mod timed_grants;
mod trust;
mod watch;
mod wrappers;
mod written;
