//! The second step of a call: decides whether it may run.
//!
//! 1. The tool checks whether the call can succeed, so that the user is not asked about a call that
//!    would fail anyway. Paths that are denied, sensitive or outside the working directories are
//!    checked only after the call is permitted.
//! 2. PreToolUse hooks run. They can allow, deny, defer or change the call.
//! 3. Rules and the permission mode decide: the call is allowed, denied, or needs approval.
//! 4. PermissionRequest hooks and then the user are asked for approval.
//!
//! If a hook or the user replaces the input, the steps are repeated with the new input.

mod approval_request;
mod offered_rules;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{
    AuthorizedPaths, CallContext, CheckOutcome, Confinement, ConfinementProfile,
    ConfinementStrength, ContextPatch, NetworkAccess, PermissionMode, RuleList, RuleScope,
    ToolPermission,
};
use serde_json::Value;

use super::{
    ApprovalSource, DenialSource, EarlyResult, InputAuthor, PreparedCall, confinement,
    denial::{denial_message, denied_by_policy, denied_result, interrupted_result, stopped_result},
    facts::read_command,
    hooks::{self, HookNotes, PreToolHooks},
    private_paths::{self, PrivateNames},
    undo_note::CallPermission,
};
use crate::{
    Engine, SessionContext,
    hooks::HookEventKind,
    permissions::{
        CallFacts, Decision, DecisionBehavior, DecisionReason, HookPermission, PathContext, Policy,
        PrivateTmp, decide,
    },
    scheduler::CallSlot,
};

/// The message to the model about a call that a hook has deferred.
const DEFERRED: &str = "A hook has deferred this call: it has not run. When the conversation \
                        continues, repeat it as the only call.";

/// A call that may run. Only `admit` can create one, because the fields are private to this module.
#[derive(Debug)]
pub struct AdmittedCall {
    prepared: PreparedCall,
    grants: CallGrants,
    effects: AdmissionEffects,
}

/// The files and commands that a call may use.
#[derive(Debug)]
pub(super) struct CallGrants {
    /// The permitted real paths outside the working directories.
    pub(super) outside_paths: Arc<[PathBuf]>,
    /// The paths that the permission decision covered.
    pub(super) authorized: AuthorizedPaths,
    /// The confinement of the command that it starts.
    pub(super) confinement: Confinement,
    /// The human-readable reason why the call may run.
    reason: String,
    /// The permission, for its result.
    permission: CallPermission,
    /// The context of the tool's check, to be reused when the call runs.
    context: Option<CallContext>,
}

impl AdmittedCall {
    /// Returns the call.
    pub fn call(&self) -> &PreparedCall {
        &self.prepared
    }

    /// Returns the human-readable reason why the call may run.
    pub fn reason(&self) -> &str {
        &self.grants.reason
    }

    /// Returns its permission.
    pub(crate) fn permission(&self) -> CallPermission {
        self.grants.permission.clone()
    }

    /// Returns its grants.
    pub(super) fn grants(&mut self) -> &mut CallGrants {
        &mut self.grants
    }

    /// Takes the context of the tool's check. Returns it only once.
    pub(crate) fn take_context(&mut self) -> Option<CallContext> {
        self.grants.context.take()
    }

    /// Takes the effects of the admission. Later calls return empty ones.
    pub(crate) fn take_admission_effects(&mut self) -> AdmissionEffects {
        std::mem::take(&mut self.effects)
    }

    pub(super) fn into_call(self) -> PreparedCall {
        self.prepared
    }
}

/// Decides whether a call may run, and asks the user if necessary. `Err` is the result of a call that
/// does not run.
pub(crate) async fn admit(
    prepared: PreparedCall,
    cx: &CallContext,
    context: &SessionContext,
    engine: &Engine,
    slot: &mut CallSlot,
) -> Result<AdmittedCall, EarlyResult> {
    let mut admission = CallAdmission {
        cx,
        context,
        engine,
        policy: engine.policy_without_plan(context),
        path_context: PathContext {
            cwd: cx.cwd.to_path_buf(),
            ..context.path_context()
        },
        slot,
        effects: AdmissionEffects::default(),
        is_input_replaced: false,
        approved_reason: None,
        hook_ask_reason: None,
        deferred: false,
        check_context: None,
    };
    match admission.run(prepared).await {
        Ok((prepared, grants)) => Ok(AdmittedCall {
            prepared,
            grants,
            effects: admission.effects,
        }),
        Err(early_result) => Err(EarlyResult {
            notes: Box::new(admission.effects.notes),
            ..early_result
        }),
    }
}

/// The effects of an admission beyond the call itself.
#[derive(Debug, Default)]
pub(crate) struct AdmissionEffects {
    /// Rules that the user has chosen to save.
    pub(crate) rules: Vec<String>,
    /// The destination of these rules.
    pub(crate) rule_scope: RuleScope,
    /// Changes of the session that a hook or the user requested with the approval.
    pub(crate) patches: Vec<ContextPatch>,
    /// The messages and context from hooks.
    pub(crate) notes: HookNotes,
    /// The source of the approval.
    pub(crate) approval: ApprovalSource,
}

/// The state while one call is decided.
struct CallAdmission<'a> {
    cx: &'a CallContext,
    context: &'a SessionContext,
    engine: &'a Engine,
    policy: Policy,
    path_context: PathContext,
    slot: &'a mut CallSlot,
    effects: AdmissionEffects,
    /// Whether a hook or the user has replaced the input. Further approval requests then go only to
    /// the user, not to the hooks again.
    is_input_replaced: bool,
    /// Set if the user has approved the call by replacing its input: the reason of that approval
    /// request.
    approved_reason: Option<DecisionReason>,
    /// Set if a hook requires that the user is asked: the hook's name and reason.
    hook_ask_reason: Option<String>,
    /// Whether a hook has deferred the call.
    deferred: bool,
    /// The context of the tool's check of the current input, with the paths that the decision covers.
    check_context: Option<CallContext>,
}

impl CallAdmission<'_> {
    /// Runs all steps, once for each version of the input.
    async fn run(
        &mut self,
        mut prepared: PreparedCall,
    ) -> Result<(PreparedCall, CallGrants), EarlyResult> {
        let mut hook_permission = HookPermission::NoAnswer;
        let mut hooks_have_run = false;
        if let Some(input) = prepared.bound.complete_input(self.cx).await {
            prepared = self.rebind(&prepared, input)?;
        }
        loop {
            self.check_context = None;
            let mut facts =
                CallFacts::from_effects(&*prepared.bound, prepared.take_effects(), self.cx);
            if !facts.has_command() {
                self.resolve_private_tmp(&mut facts, false).await;
                let input = private_paths::input_with_places(&prepared, &facts, &self.policy);
                if let Some(input) = input {
                    prepared = self.rebind(&prepared, input)?;
                    facts =
                        CallFacts::from_effects(&*prepared.bound, prepared.take_effects(), self.cx);
                }
                facts.name_private_files(&self.policy);
                if let Some(private) = self.policy.private_tmp.as_deref() {
                    prepared.private_names = PrivateNames::new(private);
                }
            }
            if self.policy.plan.is_none() && self.context.may_be_plan(&facts) {
                self.policy = self.policy.clone().with_plan(self.context.real_plan());
            }
            // Without permission, the tool must not access a path that is denied, sensitive or
            // outside the working directories, not even to check the call.
            let early_decision = decide(&self.policy, &facts);
            let check_later = early_decision.behavior == DecisionBehavior::Deny
                || matches!(
                    early_decision.reason,
                    DecisionReason::Outside(_) | DecisionReason::Sensitive(..)
                );
            let checked = if check_later {
                None
            } else {
                Some(self.check(&prepared, &facts).await?)
            };
            // Run the hooks and parse the command line concurrently.
            let hook_output = if hooks_have_run {
                facts.read_command(&self.path_context);
                None
            } else {
                let engine = self.engine;
                let has_no_hooks = engine.hooks.has_no_handlers(HookEventKind::PRE_TOOL_USE);
                if has_no_hooks && !facts.has_command() {
                    Some(PreToolHooks::default())
                } else {
                    let hooks = hooks::run_pre_tool_use(
                        engine,
                        &prepared,
                        self.context,
                        &self.path_context,
                    );
                    let reading_facts = read_command(facts, self.path_context.clone());
                    // Boxed, like all work that few calls need, so that the future of every call
                    // stays small.
                    let hooks_and_facts = Box::pin(async { tokio::join!(hooks, reading_facts) });
                    // A hook may run for minutes. An interrupt does not wait for it.
                    let Some((hook_output, read_facts)) =
                        self.cx.cancel.run_until_cancelled(hooks_and_facts).await
                    else {
                        return Err(interrupted_result(&prepared));
                    };
                    facts = read_facts;
                    Some(hook_output)
                }
            };
            hooks_have_run = true;
            if facts.has_command() {
                self.resolve_private_tmp(&mut facts, true).await;
            }
            let mut hook_denial = None;
            if let Some(hook_output) = hook_output {
                self.effects.notes = hook_output.notes;
                self.hook_ask_reason = hook_output.ask_reason;
                self.deferred = hook_output.deferred && self.engine.defers;
                hook_permission = hook_output.permission;
                hook_denial = hook_output.denied;
                if hook_denial.is_none()
                    && let Some(input) = hook_output.updated_input
                {
                    if hook_permission == HookPermission::Allow {
                        hook_permission = HookPermission::Answer;
                    }
                    prepared = self.rebind(&prepared, input)?;
                    continue;
                }
            }
            facts.hook = hook_permission;
            facts.allowed_hosts = confinement::allowed_hosts(&self.policy, self.cx);
            let decision = if facts.has_command() || hook_permission != HookPermission::NoAnswer {
                decide(&self.policy, &facts)
            } else {
                early_decision
            };
            tracing::debug!(call = %self.cx.call, tool = prepared.name(), ?decision.behavior, because = %decision.reason);
            if decision.behavior == DecisionBehavior::Deny {
                return Err(self.deny(&prepared, &facts, &decision.reason));
            }
            if let Some(message) = hook_denial {
                return Err(denied_result(&prepared, DenialSource::Hook, message));
            }
            if self.deferred {
                return Err(EarlyResult {
                    deferred: true,
                    ..stopped_result(&prepared, DEFERRED.to_owned())
                });
            }
            let (decision, known_confinement) = match facts.shell {
                Some(_) => Box::pin(self.probe_confinement(decision, &facts)).await,
                None => (decision, None),
            };
            if decision.behavior == DecisionBehavior::Deny {
                return Err(self.deny(&prepared, &facts, &decision.reason));
            }
            let permission =
                CallPermission::new(self.policy.mode, &decision.reason, facts.writes.len());
            let relies_on_undo = permission.is_reversible;
            let relies_on_sandbox = relies_on_undo || facts.uses_private_tmp(&self.policy);
            let allow_text = decision.reason.to_string();
            let mut ask_reason =
                (decision.behavior == DecisionBehavior::Ask).then_some(decision.reason);
            if ask_reason.is_none()
                && let Some(CheckOutcome::Ask(reason)) = &checked
            {
                ask_reason = Some(DecisionReason::Tool(reason.clone()));
            }
            let runs_unasked = ask_reason.is_none();
            let ask_text = ask_reason.as_ref().map(DecisionReason::to_string);
            if let Some(ask_reason) = ask_reason {
                if self.policy.mode == PermissionMode::DontAsk {
                    self.fire_permission_denied(&prepared, &ask_reason).await;
                    return Err(self.deny(&prepared, &facts, &ask_reason));
                }
                if let Some(input) =
                    Box::pin(self.request_approval(&prepared, &facts, &ask_reason)).await?
                {
                    // New input is checked like any other, but the approval stays valid.
                    prepared = self.rebind(&prepared, input)?;
                    hook_permission = HookPermission::Answer;
                    continue;
                }
            }
            if checked.is_none()
                && let CheckOutcome::Ask(reason) = self.check(&prepared, &facts).await?
                && let Some(input) = Box::pin(self.request_approval(
                    &prepared,
                    &facts,
                    &DecisionReason::Tool(reason),
                ))
                .await?
            {
                prepared = self.rebind(&prepared, input)?;
                hook_permission = HookPermission::Answer;
                continue;
            }
            let granted: BTreeSet<&Path> = facts.outside(&self.policy).collect();
            let granted = granted.into_iter().map(Path::to_path_buf).collect();
            let env_file = self.engine.hooks.env_file().map(Path::to_path_buf);
            let only_confined = runs_unasked && !self.policy.sandbox.unconfined;
            let context = self.check_context.take();
            let judged = match &context {
                Some(context) => context.permissions.authorized.clone(),
                None => facts.authorized_paths(),
            };
            let confinement = match known_confinement {
                Some(known_confinement) => known_confinement,
                None if facts.shell.is_none() => Confinement::default(),
                None => Box::pin(confinement::resolve_confinement(&self.policy, facts)).await,
            };
            let reason = self.reason_text(ask_text, allow_text);
            let permission = match runs_unasked {
                true => permission,
                false => CallPermission {
                    because: reason.clone(),
                    is_reversible: false,
                    ..permission
                },
            };
            let grants = CallGrants {
                permission,
                reason,
                outside_paths: granted,
                authorized: judged,
                context,
                confinement: Confinement {
                    sourced: env_file,
                    only_confined,
                    relies_on_undo: runs_unasked && relies_on_undo,
                    // A weaker sandbox would not see every change, or show another `/tmp`.
                    required: confinement.required || (runs_unasked && relies_on_sandbox),
                    ..confinement
                },
            };
            return Ok((prepared, grants));
        }
    }

    /// Returns the reason why a call may run: the deciding rule, or the approver and the reason why
    /// approval was needed.
    fn reason_text(&self, ask_text: Option<String>, allow_text: String) -> String {
        let approval = match self.effects.approval {
            ApprovalSource::Config => return allow_text,
            ApprovalSource::Hook => "a hook agreed",
            ApprovalSource::User => "you agreed, this once",
            ApprovalSource::UserAlways => "you agreed, from now on",
        };
        format!(
            "{approval}; asked because {}",
            ask_text.unwrap_or(allow_text)
        )
    }

    /// Resolves the paths of a call that mean files of the session's own `/tmp`. `probes`: the call
    /// runs a command, so its sandbox may be set up to find out.
    async fn resolve_private_tmp(&mut self, facts: &mut CallFacts, probes: bool) {
        if !facts.names_private_directory() {
            return;
        }
        if self.policy.private_tmp.is_none() {
            let directories = Box::pin(confinement::private_tmp(self.cx, probes)).await;
            if directories.is_empty() {
                return;
            }
            let private = PrivateTmp::new(directories, &self.policy);
            self.policy.private_tmp = Some(Arc::new(private));
        }
        facts.resolve_private_tmp(&self.policy);
    }

    /// Checks whether an allowed command can really be confined, and prepares its sandbox. If this
    /// machine cannot confine it at all, the decision is made again without relying on the sandbox.
    /// Also returns the confinement if it was computed.
    async fn probe_confinement(
        &mut self,
        decision: Decision,
        facts: &CallFacts,
    ) -> (Decision, Option<Confinement>) {
        if decision.behavior != DecisionBehavior::Allow {
            return (decision, None);
        }
        let confinement = confinement::resolve_confinement(&self.policy, facts.clone()).await;
        if confinement.profile != ConfinementProfile::Full
            && !self.policy.sandbox.unconfined
            && confinement::probe_strength(&confinement, self.cx).await
                == Some(ConfinementStrength::Nothing)
        {
            Arc::make_mut(&mut self.policy.sandbox).unconfined = true;
            return (decide(&self.policy, facts), Some(confinement));
        }
        if matches!(confinement.network, NetworkAccess::Only(_))
            && confinement.profile == ConfinementProfile::ReadOnly
            && confinement::probe_strength(&confinement, self.cx).await
                != Some(ConfinementStrength::Whole)
        {
            Arc::make_mut(&mut self.policy.sandbox).unwitnessed = true;
            return (decide(&self.policy, facts), None);
        }
        // The mode `auto` and runs without network rely on undo and on the whole sandbox, which may be
        // weaker than at the start.
        if matches!(
            decision.reason,
            DecisionReason::Reversible | DecisionReason::Offline(_)
        ) && !confinement::is_witnessed(&confinement, self.cx).await
        {
            Arc::make_mut(&mut self.policy.sandbox).unwitnessed = true;
            return (decide(&self.policy, facts), Some(confinement));
        }
        (decision, Some(confinement))
    }

    /// Prepares the same call with another input.
    fn rebind(&self, prepared: &PreparedCall, input: Value) -> Result<PreparedCall, EarlyResult> {
        let call = hooks::with_input(prepared, input);
        let author = InputAuthor::Answer;
        super::prepare::prepare_with_tool(
            &prepared.tool,
            call,
            author,
            prepared.call,
            &self.path_context,
        )
    }

    /// Returns the context for checks before the call is permitted. It gives access only to the
    /// files that the facts refer to, even if another process replaces a path in the meantime.
    fn check_context(&self, facts: &CallFacts) -> CallContext {
        let mut cx = self.cx.clone();
        cx.permissions.authorized = facts.authorized_paths();
        cx
    }

    /// Lets the tool check whether the call can succeed.
    async fn check(
        &mut self,
        prepared: &PreparedCall,
        facts: &CallFacts,
    ) -> Result<CheckOutcome, EarlyResult> {
        let cx = self.check_context(facts);
        let cx = &*self.check_context.insert(cx);
        let checked = tokio::select! {
            checked = prepared.bound.check(cx) => checked,
            () = self.cx.cancel.cancelled() => {
                return Err(interrupted_result(prepared));
            }
        };
        checked.map_err(|error| {
            let card = prepared.bound.render_error(&error);
            EarlyResult::misuse(
                prepared.name(),
                &prepared.private_names.in_text(error.to_string()),
                card,
                prepared.repairs.clone(),
            )
        })
    }

    /// Returns the result of a call that is denied without asking.
    fn deny(
        &self,
        prepared: &PreparedCall,
        facts: &CallFacts,
        ask_reason: &DecisionReason,
    ) -> EarlyResult {
        let is_denied_directly = match ask_reason {
            DecisionReason::Rule { list, .. } => *list == RuleList::Deny,
            DecisionReason::Tool(_) => matches!(facts.tool_permission, ToolPermission::Deny(_)),
            _ => false,
        };
        // A call that only needs approval is denied because the permission mode never asks.
        let kind = if is_denied_directly {
            ask_reason.kind()
        } else {
            "mode"
        };
        let denied = denied_by_policy(kind, ask_reason);
        denied_result(
            prepared,
            denied,
            denial_message(facts, ask_reason, &self.policy),
        )
    }
}
