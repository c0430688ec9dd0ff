//! `haft exec --interactive-json`: calls can ask for permission, report progress and be cancelled
//! one by one.
//!
//! Besides the answers, stdout carries lines with a `type`: `permission_request`, `progress` and
//! `error`. Besides the requests, stdin accepts lines with a `type` at any time:
//! `permission_response` and `cancel`.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use haft::{
    ApprovalAnswer, ApprovalRequest, BoxFuture, CallId, CallResult, CancellationToken,
    ContextPatch, GrantEnd, ProgressSender, ProgressUpdate, ProgressUpdates, RuleList, RuleOffer,
    ToolUse,
    engine::{CallObserver, pipeline::AdmittedCall},
};
use haft_host::QuestionHandler;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::request::text_id;
use crate::show;

/// The reason that an open question gets no answer.
const CLOSED: &str = "the input has ended, so no answer can arrive";

/// The open questions and calls of one client.
#[derive(Default)]
pub(super) struct ExecDialog {
    next: AtomicU64,
    state: Mutex<DialogState>,
}

#[derive(Default)]
struct DialogState {
    /// Unanswered questions by id.
    questions: HashMap<String, oneshot::Sender<ApprovalAnswer>>,
    /// Questions whose call ended before they were answered. Their answer may still arrive and is
    /// then ignored.
    withdrawn: HashSet<String>,
    /// Running and waiting calls, by their ids as text.
    calls: HashMap<String, ClientCall>,
    /// The client's ids of running calls, by our own ids.
    ids: HashMap<CallId, String>,
    is_closed: bool,
}

/// A call that waits or runs.
struct ClientCall {
    /// The id as the client wrote it.
    id: Value,
    /// Present once the call runs.
    cancel: Option<CancellationToken>,
    /// Cancelled before it began.
    is_cancelled: bool,
}

impl ClientCall {
    fn cancel(&mut self) {
        self.is_cancelled = true;
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }
}

impl ExecDialog {
    /// Handles a line with a `type`, which is not a request. The error describes the problem in it.
    pub(super) fn on_line(&self, line: &Value) -> Result<(), String> {
        match line["type"].as_str() {
            Some("permission_response") => self.answered(line),
            Some("cancel") => {
                let mut state = self.state();
                match state.calls.get_mut(&text_id(&line["id"])) {
                    Some(call) => call.cancel(),
                    // The call may just have ended.
                    None => tracing::debug!(id = %line["id"], "no call with this id is running"),
                }
                Ok(())
            }
            other => Err(format!(
                "unknown line type {other:?}; expected `permission_response` or `cancel`"
            )),
        }
    }

    fn answered(&self, line: &Value) -> Result<(), String> {
        let id = line["request_id"].as_str().unwrap_or_default();
        let answer = parse_answer(line)?;
        let mut state = self.state();
        if let Some(sender) = state.questions.remove(id) {
            // The call that asked may have ended.
            drop(sender.send(answer));
        } else if !state.withdrawn.remove(id) {
            return Err(format!(
                "no question with the `request_id` {} waits for an answer: use that of a \
                 permission_request, once",
                line["request_id"]
            ));
        }
        Ok(())
    }

    /// Registers a call, which can be cancelled until it ends. `shown` is its id as the client
    /// wrote it.
    pub(super) fn register_call(&self, id: String, shown: Value) {
        let call = ClientCall {
            id: shown,
            cancel: None,
            is_cancelled: false,
        };
        self.state().calls.insert(id, call);
    }

    /// Marks a call as running. If it was cancelled while it waited, `cancel` is triggered
    /// immediately.
    pub(super) fn start_call(&self, id: &str, cancel: CancellationToken) {
        let mut state = self.state();
        let Some(call) = state.calls.get_mut(id) else {
            return;
        };
        if call.is_cancelled {
            cancel.cancel();
        }
        call.cancel = Some(cancel);
    }

    /// Removes a call that has ended.
    pub(super) fn finish_call(&self, id: &str) {
        let mut state = self.state();
        state.calls.remove(id);
        state.ids.retain(|_, known| known != id);
    }

    /// Returns the observer that maps our call ids to the client's.
    pub(super) fn observer(self: &Arc<Self>) -> Arc<dyn CallObserver> {
        Arc::clone(self) as _
    }

    /// Returns the id of a call as the client wrote it.
    fn shown(&self, id: &str) -> Value {
        let state = self.state();
        let call = state.calls.get(id);
        call.map_or_else(|| Value::String(id.to_owned()), |call| call.id.clone())
    }

    /// Marks the input as closed: open questions get no answer.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.questions.clear();
    }

    fn state(&self) -> MutexGuard<'_, DialogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an `error` line about `line`.
pub(super) fn problem(line: &Value, message: &str) -> Value {
    let mut problem = json!({"type": "error", "message": message});
    for key in ["request_id", "id"] {
        if let Some(value) = line.get(key) {
            problem[key] = value.clone();
        }
    }
    problem
}

/// Parses a `permission_response` line.
fn parse_answer(line: &Value) -> Result<ApprovalAnswer, String> {
    let texts = |key: &str| -> Vec<String> {
        let list = line[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    match line["behavior"].as_str() {
        Some("allow") => {
            let input = Some(&line["updated_input"]).filter(|input| input.is_object());
            let rules = texts("rules");
            let patches = match line.get("until").filter(|until| !until.is_null()) {
                Some(until) => {
                    let until = serde_json::from_value(until.clone());
                    let until: GrantEnd = until
                        .map_err(|_| "`until` must be \"task\" or {\"seconds\": N}".to_owned())?;
                    vec![ContextPatch::AddTimedRules { rules, until }]
                }
                None => {
                    let rules = rules.into_iter();
                    let add = |rule| ContextPatch::AddRule {
                        list: RuleList::Allow,
                        rule,
                    };
                    rules.map(add).collect()
                }
            };
            Ok(ApprovalAnswer::Updated {
                input: input.cloned(),
                patches,
                keep: Vec::new(),
                scope: None,
            })
        }
        Some("deny") => Ok(ApprovalAnswer::Deny {
            reason: line["message"].as_str().map(str::to_owned),
        }),
        _ => Err("`behavior` must be \"allow\" or \"deny\"".to_owned()),
    }
}

/// Asks the client for permission by a `permission_request` line.
pub(super) struct LineApprover(pub(super) Arc<ExecDialog>);

impl QuestionHandler for LineApprover {
    fn can_ask_user(&self) -> bool {
        !self.0.state().is_closed
    }

    fn permission(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let number = self.0.next.fetch_add(1, Ordering::Relaxed) + 1;
            let id = format!("permission_{number}");
            let (sender, receiver) = oneshot::channel();
            {
                let mut state = self.0.state();
                if state.is_closed {
                    return ApprovalAnswer::Unavailable;
                }
                state.questions.insert(id.clone(), sender);
            }
            let rules = request.first_rules().to_vec();
            let (call, input) = match request.asked {
                Some(ToolUse { id, input, .. }) => (self.0.shown(&id), input),
                None => (Value::Null, Value::Object(Map::new())),
            };
            let line = json!({
                "type": "permission_request",
                "request_id": id,
                "id": call,
                "name": request.tool,
                "input": input,
                "reason": request.reason,
                "rules": rules,
                "offers": request.offers.iter().map(offer_json).collect::<Vec<_>>(),
            });
            if show::json(&line.to_string()).is_err() {
                return ApprovalAnswer::Unavailable;
            }
            let _withdraws = ExecQuestionGuard(&self.0, id);
            let answer = receiver.await;
            answer.unwrap_or_else(|_| ApprovalAnswer::Deny {
                reason: Some(CLOSED.to_owned()),
            })
        })
    }
}

fn offer_json(offer: &RuleOffer) -> Value {
    json!({"rules": offer.rules, "asks_again": offer.asks_again})
}

/// Withdraws an unanswered question on drop.
struct ExecQuestionGuard<'a>(&'a ExecDialog, String);

impl Drop for ExecQuestionGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if state.questions.remove(&self.1).is_some() {
            state.withdrawn.insert(std::mem::take(&mut self.1));
        }
    }
}

/// Records which of our call ids belongs to which client id, for progress lines.
impl CallObserver for ExecDialog {
    fn on_started(&self, call: &AdmittedCall) {
        let (own, id) = call.call().ids();
        self.state().ids.insert(own, id.to_string());
    }

    fn on_ended(&self, _: &CallResult) {}
}

/// Creates the channel through which calls report their progress.
pub(super) fn progress() -> (ProgressSender, ProgressUpdates) {
    haft::contract::progress::channel(CallId::new())
}

/// Writes progress lines until the session has ended.
pub(super) async fn report(mut updates: ProgressUpdates, dialog: Arc<ExecDialog>) {
    while let Some((call, update)) = updates.recv().await {
        let id = dialog.state().ids.get(&call).cloned();
        let Some(id) = id.map(|id| dialog.shown(&id)) else {
            continue;
        };
        let told = match update {
            ProgressUpdate::Step { done, total } => json!({"done": done, "total": total}),
            ProgressUpdate::Note { text } => json!({"note": text}),
            ProgressUpdate::Text { text } => json!({"text": text}),
        };
        let mut line = json!({"type": "progress", "id": id});
        if let (Some(line), Value::Object(told)) = (line.as_object_mut(), told) {
            line.extend(told);
        }
        if show::json(&line.to_string()).is_err() {
            return;
        }
    }
}
