//! The texts of denials: why a call may not run, and what would allow it.

use haft_contract::{RuleList, ToolPermission};

use super::{DenialSource, EarlyResult, PreparedCall};
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

/// The prefix of a remedy in a message to the model.
pub(super) const WOULD_ALLOW: &str = "What would allow it: ";

/// Returns what would have allowed the call, as text for the user who configured the session.
pub(super) fn remedy(
    engine: &Engine,
    policy: &Policy,
    bases: &PatternBases,
    reason: &DecisionReason,
    facts: &CallFacts,
    rules: &[String],
) -> String {
    let would = |what: &str| format!("{WOULD_ALLOW}{what}");
    let only_the_user = || "Only the user can allow it.".to_owned();
    if !rules.is_empty() {
        let noun = if rules.len() == 1 { "rule" } else { "rules" };
        return would(&format!("the allow {noun} {}", rules.join(", ")));
    }
    match reason {
        DecisionReason::Outside(path) if is_systems_own(path) => only_the_user(),
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
            rule.map_or_else(only_the_user, |rule| {
                would(&format!(
                    "the allow rule {rule} in the user's own settings, or a session that can ask the user"
                ))
            })
        }
        DecisionReason::Changes(_)
        | DecisionReason::Mode(_)
        | DecisionReason::Command { .. }
        | DecisionReason::Irreversible { .. }
        | DecisionReason::Address(_) => would(engine.remedy(
            "--permission-mode bypassPermissions, or a session that can ask the user",
            "the permission mode bypassPermissions, or a session that can ask the user",
        )),
        DecisionReason::Unconfined => {
            "Only the user can allow it. Call it again without dangerouslyDisableSandbox."
                .to_owned()
        }
        DecisionReason::Tool(_)
        | DecisionReason::ReadOnly
        | DecisionReason::Offline(_)
        | DecisionReason::Rule { .. }
        | DecisionReason::Undecidable(_)
        | DecisionReason::Critical(_)
        | DecisionReason::Interactive
        | DecisionReason::Hook
        | DecisionReason::Reversible
        | DecisionReason::Sandboxed => only_the_user(),
    }
}

/// Returns the text that the model reads if a call is denied without asking.
pub(super) fn denial_message(
    facts: &CallFacts,
    reason: &DecisionReason,
    policy: &Policy,
) -> String {
    let name = &facts.tool;
    match reason {
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
            "Permission to use {name} has been denied: {reason}, which only the user can allow, and \
             permission mode {} never asks. Call it again without dangerouslyDisableSandbox.",
            policy.mode.name()
        ),
        reason => format!(
            "Permission to use {name} has been denied: it needs the user's approval because \
             {reason}, and permission mode {} never asks.",
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
    prepared: &PreparedCall,
    denied: DenialSource,
    message: String,
) -> EarlyResult {
    EarlyResult {
        denied: Some(Box::new(denied)),
        ..stopped_result(prepared, message)
    }
}

pub(super) fn interrupted_result(prepared: &PreparedCall) -> EarlyResult {
    stopped_result(prepared, super::INTERRUPTED.to_owned())
}

/// Returns the result of a call that ends here with this message.
pub(super) fn stopped_result(prepared: &PreparedCall, message: String) -> EarlyResult {
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
