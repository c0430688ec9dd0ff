//! Who is asked for permission: the program at the other end, or a tool of one of its servers.

use std::sync::Arc;

use haft::{
    ApprovalAnswer, ApprovalRequest, BoxFuture, ContextPatch, PermissionMode, RuleList,
    engine::permissions::suggest,
};
use haft_host::{Questions, UserQuestions, text_of_answer};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    channel::{CLOSED, Channel},
    output::Output,
};

/// Asks the program at the other end.
pub(super) struct Host {
    pub(super) channel: Arc<Channel>,
}

impl Questions for Host {
    fn is_there(&self) -> bool {
        !self.channel.is_closed()
    }

    fn question(&self, asked: UserQuestions) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let answer = self.permission(asked.request.clone());
            match asked.patience {
                None => answer.await,
                Some(patience) => match timeout(patience, answer).await {
                    Ok(answer) => answer,
                    Err(_) => asked.unanswered(),
                },
            }
        })
    }

    fn permission(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let (id, input) = match &question.asked {
                Some(asked) => (asked.id.clone(), asked.input.clone()),
                None => (String::new(), json!({})),
            };
            let output = &self.channel.output;
            let waits = output.waits();
            let mut request = json!({
                "subtype": "can_use_tool",
                "tool_name": question.tool,
                "input": input,
                "permission_suggestions": suggest::updates(&question.rules),
                "decision_reason": question.reason,
                "tool_use_id": id,
            });
            if let Some(agent) = &question.agent {
                request["agent_id"] = json!(agent);
            }
            let reply = self.channel.ask(request).await;
            drop(waits);
            match reply {
                Err(why) if why == CLOSED => ApprovalAnswer::Nobody,
                Err(why) => ApprovalAnswer::Deny { reason: Some(why) },
                Ok(reply) => meant(&reply, &question, output),
            }
        })
    }
}

/// Asks a tool: `--permission-prompt-tool mcp__SERVER__TOOL`.
pub(super) struct PromptTool {
    /// As the pool names it.
    pub(super) tool: String,
    pub(super) output: Arc<Output>,
}

impl Questions for PromptTool {
    fn question(&self, asked: UserQuestions) -> BoxFuture<'_, ApprovalAnswer> {
        self.permission(asked.request)
    }

    fn permission(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let (id, input) = match &question.asked {
                Some(asked) => (asked.id.clone(), asked.input.clone()),
                None => (String::new(), json!({})),
            };
            let arguments = json!({
                "tool_name": question.tool,
                "input": input,
                "tool_use_id": id,
            });
            let deny = |reason: String| ApprovalAnswer::Deny {
                reason: Some(reason),
            };
            let Some(session) = self.output.session() else {
                return ApprovalAnswer::Nobody;
            };
            let answer = match session.call_server_tool(&self.tool, &arguments).await {
                Ok(answer) if answer["isError"] != true => answer,
                Ok(answer) => return deny(text_of_answer(&answer)),
                Err(why) => return deny(why),
            };
            match serde_json::from_str::<Value>(&text_of_answer(&answer)) {
                Ok(reply) => meant(&reply, &question, &self.output),
                Err(_) => deny(format!("{} did not answer in JSON", self.tool)),
            }
        })
    }
}

/// What an answer means. What is neither a yes nor a no is a no.
fn meant(reply: &Value, question: &ApprovalRequest, output: &Output) -> ApprovalAnswer {
    if reply["behavior"] != "allow" {
        if reply["interrupt"] == true
            && let Some(session) = output.session()
        {
            session.interrupt();
        }
        let reason = match reply["behavior"].as_str() {
            Some("deny") => reply["message"].as_str().map(str::to_owned),
            _ => Some("the answer was neither allow nor deny".to_owned()),
        };
        return ApprovalAnswer::Deny {
            reason: reason.filter(|reason| !reason.is_empty()),
        };
    }
    let input = match (&question.asked, &reply["updatedInput"]) {
        (Some(asked), input @ Value::Object(_)) if *input != asked.input => Some(input.clone()),
        _ => None,
    };
    let updates = reply["updatedPermissions"].as_array();
    let updates = updates.map_or(&[][..], Vec::as_slice);
    match (input, updates) {
        (Some(input), []) => ApprovalAnswer::Changed { input },
        (None, []) => ApprovalAnswer::Allow,
        (input, updates) => updated(input, updates, output),
    }
}

/// A yes with updates of permissions. Those for the project's own file are kept there; all hold for the
/// session.
fn updated(input: Option<Value>, updates: &[Value], output: &Output) -> ApprovalAnswer {
    let (mut patches, mut keep) = (Vec::new(), Vec::new());
    for update in updates {
        let meant = suggest::patches(update);
        if meant.is_empty() {
            let text = format!("an update of permissions that cannot be taken over: {update}");
            output.put_notice("warning", &text);
        } else if matches!(
            update["destination"].as_str(),
            Some("userSettings" | "projectSettings")
        ) {
            let text = format!("an update of permissions holds for this session only: {update}");
            output.put_notice("warning", &text);
        }
        for patch in meant {
            match patch {
                ContextPatch::AddRule {
                    list: RuleList::Allow,
                    rule,
                } if update["destination"] == "localSettings" => keep.push(rule),
                patch => patches.push(patch),
            }
        }
    }
    ApprovalAnswer::Updated {
        input,
        patches,
        keep,
    }
}

/// A permission mode, as messages name it.
pub(super) fn mode(value: &Value) -> Option<PermissionMode> {
    serde_json::from_value(value.clone()).ok()
}
