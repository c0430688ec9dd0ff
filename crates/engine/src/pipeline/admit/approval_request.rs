//! Asks for approval of one call: the PermissionRequest hooks first, then the user.

use haft_contract::{ApprovalAnswer, ApprovalRequest, PermissionMode, ToolUse};
use serde_json::Value;

use super::CallAdmission;
use crate::{
    permissions::{CallFacts, DecisionReason, approval_parts, find_look_alikes, suggest},
    pipeline::{
        ApprovalSource, DenialSource, EarlyResult, PreparedCall,
        denial::{WOULD_ALLOW, denied_by_policy, denied_result, interrupted_result, remedy},
        hooks::{self, PermissionHookAnswer},
    },
};

impl CallAdmission<'_> {
    /// Requests approval from the hooks, then from the user. Returns the new input if it was
    /// replaced, and `Err` if the call was denied. The call occupies no slot while it waits.
    pub(super) async fn request_approval(
        &mut self,
        prepared: &PreparedCall,
        facts: &CallFacts,
        ask_reason: &DecisionReason,
    ) -> Result<Option<Value>, EarlyResult> {
        match (&self.approved_reason, ask_reason) {
            (None, _) => {}
            // The user approved something else, and a typing error in the new input must not start a
            // critical operation.
            (Some(approved_reason), DecisionReason::Critical(_))
                if approved_reason != ask_reason =>
            {
                let name = prepared.name();
                let message = format!(
                    "Permission to use {name} has been denied: the user has changed the input, and now \
                     {ask_reason}. The user was asked for a different reason."
                );
                return Err(denied_result(
                    prepared,
                    denied_by_policy(ask_reason.kind(), ask_reason),
                    message,
                ));
            }
            (Some(_), _) => return Ok(None),
        }
        let offers = self.offers(facts).await;
        let hook_answer = if self.is_input_replaced {
            PermissionHookAnswer::NoAnswer
        } else {
            let (path_context, notes) = (&self.path_context, &mut self.effects.notes);
            let hooks_done = hooks::run_permission_request(
                self.engine,
                prepared,
                &offers,
                self.context,
                path_context,
                notes,
            );
            let Some(hook_answer) = self.cx.cancel.run_until_cancelled(hooks_done).await else {
                return Err(interrupted_result(prepared));
            };
            hook_answer
        };
        match hook_answer {
            PermissionHookAnswer::NoAnswer => {}
            // Only the user can allow a command to run outside the sandbox.
            PermissionHookAnswer::Allow { .. } if *ask_reason == DecisionReason::Unconfined => {}
            // For a question to the user, the hook must provide the answer as the new input.
            PermissionHookAnswer::Allow {
                updated_input: None,
                ..
            } if facts.interactive => {}
            PermissionHookAnswer::Allow {
                updated_input,
                updates,
            } => {
                self.effects
                    .patches
                    .extend(updates.iter().flat_map(suggest::patches));
                self.is_input_replaced = updated_input.is_some();
                self.effects.approval = ApprovalSource::Hook;
                return Ok(updated_input);
            }
            PermissionHookAnswer::Deny(message) => {
                let denied = denied_by_policy("hook", "a PermissionRequest hook");
                return Err(denied_result(prepared, denied, message));
            }
        }
        let why = match &self.hook_ask_reason {
            Some(why) if *ask_reason == DecisionReason::Hook => why.clone(),
            _ => ask_reason.to_string(),
        };
        let ended = self
            .engine
            .grants
            .take_ended(&self.policy, facts, self.context);
        let why = ended.iter().fold(why, |why, text| format!("{text}; {why}"));
        let reason = match &facts.command {
            Some(command) => format!("{why}: {command}"),
            None => why,
        };
        let preview = prepared.bound.preview(&self.check_context(facts)).await;
        let asked_parts = approval_parts::parts(&self.policy, facts);
        let rule_store = self
            .engine
            .rule_store
            .as_ref()
            .filter(|_| !offers.is_empty());
        let question = ApprovalRequest {
            kind: prepared.spec().profile.approval,
            call: self.cx.call,
            tool: prepared.name().to_owned(),
            card: prepared.card(),
            preview,
            reasons: {
                let reasons = match &self.hook_ask_reason {
                    Some(why) if *ask_reason == DecisionReason::Hook => vec![why.clone()],
                    _ => approval_parts::ask_reasons(ask_reason, &asked_parts),
                };
                ended.into_iter().chain(reasons).collect()
            },
            resolved_elsewhere: approval_parts::resolved_elsewhere(facts, &self.path_context.cwd),
            look_alikes: find_look_alikes(facts),
            parts: asked_parts,
            confinement: approval_parts::confinement_text(&self.policy, facts),
            destinations: rule_store
                .map(|rule_store| rule_store.destinations())
                .unwrap_or_default(),
            reason,
            offers: offers.clone(),
            asked: Some(ToolUse {
                id: prepared.id.clone(),
                name: prepared.name().to_owned(),
                input: prepared.bound.input().clone(),
            }),
            agent: None,
        };
        let cx = self.cx;
        let notification = format!("{}: {}", prepared.name(), question.reason);
        let (engine, path_context) = (self.engine, &self.path_context);
        let answer = self
            .slot
            .release_while(async {
                tokio::select! {
                    biased;
                    answer = cx.services.approver().ask(question) => Some(answer),
                    () = cx.cancel.cancelled() => None,
                    // Notifies the hooks only if the answer does not come immediately, because
                    // then the user is being asked.
                    never = hooks::notify_approval_pending(engine, &notification, &path_context.cwd) => match never {},
                }
            })
            .await;
        if let Some(answer) = &answer {
            self.apply_grants(answer, &offers);
        }
        let name = prepared.name();
        let mut denied = DenialSource::Person;
        self.effects.approval = match answer {
            Some(ApprovalAnswer::AllowAlways) => ApprovalSource::UserAlways,
            _ => ApprovalSource::User,
        };
        let message = match answer {
            Some(ApprovalAnswer::Allow) => return Ok(None),
            Some(ApprovalAnswer::InputEdited { input }) => {
                self.is_input_replaced = true;
                self.approved_reason = Some(ask_reason.clone());
                return Ok(Some(input));
            }
            Some(ApprovalAnswer::Updated {
                input,
                patches,
                keep,
                scope,
            }) => {
                self.effects.patches.extend(patches);
                self.effects.rules.extend(keep);
                self.effects.rule_scope = scope.unwrap_or_default();
                if input.is_some() {
                    self.is_input_replaced = true;
                    self.approved_reason = Some(ask_reason.clone());
                }
                return Ok(input);
            }
            Some(ApprovalAnswer::AllowAlways) => {
                let first = offers.into_iter().next();
                self.effects
                    .rules
                    .extend(first.into_iter().flat_map(|offer| offer.rules));
                return Ok(None);
            }
            Some(ApprovalAnswer::Deny { reason: None }) => format!(
                "The user did not permit this call to {name}. Do not try it again; ask what they \
                 want instead.{}",
                self.plan_mode_note()
            ),
            Some(ApprovalAnswer::Deny {
                reason: Some(reason),
            }) => {
                let planning = self.plan_mode_note();
                format!(
                    "The user did not permit this call to {name}. They said: {reason}{planning}"
                )
            }
            Some(ApprovalAnswer::Unavailable) => {
                let would_allow = remedy(
                    self.engine,
                    &self.policy,
                    &self.context.bases(),
                    ask_reason,
                    facts,
                    suggest::sufficient_rules(&offers),
                );
                self.fire_permission_denied(prepared, ask_reason).await;
                denied = DenialSource::Unasked {
                    kind: ask_reason.kind().into(),
                    reason: ask_reason.to_string(),
                    remedy: would_allow.strip_prefix(WOULD_ALLOW).map(str::to_owned),
                };
                format!(
                    "Permission to use {name} was not granted: this session cannot prompt. The call \
                     needs the user's approval because {ask_reason}.\n{would_allow}"
                )
            }
            None => return Err(interrupted_result(prepared)),
        };
        Err(denied_result(prepared, denied, message))
    }

    /// Notifies the hooks that the call is denied without asking.
    pub(super) async fn fire_permission_denied(
        &mut self,
        prepared: &PreparedCall,
        ask_reason: &DecisionReason,
    ) {
        let (engine, context, path_context) = (self.engine, self.context, &self.path_context);
        let (reason, notes) = (ask_reason.to_string(), &mut self.effects.notes);
        let hooks_done =
            hooks::run_permission_denied(engine, prepared, &reason, context, path_context, notes);
        self.cx.cancel.run_until_cancelled(hooks_done).await;
    }

    /// Returns the sentence that plan mode remains on, if it is on.
    fn plan_mode_note(&self) -> &'static str {
        match self.policy.mode {
            PermissionMode::Plan => "\nPlan mode stays on.",
            _ => "",
        }
    }
}
