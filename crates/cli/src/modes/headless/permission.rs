//! Who is asked for permission: the program at the other end, or a tool of one of its servers.

use std::{sync::Arc, time::Duration};

use haft::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, ContextPatch, PermissionMode, RuleList,
    engine::permissions::suggest,
};
use haft_agent::Control;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    channel::{CLOSED, Channel},
    mcp::{Client, text_of},
    output::Output,
};
use crate::questions;

/// Asks the program at the other end.
pub(super) struct Host {
    pub(super) channel: Arc<Channel>,
    pub(super) control: Control,
    /// How long an answer to a question of the model's is waited for.
    pub(super) patience: Option<Duration>,
}

impl Approver for Host {
    fn is_there(&self) -> bool {
        !self.channel.is_closed()
    }

    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
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
            let asked = self.channel.ask(request);
            let reply = match self.patience.filter(|_| questions::is_one(&question)) {
                None => asked.await,
                Some(patience) => match timeout(patience, asked).await {
                    Ok(reply) => reply,
                    Err(_) => return questions::unanswered(&question, patience),
                },
            };
            drop(waits);
            match reply {
                Err(why) if why == CLOSED => ApprovalAnswer::Nobody,
                Err(why) => ApprovalAnswer::Deny { reason: Some(why) },
                Ok(reply) => meant(&reply, &question, &self.control, output),
            }
        })
    }
}

/// Asks a tool: `--permission-prompt-tool mcp__SERVER__TOOL`.
pub(super) struct PromptTool {
    pub(super) client: Arc<Client>,
    /// As its server names it.
    pub(super) tool: String,
    pub(super) control: Control,
}

impl Approver for PromptTool {
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
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
            let answer = match self.client.call(&self.tool, &arguments).await {
                Ok(answer) if answer["isError"] != true => answer,
                Ok(answer) => return deny(text_of(&answer)),
                Err(why) => return deny(why),
            };
            match serde_json::from_str::<Value>(&text_of(&answer)) {
                Ok(reply) => {
                    let output = &self.client.channel().output;
                    meant(&reply, &question, &self.control, output)
                }
                Err(_) => deny(format!("{} did not answer in JSON", self.tool)),
            }
        })
    }
}

/// What an answer means. What is neither a yes nor a no is a no.
fn meant(
    reply: &Value,
    question: &ApprovalRequest,
    control: &Control,
    output: &Output,
) -> ApprovalAnswer {
    if reply["behavior"] != "allow" {
        if reply["interrupt"] == true {
            control.interrupt();
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
