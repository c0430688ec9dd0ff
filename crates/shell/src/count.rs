//! How often lines are read, for tests of those who should read each once. Counts nothing until asked to.

use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock, PoisonError},
};

static COUNTS: OnceLock<Mutex<HashMap<String, u64>>> = OnceLock::new();

/// Begins to count, in the whole process.
pub fn begin() {
    COUNTS.get_or_init(Mutex::default);
}

/// How often this line was read since then.
pub fn of(line: &str) -> u64 {
    let counts = COUNTS.get_or_init(Mutex::default);
    let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    counts.get(line).copied().unwrap_or_default()
}

/// A line is read.
pub(crate) fn note(line: &str) {
    if let Some(counts) = COUNTS.get() {
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(line.to_owned()).or_default() += 1;
    }
}
