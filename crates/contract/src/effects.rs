//! The effects of a call: the files and state that it touches.
//!
//! The scheduler runs calls concurrently if their effects do not conflict. The permission check
//! evaluates the same effects, so that both always agree.

use std::{borrow::Cow, path::PathBuf};

use serde::{Deserialize, Serialize};

/// The effects of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// The files it reads.
    pub reads: PathReach,
    /// The files it changes.
    pub writes: PathReach,
    /// It must run alone.
    pub exclusive: bool,
    /// It may return [`ContextPatch`](crate::ContextPatch)es, so later calls wait for it. A patch
    /// from a call without this flag is dropped.
    pub patches: bool,
    /// Its result depends on the results of earlier calls on the same paths (a second Read may
    /// refer to the first). Calls with this flag that read the same paths run in order.
    pub in_order: bool,
    /// The name of the non-file state that it works on (such as the task list). Calls with the same
    /// name run one at a time, in order.
    pub queue: Option<Cow<'static, str>>,
    /// The consequence of running the same call again if it is unknown whether the first run
    /// happened.
    pub repeat: Idempotency,
}

/// The extent of reading or writing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathReach {
    /// No path.
    Nothing,
    /// These absolute paths, each with everything below it.
    Paths(Vec<PathBuf>),
    /// Unknown in advance.
    Anything,
}

/// The repeatability of a call whose result was lost (a crash, a broken connection).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idempotency {
    /// It may be run again: a second run changes nothing.
    Harmless,
    /// It must be checked first, by comparing its intended changes with the current files.
    Checkable,
    /// It must not be run again without asking.
    Never,
}

impl Effects {
    /// The effects of a call that touches nothing outside itself.
    pub const NONE: Self = Self {
        reads: PathReach::Nothing,
        writes: PathReach::Nothing,
        exclusive: false,
        patches: false,
        in_order: false,
        queue: None,
        repeat: Idempotency::Harmless,
    };

    /// The effects of a call that reads unknown paths and changes nothing.
    pub const READS: Self = Self {
        reads: PathReach::Anything,
        ..Self::NONE
    };

    /// The effects of a call that may do anything: it runs alone and is never run twice.
    pub const EXCLUSIVE: Self = Self {
        reads: PathReach::Anything,
        writes: PathReach::Anything,
        exclusive: true,
        patches: true,
        in_order: false,
        queue: None,
        repeat: Idempotency::Never,
    };

    /// Returns the effects of a call that only touches this part of the session's state.
    pub const fn queueing(name: &'static str) -> Self {
        Self {
            reads: PathReach::Nothing,
            writes: PathReach::Nothing,
            exclusive: false,
            patches: false,
            in_order: false,
            queue: Some(Cow::Borrowed(name)),
            repeat: Idempotency::Harmless,
        }
    }

    /// Returns the effects of a call that reads these paths and everything below them.
    pub fn reading(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            reads: PathReach::Paths(paths.into_iter().collect()),
            ..Self::NONE
        }
    }

    /// Returns the effects of a call that reads and replaces these files.
    pub fn writing(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths: Vec<_> = paths.into_iter().collect();
        Self {
            reads: PathReach::Paths(paths.clone()),
            writes: PathReach::Paths(paths),
            repeat: Idempotency::Checkable,
            ..Self::NONE
        }
    }

    /// Returns whether the call may be dropped while it runs: it changes nothing and could be
    /// repeated.
    pub fn may_be_dropped(&self) -> bool {
        self.is_read_only() && self.repeat == Idempotency::Harmless
    }

    /// Returns whether the call changes neither files nor any unnamed state.
    pub fn is_read_only(&self) -> bool {
        !self.exclusive && self.writes == PathReach::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_survive_being_written_and_read() {
        let all = [
            Effects::NONE,
            Effects::READS,
            Effects::EXCLUSIVE,
            Effects::queueing("tasks"),
            Effects::reading(["/a".into()]),
            Effects::writing(["/a".into(), "/b c".into()]),
        ];
        for effects in all {
            let written = serde_json::to_string(&effects).unwrap();
            assert_eq!(serde_json::from_str::<Effects>(&written).unwrap(), effects);
        }
    }
}
