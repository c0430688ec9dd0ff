//! The second verb: may it run?
//!
//! Meaning first, then permission, so that a call that makes no sense never bothers a person. One
//! exception: what lies outside the working directories is not even looked at before it is
//! permitted.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{Answer, CallContext, Check, PermissionMode, Question, RuleList};

use super::{Prepared, Settled};
use crate::{
    SessionContext,
    permissions::{Because, Behavior, Facts, Policy, Setting, decide, suggest},
    scheduler::Slot,
};

/// A call that may run. Only `admit` makes one: its field is private to this file.
#[derive(Debug)]
pub struct Admitted {
    prepared: Prepared,
    granted: Arc<[PathBuf]>,
    rules: Vec<String>,
}

impl Admitted {
    /// The call.
    pub fn call(&self) -> &Prepared {
        &self.prepared
    }

    /// What it may touch outside the working directories, as real paths.
    pub(super) fn granted(&self) -> &Arc<[PathBuf]> {
        &self.granted
    }

    /// Rules that a person wants kept from now on.
    pub(crate) fn rules(&self) -> &[String] {
        &self.rules
    }

    pub(super) fn into_call(self) -> Prepared {
        self.prepared
    }
}

/// Checks the call's meaning and decides whether it may run, asking a person if need be.
pub(crate) async fn admit(
    prepared: Prepared,
    cx: &CallContext,
    context: &SessionContext,
    policy: &Policy,
    slot: &mut Slot,
) -> Result<Admitted, Settled> {
    let setting = Setting {
        cwd: cx.cwd.to_path_buf(),
        home: context.home.clone(),
    };
    let facts = Facts::of(&*prepared.bound, cx, &setting);
    let decision = decide(policy, &facts);
    let mut rules = Vec::new();
    tracing::debug!(call = %cx.call, tool = prepared.name(), ?decision.behavior, because = %decision.because);
    let outside = matches!(decision.because, Because::Outside(_));
    if decision.behavior == Behavior::Deny {
        return Err(rejected(
            &prepared,
            denial(&prepared, &decision.because, policy),
        ));
    }
    if decision.behavior == Behavior::Ask && outside {
        rules.extend(
            ask(
                &prepared,
                &facts,
                &decision.because,
                context,
                policy,
                cx,
                slot,
            )
            .await?,
        );
    }
    let checked = tokio::select! {
        checked = prepared.bound.check(cx) => checked,
        () = cx.cancel.cancelled() => return Err(rejected(&prepared, super::INTERRUPTED.to_owned())),
    };
    let because = match checked {
        Err(error) => {
            let card = prepared.bound.render_error(&error);
            return Err(Settled::misuse(
                prepared.name(),
                &error.to_string(),
                card,
                prepared.repairs.clone(),
            ));
        }
        Ok(Check::Ask(reason)) => Some(Because::Tool(reason)),
        Ok(Check::Pass) if decision.behavior == Behavior::Ask && !outside => Some(decision.because),
        Ok(Check::Pass) => None,
    };
    if let Some(because) = because {
        if policy.mode == PermissionMode::DontAsk {
            return Err(rejected(&prepared, denial(&prepared, &because, policy)));
        }
        rules.extend(ask(&prepared, &facts, &because, context, policy, cx, slot).await?);
    }
    let granted: BTreeSet<&Path> = facts.outside(policy).collect();
    let granted = granted.into_iter().map(Path::to_path_buf).collect();
    Ok(Admitted {
        prepared,
        granted,
        rules,
    })
}

/// Puts the question to a person; the rules they want kept come back. Waiting for them holds no slot.
async fn ask(
    prepared: &Prepared,
    facts: &Facts,
    because: &Because,
    context: &SessionContext,
    policy: &Policy,
    cx: &CallContext,
    slot: &mut Slot,
) -> Result<Vec<String>, Settled> {
    let rules = suggest(policy, facts, &context.bases());
    let reason = match &facts.command {
        Some(command) => format!("{because}: {command}"),
        None => because.to_string(),
    };
    let question = Question {
        call: cx.call,
        tool: prepared.name().to_owned(),
        card: prepared.card(),
        reason,
        rules: rules.clone(),
    };
    let answer = slot
        .without(async {
            tokio::select! {
                answer = cx.services.approver().ask(question) => Some(answer),
                () = cx.cancel.cancelled() => None,
            }
        })
        .await;
    let name = prepared.name();
    let message = match answer {
        Some(Answer::Allow) => return Ok(Vec::new()),
        Some(Answer::Always) => return Ok(rules),
        Some(Answer::Deny { reason: None }) => format!(
            "The user did not permit this call to {name}. Do not try it again; ask what they want \
             instead."
        ),
        Some(Answer::Deny {
            reason: Some(reason),
        }) => {
            format!("The user did not permit this call to {name}. They said: {reason}")
        }
        Some(Answer::Nobody) => format!(
            "Permission to use {name} was not granted: this session cannot prompt. It needs \
             permission because {because}.\n{}",
            remedy(because, facts, &rules)
        ),
        None => super::INTERRUPTED.to_owned(),
    };
    Err(rejected(prepared, message))
}

fn denial(prepared: &Prepared, because: &Because, policy: &Policy) -> String {
    let name = prepared.name();
    match because {
        Because::Rule {
            rule,
            list: RuleList::Deny,
            ..
        } => format!("Permission to use {name} has been denied by rule {rule}."),
        Because::Tool(reason) if policy.mode != PermissionMode::DontAsk => {
            format!("Permission to use {name} has been denied: {reason}")
        }
        because => format!(
            "Permission to use {name} has been denied: it would have to be asked for, because \
             {because}, and permission mode {} never asks.",
            policy.mode.name()
        ),
    }
}

/// What would have allowed it, for whoever set the session up.
fn remedy(because: &Because, facts: &Facts, rules: &[String]) -> String {
    if !rules.is_empty() {
        return format!("What would allow it: the allow rule {}", rules.join(", "));
    }
    match because {
        Because::Outside(_) => {
            "What would allow it: --add-dir DIR, for a directory DIR that holds it".to_owned()
        }
        Because::Changes | Because::Mode(_) if !facts.opaque => {
            "What would allow it: --permission-mode acceptEdits".to_owned()
        }
        Because::Changes
        | Because::Mode(_)
        | Because::Protected(_)
        | Because::Sensitive(_)
        | Because::Command { .. }
        | Because::Address(_) => {
            "What would allow it: --permission-mode bypassPermissions, or someone to ask".to_owned()
        }
        Because::Tool(_)
        | Because::ReadOnly
        | Because::Rule { .. }
        | Because::Undecidable(_)
        | Because::Critical(_)
        | Because::Interactive
        | Because::Hook
        | Because::Sandboxed => "Only a person can allow it.".to_owned(),
    }
}

fn rejected(prepared: &Prepared, message: String) -> Settled {
    Settled {
        name: prepared.name().to_owned(),
        card: Box::new(prepared.bound.render_rejected(&message)),
        message,
        repairs: prepared.repairs.clone(),
    }
}
