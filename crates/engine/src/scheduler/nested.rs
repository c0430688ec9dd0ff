//! Calls beside the model's own: judged and run like those, but nobody is asked, and nothing of them goes
//! into the conversation or changes the session.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Weak},
    time::Instant,
};

use futures_util::FutureExt;
use haft_contract::{
    BoxFuture, CallContext, CallId, CancellationToken, ContextPatch, NestedCalls, NestedResult,
    Progress, RuleList, RunNested, ToolUse, approval::NobodyToAsk,
};

use super::{Shared, slots::Slot};
use crate::pipeline::{Author, CallResult, admit, execute, finish, hooks, prepare};

/// The way to such calls of a session.
pub(super) fn of(shared: &Arc<Shared>) -> NestedCalls {
    NestedCalls::by(Arc::new(Runner(Arc::downgrade(shared))))
}

/// Keeps no session alive: what it is handed to may outlive it.
struct Runner(Weak<Shared>);

impl RunNested for Runner {
    fn run<'a>(
        &'a self,
        call: ToolUse,
        allowed: &'a [String],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, NestedResult> {
        Box::pin(async move {
            let Some(shared) = self.0.upgrade() else {
                return failed("the session is over".to_owned());
            };
            let name = call.name.clone();
            let run = AssertUnwindSafe(run(&shared, call, allowed, cancel));
            match run.catch_unwind().await {
                Ok(finished) => NestedResult {
                    is_error: finished.is_error,
                    denied: finished.metadata.denied.is_some(),
                    text: finished.text(),
                    structured: finished.structured,
                },
                Err(_) => failed(format!("{name} panicked. That is a defect of the tool.")),
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
    }
}

async fn run(
    shared: &Arc<Shared>,
    tool_use: ToolUse,
    allowed: &[String],
    cancel: &CancellationToken,
) -> CallResult {
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
    let place = context.place();
    let prepared = match prepare(&engine.pool(), tool_use, Author::Model, call, &place) {
        Ok(prepared) => prepared,
        Err(settled) => return settled.finish(call, id),
    };
    let cx = CallContext {
        session: engine.session,
        call,
        tool_use_id: id.as_str().into(),
        cwd: Arc::clone(&context.cwd),
        cancel: cancel.child_token(),
        progress: Progress::silent(call),
        permissions: context.permissions(),
        model: engine.model.clone(),
        services: engine.services.clone().with_approver(Arc::new(NobodyToAsk)),
        nested: NestedCalls::default(),
    };
    match admit(prepared, &cx, &context, engine, &mut Slot::inner()).await {
        Ok(admitted) => {
            let mut outcome = execute(admitted, &cx, &engine.layers).await;
            let duration = started.elapsed();
            let notes = hooks::after(engine, &mut outcome, &cx, &context, duration).await;
            finish(outcome, &engine.results, duration).with_notes(notes)
        }
        Err(settled) => settled.finish(call, id),
    }
}
