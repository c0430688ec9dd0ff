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

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, CallContext, Check, Confined, Confinement,
    ConfinementStrength, ContextPatch, JudgedPaths, Permission, PermissionMode, RuleList,
    RuleScope, ToolUse,
};
use serde_json::Value;

use super::{
    ApprovalSource, Author, Denied, EarlyResult, Prepared, confinement,
    facts::read_command,
    hooks::{self, Before, Notes, Requested},
    refusal::{WOULD_ALLOW, denial, interrupted, rejected, remedy, stopped, unasked},
};
use crate::{
    Engine, SessionContext,
    hooks::HookMoment,
    permissions::{
        Because, Behavior, Decision, Facts, HookWord, PathContext, Policy, decide, parts, suggest,
    },
    scheduler::Slot,
};

/// What a model reads of a call that a hook has put off.
const DEFERRED: &str = "A hook has put this call off: it has not run. Make it again, by itself, once \
                        the conversation goes on.";

/// A call that may run. Only `admit` makes one: its field is private to this file.
#[derive(Debug)]
pub struct Admitted {
    prepared: Prepared,
    terms: Terms,
    kept: JudgedState,
}

/// What a call may touch.
#[derive(Debug)]
pub(super) struct Terms {
    /// Outside the working directories, as real paths.
    pub(super) granted: Arc<[PathBuf]>,
    /// The paths the decision was about.
    pub(super) judged: JudgedPaths,
    /// How the command it starts is to be confined.
    pub(super) confinement: Confinement,
    /// Why it may run, for people.
    because: String,
    /// The context that it was checked with, to be used again.
    context: Option<CallContext>,
}

impl Admitted {
    /// The call.
    pub fn call(&self) -> &Prepared {
        &self.prepared
    }

    /// Why it may run, for people.
    pub fn because(&self) -> &str {
        &self.terms.because
    }

    /// What it may touch.
    pub(super) fn terms(&mut self) -> &mut Terms {
        &mut self.terms
    }

    /// A copy of the call's context that no one needs any more; once.
    pub(crate) fn take_context(&mut self) -> Option<CallContext> {
        self.terms.context.take()
    }

    /// What is to be kept of the judging; once.
    pub(crate) fn take_kept(&mut self) -> JudgedState {
        std::mem::take(&mut self.kept)
    }

    pub(super) fn into_call(self) -> Prepared {
        self.prepared
    }
}

/// Checks the call's meaning, runs the hooks, and decides whether it may run, asking a person if
/// need be.
pub(crate) async fn admit(
    prepared: Prepared,
    cx: &CallContext,
    context: &SessionContext,
    engine: &Engine,
    slot: &mut Slot,
) -> Result<Admitted, EarlyResult> {
    let mut judge = Judge {
        cx,
        context,
        engine,
        policy: engine.policy_but_plan(context),
        setting: PathContext {
            cwd: cx.cwd.to_path_buf(),
            ..context.place()
        },
        slot,
        kept: JudgedState::default(),
        rewritten: false,
        consented: None,
        hooks_ask: None,
        deferred: false,
        checked_with: None,
    };
    match judge.judge(prepared).await {
        Ok((prepared, terms)) => Ok(Admitted {
            prepared,
            terms,
            kept: judge.kept,
        }),
        Err(settled) => Err(EarlyResult {
            notes: Box::new(judge.kept.notes),
            ..settled
        }),
    }
}

/// What is to be kept of the judging, beyond the call.
#[derive(Debug, Default)]
pub(crate) struct JudgedState {
    /// Rules that a person wants from now on.
    pub(crate) rules: Vec<String>,
    /// Where they want them.
    pub(crate) scope: RuleScope,
    /// Changes of the session that a hook wants.
    pub(crate) patches: Vec<ContextPatch>,
    /// What hooks want said.
    pub(crate) notes: Notes,
    /// Who permitted it.
    pub(crate) approval: ApprovalSource,
}

struct Judge<'a> {
    cx: &'a CallContext,
    context: &'a SessionContext,
    engine: &'a Engine,
    policy: Policy,
    setting: PathContext,
    slot: &'a mut Slot,
    kept: JudgedState,
    /// A hook has written the input anew: what still asks is put to a person, not to it again.
    rewritten: bool,
    /// The input is a person's own: what they wrote needs no second word of theirs. What they were asked
    /// about.
    consented: Option<Because>,
    /// Hooks want a person asked: which, and why.
    hooks_ask: Option<String>,
    /// Hooks have put the call off.
    deferred: bool,
    /// The context that the call was checked with as it is now: it knows the paths it was judged by.
    checked_with: Option<CallContext>,
}

impl Judge<'_> {
    async fn judge(&mut self, mut prepared: Prepared) -> Result<(Prepared, Terms), EarlyResult> {
        let mut word = HookWord::Silent;
        let mut heard = false;
        if let Some(input) = prepared.bound.complete(self.cx).await {
            prepared = self.again(&prepared, input)?;
        }
        loop {
            self.checked_with = None;
            let mut facts = Facts::of_effects(&*prepared.bound, prepared.take_effects(), self.cx);
            if self.policy.plan.is_none() && self.context.may_be_plan(&facts) {
                self.policy = self.policy.clone().with_plan(self.context.real_plan());
            }
            // What is denied or lies outside is not even looked at before it is permitted.
            let early = decide(&self.policy, &facts);
            let unseen = early.behavior == Behavior::Deny
                || matches!(early.because, Because::Outside(_) | Because::Sensitive(..));
            let checked = if unseen {
                None
            } else {
                Some(self.check(&prepared, &facts).await?)
            };
            // Hooks and the reading of a command line side by side.
            let before = if heard {
                facts.read_command(&self.setting);
                None
            } else {
                let engine = self.engine;
                let silent = engine.hooks.is_silent(HookMoment::PRE_TOOL_USE);
                if silent && !facts.has_command() {
                    Some(Before::default())
                } else {
                    let hooks = hooks::before(engine, &prepared, self.context, &self.setting);
                    let reading = read_command(facts, self.setting.clone());
                    // In a box, as everything that few calls need: each call would be as large as the largest.
                    let both = Box::pin(async { tokio::join!(hooks, reading) });
                    // A hook may take minutes: who interrupts does not wait for it.
                    let Some((before, read)) = self.cx.cancel.run_until_cancelled(both).await
                    else {
                        return Err(interrupted(&prepared));
                    };
                    facts = read;
                    Some(before)
                }
            };
            heard = true;
            let mut denied = None;
            if let Some(before) = before {
                self.kept.notes = before.notes;
                self.hooks_ask = before.asks;
                self.deferred = before.defers && self.engine.defers;
                word = before.word;
                denied = before.denied;
                if denied.is_none()
                    && let Some(input) = before.updated_input
                {
                    if word == HookWord::Allow {
                        word = HookWord::Answer;
                    }
                    prepared = self.again(&prepared, input)?;
                    continue;
                }
            }
            facts.hook = word;
            let decision = if facts.has_command() || word != HookWord::Silent {
                decide(&self.policy, &facts)
            } else {
                early
            };
            tracing::debug!(call = %self.cx.call, tool = prepared.name(), ?decision.behavior, because = %decision.because);
            if decision.behavior == Behavior::Deny {
                return Err(self.refused(&prepared, &facts, &decision.because));
            }
            if let Some(why) = denied {
                return Err(rejected(&prepared, Denied::Hook, why));
            }
            if self.deferred {
                return Err(EarlyResult {
                    deferred: true,
                    ..stopped(&prepared, DEFERRED.to_owned())
                });
            }
            let (decision, ready) = match facts.shell {
                Some(_) => Box::pin(self.confined(decision, &facts)).await,
                None => (decision, None),
            };
            if decision.behavior == Behavior::Deny {
                return Err(self.refused(&prepared, &facts, &decision.because));
            }
            let permitted = decision.because.to_string();
            let mut because = (decision.behavior == Behavior::Ask).then_some(decision.because);
            if because.is_none()
                && let Some(Check::Ask(reason)) = &checked
            {
                because = Some(Because::Tool(reason.clone()));
            }
            let unasked = because.is_none();
            let asked = because.as_ref().map(Because::to_string);
            if let Some(because) = because {
                if self.policy.mode == PermissionMode::DontAsk {
                    self.denied_unasked(&prepared, &because).await;
                    return Err(self.refused(&prepared, &facts, &because));
                }
                if let Some(input) = Box::pin(self.ask(&prepared, &facts, &because)).await? {
                    // What a hook wrote is judged like any other call, but its consent stands.
                    prepared = self.again(&prepared, input)?;
                    word = HookWord::Answer;
                    continue;
                }
            }
            if checked.is_none()
                && let Check::Ask(reason) = self.check(&prepared, &facts).await?
                && let Some(input) =
                    Box::pin(self.ask(&prepared, &facts, &Because::Tool(reason))).await?
            {
                prepared = self.again(&prepared, input)?;
                word = HookWord::Answer;
                continue;
            }
            let granted: BTreeSet<&Path> = facts.outside(&self.policy).collect();
            let granted = granted.into_iter().map(Path::to_path_buf).collect();
            let sourced = self.engine.hooks.env_file().map(Path::to_path_buf);
            let only_confined = unasked && !self.policy.sandbox.unconfined;
            let context = self.checked_with.take();
            let judged = match &context {
                Some(context) => context.permissions.judged.clone(),
                None => facts.judged(),
            };
            let confinement = match ready {
                Some(ready) => ready,
                None if facts.shell.is_none() => Confinement::default(),
                None => Box::pin(confinement::of(&self.policy, facts)).await,
            };
            let terms = Terms {
                because: self.why(asked, permitted),
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

    /// Why a call may run: what decided, or who agreed and what they were asked for.
    fn why(&self, asked: Option<String>, permitted: String) -> String {
        let who = match self.kept.approval {
            ApprovalSource::Config => return permitted,
            ApprovalSource::Hook => "a hook agreed",
            ApprovalSource::Person => "you agreed, this once",
            ApprovalSource::PersonAlways => "you agreed, from now on",
        };
        format!("{who}; asked because {}", asked.unwrap_or(permitted))
    }

    /// A command that would run unasked is judged by how it would really be confined: its sandbox is made
    /// ready, and where there is none, what counted on it is decided anew. Also how it is confined, if
    /// that was looked up.
    async fn confined(
        &mut self,
        decision: Decision,
        facts: &Facts,
    ) -> (Decision, Option<Confinement>) {
        if decision.behavior != Behavior::Allow {
            return (decision, None);
        }
        let confinement = confinement::of(&self.policy, facts.clone()).await;
        if confinement.profile != Confined::Full
            && !self.policy.sandbox.unconfined
            && confinement::strength(&confinement, self.cx).await
                == Some(ConfinementStrength::Nothing)
        {
            Arc::make_mut(&mut self.policy.sandbox).unconfined = true;
            return (decide(&self.policy, facts), Some(confinement));
        }
        (decision, Some(confinement))
    }

    /// The same call with another input than the model's.
    fn again(&self, prepared: &Prepared, input: Value) -> Result<Prepared, EarlyResult> {
        let call = hooks::again(prepared, input);
        let author = Author::Answer;
        super::prepare::fit(&prepared.tool, call, author, prepared.call, &self.setting)
    }

    /// The call's context before it is permitted: it looks at the files the facts are about, not at what has
    /// taken their place since.
    fn judging(&self, facts: &Facts) -> CallContext {
        let mut cx = self.cx.clone();
        cx.permissions.judged = facts.judged();
        cx
    }

    /// Does it make sense?
    async fn check(&mut self, prepared: &Prepared, facts: &Facts) -> Result<Check, EarlyResult> {
        let cx = self.judging(facts);
        let cx = &*self.checked_with.insert(cx);
        let checked = tokio::select! {
            checked = prepared.bound.check(cx) => checked,
            () = self.cx.cancel.cancelled() => {
                return Err(interrupted(prepared));
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

    /// Puts the question to the hooks, then to a person. `Some`: a hook agrees, with another input.
    /// Waiting for a person holds no slot.
    async fn ask(
        &mut self,
        prepared: &Prepared,
        facts: &Facts,
        because: &Because,
    ) -> Result<Option<Value>, EarlyResult> {
        match (&self.consented, because) {
            (None, _) => {}
            // They were not asked about this, and no slip of a hand may do it.
            (Some(asked), Because::Critical(_)) if asked != because => {
                let name = prepared.name();
                let message = format!(
                    "Permission to use {name} has been denied: as the user has changed it, {because}, and \
                     they were asked about something else."
                );
                return Err(rejected(
                    prepared,
                    unasked(because.kind(), because),
                    message,
                ));
            }
            (Some(_), _) => return Ok(None),
        }
        let rules = suggest(&self.policy, facts, &self.context.bases());
        let requested = if self.rewritten {
            Requested::Silent
        } else {
            let (setting, notes) = (&self.setting, &mut self.kept.notes);
            let asked = hooks::request(self.engine, prepared, &rules, self.context, setting, notes);
            let Some(requested) = self.cx.cancel.run_until_cancelled(asked).await else {
                return Err(interrupted(prepared));
            };
            requested
        };
        match requested {
            Requested::Silent => {}
            // Only a person lets a command out of the sandbox.
            Requested::Allow { .. } if *because == Because::Unconfined => {}
            // What a person would have answered must be in it.
            Requested::Allow {
                updated_input: None,
                ..
            } if facts.interactive => {}
            Requested::Allow {
                updated_input,
                updates,
            } => {
                self.kept
                    .patches
                    .extend(updates.iter().flat_map(suggest::patches));
                self.rewritten = updated_input.is_some();
                self.kept.approval = ApprovalSource::Hook;
                return Ok(updated_input);
            }
            Requested::Deny(message) => {
                let denied = unasked("hook", "a PermissionRequest hook");
                return Err(rejected(prepared, denied, message));
            }
        }
        let why = match &self.hooks_ask {
            Some(why) if *because == Because::Hook => why.clone(),
            _ => because.to_string(),
        };
        let reason = match &facts.command {
            Some(command) => format!("{why}: {command}"),
            None => why,
        };
        let preview = prepared.bound.preview(&self.judging(facts)).await;
        let asked_parts = parts::parts(&self.policy, facts);
        let keeper = self.engine.keeper.as_ref().filter(|_| !rules.is_empty());
        let question = ApprovalRequest {
            kind: prepared.spec().profile.approval,
            call: self.cx.call,
            tool: prepared.name().to_owned(),
            card: prepared.card(),
            preview,
            because: match &self.hooks_ask {
                Some(why) if *because == Because::Hook => vec![why.clone()],
                _ => parts::reasons(because, &asked_parts),
            },
            elsewhere: parts::elsewhere(facts, &self.setting.cwd),
            parts: asked_parts,
            confinement: parts::confined(&self.policy, facts),
            saves: keeper.map(|keeper| keeper.places()).unwrap_or_default(),
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
        let (engine, setting) = (self.engine, &self.setting);
        let answer = self
            .slot
            .without(async {
                tokio::select! {
                    biased;
                    answer = cx.services.approver().ask(question) => Some(answer),
                    () = cx.cancel.cancelled() => None,
                    // Only where the answer does not come at once: then a person was asked.
                    never = hooks::asked(engine, &asked, &setting.cwd) => match never {},
                }
            })
            .await;
        let name = prepared.name();
        let mut denied = Denied::Person;
        self.kept.approval = match answer {
            Some(ApprovalAnswer::Always) => ApprovalSource::PersonAlways,
            _ => ApprovalSource::Person,
        };
        let message = match answer {
            Some(ApprovalAnswer::Allow) => return Ok(None),
            Some(ApprovalAnswer::Changed { input }) => {
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
                self.kept.patches.extend(patches);
                self.kept.rules.extend(keep);
                self.kept.scope = scope.unwrap_or_default();
                if input.is_some() {
                    self.rewritten = true;
                    self.consented = Some(because.clone());
                }
                return Ok(input);
            }
            Some(ApprovalAnswer::Always) => {
                self.kept.rules.extend(rules);
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
            Some(ApprovalAnswer::Nobody) => {
                let would_allow = remedy(
                    self.engine,
                    &self.policy,
                    &self.context.bases(),
                    because,
                    facts,
                    &rules,
                );
                self.denied_unasked(prepared, because).await;
                denied = Denied::Unasked {
                    kind: because.kind().into(),
                    reason: because.to_string(),
                    remedy: would_allow.strip_prefix(WOULD_ALLOW).map(str::to_owned),
                };
                format!(
                    "Permission to use {name} was not granted: this session cannot prompt. The call \
                     needs a person's consent because {because}.\n{would_allow}"
                )
            }
            None => return Err(interrupted(prepared)),
        };
        Err(rejected(prepared, denied, message))
    }

    /// No one is asked: hooks learn of it.
    async fn denied_unasked(&mut self, prepared: &Prepared, because: &Because) {
        let (engine, context, setting) = (self.engine, self.context, &self.setting);
        let (reason, notes) = (because.to_string(), &mut self.kept.notes);
        let told = hooks::denied(engine, prepared, &reason, context, setting, notes);
        self.cx.cancel.run_until_cancelled(told).await;
    }

    /// Refused without a question.
    fn refused(&self, prepared: &Prepared, facts: &Facts, because: &Because) -> EarlyResult {
        let by_itself = match because {
            Because::Rule { list, .. } => *list == RuleList::Deny,
            Because::Tool(_) => matches!(facts.opinion, Permission::Deny(_)),
            _ => false,
        };
        // What would only have asked is refused by the mode that never does.
        let kind = if by_itself { because.kind() } else { "mode" };
        let denied = unasked(kind, because);
        rejected(prepared, denied, denial(facts, because, &self.policy))
    }

    fn still_planning(&self) -> &'static str {
        match self.policy.mode {
            PermissionMode::Plan => "\nPlan mode stays on.",
            _ => "",
        }
    }
}
