//! Tests of the terminal toolkit. The numbers are those of its test vectors.
//!
//! - `emulator`: a terminal in process, with scrollback and reflow
//! - `live_region`: history above, a region below (2, 4, 25); `resizes`: at any size (1)
//! - `replies`: whole replies as a person sees them (6, 7, 8)
//! - `safety`: what never arrives at the main screen (3, 36)
//! - `threads`: the thread that writes; what is restored, and by a guard (29)
//! - `tmux`: the example in tmux (1, 2, 3, 4, 5, 20, 23, 24, 25, 28, 29)
//! - `properties`: what must hold for any bytes; `invariants`: that, in functions

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like tests"
)]

mod emulator;
mod invariants;
mod live_region;
mod properties;
mod replies;
mod resizes;
mod safety;
mod threads;
mod tmux;
