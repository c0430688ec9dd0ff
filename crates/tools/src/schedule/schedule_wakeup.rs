//! `ScheduleWakeup`: schedules a prompt after a delay.

use haft_contract::{
    AgentAccess, CallContext, Card, CheckOutcome, Effects, NewWakeup, Schedules, ServiceNeed, Tool,
    ToolAccess, ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::run_on_store;
use crate::plural::counted;

/// The minimum and maximum delay, in seconds.
const MIN_DELAY: f64 = 60.0;
const MAX_DELAY: f64 = 3600.0;

/// Wakes you after a delay: `prompt` is sent to you. For work that you check at intervals of your choice, such as a
/// long build. For calendar times use CronCreate; to watch a running program use Monitor. Call it again at each
/// wake-up to continue, and with `stop` when the work is done.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The delay in seconds, 60 to 3600.
    #[serde(rename = "delaySeconds")]
    delay_seconds: Option<f64>,
    /// A short reason, for the user.
    reason: Option<String>,
    /// The prompt.
    prompt: Option<String>,
    /// True if you had nothing to do this time.
    #[serde(default)]
    noop: bool,
    /// Cancel all wake-ups instead.
    #[serde(default)]
    stop: bool,
}

pub(crate) struct ScheduleWakeup;

impl Tool for ScheduleWakeup {
    type Input = Input;
    const NAME: &'static str = "ScheduleWakeup";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "schedule".into(),
            search_hint: "wake up later wait poll again loop timer".into(),
            deferred: true,
            access: ToolAccess::Anything,
            agents: AgentAccess::Main,
            needs: const { &[ServiceNeed::service::<Schedules>()] },
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects {
            patches: false,
            ..Effects::EXCLUSIVE
        }
    }

    fn permission(&self, _: &Input, _: &CallContext) -> ToolPermission {
        ToolPermission::Allow
    }

    async fn check(&self, input: &Input, _: &CallContext) -> Result<CheckOutcome, ToolError> {
        if input.stop {
            return Ok(CheckOutcome::Pass);
        }
        if !input.delay_seconds.is_some_and(f64::is_finite) {
            return Err(ToolError::Refused(
                "`delaySeconds` is missing. Set it to 60 to 3600 seconds, or set `stop`."
                    .to_owned(),
            ));
        }
        let prompt = input.prompt.as_deref().unwrap_or_default();
        if prompt.trim().is_empty() {
            return Err(ToolError::Refused(
                "`prompt` is missing: it is sent to you at the wake-up.".to_owned(),
            ));
        }
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        if input.stop {
            let cancelled = run_on_store(cx, |keeper| Ok(keeper.cancel_wakeups())).await?;
            let text = format!("{} cancelled.", counted(cancelled as u64, "wake-up"));
            return Ok(ToolOutput::text(text)
                .with_structured(json!({"stopped": true, "cancelledWakeups": cancelled})));
        }
        let asked = input.delay_seconds.unwrap_or(MIN_DELAY);
        let delay = asked.clamp(MIN_DELAY, MAX_DELAY).round();
        let was_clamped = !(MIN_DELAY..=MAX_DELAY).contains(&asked);
        // Between 60 and 3600.
        let seconds = delay as u64;
        let wakeup = NewWakeup {
            seconds,
            reason: input.reason.clone().unwrap_or_default(),
            prompt: input.prompt.clone().unwrap_or_default(),
        };
        let made = run_on_store(cx, move |keeper| keeper.schedule_wakeup(wakeup)).await?;
        let clamped = match was_clamped {
            true => " This is the nearest possible delay.",
            false => "",
        };
        let text = format!("The wake-up is in {seconds} s, at {}.{clamped}", made.due);
        Ok(ToolOutput::text(text).with_structured(json!({
            "scheduledFor": made.due_ms,
            "clampedDelaySeconds": seconds,
            "wasClamped": was_clamped,
        })))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        if input.stop {
            return Some(Card::new(Self::NAME, "stop"));
        }
        let delay = input
            .delay_seconds
            .unwrap_or_default()
            .clamp(MIN_DELAY, MAX_DELAY);
        let card = Card::new(Self::NAME, format!("in {delay} s"));
        let reason = input.reason.as_deref().unwrap_or_default().trim();
        let reason = match (input.noop, reason) {
            (true, "") => "no work this time".to_owned(),
            (true, reason) => format!("no work this time; {reason}"),
            (false, reason) => reason.to_owned(),
        };
        Some(match reason.is_empty() {
            true => card,
            false => card.with_summary(reason),
        })
    }

    fn render_result(&self, input: &Input, _: &ToolOutput) -> Option<Card> {
        self.render_use(input)
    }
}
