//! A call that the user makes directly. It runs without asking whether it may run, but deny rules
//! apply, and the user is still asked about anything that the sandbox blocks.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures_util::FutureExt;
use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallId, CancellationToken, ContextPatch,
    PermissionMode, ToolUse,
};

use super::{
    CallObserver, Scheduler,
    call::{CallRun, NestedNotes, nested_calls_within, panicked},
    slots::CallSlot,
};
use crate::pipeline::{CallResult, InputAuthor, prepare, without_outcome};

impl Scheduler {
    /// Runs a call that the user makes directly, between two turns. It may change the working
    /// directory.
    pub async fn run_user_call(
        &mut self,
        tool_use: ToolUse,
        cancel: CancellationToken,
        observer: &dyn CallObserver,
    ) -> CallResult {
        let (id, name) = (tool_use.id.clone(), tool_use.name.clone());
        let call = CallId::new();
        let run = AssertUnwindSafe(self.run_one(call, tool_use, cancel, observer));
        let finished = run
            .catch_unwind()
            .await
            .unwrap_or_else(|panic| without_outcome(call, &id, &name, &panicked(&name, &*panic)));
        for patch in &finished.patches {
            self.apply(patch);
        }
        finished
    }

    async fn run_one(
        &self,
        call: CallId,
        tool_use: ToolUse,
        cancel: CancellationToken,
        observer: &dyn CallObserver,
    ) -> CallResult {
        let shared = &self.shared;
        let mut context = self.context();
        // Modes that never ask must not deny a call that the user requested.
        if matches!(context.mode, PermissionMode::DontAsk | PermissionMode::Plan) {
            context.apply(&ContextPatch::SetMode {
                mode: PermissionMode::Default,
            });
        }
        let started = Instant::now();
        let id = tool_use.id.clone();
        let pool = shared.engine.pool();
        let prepared = match prepare(
            &pool,
            tool_use,
            InputAuthor::Model,
            call,
            &context.path_context(),
        ) {
            Ok(prepared) => prepared,
            Err(settled) => return settled.finish(call, id),
        };
        observer.on_bound(&prepared);
        let notes = NestedNotes::default();
        let nested = nested_calls_within(shared, &notes);
        let mut cx = shared.call_context(call, id.into(), &context, cancel, nested);
        let asked = Arc::clone(cx.services.approver());
        cx.services = cx
            .services
            .with_approver(Arc::new(UserTypedApprover(asked)));
        let run = CallRun {
            shared,
            cx: &cx,
            context: &context,
            slot: &mut CallSlot::nested(),
            started,
            observer: Some(observer),
            inner: Some(&notes),
            patches: true,
        };
        let (finished, notes) = run.run(prepared).await;
        finished.with_notes(notes)
    }
}

/// An approver that allows a call because the user has typed it.
struct UserTypedApprover(Arc<dyn Approver>);

impl Approver for UserTypedApprover {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        // Requests of a running command, about a host or its sandbox, have no reasons.
        match question.reasons.is_empty() {
            true => self.0.ask(question),
            false => Box::pin(async { ApprovalAnswer::Allow }),
        }
    }

    fn is_available(&self) -> bool {
        self.0.is_available()
    }
}
