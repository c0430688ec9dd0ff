//! `haft exec --interactive-json`: calls may ask, report progress and be cancelled one by one.
//!
//! Beside the answers, lines with a `type` go out: `permission_request`, `progress` and `error`. Lines with a `type`
//! come in beside the requests, at any time: `permission_response` and `cancel`.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use haft::{
    ApprovalAnswer, ApprovalRequest, BoxFuture, CallId, CallResult, CancellationToken,
    ContextPatch, Progress, RuleList, ToolUse, Update, Updates,
    engine::{CallObserver, pipeline::Admitted},
};
use haft_host::Questions;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::request::text_id;
use crate::show;

/// Why no answer can come any more.
const CLOSED: &str = "the input has ended, so no one can answer";

/// What the lines of one program are about.
#[derive(Default)]
pub(super) struct Dialog {
    next: AtomicU64,
    state: Mutex<DialogState>,
}

#[derive(Default)]
struct DialogState {
    /// Questions without an answer yet, by their ids.
    questions: HashMap<String, oneshot::Sender<ApprovalAnswer>>,
    /// Questions whose call was over before they were answered: an answer may be on its way.
    withdrawn: HashSet<String>,
    /// Calls that run or wait, by their ids as text.
    calls: HashMap<String, OpenCall>,
    /// The ids of calls that run, by our own.
    ids: HashMap<CallId, String>,
    is_closed: bool,
}

/// A call that waits or runs.
struct OpenCall {
    /// Its id, as its author wrote it.
    id: Value,
    /// Once it runs.
    cancel: Option<CancellationToken>,
    /// It was cancelled before.
    is_cancelled: bool,
}

impl OpenCall {
    fn cancel(&mut self) {
        self.is_cancelled = true;
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
    }
}

impl Dialog {
    /// A line with a `type`, which is no request. The error says what is wrong with it.
    pub(super) fn hear(&self, line: &Value) -> Result<(), String> {
        match line["type"].as_str() {
            Some("permission_response") => self.answered(line),
            Some("cancel") => {
                let mut state = self.state();
                match state.calls.get_mut(&text_id(&line["id"])) {
                    Some(call) => call.cancel(),
                    // It may just have ended.
                    None => tracing::debug!(id = %line["id"], "no such call runs"),
                }
                Ok(())
            }
            other => Err(format!(
                "no line has the type {other:?}; `permission_response` and `cancel` are known"
            )),
        }
    }

    fn answered(&self, line: &Value) -> Result<(), String> {
        let id = line["request_id"].as_str().unwrap_or_default();
        let answer = meant(line)?;
        let mut state = self.state();
        if let Some(sender) = state.questions.remove(id) {
            // The one that asked may be gone.
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

    /// A call has come; it can be cancelled until it is over. `shown` is its id as it was written.
    pub(super) fn comes(&self, id: String, shown: Value) {
        let call = OpenCall {
            id: shown,
            cancel: None,
            is_cancelled: false,
        };
        self.state().calls.insert(id, call);
    }

    /// It begins.
    pub(super) fn begins(&self, id: &str, cancel: CancellationToken) {
        let mut state = self.state();
        let Some(call) = state.calls.get_mut(id) else {
            return;
        };
        if call.is_cancelled {
            cancel.cancel();
        }
        call.cancel = Some(cancel);
    }

    /// It is over.
    pub(super) fn is_over(&self, id: &str) {
        let mut state = self.state();
        state.calls.remove(id);
        state.ids.retain(|_, known| known != id);
    }

    /// Who learns which calls run.
    pub(super) fn observer(self: &Arc<Self>) -> Arc<dyn CallObserver> {
        Arc::clone(self) as _
    }

    /// The id of a call as it was written.
    fn shown(&self, id: &str) -> Value {
        let state = self.state();
        let call = state.calls.get(id);
        call.map_or_else(|| Value::String(id.to_owned()), |call| call.id.clone())
    }

    /// No line comes any more: what waits for an answer gets none.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.questions.clear();
    }

    fn state(&self) -> MutexGuard<'_, DialogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The line that says what is wrong with another.
pub(super) fn problem(line: &Value, message: &str) -> Value {
    let mut problem = json!({"type": "error", "message": message});
    for key in ["request_id", "id"] {
        if let Some(value) = line.get(key) {
            problem[key] = value.clone();
        }
    }
    problem
}

/// What an answer line says.
fn meant(line: &Value) -> Result<ApprovalAnswer, String> {
    let texts = |key: &str| -> Vec<String> {
        let list = line[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    match line["behavior"].as_str() {
        Some("allow") => {
            let input = Some(&line["updated_input"]).filter(|input| input.is_object());
            let rules = texts("rules").into_iter();
            let patches = rules.map(|rule| ContextPatch::AddRule {
                list: RuleList::Allow,
                rule,
            });
            Ok(ApprovalAnswer::Updated {
                input: input.cloned(),
                patches: patches.collect(),
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

/// Asks the program at the other end.
pub(super) struct ByLines(pub(super) Arc<Dialog>);

impl Questions for ByLines {
    fn is_there(&self) -> bool {
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
                    return ApprovalAnswer::Nobody;
                }
                state.questions.insert(id.clone(), sender);
            }
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
                "rules": request.rules,
            });
            if show::json(&line.to_string()).is_err() {
                return ApprovalAnswer::Nobody;
            }
            let _withdraws = Withdraws(&self.0, id);
            let answer = receiver.await;
            answer.unwrap_or_else(|_| ApprovalAnswer::Deny {
                reason: Some(CLOSED.to_owned()),
            })
        })
    }
}

/// Takes a question back that is not waited for any more, unless it was answered.
struct Withdraws<'a>(&'a Dialog, String);

impl Drop for Withdraws<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if state.questions.remove(&self.1).is_some() {
            state.withdrawn.insert(std::mem::take(&mut self.1));
        }
    }
}

/// Knows which call is which, for what is reported of it.
impl CallObserver for Dialog {
    fn started(&self, call: &Admitted) {
        let (own, id) = call.call().ids();
        self.state().ids.insert(own, id.to_string());
    }

    fn ended(&self, _: &CallResult) {}
}

/// Where calls report their progress, and where it comes out.
pub(super) fn progress() -> (Progress, Updates) {
    haft::contract::progress::channel(CallId::new())
}

/// Writes what calls report, until there is no session any more.
pub(super) async fn report(mut updates: Updates, dialog: Arc<Dialog>) {
    while let Some((call, update)) = updates.recv().await {
        let id = dialog.state().ids.get(&call).cloned();
        let Some(id) = id.map(|id| dialog.shown(&id)) else {
            continue;
        };
        let told = match update {
            Update::Step { done, total } => json!({"done": done, "total": total}),
            Update::Note { text } => json!({"note": text}),
            Update::Text { text } => json!({"text": text}),
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
