//! Calls beside the model's own: judged and run like those, but no one is asked, and no message or patch of
//! theirs reaches the conversation or the session. What hooks say of one that was made inside a call is
//! reported with that call's result; what they want kept is kept.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Weak},
    time::Instant,
};

use futures_util::FutureExt;
use haft_contract::{
    BoxFuture, CallId, CancellationToken, ContextPatch, HookVerdict, NestedCalls, NestedResult,
    Progress, RuleList, RunNested, ToolUse, approval::NobodyToAsk,
};

use super::{
    Shared,
    call::{CallRun, NestedNotes, panicked},
    slots::Slot,
};
use crate::pipeline::{Author, CallResult, Notes, prepare};

/// The way to such calls of a session, outside any call.
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
            let run = AssertUnwindSafe(run(&shared, call, allowed, cancel));
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

async fn run(
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
