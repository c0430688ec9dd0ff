//! `SendMessage`: sends a message to a subagent that was launched before.

use haft_contract::{
    AgentMessage, CallContext, Card, CardSection, CheckOutcome, Effects, Idempotency,
    MessageDelivery, ServiceNeed, Subagents, Tool, ToolAccess, ToolError, ToolOutput,
    ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The maximum length of a summary, in characters.
const MAX_SUMMARY: usize = 200;

/// Sends a message to a subagent that you launched before.
///
/// A running subagent reads it before its next step. A finished one continues in the background with its
/// whole conversation, and you will be notified when it is done again.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The id or the name of the subagent.
    to: String,
    /// The message.
    message: String,
    /// A summary of the message (at most 200 characters).
    summary: Option<String>,
}

pub(crate) struct SendMessage;

impl Tool for SendMessage {
    type Input = Input;
    const NAME: &'static str = "SendMessage";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "agent".into(),
            deferred: true,
            search_hint: "message continue resume subagent".into(),
            access: ToolAccess::Reads,
            needs: const { &[ServiceNeed::service::<Subagents>()] },
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        // Messages to one subagent must arrive in the order sent.
        Effects {
            repeat: Idempotency::Never,
            in_order: true,
            ..Effects::READS
        }
    }

    fn permission(&self, _: &Input, _: &CallContext) -> ToolPermission {
        ToolPermission::Allow
    }

    async fn check(&self, input: &Input, _: &CallContext) -> Result<CheckOutcome, ToolError> {
        let refused = |text: &str| Err(ToolError::Refused(text.to_owned()));
        if input.message.trim().is_empty() {
            return refused("`message` is empty: write a message.");
        }
        let summary = input.summary.as_deref().unwrap_or_default();
        if summary.chars().count() > MAX_SUMMARY {
            return refused("`summary` is longer than 200 characters.");
        }
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let subagents = cx.services.get::<Subagents>()?;
        let message = AgentMessage {
            to: input.to.clone(),
            message: input.message.clone(),
            summary: input.summary.clone().unwrap_or_default(),
        };
        Ok(match subagents.0.send(message, cx).await? {
            MessageDelivery::Delivered { agent } => {
                let text = format!("Delivered: agent {agent} reads it before its next step.");
                ToolOutput::text(text).with_structured(json!({
                    "status": "delivered",
                    "agentId": agent,
                }))
            }
            MessageDelivery::Resumed(receipt) => {
                let text = format!(
                    "Agent {} had finished; it continues in the background. You will be notified when it is done again. \
                     Its final message will also be in {}",
                    receipt.agent,
                    receipt.output_file.display()
                );
                ToolOutput::text(text).with_structured(json!({
                    "status": "async_launched",
                    "agentId": receipt.agent,
                    "description": receipt.description,
                    "prompt": input.message,
                    "outputFile": receipt.output_file,
                    "resolvedModel": receipt.model,
                    "canReadOutputFile": true,
                }))
            }
        })
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let summary = input.summary.as_deref().unwrap_or(&input.message);
        let card = Card::new(Self::NAME, format!("{}: {summary}", input.to));
        Some(card.with(CardSection::Text(input.message.clone())))
    }
}
