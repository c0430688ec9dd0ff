//! What a call touches.
//!
//! The scheduler runs calls side by side where their effects cannot meet, and the permission check
//! judges the same effects, so a tool says it once and both agree.

use std::{borrow::Cow, path::PathBuf};

use serde::{Deserialize, Serialize};

/// What one call touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// What it looks at.
    pub reads: Reach,
    /// What it changes.
    pub writes: Reach,
    /// It must run with nothing beside it.
    pub exclusive: bool,
    /// It may answer with [`ContextPatch`](crate::ContextPatch)es, so calls after it wait for them.
    /// A patch from a call that did not say so is dropped.
    pub patches: bool,
    /// What it answers depends on what earlier calls were answered of the same paths (a second Read
    /// may point to the first), so calls that say so and read the same run in the order of the calls.
    pub in_order: bool,
    /// It works on something that is no file and has this name (the task list): calls that say the same
    /// name run one after the other, in the order of the calls.
    pub queue: Option<Cow<'static, str>>,
    /// What a second run of the same call would do, when no one knows whether the first one ran.
    pub repeat: Idempotency,
}

/// How far reading or writing goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Not at all.
    Nothing,
    /// These absolute paths, each with everything below it.
    Paths(Vec<PathBuf>),
    /// No one can say beforehand.
    Anything,
}

/// Whether a call may be run again when its outcome was lost (a crash, a broken connection).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idempotency {
    /// Run it again: nothing changes.
    Harmless,
    /// Look first: what it would do can be compared with what is there.
    Checkable,
    /// Never without asking.
    Never,
}

impl Effects {
    /// Touches nothing outside itself.
    pub const NONE: Self = Self {
        reads: Reach::Nothing,
        writes: Reach::Nothing,
        exclusive: false,
        patches: false,
        in_order: false,
        queue: None,
        repeat: Idempotency::Harmless,
    };

    /// Reads, no telling what; changes nothing.
    pub const READS: Self = Self {
        reads: Reach::Anything,
        ..Self::NONE
    };

    /// May do anything: runs alone, and is never run twice.
    pub const EXCLUSIVE: Self = Self {
        reads: Reach::Anything,
        writes: Reach::Anything,
        exclusive: true,
        patches: true,
        in_order: false,
        queue: None,
        repeat: Idempotency::Never,
    };

    /// Touches nothing but this part of the session.
    pub const fn queueing(name: &'static str) -> Self {
        Self {
            reads: Reach::Nothing,
            writes: Reach::Nothing,
            exclusive: false,
            patches: false,
            in_order: false,
            queue: Some(Cow::Borrowed(name)),
            repeat: Idempotency::Harmless,
        }
    }

    /// Reads these paths and what is below them.
    pub fn reading(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            reads: Reach::Paths(paths.into_iter().collect()),
            ..Self::NONE
        }
    }

    /// Reads and replaces these files.
    pub fn writing(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths: Vec<_> = paths.into_iter().collect();
        Self {
            reads: Reach::Paths(paths.clone()),
            writes: Reach::Paths(paths),
            repeat: Idempotency::Checkable,
            ..Self::NONE
        }
    }

    /// It may be dropped in the middle: it changes nothing, and could be run again.
    pub fn may_be_dropped(&self) -> bool {
        self.is_read_only() && self.repeat == Idempotency::Harmless
    }

    /// Changes nothing: neither files nor anything no one can name.
    pub fn is_read_only(&self) -> bool {
        !self.exclusive && self.writes == Reach::Nothing
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
