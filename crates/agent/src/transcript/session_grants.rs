//! The permissions and tools that a session was granted while it ran.

use std::{path::PathBuf, sync::Arc};

use haft_contract::{PermissionMode, RuleList};
use haft_engine::{Scheduler, SessionContext, permissions::SettingsScope, pool::PoolTool};
use serde::{Deserialize, Serialize};

/// The permissions and tools that a session was granted while it ran, in addition to those of flags
/// and settings at its start. The code that resumes the session decides which of them still apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionGrants {
    /// The directory where the session started. The other fields are meaningless in another
    /// directory.
    pub start: PathBuf,
    /// The permission mode. `None` if the mode at the start applies. Plan, auto and
    /// bypassPermissions are never restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// The rules that were added to the session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<(RuleList, String)>,
    /// The working directories that were added to the session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<PathBuf>,
    /// The tools in the order in which the model received them, if a new session would use another
    /// order. The provider's cache is valid only with the same order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

impl SessionGrants {
    /// Returns the grants that the session has now but did not have at its start.
    pub(crate) fn since_start(start: &SessionContext, now: &SessionContext) -> Self {
        let plain = PermissionMode::Default;
        let mode = match now.mode {
            PermissionMode::Plan | PermissionMode::Auto | PermissionMode::BypassPermissions => None,
            mode => Some(mode).filter(|mode| *mode != plain || start.mode != plain),
        };
        let made = now.rules.iter();
        let made = made.filter(|rule| rule.source.scope == SettingsScope::Session);
        let added = now.directories.iter();
        Self {
            start: start.directories.first().cloned().unwrap_or_default(),
            mode,
            rules: made.map(|rule| (rule.list, rule.text.clone())).collect(),
            directories: added
                .filter(|directory| !start.directories.contains(directory))
                // The worktree belongs to the session only while the session is in it.
                .filter(|directory| {
                    let worktree = now.worktree.as_ref();
                    worktree.is_none_or(|worktree| worktree.path != **directory)
                })
                .cloned()
                .collect(),
            tools: Vec::new(),
        }
    }

    /// Adds the tools that the model received.
    pub(crate) fn with_tools(mut self, scheduler: &Scheduler) -> Self {
        let names = |tool: &Arc<PoolTool>| tool.spec().name.clone();
        let sent: Vec<String> = scheduler.offer().iter().map(names).collect();
        let by_itself: Vec<String> = scheduler.engine().pool().offered(&[]).map(names).collect();
        if sent != by_itself {
            self.tools = sent;
        }
        self
    }

    /// Returns whether the session has no grants to restore.
    pub(crate) fn is_empty(&self) -> bool {
        self.mode.is_none()
            && self.rules.is_empty()
            && self.directories.is_empty()
            && self.tools.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use haft_engine::permissions::{RuleSet, RuleSource};

    use super::*;

    #[test]
    fn what_the_start_had_already_is_not_among_them() {
        let start = SessionContext::new("/p").with_directory("/from/a/flag".into());
        let bases = start.bases();
        let mut rules = RuleSet::default();
        for (list, text, scope) in [
            (RuleList::Allow, "Bash(ls:*)", SettingsScope::User),
            (RuleList::Allow, "Bash(make:*)", SettingsScope::Session),
            (RuleList::Deny, "Read(secret)", SettingsScope::Session),
        ] {
            rules
                .add(list, text, RuleSource::from_scope(scope), &bases)
                .unwrap();
        }
        let mut now = start.clone().with_directory("/added".into());
        now.rules = Arc::new(rules);
        now.mode = PermissionMode::AcceptEdits;
        let terms = SessionGrants::since_start(&start, &now);
        let made = [
            (RuleList::Allow, "Bash(make:*)"),
            (RuleList::Deny, "Read(secret)"),
        ];
        let expected = SessionGrants {
            start: "/p".into(),
            mode: Some(PermissionMode::AcceptEdits),
            rules: made.map(|(list, text)| (list, text.to_owned())).into(),
            directories: vec!["/added".into()],
            tools: Vec::new(),
        };
        assert_eq!(terms, expected);
        let line = serde_json::to_string(&terms).unwrap();
        assert_eq!(
            serde_json::from_str::<SessionGrants>(&line).unwrap(),
            expected
        );
        assert!(SessionGrants::since_start(&start, &start).is_empty());
    }

    #[test]
    fn some_modes_are_never_written_down_and_going_back_to_the_plain_one_is() {
        let plain = SessionContext::new("/p");
        let edits = plain.clone().with_mode(PermissionMode::AcceptEdits);
        let mode = |start: &SessionContext, mode| {
            SessionGrants::since_start(start, &plain.clone().with_mode(mode)).mode
        };
        assert_eq!(mode(&plain, PermissionMode::Plan), None);
        assert_eq!(mode(&plain, PermissionMode::Auto), None);
        assert_eq!(mode(&plain, PermissionMode::BypassPermissions), None);
        assert_eq!(mode(&plain, PermissionMode::Default), None);
        let back = PermissionMode::Default;
        assert_eq!(mode(&edits, back), Some(back));
    }
}
