//! One call, from its permission decision to its result. The code is the same for the calls of a
//! reply and for nested calls, which are made inside a call or outside any turn.
//!
//! Nested calls never ask the user, and their messages and patches do not reach the conversation or
//! the session. The hook notes of a call made inside another call are reported with that call's
//! result. Permission updates by the hooks of nested calls are applied.

use std::{
    any::Any,
    borrow::Cow,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant, SystemTime},
};

use futures_util::FutureExt;
use haft_contract::{
    BoxFuture, CallContext, CallId, CancellationToken, ContextPatch, HookVerdict, NestedCallRunner,
    NestedCalls, NestedResult, ProgressSender, RuleList, RuleScope, ToolUse, approval::NoApprover,
};

use serde_json::Value;

use super::{
    CallObserver, EndedCall, SchedulerShared, notifying_approver::notifying, slots::CallSlot,
};
use crate::{
    SessionContext,
    pipeline::{
        ApprovalSource, CallResult, HookNotes, InputAuthor, PreparedCall, admit, execute, finish,
        hooks, prepare,
    },
};

/// The time that hooks which run after a call have left once the call is interrupted.
const AFTER_INTERRUPT: Duration = Duration::from_secs(1);

/// One call to run, with its environment.
pub(super) struct CallRun<'a> {
    pub(super) shared: &'a SchedulerShared,
    pub(super) cx: &'a CallContext,
    /// The context that its permission is evaluated with.
    pub(super) context: &'a SessionContext,
    pub(super) slot: &'a mut CallSlot,
    /// The time at which the call was started. It may then have waited for a slot.
    pub(super) started: Instant,
    /// The observer to notify when the call starts.
    pub(super) observer: Option<&'a dyn CallObserver>,
    /// The hook notes of calls that this call made itself.
    pub(super) inner: Option<&'a NestedNotes>,
    /// Whether the patches of the call are applied, such as a change of the working directory.
    pub(super) patches: bool,
}

impl CallRun<'_> {
    /// Decides whether the call may run, runs it if so, and creates its result. Also returns the
    /// notes by its hooks.
    pub(super) async fn run(self, prepared: PreparedCall) -> (CallResult, HookNotes) {
        let Self {
            shared,
            cx,
            context,
            started,
            ..
        } = self;
        let engine = &shared.engine;
        let granted = engine.grants.add_to(context);
        let context = &*granted;
        let granted_cx = match &granted {
            Cow::Borrowed(_) => None,
            Cow::Owned(context) => {
                let mut cx = cx.clone();
                cx.permissions.hosts = context.permissions().hosts;
                Some(cx)
            }
        };
        let cx = granted_cx.as_ref().unwrap_or(cx);
        let (call, id) = prepared.ids();
        let ends = CallReport::new(shared, &prepared, started);
        let mut admitted = match admit(prepared, cx, context, engine, self.slot).await {
            Ok(admitted) => admitted,
            Err(mut settled) => {
                let notes = std::mem::take(&mut *settled.notes);
                let mut finished = settled.finish(call, id);
                finished.metadata.duration = started.elapsed();
                finished.metadata.waited = self.slot.waited();
                ends.report(&finished, None);
                return (finished, notes);
            }
        };
        let kept = admitted.take_admission_effects();
        shared.apply_approved_rules(&kept.rules, kept.rule_scope, &kept.patches);
        if let Some(observer) = self.observer {
            observer.on_started(&admitted);
        }
        let told = notifying(engine, cx).or_else(|| admitted.take_context());
        let told = told.unwrap_or_else(|| cx.clone());
        let permission = admitted.permission();
        let mut outcome = execute(admitted, told, &engine.layers).await;
        let duration = started.elapsed();
        let mut notes = kept.notes;
        if let Some(inner) = self.inner {
            notes.extend(inner.take());
        }
        // Boxed, like all work that few calls need, so that the future of every call stays small.
        if !hooks::is_silent_after(engine, &outcome) {
            let after = Box::pin(hooks::run_post_tool_use(
                engine,
                &mut outcome,
                cx,
                context,
                duration,
            ));
            notes.extend(run_hooks_until_cancelled(after, cx).await);
        }
        let mut finished = finish(outcome, &engine.results, engine.draws_cards, duration);
        permission.add_to(&mut finished, &engine.undo_was_explained);
        finished.metadata.waited = self.slot.waited();
        if !self.patches {
            finished.patches.clear();
        }
        ends.report(&finished, Some(kept.approval));
        if !finished.patches.is_empty() {
            let moved = Box::pin(hooks::run_cwd_changed(engine, &finished.patches, context));
            notes.extend(run_hooks_until_cancelled(moved, cx).await);
        }
        (finished, notes)
    }
}

/// Runs the hooks after a call, which are notified even if the call was interrupted. Since hooks
/// may run for minutes, they are dropped one second after an interrupt. Then the result of the call
/// stays unchanged.
async fn run_hooks_until_cancelled(
    hooks: impl Future<Output = HookNotes>,
    cx: &CallContext,
) -> HookNotes {
    let late = async {
        cx.cancel.cancelled().await;
        tokio::time::sleep(AFTER_INTERRUPT).await;
    };
    tokio::select! {
        biased;
        notes = hooks => notes,
        () = late => HookNotes::default(),
    }
}

/// The data that a listener receives about a call besides its result; `None` without a listener.
struct CallReport<'a>(Option<(&'a SchedulerShared, Value, SystemTime)>);

impl<'a> CallReport<'a> {
    fn new(shared: &'a SchedulerShared, prepared: &PreparedCall, started: Instant) -> Self {
        Self(shared.engine.listener.is_some().then(|| {
            let began = SystemTime::now().checked_sub(started.elapsed());
            let began = began.unwrap_or(SystemTime::UNIX_EPOCH);
            (shared, prepared.input().clone(), began)
        }))
    }

    fn report(&self, result: &CallResult, approval: Option<ApprovalSource>) {
        if let Some((shared, input, began)) = &self.0
            && let Some(listener) = &shared.engine.listener
        {
            listener.on_call_ended(&EndedCall {
                result,
                input,
                agent: &shared.engine.agent(),
                began: *began,
                approval,
            });
        }
    }
}

/// The hook notes of the calls that a call made itself, for its own result.
#[derive(Debug, Clone, Default)]
pub(super) struct NestedNotes(Arc<Mutex<HookNotes>>);

impl NestedNotes {
    pub(super) fn add(&self, notes: HookNotes) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(notes);
    }

    fn take(&self) -> HookNotes {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all)
    }
}

/// Returns a runner for nested calls outside any call.
pub(super) fn nested_calls(shared: &Arc<SchedulerShared>) -> NestedCalls {
    NestedCalls::from_runner(Arc::new(NestedRunner {
        shared: Arc::downgrade(shared),
        outer: None,
    }))
}

/// Returns a runner for nested calls inside one call, whose result includes their hook notes.
pub(super) fn nested_calls_within(
    shared: &Arc<SchedulerShared>,
    outer: &NestedNotes,
) -> NestedCalls {
    NestedCalls::from_runner(Arc::new(NestedRunner {
        shared: Arc::downgrade(shared),
        outer: Some(outer.clone()),
    }))
}

/// Runs nested calls. Holds only a weak reference, because the receiver may outlive the session.
struct NestedRunner {
    shared: Weak<SchedulerShared>,
    outer: Option<NestedNotes>,
}

impl NestedCallRunner for NestedRunner {
    fn run<'a>(
        &'a self,
        call: ToolUse,
        allowed: &'a [String],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, NestedResult> {
        Box::pin(async move {
            let Some(shared) = self.shared.upgrade() else {
                return failed("the session has ended".to_owned());
            };
            let name = call.name.clone();
            let run = AssertUnwindSafe(run_nested(&shared, call, allowed, cancel));
            let (finished, notes) = match run.catch_unwind().await {
                Ok(ran) => ran,
                Err(panic) => return failed(panicked(&name, &*panic)),
            };
            let hooks = notes.verdict();
            if let Some(outer) = &self.outer {
                outer.add(notes);
            }
            NestedResult {
                is_error: finished.is_error,
                denied: finished.metadata.denied.is_some(),
                text: finished.text(),
                structured: finished.structured,
                hooks,
            }
        })
    }
}

fn failed(text: String) -> NestedResult {
    NestedResult {
        is_error: true,
        denied: false,
        text,
        structured: None,
        hooks: HookVerdict::default(),
    }
}

async fn run_nested(
    shared: &Arc<SchedulerShared>,
    tool_use: ToolUse,
    allowed: &[String],
    cancel: &CancellationToken,
) -> (CallResult, HookNotes) {
    let engine = &shared.engine;
    let started = Instant::now();
    let mut context = shared.context().context.clone();
    for rule in allowed {
        context.apply(&ContextPatch::AddRuleForTurn {
            list: RuleList::Allow,
            rule: rule.clone(),
        });
    }
    let call = CallId::new();
    let id = tool_use.id.clone();
    let prepared = match prepare(
        &engine.pool(),
        tool_use,
        InputAuthor::Model,
        call,
        &context.path_context(),
    ) {
        Ok(prepared) => prepared,
        Err(settled) => return (settled.finish(call, id), HookNotes::default()),
    };
    let none = NestedCalls::default();
    let mut cx = shared.call_context(call, id.into(), &context, cancel.child_token(), none);
    cx.progress = ProgressSender::disabled(call);
    cx.services = cx.services.with_approver(Arc::new(NoApprover));
    let run = CallRun {
        shared,
        cx: &cx,
        context: &context,
        slot: &mut CallSlot::nested(),
        started,
        observer: None,
        inner: None,
        patches: false,
    };
    run.run(prepared).await
}

impl SchedulerShared {
    /// Creates the context of a call.
    pub(super) fn call_context(
        &self,
        call: CallId,
        tool_use_id: Arc<str>,
        context: &SessionContext,
        cancel: CancellationToken,
        nested: NestedCalls,
    ) -> CallContext {
        let engine = &self.engine;
        CallContext {
            session: engine.session(),
            call,
            tool_use_id,
            cwd: Arc::clone(&context.cwd),
            cancel,
            progress: match &engine.progress {
                Some(progress) => progress.for_call(call),
                None => ProgressSender::disabled(call),
            },
            permissions: context.permissions(),
            model: self.model().clone(),
            services: engine.services.clone(),
            nested,
        }
    }

    /// Applies rules and patches that the user agreed to: to the session immediately, and in the
    /// store of the chosen scope.
    fn apply_approved_rules(&self, rules: &[String], scope: RuleScope, patches: &[ContextPatch]) {
        if rules.is_empty() && patches.is_empty() {
            return;
        }
        let mut context = self.context();
        for rule in rules {
            context.context.apply(&ContextPatch::AddRule {
                list: RuleList::Allow,
                rule: rule.clone(),
            });
        }
        for patch in patches {
            match patch {
                ContextPatch::AddTimedRules { rules, until } => {
                    self.engine.grants.add(rules, *until);
                }
                patch => context.context.apply(patch),
            }
        }
        drop(context);
        if rules.is_empty() || scope == RuleScope::Session {
            return;
        }
        if let Some(keeper) = &self.engine.rule_store {
            keeper.save(rules, scope);
        }
    }
}

/// Returns the error text of a call whose tool panicked.
pub(super) fn panicked(name: &str, panic: &(dyn Any + Send)) -> String {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    format!(
        "{name} panicked ({message}). This is a defect of the tool, not of the call. It is unknown what \
         the call has already done."
    )
}
