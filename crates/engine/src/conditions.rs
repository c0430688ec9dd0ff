//! Where settings, permissions and hooks meet.
//!
//! The `if` of a hook handler is one permission rule, read generously. A handler that runs for
//! nothing is a nuisance, one that does not run when it should is a hole.

use std::path::PathBuf;

use haft_contract::ToolSpec;
use serde_json::Value;

use crate::{
    hooks::{self, Condition, Handler},
    permissions::{
        Bases, Facts, List, PermissionSettings, RuleSource, Rules, Scope,
        rules::{Rule, RuleClass},
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
    let (Some(shell), Some(text)) = (&facts.shell, facts.command_of(&rule)) else {
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
    let name = condition.rule.split('(').next().unwrap_or_default().trim();
    let list = match RuleClass::of(name) {
        RuleClass::Commands | RuleClass::Tool => List::Ask,
        // A path without more is meant from the working directory, as in an allow rule.
        RuleClass::Reads | RuleClass::Edits | RuleClass::Hosts => List::Allow,
    };
    let source = RuleSource::of(Scope::Session);
    let added = rules.add(list, &condition.rule, source, &condition.bases);
    added.map_err(|problem| format!("if {:?}: {}", problem.rule, problem.problem))?;
    Ok(rules.iter().next().cloned())
}

/// Notes everything in settings that a start would warn of: rules that mean nothing to these tools, the
/// sandbox, hooks.
pub fn check_settings(settings: &mut Settings, tools: &[ToolSpec]) {
    let bases = Bases {
        cwd: settings.places.cwd.clone(),
        home: settings.places.home.clone(),
        slash: settings.places.cwd.clone(),
    };
    let mut rules = settings.rules(&[], &[]);
    settings.understand(&mut rules, tools);
    settings.sandbox();
    settings.plans_directory();
    for (scope, file, value) in settings.hooks() {
        let (_, problems) = read(scope, file.as_ref(), &value, &bases);
        settings.problems.extend(problems);
    }
}
