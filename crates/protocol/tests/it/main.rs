//! - `recorded`: lines that programs have written, read and written again
//! - `shapes`: one of everything, as it stands on the wire
//! - `tolerance`: input that is not quite what it should be
//! - `properties`: any value comes back as it went

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop there"
)]

mod properties;
mod recorded;
mod shapes;
mod tolerance;
