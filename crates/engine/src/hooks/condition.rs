//! The `if` of a handler: one permission rule, read generously. A handler that runs for nothing is a
//! nuisance, one that does not run when it should is a hole.

use serde_json::Value;

use super::HookMoment;
use crate::permissions::{
    Bases, Facts, List, PathContext, RuleSource, Rules, Scope,
    rules::{Rule, RuleContent},
};

/// Which calls a handler is for.
#[derive(Debug, Clone)]
pub struct Condition {
    /// `None`: the event is not about a call, so that it never holds.
    rule: Option<Rule>,
}

impl Condition {
    pub(super) fn new(event: HookMoment, text: &str, bases: &Bases) -> Result<Self, String> {
        if !event.is_about_a_call() {
            return Ok(Self { rule: None });
        }
        let mut rules = Rules::default();
        // A path without more is meant from the working directory, as in an allow rule.
        let list = if text.trim_start().starts_with("Bash") {
            List::Ask
        } else {
            List::Allow
        };
        let added = rules.add(list, text, RuleSource::of(Scope::Session), bases);
        added.map_err(|problem| format!("if {:?}: {}", problem.rule, problem.problem))?;
        Ok(Self {
            rule: rules.iter().next().cloned(),
        })
    }

    /// Does it hold for this call?
    pub(super) fn holds(&self, tool: &str, input: &Value, setting: &PathContext) -> bool {
        let Some(rule) = &self.rule else {
            return false;
        };
        let facts = Facts::named(tool, input, setting);
        if facts.is_hit_by(rule) {
            return true;
        }
        let (Some(shell), RuleContent::Command { text, .. }) = (&facts.shell, &rule.content) else {
            return false;
        };
        if shell.analysis.unreadable.is_some() {
            return true;
        }
        // What an expansion gives may be just what the rule speaks of.
        let says_more = text.trim_end_matches(" *").contains(' ');
        says_more && shell.line.contains(['$', '`'])
    }
}
