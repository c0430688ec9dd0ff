//! The texts of denials: why a call may not run, and what would allow it.

use haft_contract::{RuleList, ToolPermission};

use super::{DenialSource, EarlyResult, Prepared};
use crate::{
    Engine,
    permissions::{CallFacts, DecisionReason, PatternBases, Policy, is_systems_own, suggest},
};

/// Creates the source of a denial without asking.
pub(super) fn denied_by_policy(kind: &'static str, reason: impl ToString) -> DenialSource {
    DenialSource::Unasked {
        kind: kind.into(),
        reason: reason.to_string(),
        remedy: None,
    }
}

/// The prefix of a remedy.
pub(super) const WOULD_ALLOW: &str = "What would allow it: ";

/// Returns what would have allowed the call, as text for the user who configured the session.
pub(super) fn remedy(
    engine: &Engine,
    policy: &Policy,
    bases: &PatternBases,
    because: &DecisionReason,
    facts: &CallFacts,
    rules: &[String],
) -> String {
    let would = |what: &str| format!("{WOULD_ALLOW}{what}");
    let only_a_person = || "Only a person can allow it.".to_owned();
    if !rules.is_empty() {
        let noun = if rules.len() == 1 { "rule" } else { "rules" };
        return would(&format!("the allow {noun} {}", rules.join(", ")));
    }
    match because {
        DecisionReason::Outside(path) if is_systems_own(path) => only_a_person(),
        DecisionReason::Outside(_) => would(engine.remedy(
            "--add-dir DIR, for a directory DIR that holds it",
            "a further working directory that holds it",
        )),
        DecisionReason::Changes(_) | DecisionReason::Mode(_) if !facts.opaque => {
            would(engine.remedy(
                "--permission-mode acceptEdits",
                "the permission mode acceptEdits",
            ))
        }
        DecisionReason::Protected(path) | DecisionReason::Sensitive(path, _) => {
            let rule = suggest::path_rule(policy, facts, bases, path);
            rule.map_or_else(only_a_person, |rule| {
                would(&format!(
                    "the allow rule {rule} in the user's own settings, or someone to ask"
                ))
            })
        }
        DecisionReason::Changes(_)
        | DecisionReason::Mode(_)
        | DecisionReason::Command { .. }
        | DecisionReason::Address(_) => would(engine.remedy(
            "--permission-mode bypassPermissions, or someone to ask",
            "the permission mode bypassPermissions, or someone to ask",
        )),
        DecisionReason::Unconfined => {
            "Only a person can allow it. Call it again without dangerouslyDisableSandbox."
                .to_owned()
        }
        DecisionReason::Tool(_)
        | DecisionReason::ReadOnly
        | DecisionReason::Rule { .. }
        | DecisionReason::Undecidable(_)
        | DecisionReason::Critical(_)
        | DecisionReason::Interactive
        | DecisionReason::Hook
        | DecisionReason::Sandboxed => only_a_person(),
    }
}

/// Returns the text that the model reads if a call is denied without asking.
pub(super) fn denial_message(
    facts: &CallFacts,
    because: &DecisionReason,
    policy: &Policy,
) -> String {
    let name = &facts.tool;
    match because {
        DecisionReason::Rule {
            rule,
            list: RuleList::Deny,
            on,
            ..
        } => by_rule(name, rule, on),
        DecisionReason::Tool(reason)
            if matches!(facts.tool_permission, ToolPermission::Deny(_)) =>
        {
            format!("Permission to use {name} has been denied: {reason}")
        }
        DecisionReason::Unconfined => format!(
            "Permission to use {name} has been denied: {because}, which only a person can allow, and \
             permission mode {} never asks. Call it again without dangerouslyDisableSandbox.",
            policy.mode.name()
        ),
        because => format!(
            "Permission to use {name} has been denied: it needs a person's consent because \
             {because}, and permission mode {} never asks.",
            policy.mode.name()
        ),
    }
}

/// Returns the text that the model reads if a rule denies a call. Other programs search for the
/// first sentence.
pub(super) fn by_rule(tool: &str, rule: &str, on: &str) -> String {
    let on = match on {
        "" => String::new(),
        on => format!(" It covers `{on}`."),
    };
    format!(
        "Permission to use {tool} has been denied by rule {rule}.{on} Do not try to get around it; \
         if the task cannot be done otherwise, say so."
    )
}

pub(super) fn denied_result(
    prepared: &Prepared,
    denied: DenialSource,
    message: String,
) -> EarlyResult {
    EarlyResult {
        denied: Some(Box::new(denied)),
        ..stopped_result(prepared, message)
    }
}

pub(super) fn interrupted_result(prepared: &Prepared) -> EarlyResult {
    stopped_result(prepared, super::INTERRUPTED.to_owned())
}

/// Returns the result of a call that ends here with this message.
pub(super) fn stopped_result(prepared: &Prepared, message: String) -> EarlyResult {
    EarlyResult {
        name: prepared.name().to_owned(),
        card: Box::new(prepared.bound.render_rejected(&message)),
        denied: None,
        message,
        repairs: prepared.repairs.clone(),
        deferred: false,
        notes: Box::default(),
    }
}
