//! Any bytes as a file and an edit of it: no panic, nothing changed outside the
//! match, one place only, and every tier by its definition.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/journal/tests/it/invariants.rs"]
mod invariants;

fuzz_target!(|bytes: &[u8]| {
    if let Some(case) = invariants::Case::parse(bytes) {
        invariants::check(&case);
    }
});
