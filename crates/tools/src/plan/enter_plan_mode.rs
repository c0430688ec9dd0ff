//! `EnterPlanMode`: starts plan mode, which forbids changes.

use haft_contract::{
    AgentAccess, CallContext, Card, CheckOutcome, ContextPatch, Effects, PermissionMode, Tool,
    ToolAccess, ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Starts plan mode, which forbids changes: for work that the user should agree to before it starts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {}

pub(crate) struct EnterPlanMode;

impl Tool for EnterPlanMode {
    type Input = Input;
    const NAME: &'static str = "EnterPlanMode";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "plan".into(),
            search_hint: "plan design approach before coding".into(),
            access: ToolAccess::Reads,
            agents: AgentAccess::Main,
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        Effects {
            patches: true,
            ..Effects::NONE
        }
    }

    fn permission(&self, _: &Input, cx: &CallContext) -> ToolPermission {
        // Plan mode is only a restriction; but without a user it could never be left again.
        if cx.permissions.mode == PermissionMode::DontAsk || !cx.services.approver().is_available()
        {
            return ToolPermission::Deny(
                "no user can approve a plan. Continue without one.".to_owned(),
            );
        }
        ToolPermission::ByEffects
    }

    async fn check(&self, _: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        match cx.permissions.mode {
            PermissionMode::Plan => Err(ToolError::Refused(
                "Plan mode is on already. Call ExitPlanMode when the plan is complete.".to_owned(),
            )),
            _ => Ok(CheckOutcome::Pass),
        }
    }

    async fn call(&self, _: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let place = match &cx.permissions.plan_file {
            Some(file) => format!(
                "Write the plan to {}, the only file that may be written now, then call ExitPlanMode",
                file.display()
            ),
            None => "When the plan is complete, call ExitPlanMode with it".to_owned(),
        };
        let message = format!(
            "Plan mode is on: read what you need, but change nothing. {place} to have it approved."
        );
        let mode = PermissionMode::Plan;
        Ok(ToolOutput::text(&*message)
            .with_structured(json!({"message": message}))
            .with_patch(ContextPatch::SetMode { mode }))
    }

    fn render_use(&self, _: &Input) -> Option<Card> {
        Some(Card::new("Plan", ""))
    }

    fn render_result(&self, _: &Input, _: &ToolOutput) -> Option<Card> {
        Some(Card::new("Plan", "").with_summary("plan mode is on"))
    }
}
