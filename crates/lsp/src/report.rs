//! What a server found in a document: what it says unasked, and what it answers.

use std::{collections::BTreeSet, sync::Arc};

use crate::types::Diagnostic;

/// How many problems of one file are kept.
const MOST_PROBLEMS: usize = 5000;

/// What a server found in a document.
#[derive(Debug, Clone, Default)]
pub struct DocumentReport {
    /// The problems, as far as they are known.
    pub problems: Arc<[Diagnostic]>,
    /// The version they are of; `None` before there were any.
    pub version: Option<i64>,
}

/// The problems of a document by how they came.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownProblems {
    pushed: Vec<Diagnostic>,
    pulled: Vec<Diagnostic>,
}

impl KnownProblems {
    pub(crate) fn push(&mut self, mut found: Vec<Diagnostic>) {
        found.truncate(MOST_PROBLEMS);
        self.pushed = found;
    }

    pub(crate) fn pull(&mut self, mut found: Vec<Diagnostic>) {
        found.truncate(MOST_PROBLEMS);
        self.pulled = found;
    }

    /// All of them: an answer takes the place of what was said unasked by the same source.
    pub(crate) fn all(&self, pulled_sources: &BTreeSet<Option<String>>) -> Arc<[Diagnostic]> {
        let other = |one: &&Diagnostic| !pulled_sources.contains(&one.source);
        let pushed = self.pushed.iter().filter(other);
        self.pulled.iter().chain(pushed).cloned().collect()
    }
}
