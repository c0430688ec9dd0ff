//! The `if` of a handler: one permission rule, read generously. A handler that runs for nothing is a
//! nuisance, one that does not run when it should is a hole.

use haft_contract::BoundCall;

use super::HookMoment;
use crate::permissions::{
    Bases, Facts, List, PathContext, RuleSource, Rules, Scope,
    rules::{Rule, RuleClass},
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
        let name = text.split('(').next().unwrap_or_default().trim();
        let list = match RuleClass::of(name) {
            RuleClass::Commands | RuleClass::Tool => List::Ask,
            // A path without more is meant from the working directory, as in an allow rule.
            RuleClass::Reads | RuleClass::Edits | RuleClass::Hosts => List::Allow,
        };
        let added = rules.add(list, text, RuleSource::of(Scope::Session), bases);
        added.map_err(|problem| format!("if {:?}: {}", problem.rule, problem.problem))?;
        Ok(Self {
            rule: rules.iter().next().cloned(),
        })
    }

    /// Does it hold for this call?
    pub(super) fn holds(&self, call: &dyn BoundCall, setting: &PathContext) -> bool {
        let Some(rule) = &self.rule else {
            return false;
        };
        let mut facts = Facts::of_call(call);
        facts.read_command(setting);
        if facts.is_hit_by(rule) {
            return true;
        }
        let (Some(shell), Some(text)) = (&facts.shell, facts.command_of(rule)) else {
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
