//! Any text on rows of any width: none is too wide, and only blanks are lost.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[expect(dead_code, reason = "the other targets use the rest")]
#[path = "../../crates/terminal/tests/it/invariants.rs"]
mod invariants;

fuzz_target!(|bytes: &[u8]| invariants::check_wrap(bytes));
