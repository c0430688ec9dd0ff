//! `CronCreate`: schedules a prompt at calendar times.

use haft_contract::{
    AgentAccess, CallContext, Card, CardSection, CheckOutcome, Effects, NewSchedule, Schedules,
    ServiceNeed, Tool, ToolAccess, ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{described, run_on_store};

/// Schedules a prompt. It is sent to you at the times that `cron` defines, while the session is open and no turn
/// is running.
///
/// - `cron` has 5 fields, local time: minute, hour, day of month, month, day of week (0 or 7: Sunday). Each is
///   `*`, `n`, `*/n`, `a-b` or a list of these. If day of month and day of week are both given, one match is enough.
/// - For a single reminder set minute, hour, day and month, and `recurring` to false.
/// - Avoid minutes 0 and 30 unless the user named them, to spread the load. Times may be off by a little.
/// - Recurring prompts end after 7 days; tell the user. Prompts that are due while no session is open are dropped.
/// - At most 50 schedules. CronDelete ends one by its id in the result.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The times, such as "7 * * * *" (every hour), "57 8 * * 1-5" (weekdays at 8:57).
    cron: String,
    /// The prompt. It should be understandable without context.
    prompt: String,
    /// Send it every time (default), or only the next time.
    #[serde(default = "yes")]
    recurring: bool,
    /// Store it in .claude/scheduled_tasks.json, also for later sessions in this directory (default false). Only
    /// if the user asks for that.
    #[serde(default)]
    durable: bool,
}

fn yes() -> bool {
    true
}

pub(crate) struct CronCreate;

impl Tool for CronCreate {
    type Input = Input;
    const NAME: &'static str = "CronCreate";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "schedule".into(),
            search_hint:
                "schedule cron remind reminder recurring later every daily hourly loop timer".into(),
            deferred: true,
            access: ToolAccess::Anything,
            agents: AgentAccess::Foreground,
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
        // The calls that the prompt leads to are evaluated when they are made.
        ToolPermission::Allow
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        let cron = input.cron.clone();
        run_on_store(cx, move |keeper| keeper.check(&cron)).await?;
        Ok(CheckOutcome::Pass)
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let new = NewSchedule {
            cron: input.cron.clone(),
            prompt: input.prompt.clone(),
            recurring: input.recurring,
            durable: input.durable,
        };
        let made = run_on_store(cx, move |keeper| keeper.create(new)).await?;
        let kept = match (made.durable, made.recurring) {
            (true, true) => {
                "It is stored for later sessions in this directory, and ends after 7 days."
            }
            (true, false) => "It is stored for later sessions in this directory.",
            (false, true) => "It ends with the session, and after 7 days.",
            (false, false) => "It ends with the session.",
        };
        let text = format!(
            "Scheduled {}: {}. Next: {}. {kept}",
            made.id, made.words, made.next
        );
        let mut structured = described(&made);
        if let Some(fields) = structured.as_object_mut() {
            fields.shift_remove("cron");
            fields.shift_remove("prompt");
        }
        Ok(ToolOutput::text(text).with_structured(structured))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let mut card = Card::new(Self::NAME, &*input.cron);
        if input.durable {
            card = card.with(CardSection::Muted("stored for later sessions".to_owned()));
        }
        Some(card.with(CardSection::Text(input.prompt.trim().to_owned())))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let field = |name: &str| output.structured.as_ref()?.get(name)?.as_str();
        let summary = format!("{}, next {}", field("humanSchedule")?, field("nextFireAt")?);
        Some(Card::new(Self::NAME, &*input.cron).with_summary(summary))
    }
}
