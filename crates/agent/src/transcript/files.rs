//! The files that a session has read and changed.

use std::{collections::BTreeSet, path::PathBuf};

use haft_contract::{Effects, PathReach};
use serde::{Deserialize, Serialize};

/// The files that a session has read and changed, according to the declared effects of its calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TouchedFiles {
    /// The files that were read.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub reads: BTreeSet<PathBuf>,
    /// The files that were changed or created.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub writes: BTreeSet<PathBuf>,
}

impl TouchedFiles {
    /// Returns the files in the declared effects of a call.
    pub fn from_effects(effects: &Effects) -> Self {
        let paths = |reach: &PathReach| match reach {
            PathReach::Paths(paths) => paths.iter().cloned().collect(),
            PathReach::Nothing | PathReach::Anything => BTreeSet::new(),
        };
        Self {
            reads: paths(&effects.reads),
            writes: paths(&effects.writes),
        }
    }

    /// Adds the files of `more`.
    pub fn add(&mut self, more: Self) {
        self.reads.extend(more.reads);
        self.writes.extend(more.writes);
    }
}
