//! Commands in real sandboxes.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod running;
mod setting;
