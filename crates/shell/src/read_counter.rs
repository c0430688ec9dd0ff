//! A counter of analyzed lines, for tests that check that each line is analyzed only once. Counts
//! nothing before [`begin`].

use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock, PoisonError},
};

static COUNTS: OnceLock<Mutex<HashMap<String, u64>>> = OnceLock::new();

/// Starts counting, in the whole process.
pub fn begin() {
    COUNTS.get_or_init(Mutex::default);
}

/// Returns how often this line was analyzed since [`begin`].
pub fn read_count(line: &str) -> u64 {
    let counts = COUNTS.get_or_init(Mutex::default);
    let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    counts.get(line).copied().unwrap_or_default()
}

/// Counts one analysis of a line.
pub(crate) fn record_read(line: &str) {
    if let Some(counts) = COUNTS.get() {
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(line.to_owned()).or_default() += 1;
    }
}
