//! Permissions as their users meet them.
//!
//! - `properties`: what holds of any policy and any call
//! - `denials`: ways around a deny rule; `lines`: harmless lines, run
//! - `suggestions`: rules that are proposed to a person

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop there"
)]

mod denials;
mod lines;
mod properties;
mod suggestions;
