//! `PushNotification`: notifies a user who is not watching the session.
//!
//! The front end shows the notification: a terminal rings and displays it, a program gets it as a
//! message. Nothing is sent over a network, so `pushSent` is always false.

use std::{sync::Arc, time::Duration};

use haft_contract::{
    AgentAccess, CalendarTime, CallContext, CallRate, Card, CardSection, CheckOutcome, Effects,
    PushedNotification, ServiceNeed, Tool, ToolAccess, ToolError, ToolOutput, ToolProfile,
    UserNotifier,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Notifies the user with one line, which they see immediately, even in another window. Use it for what they wait
/// for: long work is done, or you cannot continue without them. Not for progress, nor for what your reply says anyway.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The message in one line, the most important part first.
    #[schemars(length(min = 1, max = 199))]
    message: String,
    /// The state, such as `done` or `blocked`.
    #[schemars(length(max = 40))]
    status: Option<String>,
}

impl Input {
    /// Returns the message as one line.
    fn line(&self) -> String {
        let words: Vec<&str> = self.message.split_whitespace().collect();
        words.join(" ")
    }
}

pub(crate) struct PushNotification;

impl Tool for PushNotification {
    type Input = Input;
    const NAME: &'static str = "PushNotification";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            title: Some("Notification".into()),
            family: "session".into(),
            search_hint: "notify alert user finished done attention bell desktop".into(),
            deferred: true,
            access: ToolAccess::Reads,
            agents: AgentAccess::Main,
            needs: const { &[ServiceNeed::service::<Arc<dyn UserNotifier>>()] },
            // Frequent notifications would be ignored.
            rate: Some(CallRate {
                calls: 6,
                per: Duration::from_secs(60),
            }),
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects::queueing("user")
    }

    async fn check(&self, input: &Input, _: &CallContext) -> Result<CheckOutcome, ToolError> {
        match input.line().is_empty() {
            true => Err(ToolError::Refused(
                "`message` is empty: write in one line what the user should know.".to_owned(),
            )),
            false => Ok(CheckOutcome::Pass),
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let notifier = cx.services.get::<Arc<dyn UserNotifier>>()?;
        let message = input.line();
        let sent = notifier.notify(&PushedNotification {
            message: message.clone(),
            status: input.status.clone(),
        });
        Ok(match sent {
            Ok(()) => ToolOutput::text("The user was notified.").with_structured(json!({
                "message": message,
                "pushSent": false,
                "localSent": true,
                "sentAt": CalendarTime::now().to_millisecond(),
            })),
            Err(why) => {
                let text = format!("The user was not notified: {why}. Write it in your reply.");
                ToolOutput::text(text).with_structured(json!({
                    "message": message,
                    "pushSent": false,
                    "localSent": false,
                    "disabledReason": why,
                }))
            }
        })
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let card = Card::new("Notification", input.status.clone().unwrap_or_default());
        Some(card.with(CardSection::Text(input.line())))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let card = self.render_use(input)?;
        let disabled = output.structured.as_ref()?.get("disabledReason")?.as_str();
        Some(match disabled {
            Some(why) => card.with(CardSection::Muted(format!("not shown: {why}"))),
            None => card,
        })
    }
}
