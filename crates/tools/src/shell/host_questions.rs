//! Questions to the person about hosts: one at a time, each asked once a session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_contract::{
    ApprovalAnswer, ApprovalKind, ApprovalRequest, CallContext, CallId, Card, PermissionMode,
    ToolUse, approval::Approver,
};
use haft_sandbox::network::{GateVerdict, Host};

/// What the person said of hosts, and in whose name the next question is.
#[derive(Default)]
pub(crate) struct HostQuestions {
    state: Mutex<QuestionState>,
    /// One question at a time: the answer to the first may settle the second.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct QuestionState {
    asker: Option<HostAsker>,
    said: HashMap<String, bool>,
}

#[derive(Clone)]
struct HostAsker {
    approver: Arc<dyn Approver>,
    call: CallId,
    named: Named,
}

/// The call that a question is about: for people, and for programs that answer.
#[derive(Clone)]
pub(crate) struct Named {
    pub(crate) card: Card,
    pub(crate) asked: ToolUse,
}

impl HostQuestions {
    /// From now on in the name of this call.
    pub(crate) fn open_for(&self, cx: &CallContext, named: &Named) {
        self.state().asker = (cx.permissions.mode != PermissionMode::DontAsk).then(|| HostAsker {
            approver: Arc::clone(cx.services.approver()),
            call: cx.call,
            named: named.clone(),
        });
    }

    /// No call is under way: no one can be asked.
    #[cfg(feature = "browser")]
    pub(crate) fn close(&self) {
        self.state().asker = None;
    }

    /// The person allows this for the session.
    pub(crate) fn allow(&self, about: &str) {
        self.state().said.insert(about.to_owned(), true);
    }

    /// What was said of it, if anything was.
    pub(crate) fn said(&self, about: &str) -> Option<bool> {
        self.state().said.get(about).copied()
    }

    /// What the person says, asked once. `None`: no one can be asked.
    pub(crate) async fn ask(&self, tool: &str, about: &str, reason: String) -> Option<bool> {
        if let Some(said) = self.said(about) {
            return Some(said);
        }
        let _one_at_a_time = self.asking.lock().await;
        if let Some(said) = self.said(about) {
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
            | ApprovalAnswer::Always
            | ApprovalAnswer::Updated { input: None, .. } => true,
            // What asks is under way: it cannot become another call.
            ApprovalAnswer::Deny { .. }
            | ApprovalAnswer::Changed { .. }
            | ApprovalAnswer::Updated { .. } => false,
            ApprovalAnswer::Nobody => return None,
        };
        self.state().said.insert(about.to_owned(), said);
        Some(said)
    }

    fn state(&self) -> MutexGuard<'_, QuestionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As rules are asked: without brackets.
pub(crate) fn bare(host: &Host) -> String {
    match host.address() {
        Some(address) => address.to_string(),
        None => host.to_string(),
    }
}

pub(crate) fn refuse(because: String) -> GateVerdict {
    GateVerdict::Refuse { because }
}
