//! Questions to the user about hosts. Only one question is open at a time, and each is asked once
//! per session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, CallContext, CallId, Card, PermissionMode,
    ToolUse, approval::Approver,
};
use haft_sandbox::network::{GateVerdict, Host};

/// The user's answers about hosts, and the call on whose behalf the next question is asked.
#[derive(Default)]
pub(crate) struct HostApprovals {
    state: Mutex<QuestionState>,
    /// Ensures that only one question is open, because its answer may also decide the next one.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct QuestionState {
    asker: Option<HostAsker>,
    answers: HashMap<String, bool>,
}

#[derive(Clone)]
struct HostAsker {
    approver: Arc<dyn Approver>,
    call: CallId,
    named: NamedCall,
}

/// The call that a question is about: as a card for the user, and as JSON for an approval program.
#[derive(Clone)]
pub(crate) struct NamedCall {
    pub(crate) card: Card,
    pub(crate) asked: ToolUse,
}

impl HostApprovals {
    /// Asks questions on behalf of this call from now on.
    pub(crate) fn open_for(&self, cx: &CallContext, named: &NamedCall) {
        self.state().asker = (cx.permissions.mode != PermissionMode::DontAsk).then(|| HostAsker {
            approver: Arc::clone(cx.services.approver()),
            call: cx.call,
            named: named.clone(),
        });
    }

    /// Stops asking questions, because no call is running.
    #[cfg(feature = "browser")]
    pub(crate) fn close(&self) {
        self.state().asker = None;
    }

    /// Allows this for the session, as the user decided.
    pub(crate) fn allow(&self, about: &str) {
        self.state().answers.insert(about.to_owned(), true);
    }

    /// Returns the user's earlier answer, if any.
    pub(crate) fn earlier_answer(&self, about: &str) -> Option<bool> {
        self.state().answers.get(about).copied()
    }

    /// Returns everything that the user has allowed.
    pub(crate) fn allowed(&self) -> impl Iterator<Item = String> + use<> {
        let answers = self.state().answers.clone();
        let allowed = answers.into_iter().filter(|(_, is_allowed)| *is_allowed);
        allowed.map(|(about, _)| about)
    }

    /// Returns the user's answer, and asks if the user has not answered yet. Returns `None` if no
    /// user can be asked.
    pub(crate) async fn ask(&self, tool: &str, about: &str, reason: String) -> Option<bool> {
        if let Some(said) = self.earlier_answer(about) {
            return Some(said);
        }
        let _one_at_a_time = self.asking.lock().await;
        if let Some(said) = self.earlier_answer(about) {
            return Some(said);
        }
        let asker = self.state().asker.clone()?;
        let question = ApprovalRequest {
            kind: ApprovalKind::Permission,
            call: asker.call,
            tool: tool.to_owned(),
            card: asker.named.card,
            reason,
            asked: Some(asker.named.asked),
            ..ApprovalRequest::default()
        };
        let said = match asker.approver.ask(question).await {
            ApprovalAnswer::Allow
            | ApprovalAnswer::AllowAlways
            | ApprovalAnswer::Updated { input: None, .. } => true,
            // The request is already running, so it cannot be changed into another call.
            ApprovalAnswer::Deny { .. }
            | ApprovalAnswer::InputEdited { .. }
            | ApprovalAnswer::Updated { .. } => false,
            ApprovalAnswer::Unavailable => return None,
        };
        self.state().answers.insert(about.to_owned(), said);
        Some(said)
    }

    fn state(&self) -> MutexGuard<'_, QuestionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the host in the format of rules: without brackets.
pub(crate) fn bare(host: &Host) -> String {
    match host.address() {
        Some(address) => address.to_string(),
        None => host.to_string(),
    }
}

pub(crate) fn refuse(because: String) -> GateVerdict {
    GateVerdict::Refuse { because }
}
