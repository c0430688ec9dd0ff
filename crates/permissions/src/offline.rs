//! Command lines that run in the sandbox without network because of `sandbox.offlineCommands`.
//!
//! An entry is not an allow rule: it permits only runs in the profile `workspace`, with a record for undo
//! and without network. Everything that asks or denies in spite of an allow rule does so here, too.

use std::{fmt, path::PathBuf, sync::Arc};

use haft_contract::{
    PermissionMode,
    rule_offer::{OFFLINE_COMMAND, rule_content},
};

use super::{
    CallFacts, DecisionReason, HookPermission, List, PartCoverage, PatternBases, Policy,
    RuleSource, SettingsScope,
    accepted_formatters::is_accepted_formatter,
    allow,
    rules::{Rule, RuleClass, RuleContent},
    sandbox,
    shell_facts::ShellFacts,
    suggest::exact_rule,
};

/// Returns the reason why the line may run without network, if any. If something else permits the
/// line, returns `None`.
pub(super) fn reason(policy: &Policy, facts: &CallFacts) -> Option<OfflineReason> {
    let is_grant = |rule: &Rule| rule.class == RuleClass::OfflineCommands;
    let shell = facts.shell.as_ref()?;
    if !is_possible(policy) {
        return None;
    }
    let formatters = accepted_formatters(policy, shell);
    let has_entries = policy.rules.in_list(List::Allow).any(is_grant);
    if (!has_entries && formatters.is_empty())
        || matches!(facts.hook, HookPermission::Allow | HookPermission::Answer)
        || sandbox::excluded_reason(policy, facts).is_some()
        || sandbox::uses_secret(policy, facts)
    {
        return None;
    }
    // Nothing runs offline by these policies, so evaluating them does not lead back to here.
    let mut without = policy.clone();
    Arc::make_mut(&mut without.sandbox).unwitnessed = true;
    let rules = Arc::make_mut(&mut without.rules);
    rules.retain(|rule| !is_grant(rule));
    let mut with = policy.clone();
    with.sandbox = Arc::clone(&without.sandbox);
    let rules = Arc::make_mut(&mut with.rules);
    rules.treat_as_commands(is_grant);
    // Rules for commands contain no paths.
    let bases = PatternBases {
        cwd: PathBuf::new(),
        home: PathBuf::new(),
        slash: PathBuf::new(),
    };
    for rule in &formatters {
        let source = RuleSource::from_scope(SettingsScope::Session);
        rules.add(List::Allow, rule, source, &bases).ok()?;
    }
    if allow::evaluate_line(&without, facts, shell).is_ok() {
        return None;
    }
    allow::evaluate_line(&with, facts, shell).ok()?;
    let entry = matched_entry(&with, facts, shell).map(OfflineReason::Entry);
    entry.or_else(|| (!formatters.is_empty()).then_some(OfflineReason::Formatter))
}

/// Returns exact rules for the formatters that the mode `acceptEdits` runs without network.
fn accepted_formatters(policy: &Policy, shell: &ShellFacts) -> Vec<String> {
    if policy.mode != PermissionMode::AcceptEdits {
        return Vec::new();
    }
    let parts = shell.analysis.parts.iter().enumerate();
    let accepted = parts.filter(|(at, part)| is_accepted_formatter(policy, shell, *at, part));
    accepted
        .filter_map(|(_, part)| exact_rule(RuleClass::Commands.word(), &part.text))
        .collect()
}

/// The reason why a line runs without network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfflineReason {
    /// This entry of `sandbox.offlineCommands`.
    Entry(String),
    /// The mode `acceptEdits` covers its formatters.
    Formatter,
}

impl fmt::Display for OfflineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(entry) => write!(f, "sandbox.offlineCommands has `{entry}`"),
            Self::Formatter => f.write_str("permission mode is acceptEdits, and it formats files"),
        }
    }
}

/// Returns whether entries have an effect: the sandbox exists, is not disabled, and undo covers what
/// commands change in it. The mode must be one in which rules permit commands.
pub(super) fn is_possible(policy: &Policy) -> bool {
    let sandbox = &policy.sandbox;
    let by_mode = match policy.mode {
        PermissionMode::Default | PermissionMode::AcceptEdits | PermissionMode::DontAsk => true,
        PermissionMode::Plan | PermissionMode::Auto | PermissionMode::BypassPermissions => false,
    };
    by_mode
        && sandbox
            .enabled
            .is_none_or(|enabled| enabled && sandbox.available)
        && !sandbox.unconfined
        && !sandbox.unwitnessed
        && !sandbox.files_open
}

/// Returns the first entry that covers a part of the line.
fn matched_entry(with: &Policy, facts: &CallFacts, shell: &ShellFacts) -> Option<String> {
    let parts = allow::part_coverage(with, facts, shell).into_iter();
    let mut rules = parts.filter_map(|(_, covered)| match covered {
        PartCoverage::Allowed(DecisionReason::Rule { rule, .. }) => Some(rule),
        _ => None,
    });
    let found = rules.find_map(|rule| rule_content(&rule, OFFLINE_COMMAND).map(str::to_owned));
    // An exact entry may cover the line as a whole.
    found.or_else(|| {
        let mut rules = with.rules.in_list(List::Allow);
        rules
            .find_map(|rule| match &rule.content {
                RuleContent::Command { text, .. } => {
                    rule_content(&rule.text, OFFLINE_COMMAND).filter(|_| *text == shell.line.trim())
                }
                _ => None,
            })
            .map(str::to_owned)
    })
}
