//! Hook conditions, which connect settings, permissions and hooks.
//!
//! The `if` of a hook handler is one permission rule. In doubt the condition is true: an
//! unnecessary run of a handler costs little, but a handler that does not run when it should is a
//! security hole.

use std::path::PathBuf;

use haft_contract::ToolSpec;
use serde_json::Value;

use crate::{
    hooks::{self, HookCondition, HookHandler},
    permissions::{
        CallFacts, List, PatternBases, PermissionSettings, RuleSet, RuleSource, SettingsScope,
        rules::{Rule, RuleClass},
    },
    settings::{Settings, SettingsProblem},
};

/// Reads the `hooks` of one settings file.
pub fn read(
    scope: SettingsScope,
    file: Option<&PathBuf>,
    value: &Value,
    bases: &PatternBases,
) -> (Vec<HookHandler>, Vec<SettingsProblem>) {
    hooks::read(scope, file, value, bases, &check)
}

/// Checks whether a condition is valid. The error is the reason if it is not.
fn check(condition: &HookCondition) -> Result<(), String> {
    rule(condition).map(|_| ())
}

/// Returns whether a condition holds for this call.
pub(crate) fn condition_matches(condition: &HookCondition, facts: &CallFacts) -> bool {
    // Handlers with an invalid condition were dropped when the settings were read.
    let Ok(Some(rule)) = rule(condition) else {
        return false;
    };
    if facts.matches_rule(&rule) {
        return true;
    }
    let (Some(shell), Some(text)) = (&facts.shell, facts.command_of(&rule)) else {
        return false;
    };
    if shell.analysis.unreadable.is_some() {
        return true;
    }
    // An expansion may produce exactly the text that the rule matches.
    let says_more = text.trim_end_matches(" *").contains(' ');
    says_more && shell.line.contains(['$', '`'])
}

fn rule(condition: &HookCondition) -> Result<Option<Rule>, String> {
    let mut rules = RuleSet::default();
    let name = condition.rule.split('(').next().unwrap_or_default().trim();
    let list = match RuleClass::from_name(name) {
        // Permits for the sandbox match no call: they are refused in this list.
        RuleClass::Commands
        | RuleClass::Tool
        | RuleClass::OfflineCommands
        | RuleClass::ReadDomains => List::Ask,
        // A relative path starts at the working directory, as in an allow rule.
        RuleClass::Reads | RuleClass::Edits | RuleClass::Hosts => List::Allow,
    };
    let source = RuleSource::from_scope(SettingsScope::Session);
    let added = rules.add(list, &condition.rule, source, &condition.bases);
    added.map_err(|problem| format!("if {:?}: {}", problem.rule, problem.problem))?;
    Ok(rules.iter().next().cloned())
}

/// Collects all problems in settings that a session start would warn of: in rules that do not fit
/// these tools, in the sandbox settings and in hooks.
pub fn check_settings(settings: &mut Settings, tools: &[ToolSpec]) {
    let bases = PatternBases {
        cwd: settings.places.cwd.clone(),
        home: settings.places.home.clone(),
        slash: settings.places.cwd.clone(),
    };
    let mut rules = settings.rules(&[], &[]);
    settings.check_rules(&mut rules, tools);
    settings.sandbox();
    settings.plans_directory();
    for (scope, file, value) in settings.hooks() {
        let (_, problems) = read(scope, file.as_ref(), &value, &bases);
        settings.problems.extend(problems);
    }
}
