//! The diagnostics of a document: those that the server pushes, and those that are pulled.

use std::{collections::BTreeSet, sync::Arc};

use crate::types::Diagnostic;

/// The maximum number of diagnostics to store per file.
const MAX_PROBLEMS: usize = 5000;

/// The diagnostics of a document.
#[derive(Debug, Clone, Default)]
pub struct DocumentReport {
    /// The known diagnostics.
    pub problems: Arc<[Diagnostic]>,
    /// The version of the document they are for; `None` until there are diagnostics for the current
    /// text.
    pub version: Option<i64>,
}

/// The diagnostics of a document by how they arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiagnosticSources {
    pushed: Vec<Diagnostic>,
    pulled: Vec<Diagnostic>,
}

impl DiagnosticSources {
    pub(crate) fn push(&mut self, mut found: Vec<Diagnostic>) {
        found.truncate(MAX_PROBLEMS);
        self.pushed = found;
    }

    pub(crate) fn pull(&mut self, mut found: Vec<Diagnostic>) {
        found.truncate(MAX_PROBLEMS);
        self.pulled = found;
    }

    /// Returns all diagnostics. Pulled ones replace pushed ones of the same source.
    pub(crate) fn all(&self, pulled_sources: &BTreeSet<Option<String>>) -> Arc<[Diagnostic]> {
        let other = |one: &&Diagnostic| !pulled_sources.contains(&one.source);
        let pushed = self.pushed.iter().filter(other);
        self.pulled.iter().chain(pushed).cloned().collect()
    }
}
