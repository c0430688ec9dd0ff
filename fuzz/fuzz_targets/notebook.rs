//! Any bytes as a notebook and a change of it: no panic, and only the named cell
//! differs, also for another JSON reader.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/journal/tests/it/notebook_invariants.rs"]
mod notebook_invariants;

fuzz_target!(|bytes: &[u8]| {
    if let Some(case) = notebook_invariants::Case::parse(bytes) {
        notebook_invariants::check(&case);
    }
});
