//! Notifies hooks of approval requests that a tool makes while it runs.

use std::{path::PathBuf, sync::Arc};

use haft_contract::{ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallContext};

use crate::{Engine, hooks::HookEventKind, pipeline::hooks};

struct NotifyingApprover {
    engine: Arc<Engine>,
    asked: Arc<dyn Approver>,
    cwd: PathBuf,
}

/// Returns a context whose approver notifies the hooks that the user is asked; `None` if no hook
/// handles notifications.
pub(super) fn notifying(engine: &Arc<Engine>, cx: &CallContext) -> Option<CallContext> {
    if engine.hooks().has_no_handlers(HookEventKind::NOTIFICATION) {
        return None;
    }
    let approver = NotifyingApprover {
        engine: Arc::clone(engine),
        asked: Arc::clone(cx.services.approver()),
        cwd: cx.cwd.to_path_buf(),
    };
    let mut cx = cx.clone();
    cx.services = cx.services.with_approver(Arc::new(approver));
    Some(cx)
}

impl Approver for NotifyingApprover {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let what = format!("{}: {}", question.tool, question.reason);
            tokio::select! {
                biased;
                answer = self.asked.ask(question) => answer,
                never = hooks::notify_approval_pending(&self.engine, &what, &self.cwd) => match never {},
            }
        })
    }

    fn is_available(&self) -> bool {
        self.asked.is_available()
    }
}
