//! A line that was read once, for everyone who wants to know what it does.

use std::sync::Arc;

use crate::{Analysis, LinePlace, analyze};

/// A line, read where it would run. Only reading it makes one, so that what it says is true of the line
/// no matter who hands it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadLine {
    line: String,
    place: LinePlace,
    analysis: Arc<Analysis>,
}

impl ReadLine {
    /// Reads it.
    pub fn new(line: &str, place: LinePlace) -> Self {
        Self {
            line: line.to_owned(),
            analysis: Arc::new(analyze(line, &place)),
            place,
        }
    }

    /// Was it this line that was read, in this place?
    pub fn is_of(&self, line: &str, place: &LinePlace) -> bool {
        self.line == line && self.place == *place
    }

    /// What it does.
    pub fn analysis(&self) -> &Arc<Analysis> {
        &self.analysis
    }
}
