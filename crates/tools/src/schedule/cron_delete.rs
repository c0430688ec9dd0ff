//! `CronDelete`: deletes a schedule.

use haft_contract::{
    AgentAccess, CallContext, Card, Effects, Schedules, ServiceNeed, Tool, ToolAccess, ToolError,
    ToolOutput, ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::run_on_store;

/// Deletes a schedule that CronCreate created.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The id, from the result of CronCreate or CronList.
    id: String,
}

pub(crate) struct CronDelete;

impl Tool for CronDelete {
    type Input = Input;
    const NAME: &'static str = "CronDelete";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "schedule".into(),
            search_hint: "cancel delete stop schedule cron reminder".into(),
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
        // This affects only schedules that CronCreate created.
        ToolPermission::Allow
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let id = input.id.trim().to_owned();
        let asked = id.clone();
        run_on_store(cx, move |keeper| keeper.delete(&asked)).await?;
        Ok(ToolOutput::text(format!("Schedule {id} is deleted."))
            .with_structured(json!({"id": id})))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new(Self::NAME, &*input.id))
    }

    fn render_result(&self, input: &Input, _: &ToolOutput) -> Option<Card> {
        Some(self.render_use(input)?.with_summary("deleted"))
    }
}
