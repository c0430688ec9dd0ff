//! One call, from its judging to its result: the same for the calls of a reply and for those made inside a
//! call or beside the conversation.

use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use haft_contract::{
    CallContext, CallId, CancellationToken, ContextPatch, NestedCalls, Progress, RuleList,
    RuleScope,
};

use super::{CallObserver, Shared, notifying_approver::notifying, slots::Slot};
use crate::{
    SessionContext,
    pipeline::{CallResult, Notes, Prepared, admit, execute, finish, hooks},
};

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
        let mut admitted = match admit(prepared, cx, context, engine, self.slot).await {
            Ok(admitted) => admitted,
            Err(mut settled) => {
                let notes = std::mem::take(&mut *settled.notes);
                let mut finished = settled.finish(call, id);
                finished.metadata.duration = started.elapsed();
                finished.metadata.waited = self.slot.waited();
                return (finished, notes);
            }
        };
        let kept = admitted.take_kept();
        shared.keep(&kept.rules, kept.scope, &kept.patches);
        if let Some(observer) = self.observer {
            observer.started(&admitted);
        }
        let notifying = notifying(engine, cx);
        let told = notifying.as_ref().unwrap_or(cx);
        let mut outcome = execute(admitted, told, &engine.layers).await;
        let duration = started.elapsed();
        let mut notes = kept.notes;
        if let Some(inner) = self.inner {
            notes.extend(inner.take());
        }
        notes.extend(hooks::after(engine, &mut outcome, cx, context, duration).await);
        let mut finished = finish(outcome, &engine.results, duration);
        finished.metadata.waited = self.slot.waited();
        if !self.patches {
            finished.patches.clear();
        }
        notes.extend(hooks::moved(engine, &finished.patches, context).await);
        (finished, notes)
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
