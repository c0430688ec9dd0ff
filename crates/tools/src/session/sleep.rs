//! `Sleep`: waits.

use std::time::{Duration, Instant};

use haft_contract::{
    CallContext, Card, Effects, PendingInput, Tool, ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The maximum duration, in seconds.
const MAX_SECONDS: u64 = 3600;

/// Waits. Ends early if the user sends a message.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The duration.
    #[schemars(range(min = 1, max = 3600))]
    seconds: u64,
}

pub(crate) struct Sleep;

impl Tool for Sleep {
    type Input = Input;
    const NAME: &'static str = "Sleep";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "session".into(),
            search_hint: "wait pause".into(),
            access: ToolAccess::Reads,
            optional: true,
            timeout: Some(Duration::from_secs(MAX_SECONDS + 60)),
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        // Later calls must run after this one.
        Effects {
            patches: true,
            ..Effects::NONE
        }
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let length = Duration::from_secs(input.seconds.min(MAX_SECONDS));
        let attention = cx.services.get::<PendingInput>().ok();
        let called = async {
            match &attention {
                Some(attention) => attention.wait_for_input().await,
                None => std::future::pending().await,
            }
        };
        let began = Instant::now();
        let is_over = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            () = called => false,
            () = tokio::time::sleep(length) => true,
        };
        let slept = began.elapsed().as_secs();
        let text = match is_over {
            true => format!("{} s have passed.", length.as_secs()),
            false => format!("Woken after {slept} s: the user has sent a message."),
        };
        Ok(ToolOutput::text(text)
            .with_structured(json!({"sleptSeconds": slept, "woken": !is_over})))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new(Self::NAME, format!("{} s", input.seconds)))
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use haft_contract::Services;

    use super::*;

    fn context(attention: Option<PendingInput>) -> CallContext {
        let (mut cx, _) = CallContext::for_test(Path::new("/"));
        if let Some(attention) = attention {
            cx.services = Services::none().with(Arc::new(attention));
        }
        cx
    }

    #[tokio::test]
    async fn it_ends_when_somebody_speaks_or_interrupts() {
        let hour = Input { seconds: 3600 };
        let attention = PendingInput::default();
        attention.set(true);
        let output = Sleep.call(&hour, &context(Some(attention))).await.unwrap();
        assert_eq!(output.structured.unwrap()["woken"], true);
        let cx = context(Some(PendingInput::default()));
        cx.cancel.cancel();
        let ended = Sleep.call(&hour, &cx).await;
        assert!(matches!(ended, Err(ToolError::Cancelled)));
    }

    #[tokio::test]
    async fn it_ends_when_the_time_has_passed() {
        let output = Sleep
            .call(&Input { seconds: 0 }, &context(None))
            .await
            .unwrap();
        assert_eq!(output.structured.unwrap()["woken"], false);
    }
}
