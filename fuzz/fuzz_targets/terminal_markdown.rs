//! Any text as a reply: however it is split the same is committed, and nothing in it acts on a terminal.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[expect(dead_code, reason = "the other targets use the rest")]
#[path = "../../crates/terminal/tests/it/invariants.rs"]
mod invariants;

fuzz_target!(|bytes: &[u8]| invariants::check_markdown(bytes));
