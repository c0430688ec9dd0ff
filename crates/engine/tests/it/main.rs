//! The engine as its users meet it.
//!
//! - `rig`: an engine over toy tools in a temporary project
//! - `pool`: definitions, filters, order
//! - `pipeline`: one call: repair, validation, permission, results
//! - `hooks`: programs of the user's that have a say
//! - `permission_vectors`: the table of the permission rules; `permission_properties`: what holds of
//!   any
//! - `layers`: timeout, cache, rate limit
//! - `scheduler`: many calls: order, conflicts, patches, interrupts
//! - `serial`: the guarantee, on random batches: the same as one after the other

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop there"
)]

mod hooks;
mod layers;
mod permission_properties;
mod permission_vectors;
mod pipeline;
mod pool;
mod rig;
mod scheduler;
mod serial;
