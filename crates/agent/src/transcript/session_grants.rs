//! What a session came to be permitted and offered while it ran.

use std::{path::PathBuf, sync::Arc};

use haft_contract::{PermissionMode, RuleList};
use haft_engine::{Scheduler, SessionContext, permissions::Scope, pool::PoolTool};
use serde::{Deserialize, Serialize};

/// What a session came to be permitted while it ran, beyond what flags and settings said at its start.
/// Anyone who takes the session up again decides what of it still counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// The directory it started in; the rest means nothing elsewhere.
    pub start: PathBuf,
    /// How much ran without asking. `None`: the start decides, as it does for the modes that are never
    /// taken over, plan and bypassPermissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// Rules that were made for the session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<(RuleList, String)>,
    /// Working directories that were added to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<PathBuf>,
    /// The tools that its model was sent, in their order, if that is not the order in which a new session would
    /// send them: the provider's cache of what was said holds only behind the same tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

impl Terms {
    /// What the session has now and had not at its start.
    pub(crate) fn between(start: &SessionContext, now: &SessionContext) -> Self {
        let plain = PermissionMode::Default;
        let mode = match now.mode {
            PermissionMode::Plan | PermissionMode::BypassPermissions => None,
            mode => Some(mode).filter(|mode| *mode != plain || start.mode != plain),
        };
        let made = now.rules.iter();
        let made = made.filter(|rule| rule.source.scope == Scope::Session);
        let added = now.directories.iter();
        Self {
            start: start.directories.first().cloned().unwrap_or_default(),
            mode,
            rules: made.map(|rule| (rule.list, rule.text.clone())).collect(),
            directories: added
                .filter(|directory| !start.directories.contains(directory))
                // A worktree is the session's only as long as it is in it.
                .filter(|directory| {
                    let worktree = now.worktree.as_ref();
                    worktree.is_none_or(|worktree| worktree.path != **directory)
                })
                .cloned()
                .collect(),
            tools: Vec::new(),
        }
    }

    /// The same with the tools that the model was sent.
    pub(crate) fn with_tools(mut self, scheduler: &Scheduler) -> Self {
        let names = |tool: &Arc<PoolTool>| tool.spec().name.clone();
        let sent: Vec<String> = scheduler.offer().iter().map(names).collect();
        let by_itself: Vec<String> = scheduler.engine().pool().offered(&[]).map(names).collect();
        if sent != by_itself {
            self.tools = sent;
        }
        self
    }

    /// There is nothing that a new start would not have by itself.
    pub(crate) fn is_empty(&self) -> bool {
        self.mode.is_none()
            && self.rules.is_empty()
            && self.directories.is_empty()
            && self.tools.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use haft_engine::permissions::{RuleSource, Rules};

    use super::*;

    #[test]
    fn what_the_start_had_already_is_not_among_them() {
        let start = SessionContext::new("/p").with_directory("/from/a/flag".into());
        let bases = start.bases();
        let mut rules = Rules::default();
        for (list, text, scope) in [
            (RuleList::Allow, "Bash(ls:*)", Scope::User),
            (RuleList::Allow, "Bash(make:*)", Scope::Session),
            (RuleList::Deny, "Read(secret)", Scope::Session),
        ] {
            rules
                .add(list, text, RuleSource::of(scope), &bases)
                .unwrap();
        }
        let mut now = start.clone().with_directory("/added".into());
        now.rules = Arc::new(rules);
        now.mode = PermissionMode::AcceptEdits;
        let terms = Terms::between(&start, &now);
        let made = [
            (RuleList::Allow, "Bash(make:*)"),
            (RuleList::Deny, "Read(secret)"),
        ];
        let expected = Terms {
            start: "/p".into(),
            mode: Some(PermissionMode::AcceptEdits),
            rules: made.map(|(list, text)| (list, text.to_owned())).into(),
            directories: vec!["/added".into()],
            tools: Vec::new(),
        };
        assert_eq!(terms, expected);
        let line = serde_json::to_string(&terms).unwrap();
        assert_eq!(serde_json::from_str::<Terms>(&line).unwrap(), expected);
        assert!(Terms::between(&start, &start).is_empty());
    }

    #[test]
    fn some_modes_are_never_written_down_and_going_back_to_the_plain_one_is() {
        let plain = SessionContext::new("/p");
        let edits = plain.clone().with_mode(PermissionMode::AcceptEdits);
        let mode = |start: &SessionContext, mode| {
            Terms::between(start, &plain.clone().with_mode(mode)).mode
        };
        assert_eq!(mode(&plain, PermissionMode::Plan), None);
        assert_eq!(mode(&plain, PermissionMode::BypassPermissions), None);
        assert_eq!(mode(&plain, PermissionMode::Default), None);
        let back = PermissionMode::Default;
        assert_eq!(mode(&edits, back), Some(back));
    }
}
