//! A command line together with its analysis, so that each line is analyzed only once.

use std::sync::Arc;

use crate::{Analysis, LineLocation, analyze};

/// A line and its analysis, for the place where the line would run.
///
/// Only [`AnalyzedLine::new`] creates one, so the analysis always belongs to the line, even after the
/// value was passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnalyzedLine {
    line: String,
    place: LineLocation,
    analysis: Arc<Analysis>,
}

impl AnalyzedLine {
    /// Analyzes a line.
    pub fn new(line: &str, place: LineLocation) -> Self {
        Self {
            line: line.to_owned(),
            analysis: Arc::new(analyze(line, &place)),
            place,
        }
    }

    /// Returns whether this is the analysis of `line` in `place`.
    pub fn is_of(&self, line: &str, place: &LineLocation) -> bool {
        self.line == line && self.place == *place
    }

    /// Returns the analysis.
    pub fn analysis(&self) -> &Arc<Analysis> {
        &self.analysis
    }
}
