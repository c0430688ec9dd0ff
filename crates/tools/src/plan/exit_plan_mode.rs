//! `ExitPlanMode`: shows the plan to the user, who approves it or requests changes.

use std::{fs::OpenOptions, io::Read, os::unix::fs::OpenOptionsExt, path::Path};

use haft_contract::{
    AgentAccess, ApprovalKind, CallContext, Card, CardSection, CheckOutcome, ContextPatch, Effects,
    PermissionMode, Tool, ToolAccess, ToolError, ToolOutput, ToolPermission, ToolProfile,
};
use rustix::fs::OFlags;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::blocking::blocking;

/// The maximum length of a plan, in bytes.
const MAX_LENGTH: u64 = 256 * 1024;

/// Shows the plan to the user for approval and, if they agree, ends plan mode. Only in plan mode.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The plan. Without it, the content of the plan file.
    plan: Option<String>,
    /// Other parameters, which some callers send.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

pub(crate) struct ExitPlanMode;

impl Tool for ExitPlanMode {
    type Input = Input;
    const NAME: &'static str = "ExitPlanMode";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "plan".into(),
            search_hint: "plan approve present finish planning".into(),
            access: ToolAccess::Reads,
            interactive: true,
            agents: AgentAccess::Planning,
            approval: ApprovalKind::Plan,
            ..ToolProfile::default()
        }
    }

    fn effects(&self, _: &Input) -> Effects {
        // Waits for calls that still write the plan.
        Effects {
            patches: true,
            ..Effects::READS
        }
    }

    async fn complete_input(&self, input: &Input, cx: &CallContext) -> Option<Value> {
        let mut whole = input.rest.clone();
        // A path from the model would be displayed as the real plan file.
        whole.shift_remove("planFilePath");
        let mut plan = given(input).map(str::to_owned);
        if let Some(file) = &cx.permissions.plan_file {
            let written = written(file).await.ok().flatten();
            if written.is_some() {
                whole.insert("planFilePath".to_owned(), json!(file.to_string_lossy()));
            }
            plan = plan.or(written);
        }
        if let Some(plan) = plan {
            whole.insert("plan".to_owned(), json!(plan));
        }
        Some(Value::Object(whole))
    }

    fn permission(&self, _: &Input, _: &CallContext) -> ToolPermission {
        ToolPermission::Ask("the plan needs approval".to_owned())
    }

    async fn check(&self, input: &Input, cx: &CallContext) -> Result<CheckOutcome, ToolError> {
        if cx.permissions.mode != PermissionMode::Plan {
            return Err(ToolError::Refused(
                "Plan mode is off, so no plan needs approval. Continue with the work.".to_owned(),
            ));
        }
        if given(input).is_some() {
            return Ok(CheckOutcome::Pass);
        }
        Err(ToolError::Refused(match &cx.permissions.plan_file {
            Some(file) => format!(
                "The plan is missing: write it to {}, or pass it as `plan`.",
                file.display()
            ),
            None => "The plan is missing: pass it as `plan`.".to_owned(),
        }))
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let plan = given(input).unwrap_or_default();
        let mut told = json!({"plan": plan, "isAgent": false});
        let mut text = "The plan is approved and plan mode is off: go ahead.".to_owned();
        if let Some(file) = &cx.permissions.plan_file
            && let Some(written) = written(file).await?
        {
            told["filePath"] = json!(file.to_string_lossy());
            if written.trim() != plan.trim() {
                told["planWasEdited"] = json!(true);
                text = format!("{text} The approved plan, which replaces the file:\n\n{plan}");
            }
        }
        Ok(ToolOutput::text(text)
            .with_structured(told)
            .with_patch(ContextPatch::LeavePlan))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let card = Card::new("Plan", "");
        Some(match given(input) {
            Some(plan) => card.with(CardSection::Text(plan.trim_end().to_owned())),
            None => card,
        })
    }

    fn render_result(&self, _: &Input, _: &ToolOutput) -> Option<Card> {
        Some(Card::new("Plan", "").with_summary("approved"))
    }
}

fn given(input: &Input) -> Option<&str> {
    let plan = input.plan.as_deref();
    plan.filter(|plan| !plan.trim().is_empty())
}

/// Returns the content of the plan file; `None` if it is missing or empty.
async fn written(file: &Path) -> Result<Option<String>, ToolError> {
    let file = file.to_path_buf();
    blocking(move || {
        // A link or a pipe is not the written plan.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(&file);
        let opened = opened.ok()?;
        if !opened.metadata().ok()?.is_file() {
            return None;
        }
        let mut text = String::new();
        let read = opened.take(MAX_LENGTH).read_to_string(&mut text);
        read.ok().filter(|_| !text.trim().is_empty()).map(|_| text)
    })
    .await
}
