//! Where settings, permissions and hooks meet.
//!
//! The `if` of a hook handler is one permission rule, read generously. A handler that runs for
//! nothing is a nuisance, one that does not run when it should is a hole.

use std::path::PathBuf;

use serde_json::Value;

use crate::{
    hooks::{self, Condition, Handler},
    permissions::{
        Bases, Facts, List, PermissionSettings, RuleSource, Rules, Scope,
        rules::{Rule, RuleContent},
    },
    settings::{Problem, Settings},
};

/// Reads the `hooks` of one settings file.
pub fn read(
    scope: Scope,
    file: Option<&PathBuf>,
    value: &Value,
    bases: &Bases,
) -> (Vec<Handler>, Vec<Problem>) {
    hooks::read(scope, file, value, bases, &check)
}

/// Can it be a condition? The error says why not.
fn check(condition: &Condition) -> Result<(), String> {
    rule(condition).map(|_| ())
}

/// Does it hold for this call?
pub(crate) fn holds(condition: &Condition, facts: &Facts) -> bool {
    // What cannot be read was left out when the handler was.
    let Ok(Some(rule)) = rule(condition) else {
        return false;
    };
    if facts.is_hit_by(&rule) {
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

fn rule(condition: &Condition) -> Result<Option<Rule>, String> {
    let mut rules = Rules::default();
    // A path without more is meant from the working directory, as in an allow rule.
    let list = if condition.rule.trim_start().starts_with("Bash") {
        List::Ask
    } else {
        List::Allow
    };
    let source = RuleSource::of(Scope::Session);
    let added = rules.add(list, &condition.rule, source, &condition.bases);
    added.map_err(|problem| format!("if {:?}: {}", problem.rule, problem.problem))?;
    Ok(rules.iter().next().cloned())
}

/// Notes everything in settings that a start would complain of: rules, the sandbox, hooks.
pub fn complain(settings: &mut Settings) {
    let bases = Bases {
        cwd: settings.places.cwd.clone(),
        home: settings.places.home.clone(),
        slash: settings.places.cwd.clone(),
    };
    settings.rules(&[], &[]);
    settings.sandbox();
    settings.plans_directory();
    for (scope, file, value) in settings.hooks() {
        let (_, problems) = read(scope, file.as_ref(), &value, &bases);
        settings.problems.extend(problems);
    }
}
