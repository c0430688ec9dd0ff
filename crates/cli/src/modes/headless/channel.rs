//! Requests to the program at the other end, and its answers.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use haft::{Answer, Approver, BoxFuture, PermissionMode, Question};
use haft_agent::Control;
use serde_json::{Value, json};
use tokio::{sync::oneshot, time::timeout};

use super::output::Output;
use crate::questions;

/// Why there is no answer.
const CLOSED: &str = "the other end has closed its input";

/// The way to the other end.
pub(super) struct Channel {
    pub(super) output: Arc<Output>,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Requests without an answer yet.
    requests: HashMap<String, oneshot::Sender<Result<Value, String>>>,
    /// No answer can come any more.
    closed: bool,
}

impl Channel {
    pub(super) fn new(output: Arc<Output>) -> Self {
        Self {
            output,
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
        }
    }

    /// Asks, and waits for as long as it takes. Dropped while it waits, it takes the question back.
    pub(super) async fn ask(&self, request: Value) -> Result<Value, String> {
        let (sender, receiver) = oneshot::channel();
        let id = format!("haft_{}", self.next.fetch_add(1, Ordering::Relaxed));
        {
            let mut waiting = self.waiting();
            if waiting.closed {
                return Err(CLOSED.to_owned());
            }
            waiting.requests.insert(id.clone(), sender);
        }
        let taken_back = TakenBack { channel: self, id };
        self.output.put_control(&json!({
            "type": "control_request",
            "request_id": taken_back.id,
            "request": request,
        }));
        receiver.await.unwrap_or_else(|_| Err(CLOSED.to_owned()))
    }

    /// An answer has come. One that nobody waits for is passed over.
    pub(super) fn answered(&self, response: &Value) {
        let id = response["request_id"].as_str().unwrap_or_default();
        let Some(sender) = self.waiting().requests.remove(id) else {
            return;
        };
        let answer = match response["subtype"].as_str() {
            Some("success") => Ok(response["response"].clone()),
            _ => Err(response["error"].as_str().unwrap_or("it failed").to_owned()),
        };
        let _ = sender.send(answer);
    }

    /// No answer will come any more.
    pub(super) fn close(&self) {
        let mut waiting = self.waiting();
        waiting.closed = true;
        waiting.requests.clear();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct TakenBack<'a> {
    channel: &'a Channel,
    id: String,
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        let unanswered = self.channel.waiting().requests.remove(&self.id).is_some();
        if unanswered {
            let message = json!({"type": "control_cancel_request", "request_id": self.id});
            self.channel.output.put_control(&message);
        }
    }
}

/// Asks the program at the other end for permission.
pub(super) struct Host {
    pub(super) channel: Arc<Channel>,
    pub(super) control: Control,
    /// How long an answer to a question of the model's is waited for.
    pub(super) patience: Option<Duration>,
}

impl Approver for Host {
    fn is_there(&self) -> bool {
        !self.channel.waiting().closed
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let (id, input) = match &question.asked {
                Some(asked) => (asked.id.clone(), asked.input.clone()),
                None => (String::new(), json!({})),
            };
            let output = &self.channel.output;
            output.note_asked(&id);
            output.put_state("requires_action");
            let mut request = json!({
                "subtype": "can_use_tool",
                "tool_name": question.tool,
                "input": input,
                "permission_suggestions": suggestions(&question.rules),
                "decision_reason": question.reason,
                "tool_use_id": id,
            });
            if question.rules.is_empty() {
                request["permission_suggestions"] = json!([]);
            }
            let asked = self.channel.ask(request);
            let reply = match self.patience.filter(|_| questions::is_one(&question)) {
                None => Ok(asked.await),
                Some(patience) => timeout(patience, asked).await.map_err(|_| patience),
            };
            output.put_state("running");
            let reply = match reply {
                Ok(reply) => reply,
                Err(patience) => return questions::unanswered(&question, patience),
            };
            match reply {
                Err(why) if why == CLOSED => Answer::Nobody,
                Err(why) => Answer::Deny { reason: Some(why) },
                Ok(reply) => self.meant(&reply, &question),
            }
        })
    }
}

impl Host {
    fn meant(&self, reply: &Value, question: &Question) -> Answer {
        if reply["behavior"] != "allow" {
            if reply["interrupt"] == true {
                self.control.interrupt();
            }
            let reason = match reply["behavior"].as_str() {
                Some("deny") => reply["message"].as_str().map(str::to_owned),
                _ => Some("the answer was neither allow nor deny".to_owned()),
            };
            return Answer::Deny {
                reason: reason.filter(|reason| !reason.is_empty()),
            };
        }
        let updates = reply["updatedPermissions"].as_array();
        let always = updates.is_some_and(|updates| self.take(updates, &question.rules));
        match (&question.asked, &reply["updatedInput"]) {
            (Some(asked), input @ Value::Object(_)) if *input != asked.input => Answer::Changed {
                input: input.clone(),
            },
            _ if always => Answer::Always,
            _ => Answer::Allow,
        }
    }

    /// Takes over what should be different from now on. Says whether the rules that were offered count.
    fn take(&self, updates: &[Value], offered: &[String]) -> bool {
        let mut always = false;
        for update in updates {
            match update["type"].as_str() {
                Some("setMode") => match mode(&update["mode"]) {
                    Some(mode) if mode != PermissionMode::BypassPermissions => {
                        self.control.set_permission_mode(mode);
                    }
                    _ => tracing::warn!(%update, "a mode that cannot be taken over"),
                },
                Some("addRules") if update["behavior"] == "allow" => {
                    let rules = update["rules"].as_array();
                    let rules: Vec<String> = rules.into_iter().flatten().map(rule).collect();
                    if !rules.is_empty() && rules.iter().all(|rule| offered.contains(rule)) {
                        always = true;
                    } else {
                        tracing::warn!(%update, "rules that were not offered are left out");
                    }
                }
                _ => tracing::warn!(%update, "an update of permissions that is not known"),
            }
        }
        always
    }
}

/// A permission mode, as messages name it.
pub(super) fn mode(value: &Value) -> Option<PermissionMode> {
    serde_json::from_value(value.clone()).ok()
}

/// Rules as updates that the other end can hand back.
fn suggestions(rules: &[String]) -> Value {
    let rules: Vec<Value> = rules
        .iter()
        .map(|rule| match rule.split_once('(') {
            Some((tool, rest)) => json!({
                "toolName": tool,
                "ruleContent": rest.strip_suffix(')').unwrap_or(rest),
            }),
            None => json!({"toolName": rule}),
        })
        .collect();
    json!([{
        "type": "addRules",
        "rules": rules,
        "behavior": "allow",
        "destination": "localSettings",
    }])
}

fn rule(value: &Value) -> String {
    let tool = value["toolName"].as_str().unwrap_or_default();
    match value["ruleContent"].as_str() {
        Some(content) => format!("{tool}({content})"),
        None => tool.to_owned(),
    }
}
