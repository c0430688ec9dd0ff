//! Which files a session has read and changed.

use std::{collections::BTreeSet, path::PathBuf};

use haft_contract::{Effects, Reach};
use serde::{Deserialize, Serialize};

/// Which files a session has read and changed, by what its calls said they would touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Files {
    /// Looked at.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub reads: BTreeSet<PathBuf>,
    /// Changed, or made.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub writes: BTreeSet<PathBuf>,
}

impl Files {
    /// What a call says it touches.
    pub fn of(effects: &Effects) -> Self {
        let paths = |reach: &Reach| match reach {
            Reach::Paths(paths) => paths.iter().cloned().collect(),
            Reach::Nothing | Reach::Anything => BTreeSet::new(),
        };
        Self {
            reads: paths(&effects.reads),
            writes: paths(&effects.writes),
        }
    }

    /// Both together.
    pub fn add(&mut self, more: Self) {
        self.reads.extend(more.reads);
        self.writes.extend(more.writes);
    }
}
