//! `CronList`: lists the schedules.

use haft_contract::{
    AgentAccess, CallContext, Card, CardSection, Effects, Schedules, ServiceNeed, Tool, ToolAccess,
    ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{described, run_on_store};
use crate::plural::counted;

/// The maximum length of a listed prompt, in characters.
const PROMPT: usize = 200;

/// Lists the schedules that CronCreate created.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {}

pub(crate) struct CronList;

impl Tool for CronList {
    type Input = Input;
    const NAME: &'static str = "CronList";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "schedule".into(),
            search_hint: "list schedules cron reminders".into(),
            deferred: true,
            access: ToolAccess::Reads,
            agents: AgentAccess::Foreground,
            needs: const { &[ServiceNeed::service::<Schedules>()] },
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects {
            in_order: true,
            ..Effects::READS
        }
    }

    fn permission(&self, _: &Input, _: &CallContext) -> ToolPermission {
        ToolPermission::Allow
    }

    async fn call(&self, _: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let jobs = run_on_store(cx, |keeper| keeper.list()).await?;
        let mut lines = Vec::new();
        for job in &jobs {
            let mut prompt: String = job.prompt.chars().take(PROMPT).collect();
            if prompt.len() < job.prompt.len() {
                prompt.push('…');
            }
            let prompt = prompt.replace('\n', " ");
            let kept = if job.durable { ", durable" } else { "" };
            lines.push(format!(
                "{} ({}) {}{kept}; next: {}: {prompt}",
                job.id, job.cron, job.words, job.next
            ));
        }
        let text = match lines.is_empty() {
            true => "Nothing is scheduled.".to_owned(),
            false => lines.join("\n"),
        };
        let jobs: Vec<Value> = jobs.iter().map(described).collect();
        Ok(ToolOutput::text(text).with_structured(json!({"jobs": jobs})))
    }

    fn render_use(&self, _: &Input) -> Option<Card> {
        Some(Card::new(Self::NAME, ""))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let jobs = output.structured.as_ref()?.get("jobs")?.as_array()?.len();
        let card = self.render_use(input)?;
        let card = card.with_summary(counted(jobs as u64, "schedule"));
        let text = output.content.first()?.as_text()?;
        Some(card.with(CardSection::Text(text.to_owned())))
    }
}
