//! One call, from its judging to its result: the same for the calls of a reply and for those made inside a
//! call or beside the conversation.
//!
//! Of the latter no one is asked, and no message or patch of theirs reaches the conversation or the session. What
//! hooks say of one that was made inside a call is reported with that call's result; what they want kept is kept.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant, SystemTime},
};

use futures_util::FutureExt;
use haft_contract::{
    BoxFuture, CallContext, CallId, CancellationToken, ContextPatch, HookVerdict, NestedCalls,
    NestedResult, Progress, RuleList, RuleScope, RunNested, ToolUse, approval::NobodyToAsk,
};

use serde_json::Value;

use super::{CallObserver, EndedCall, Shared, notifying_approver::notifying, slots::Slot};
use crate::{
    SessionContext,
    pipeline::{
        ApprovalSource, Author, CallResult, Notes, Prepared, admit, execute, finish, hooks, prepare,
    },
};

/// So long hooks that come after a call have once it is interrupted.
const AFTER_INTERRUPT: Duration = Duration::from_secs(1);

/// How a call is run.
pub(super) struct CallRun<'a> {
    pub(super) shared: &'a Shared,
    pub(super) cx: &'a CallContext,
    /// What it is judged by.
    pub(super) context: &'a SessionContext,
    pub(super) slot: &'a mut Slot,
    /// When it was its turn.
    pub(super) started: Instant,
    /// Who learns that it starts.
    pub(super) observer: Option<&'a dyn CallObserver>,
    /// What hooks said of calls that it made itself.
    pub(super) inner: Option<&'a NestedNotes>,
    /// Its patches count: relative paths may start elsewhere afterwards.
    pub(super) patches: bool,
}

impl CallRun<'_> {
    /// Judges it, runs it if it may, and makes its result. What hooks want said of it comes beside.
    pub(super) async fn run(self, prepared: Prepared) -> (CallResult, Notes) {
        let Self {
            shared,
            cx,
            context,
            started,
            ..
        } = self;
        let engine = &shared.engine;
        let (call, id) = prepared.ids();
        let ends = CallEnding::of(shared, &prepared, started);
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
        let kept = admitted.take_kept();
        shared.keep(&kept.rules, kept.scope, &kept.patches);
        if let Some(observer) = self.observer {
            observer.started(&admitted);
        }
        let told = notifying(engine, cx).or_else(|| admitted.take_context());
        let told = told.unwrap_or_else(|| cx.clone());
        let mut outcome = execute(admitted, told, &engine.layers).await;
        let duration = started.elapsed();
        let mut notes = kept.notes;
        if let Some(inner) = self.inner {
            notes.extend(inner.take());
        }
        // In boxes, as everything that few calls need: each call would be as large as the largest.
        if !hooks::is_silent_after(engine, &outcome) {
            let after = Box::pin(hooks::after(engine, &mut outcome, cx, context, duration));
            notes.extend(heard_in_time(after, cx).await);
        }
        let mut finished = finish(outcome, &engine.results, engine.draws, duration);
        finished.metadata.waited = self.slot.waited();
        if !self.patches {
            finished.patches.clear();
        }
        ends.report(&finished, Some(kept.approval));
        if !finished.patches.is_empty() {
            let moved = Box::pin(hooks::moved(engine, &finished.patches, context));
            notes.extend(heard_in_time(moved, cx).await);
        }
        (finished, notes)
    }
}

/// Hooks may take minutes. Those that come after a call learn also that it was interrupted; then they have only a
/// moment, and what the call came to stays as it is.
async fn heard_in_time(hooks: impl Future<Output = Notes>, cx: &CallContext) -> Notes {
    let late = async {
        cx.cancel.cancelled().await;
        tokio::time::sleep(AFTER_INTERRUPT).await;
    };
    tokio::select! {
        biased;
        notes = hooks => notes,
        () = late => Notes::default(),
    }
}

/// What a listener is told of a call beside its result; nothing where no one listens.
struct CallEnding<'a>(Option<(&'a Shared, Value, SystemTime)>);

impl<'a> CallEnding<'a> {
    fn of(shared: &'a Shared, prepared: &Prepared, started: Instant) -> Self {
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

/// What hooks said of the calls that a call made itself, for its own result.
#[derive(Debug, Clone, Default)]
pub(super) struct NestedNotes(Arc<Mutex<Notes>>);

impl NestedNotes {
    pub(super) fn add(&self, notes: Notes) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(notes);
    }

    fn take(&self) -> Notes {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all)
    }
}

/// The way to calls beside the model's own, outside any call.
pub(super) fn beside(shared: &Arc<Shared>) -> NestedCalls {
    NestedCalls::by(Arc::new(Runner {
        shared: Arc::downgrade(shared),
        outer: None,
    }))
}

/// The same for one call, whose result tells what hooks say of them.
pub(super) fn inside(shared: &Arc<Shared>, outer: &NestedNotes) -> NestedCalls {
    NestedCalls::by(Arc::new(Runner {
        shared: Arc::downgrade(shared),
        outer: Some(outer.clone()),
    }))
}

/// Keeps no session alive: what it is handed to may outlive it.
struct Runner {
    shared: Weak<Shared>,
    outer: Option<NestedNotes>,
}

impl RunNested for Runner {
    fn run<'a>(
        &'a self,
        call: ToolUse,
        allowed: &'a [String],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, NestedResult> {
        Box::pin(async move {
            let Some(shared) = self.shared.upgrade() else {
                return failed("the session is over".to_owned());
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
    shared: &Arc<Shared>,
    tool_use: ToolUse,
    allowed: &[String],
    cancel: &CancellationToken,
) -> (CallResult, Notes) {
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
        Author::Model,
        call,
        &context.place(),
    ) {
        Ok(prepared) => prepared,
        Err(settled) => return (settled.finish(call, id), Notes::default()),
    };
    let none = NestedCalls::default();
    let mut cx = shared.call_context(call, id.into(), &context, cancel.child_token(), none);
    cx.progress = Progress::silent(call);
    cx.services = cx.services.with_approver(Arc::new(NobodyToAsk));
    let run = CallRun {
        shared,
        cx: &cx,
        context: &context,
        slot: &mut Slot::inner(),
        started,
        observer: None,
        inner: None,
        patches: false,
    };
    run.run(prepared).await
}

impl Shared {
    /// What a call knows about its surroundings.
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
                Some(progress) => progress.of(call),
                None => Progress::silent(call),
            },
            permissions: context.permissions(),
            model: self.model().clone(),
            services: engine.services.clone(),
            nested,
        }
    }

    /// Keeps rules that a person agreed to: for the session at once, and where the session says.
    fn keep(&self, rules: &[String], scope: RuleScope, patches: &[ContextPatch]) {
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
            context.context.apply(patch);
        }
        drop(context);
        if rules.is_empty() || scope == RuleScope::Session {
            return;
        }
        if let Some(keeper) = &self.engine.keeper {
            keeper.keep(rules, scope);
        }
    }
}

/// What is said of a call whose tool panicked.
pub(super) fn panicked(name: &str, panic: &(dyn Any + Send)) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    format!(
        "{name} panicked ({said}). That is a defect of the tool, not of the call; what it had done \
         by then is not known."
    )
}
