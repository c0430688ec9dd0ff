//! Any bytes from a terminal: however they are split, the events are the same, and none of them acts.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[expect(dead_code, reason = "the other targets use the rest")]
#[path = "../../crates/terminal/tests/it/invariants.rs"]
mod invariants;

fuzz_target!(|bytes: &[u8]| invariants::check_input(bytes));
