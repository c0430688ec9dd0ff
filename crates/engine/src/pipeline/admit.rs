//! The second step: decides whether a call may run.
//!
//! First the tool checks whether the call can succeed, then permissions are evaluated, so that the
//! user is not asked about a call that would fail anyway. One exception: paths outside the working
//! directories are not accessed at all before the call is permitted.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, AuthorizedPaths, CallContext, CheckOutcome, Confinement,
    ConfinementProfile, ConfinementStrength, ContextPatch, PermissionMode, RuleList, RuleScope,
    ToolPermission, ToolUse,
};
use serde_json::Value;

use super::{
    ApprovalSource, DenialSource, EarlyResult, InputAuthor, Prepared, confinement,
    denial::{
        WOULD_ALLOW, denial_message, denied_by_policy, denied_result, interrupted_result, remedy,
        stopped_result,
    },
    facts::read_command,
    hooks::{self, HookNotes, PermissionHookAnswer, PreToolHooks},
};
use crate::{
    Engine, SessionContext,
    hooks::HookEventKind,
    permissions::{
        Behavior, CallFacts, Decision, DecisionReason, HookPermission, PathContext, Policy,
        approval_parts, decide, find_look_alikes, suggest,
    },
    scheduler::CallSlot,
};

/// The result that the model reads for a call that a hook has deferred.
const DEFERRED: &str = "A hook has put this call off: it has not run. Make it again, by itself, once \
                        the conversation goes on.";

/// A call that may run. Only `admit` creates one: its fields are private to this file.
#[derive(Debug)]
pub struct Admitted {
    prepared: Prepared,
    terms: CallGrants,
    kept: AdmissionEffects,
}

/// The grants of a call: what it may touch.
#[derive(Debug)]
pub(super) struct CallGrants {
    /// Permitted real paths outside the working directories.
    pub(super) granted: Arc<[PathBuf]>,
    /// The paths that the decision covered.
    pub(super) judged: AuthorizedPaths,
    /// The confinement of the command it starts.
    pub(super) confinement: Confinement,
    /// The human-readable reason why it may run.
    because: String,
    /// The context that it was checked with, to be reused.
    context: Option<CallContext>,
}

impl Admitted {
    /// Returns the call.
    pub fn call(&self) -> &Prepared {
        &self.prepared
    }

    /// Returns the human-readable reason why it may run.
    pub fn reason(&self) -> &str {
        &self.terms.because
    }

    /// Returns its grants.
    pub(super) fn grants(&mut self) -> &mut CallGrants {
        &mut self.terms
    }

    /// Takes the context that the call was checked with, for reuse. Returns it only once.
    pub(crate) fn take_context(&mut self) -> Option<CallContext> {
        self.terms.context.take()
    }

    /// Takes the effects of the admission. Returns them only once.
    pub(crate) fn take_admission_effects(&mut self) -> AdmissionEffects {
        std::mem::take(&mut self.kept)
    }

    pub(super) fn into_call(self) -> Prepared {
        self.prepared
    }
}

/// Checks the call with its tool, runs the hooks, and decides whether it may run. Asks the user if
/// necessary.
pub(crate) async fn admit(
    prepared: Prepared,
    cx: &CallContext,
    context: &SessionContext,
    engine: &Engine,
    slot: &mut CallSlot,
) -> Result<Admitted, EarlyResult> {
    let mut judge = Admission {
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
        rewritten: false,
        consented: None,
        hooks_ask: None,
        deferred: false,
        checked_with: None,
    };
    match judge.run(prepared).await {
        Ok((prepared, terms)) => Ok(Admitted {
            prepared,
            terms,
            kept: judge.effects,
        }),
        Err(settled) => Err(EarlyResult {
            notes: Box::new(judge.effects.notes),
            ..settled
        }),
    }
}

/// The effects of an admission beyond the call itself.
#[derive(Debug, Default)]
pub(crate) struct AdmissionEffects {
    /// Rules that the user wants to save.
    pub(crate) rules: Vec<String>,
    /// The destination of these rules.
    pub(crate) scope: RuleScope,
    /// Changes of the session that a hook requests.
    pub(crate) patches: Vec<ContextPatch>,
    /// Notes by hooks.
    pub(crate) notes: HookNotes,
    /// The source of the approval.
    pub(crate) approval: ApprovalSource,
}

struct Admission<'a> {
    cx: &'a CallContext,
    context: &'a SessionContext,
    engine: &'a Engine,
    policy: Policy,
    path_context: PathContext,
    slot: &'a mut CallSlot,
    effects: AdmissionEffects,
    /// A hook or the user has replaced the input: further requests go to the user only, not to the
    /// hooks again.
    rewritten: bool,
    /// The user has replaced the input and has approved it with that. Holds the reason they were
    /// asked for.
    consented: Option<DecisionReason>,
    /// A hook requires that the user is asked: its name and reason.
    hooks_ask: Option<String>,
    /// Hooks have deferred the call.
    deferred: bool,
    /// The context of the last check of the current input, with the paths that the decision covers.
    checked_with: Option<CallContext>,
}

impl Admission<'_> {
    async fn run(&mut self, mut prepared: Prepared) -> Result<(Prepared, CallGrants), EarlyResult> {
        let mut word = HookPermission::NoAnswer;
        let mut heard = false;
        if let Some(input) = prepared.bound.complete_input(self.cx).await {
            prepared = self.rebind(&prepared, input)?;
        }
        loop {
            self.checked_with = None;
            let mut facts =
                CallFacts::from_effects(&*prepared.bound, prepared.take_effects(), self.cx);
            if self.policy.plan.is_none() && self.context.may_be_plan(&facts) {
                self.policy = self.policy.clone().with_plan(self.context.real_plan());
            }
            // A path that is denied or outside the working directories is not accessed before it is
            // permitted.
            let early = decide(&self.policy, &facts);
            let unseen = early.behavior == Behavior::Deny
                || matches!(
                    early.reason,
                    DecisionReason::Outside(_) | DecisionReason::Sensitive(..)
                );
            let checked = if unseen {
                None
            } else {
                Some(self.check(&prepared, &facts).await?)
            };
            // Run the hooks and parse the command line concurrently.
            let before = if heard {
                facts.read_command(&self.path_context);
                None
            } else {
                let engine = self.engine;
                let silent = engine.hooks.has_no_handlers(HookEventKind::PRE_TOOL_USE);
                if silent && !facts.has_command() {
                    Some(PreToolHooks::default())
                } else {
                    let hooks = hooks::run_pre_tool_use(
                        engine,
                        &prepared,
                        self.context,
                        &self.path_context,
                    );
                    let reading = read_command(facts, self.path_context.clone());
                    // Boxed like everything that few calls need; otherwise the future of each call
                    // would be as large as the largest.
                    let both = Box::pin(async { tokio::join!(hooks, reading) });
                    // A hook may run for minutes: an interrupt does not wait for it.
                    let Some((before, read)) = self.cx.cancel.run_until_cancelled(both).await
                    else {
                        return Err(interrupted_result(&prepared));
                    };
                    facts = read;
                    Some(before)
                }
            };
            heard = true;
            let mut denied = None;
            if let Some(before) = before {
                self.effects.notes = before.notes;
                self.hooks_ask = before.asks;
                self.deferred = before.defers && self.engine.defers;
                word = before.word;
                denied = before.denied;
                if denied.is_none()
                    && let Some(input) = before.updated_input
                {
                    if word == HookPermission::Allow {
                        word = HookPermission::Answer;
                    }
                    prepared = self.rebind(&prepared, input)?;
                    continue;
                }
            }
            facts.hook = word;
            let decision = if facts.has_command() || word != HookPermission::NoAnswer {
                decide(&self.policy, &facts)
            } else {
                early
            };
            tracing::debug!(call = %self.cx.call, tool = prepared.name(), ?decision.behavior, because = %decision.reason);
            if decision.behavior == Behavior::Deny {
                return Err(self.deny(&prepared, &facts, &decision.reason));
            }
            if let Some(why) = denied {
                return Err(denied_result(&prepared, DenialSource::Hook, why));
            }
            if self.deferred {
                return Err(EarlyResult {
                    deferred: true,
                    ..stopped_result(&prepared, DEFERRED.to_owned())
                });
            }
            let (decision, ready) = match facts.shell {
                Some(_) => Box::pin(self.probe_confinement(decision, &facts)).await,
                None => (decision, None),
            };
            if decision.behavior == Behavior::Deny {
                return Err(self.deny(&prepared, &facts, &decision.reason));
            }
            let permitted = decision.reason.to_string();
            let mut because = (decision.behavior == Behavior::Ask).then_some(decision.reason);
            if because.is_none()
                && let Some(CheckOutcome::Ask(reason)) = &checked
            {
                because = Some(DecisionReason::Tool(reason.clone()));
            }
            let unasked = because.is_none();
            let asked = because.as_ref().map(DecisionReason::to_string);
            if let Some(because) = because {
                if self.policy.mode == PermissionMode::DontAsk {
                    self.fire_permission_denied(&prepared, &because).await;
                    return Err(self.deny(&prepared, &facts, &because));
                }
                if let Some(input) =
                    Box::pin(self.request_approval(&prepared, &facts, &because)).await?
                {
                    // Input from a hook is checked like any other, but the approval stays valid.
                    prepared = self.rebind(&prepared, input)?;
                    word = HookPermission::Answer;
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
                word = HookPermission::Answer;
                continue;
            }
            let granted: BTreeSet<&Path> = facts.outside(&self.policy).collect();
            let granted = granted.into_iter().map(Path::to_path_buf).collect();
            let sourced = self.engine.hooks.env_file().map(Path::to_path_buf);
            let only_confined = unasked && !self.policy.sandbox.unconfined;
            let context = self.checked_with.take();
            let judged = match &context {
                Some(context) => context.permissions.judged.clone(),
                None => facts.authorized_paths(),
            };
            let confinement = match ready {
                Some(ready) => ready,
                None if facts.shell.is_none() => Confinement::default(),
                None => Box::pin(confinement::resolve_confinement(&self.policy, facts)).await,
            };
            let terms = CallGrants {
                because: self.reason_text(asked, permitted),
                granted,
                judged,
                context,
                confinement: Confinement {
                    sourced,
                    only_confined,
                    ..confinement
                },
            };
            return Ok((prepared, terms));
        }
    }

    /// Returns why a call may run: the deciding rule, or who approved it and why they were asked.
    fn reason_text(&self, asked: Option<String>, permitted: String) -> String {
        let who = match self.effects.approval {
            ApprovalSource::Config => return permitted,
            ApprovalSource::Hook => "a hook agreed",
            ApprovalSource::User => "you agreed, this once",
            ApprovalSource::UserAlways => "you agreed, from now on",
        };
        format!("{who}; asked because {}", asked.unwrap_or(permitted))
    }

    /// Re-evaluates a command that would run without asking, based on its real confinement. This
    /// prepares its sandbox. If nothing can confine it here, the decision is made again without
    /// relying on the sandbox. Also returns the confinement if it was computed.
    async fn probe_confinement(
        &mut self,
        decision: Decision,
        facts: &CallFacts,
    ) -> (Decision, Option<Confinement>) {
        if decision.behavior != Behavior::Allow {
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
        (decision, Some(confinement))
    }

    /// Prepares the same call with an input that replaces the model's.
    fn rebind(&self, prepared: &Prepared, input: Value) -> Result<Prepared, EarlyResult> {
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
    /// files that the facts refer to, even if a path is swapped in the meantime.
    fn check_context(&self, facts: &CallFacts) -> CallContext {
        let mut cx = self.cx.clone();
        cx.permissions.judged = facts.authorized_paths();
        cx
    }

    /// Checks whether the call can succeed.
    async fn check(
        &mut self,
        prepared: &Prepared,
        facts: &CallFacts,
    ) -> Result<CheckOutcome, EarlyResult> {
        let cx = self.check_context(facts);
        let cx = &*self.checked_with.insert(cx);
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
                &error.to_string(),
                card,
                prepared.repairs.clone(),
            )
        })
    }

    /// Requests approval from the hooks, then from the user. Returns the input if it was replaced.
    /// The call occupies no slot while it waits for the user.
    async fn request_approval(
        &mut self,
        prepared: &Prepared,
        facts: &CallFacts,
        because: &DecisionReason,
    ) -> Result<Option<Value>, EarlyResult> {
        match (&self.consented, because) {
            (None, _) => {}
            // The user was not asked about this critical operation, and a typing error must not
            // start it.
            (Some(asked), DecisionReason::Critical(_)) if asked != because => {
                let name = prepared.name();
                let message = format!(
                    "Permission to use {name} has been denied: as the user has changed it, {because}, and \
                     they were asked about something else."
                );
                return Err(denied_result(
                    prepared,
                    denied_by_policy(because.kind(), because),
                    message,
                ));
            }
            (Some(_), _) => return Ok(None),
        }
        let rules = suggest(&self.policy, facts, &self.context.bases());
        let requested = if self.rewritten {
            PermissionHookAnswer::NoAnswer
        } else {
            let (setting, notes) = (&self.path_context, &mut self.effects.notes);
            let asked = hooks::run_permission_request(
                self.engine,
                prepared,
                &rules,
                self.context,
                setting,
                notes,
            );
            let Some(requested) = self.cx.cancel.run_until_cancelled(asked).await else {
                return Err(interrupted_result(prepared));
            };
            requested
        };
        match requested {
            PermissionHookAnswer::NoAnswer => {}
            // Only the user can let a command run outside the sandbox.
            PermissionHookAnswer::Allow { .. } if *because == DecisionReason::Unconfined => {}
            // The input must contain what the user would have answered.
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
                self.rewritten = updated_input.is_some();
                self.effects.approval = ApprovalSource::Hook;
                return Ok(updated_input);
            }
            PermissionHookAnswer::Deny(message) => {
                let denied = denied_by_policy("hook", "a PermissionRequest hook");
                return Err(denied_result(prepared, denied, message));
            }
        }
        let why = match &self.hooks_ask {
            Some(why) if *because == DecisionReason::Hook => why.clone(),
            _ => because.to_string(),
        };
        let reason = match &facts.command {
            Some(command) => format!("{why}: {command}"),
            None => why,
        };
        let preview = prepared.bound.preview(&self.check_context(facts)).await;
        let asked_parts = approval_parts::parts(&self.policy, facts);
        let keeper = self.engine.keeper.as_ref().filter(|_| !rules.is_empty());
        let question = ApprovalRequest {
            kind: prepared.spec().profile.approval,
            call: self.cx.call,
            tool: prepared.name().to_owned(),
            card: prepared.card(),
            preview,
            reasons: match &self.hooks_ask {
                Some(why) if *because == DecisionReason::Hook => vec![why.clone()],
                _ => approval_parts::ask_reasons(because, &asked_parts),
            },
            resolved_elsewhere: approval_parts::resolved_elsewhere(facts, &self.path_context.cwd),
            look_alikes: find_look_alikes(facts),
            parts: asked_parts,
            confinement: approval_parts::confinement_text(&self.policy, facts),
            destinations: keeper
                .map(|keeper| keeper.destinations())
                .unwrap_or_default(),
            reason,
            rules: rules.clone(),
            asked: Some(ToolUse {
                id: prepared.id.clone(),
                name: prepared.name().to_owned(),
                input: prepared.bound.input().clone(),
            }),
            agent: None,
        };
        let cx = self.cx;
        let asked = format!("{}: {}", prepared.name(), question.reason);
        let (engine, setting) = (self.engine, &self.path_context);
        let answer = self
            .slot
            .release_while(async {
                tokio::select! {
                    biased;
                    answer = cx.services.approver().ask(question) => Some(answer),
                    () = cx.cancel.cancelled() => None,
                    // Notifies the hooks only if the answer is not immediate, which means that the
                    // user was asked.
                    never = hooks::notify_approval_pending(engine, &asked, &setting.cwd) => match never {},
                }
            })
            .await;
        let name = prepared.name();
        let mut denied = DenialSource::Person;
        self.effects.approval = match answer {
            Some(ApprovalAnswer::AllowAlways) => ApprovalSource::UserAlways,
            _ => ApprovalSource::User,
        };
        let message = match answer {
            Some(ApprovalAnswer::Allow) => return Ok(None),
            Some(ApprovalAnswer::InputEdited { input }) => {
                self.rewritten = true;
                self.consented = Some(because.clone());
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
                self.effects.scope = scope.unwrap_or_default();
                if input.is_some() {
                    self.rewritten = true;
                    self.consented = Some(because.clone());
                }
                return Ok(input);
            }
            Some(ApprovalAnswer::AllowAlways) => {
                self.effects.rules.extend(rules);
                return Ok(None);
            }
            Some(ApprovalAnswer::Deny { reason: None }) => format!(
                "The user did not permit this call to {name}. Do not try it again; ask what they \
                 want instead.{}",
                self.still_planning()
            ),
            Some(ApprovalAnswer::Deny {
                reason: Some(reason),
            }) => {
                let planning = self.still_planning();
                format!(
                    "The user did not permit this call to {name}. They said: {reason}{planning}"
                )
            }
            Some(ApprovalAnswer::Unavailable) => {
                let would_allow = remedy(
                    self.engine,
                    &self.policy,
                    &self.context.bases(),
                    because,
                    facts,
                    &rules,
                );
                self.fire_permission_denied(prepared, because).await;
                denied = DenialSource::Unasked {
                    kind: because.kind().into(),
                    reason: because.to_string(),
                    remedy: would_allow.strip_prefix(WOULD_ALLOW).map(str::to_owned),
                };
                format!(
                    "Permission to use {name} was not granted: this session cannot prompt. The call \
                     needs a person's consent because {because}.\n{would_allow}"
                )
            }
            None => return Err(interrupted_result(prepared)),
        };
        Err(denied_result(prepared, denied, message))
    }

    /// Notifies the hooks that the call is denied without asking.
    async fn fire_permission_denied(&mut self, prepared: &Prepared, because: &DecisionReason) {
        let (engine, context, setting) = (self.engine, self.context, &self.path_context);
        let (reason, notes) = (because.to_string(), &mut self.effects.notes);
        let told = hooks::run_permission_denied(engine, prepared, &reason, context, setting, notes);
        self.cx.cancel.run_until_cancelled(told).await;
    }

    /// Denies the call without asking.
    fn deny(
        &self,
        prepared: &Prepared,
        facts: &CallFacts,
        because: &DecisionReason,
    ) -> EarlyResult {
        let by_itself = match because {
            DecisionReason::Rule { list, .. } => *list == RuleList::Deny,
            DecisionReason::Tool(_) => matches!(facts.tool_permission, ToolPermission::Deny(_)),
            _ => false,
        };
        // If the call would only have asked, the reason of the denial is the mode, which never
        // asks.
        let kind = if by_itself { because.kind() } else { "mode" };
        let denied = denied_by_policy(kind, because);
        denied_result(
            prepared,
            denied,
            denial_message(facts, because, &self.policy),
        )
    }

    fn still_planning(&self) -> &'static str {
        match self.policy.mode {
            PermissionMode::Plan => "\nPlan mode stays on.",
            _ => "",
        }
    }
}
