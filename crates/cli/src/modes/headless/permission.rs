//! Asks for permission through the SDK client or through a tool of an MCP server.

use std::{borrow::Cow, sync::Arc};

use haft::{
    ApprovalAnswer, ApprovalRequest, BoxFuture, ContextPatch, RuleList,
    engine::permissions::suggest,
};
use haft_host::{QuestionHandler, UserQuestions, text_of_answer};
use haft_protocol::{
    CallAnswer, CanUseToolRequest, PermissionReply, PermissionUpdate, PromptToolInput, RawOrParsed,
    SessionRequest, UpdateDestination,
};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::{
    channel::{CLOSED, ControlChannel},
    output::HeadlessOutput,
};

/// Asks the SDK client.
pub(super) struct ControlApprover {
    pub(super) channel: Arc<ControlChannel>,
}

impl QuestionHandler for ControlApprover {
    fn can_ask_user(&self) -> bool {
        !self.channel.is_closed()
    }

    fn question(&self, asked: UserQuestions) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let answer = self.permission(asked.request.clone());
            match asked.timeout {
                None => answer.await,
                Some(limit) => match timeout(limit, answer).await {
                    Ok(answer) => answer,
                    Err(_) => asked.unanswered(),
                },
            }
        })
    }

    fn permission(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let (id, input) = call(&question);
            let output = &self.channel.output;
            let waits = output.waits();
            let request = CanUseToolRequest {
                tool_name: (&question.tool).into(),
                input,
                permission_suggestions: PermissionUpdate::offered(&question.offers),
                blocked_path: None,
                decision_reason: Some((&question.reason).into()),
                decision_reason_type: None,
                tool_use_id: id.into(),
                agent_id: question.agent.as_deref().map(Cow::Borrowed),
                title: None,
                display_name: None,
                description: None,
            };
            let request = SessionRequest::CanUseTool(Box::new(request));
            let reply = self.channel.ask(request).await;
            drop(waits);
            match reply {
                Err(why) if why == CLOSED => ApprovalAnswer::Unavailable,
                Err(why) => ApprovalAnswer::Deny { reason: Some(why) },
                Ok(reply) => parse_permission_reply(reply.into(), &question, output),
            }
        })
    }
}

/// Returns the id and the arguments of the call in question.
fn call(question: &ApprovalRequest) -> (&str, Cow<'_, Value>) {
    match &question.asked {
        Some(asked) => (&asked.id, Cow::Borrowed(&asked.input)),
        None => ("", Cow::Owned(Value::Object(Map::new()))),
    }
}

/// Asks an MCP tool: `--permission-prompt-tool mcp__SERVER__TOOL`.
pub(super) struct PromptTool {
    /// The tool's name in the pool.
    pub(super) tool: String,
    pub(super) output: Arc<HeadlessOutput>,
}

impl QuestionHandler for PromptTool {
    fn question(&self, asked: UserQuestions) -> BoxFuture<'_, ApprovalAnswer> {
        self.permission(asked.request)
    }

    fn permission(&self, question: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let deny = |reason: String| ApprovalAnswer::Deny {
                reason: Some(reason),
            };
            let (id, input) = call(&question);
            let arguments = PromptToolInput {
                tool_name: (&question.tool).into(),
                input,
                tool_use_id: id.into(),
            };
            let arguments = match serde_json::to_value(&arguments) {
                Ok(arguments) => arguments,
                Err(error) => return deny(error.to_string()),
            };
            let Some(session) = self.output.session() else {
                return ApprovalAnswer::Unavailable;
            };
            let answer = match session.call_server_tool(&self.tool, &arguments).await {
                Ok(answer) => answer,
                Err(why) => return deny(why),
            };
            let text = text_of_answer(&answer);
            if CallAnswer::from(answer).is_error {
                return deny(text);
            }
            match serde_json::from_str::<Value>(&text) {
                Ok(reply) => parse_permission_reply(reply.into(), &question, &self.output),
                Err(_) => deny(format!("{} did not answer in JSON", self.tool)),
            }
        })
    }
}

/// Converts a reply to an answer. Anything other than `allow` is a denial.
fn parse_permission_reply(
    reply: PermissionReply,
    question: &ApprovalRequest,
    output: &HeadlessOutput,
) -> ApprovalAnswer {
    let behavior = reply.behavior.as_deref();
    if behavior != Some("allow") {
        if reply.interrupt
            && let Some(session) = output.session()
        {
            session.interrupt();
        }
        let reason = match behavior {
            Some("deny") => reply.message,
            _ => Some("the answer was neither allow nor deny".to_owned()),
        };
        return ApprovalAnswer::Deny {
            reason: reason.filter(|reason| !reason.is_empty()),
        };
    }
    let input = match (&question.asked, reply.updated_input.map(Value::Object)) {
        (Some(asked), Some(input)) if input != asked.input => Some(input),
        _ => None,
    };
    match (input, reply.updated_permissions.as_slice()) {
        (Some(input), []) => ApprovalAnswer::InputEdited { input },
        (None, []) => ApprovalAnswer::Allow,
        (input, updates) => updated(input, updates, output),
    }
}

/// Returns an approval with permission updates. All updates apply to the session; allow rules with
/// the destination `localSettings` are also saved in the project's local settings.
fn updated(
    input: Option<Value>,
    updates: &[RawOrParsed<PermissionUpdate<'_>>],
    output: &HeadlessOutput,
) -> ApprovalAnswer {
    let (mut patches, mut keep) = (Vec::new(), Vec::new());
    for written in updates {
        let update = written.value();
        let destination = written.parsed().and_then(PermissionUpdate::destination);
        let meant = suggest::patches(update);
        if meant.is_empty() {
            let text = format!("a permission update that cannot be applied: {update}");
            output.put_notice("warning", &text);
        } else if matches!(
            destination,
            Some(UpdateDestination::UserSettings | UpdateDestination::ProjectSettings)
        ) || (destination == Some(UpdateDestination::LocalSettings)
            && matches!(meant.as_slice(), [ContextPatch::AddTimedRules { .. }]))
        {
            let text = format!("a permission update applies to this session only: {update}");
            output.put_notice("warning", &text);
        }
        for patch in meant {
            match patch {
                ContextPatch::AddRule {
                    list: RuleList::Allow,
                    rule,
                } if destination == Some(UpdateDestination::LocalSettings) => keep.push(rule),
                patch => patches.push(patch),
            }
        }
    }
    ApprovalAnswer::Updated {
        input,
        patches,
        keep,
        scope: None,
    }
}

#[cfg(test)]
mod tests {
    use haft::{RuleOffer, engine::permissions::suggest};

    use super::*;

    /// Two independent crates write them: one for hooks, one for this front end.
    #[test]
    fn programs_and_hooks_are_offered_the_same_rules() {
        let rules = ["Bash(make *)", "Edit", "Read(//a(b)/**)"].map(str::to_owned);
        let offer = |count: usize| RuleOffer {
            rules: rules[..count].to_vec(),
            asks_again: Vec::new(),
        };
        for offers in [&[][..], &[offer(3)], &[offer(2), offer(1)]] {
            let offered = serde_json::to_value(PermissionUpdate::offered(offers)).unwrap();
            assert_eq!(offered, suggest::updates(offers));
        }
    }
}
