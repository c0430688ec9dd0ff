//! May this call run?
//!
//! [`facts`] looks at the world (where does this path really lead?); [`decide`](mod@decide) is a
//! pure and total function of policy and facts, so that every decision can be explained and tabled.
//! Whatever cannot be proved harmless asks.

pub mod decide;
pub mod facts;
pub mod protected;

pub use decide::{Because, Behavior, Decision, decide};
pub use facts::{Facts, Policy, Touched};
