//! `TaskGet`: shows one task.

use std::fmt::Write;

use haft_contract::{
    CallContext, Card, Effects, Tool, ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    task_list_choice::TaskListTool,
    task_list_state::{self, SessionTaskList},
};

/// Shows one task of the list with its description.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Its number.
    task_id: String,
}

pub(crate) struct TaskGet;

impl Tool for TaskGet {
    type Input = Input;
    const NAME: &'static str = "TaskGet";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "plan".into(),
            search_hint: "todo task list details".into(),
            access: ToolAccess::Reads,
            ..ToolProfile::default()
        }
    }

    async fn is_enabled(&self) -> bool {
        TaskListTool::Tasks.is_selected()
    }

    fn effects(&self, _: &Input) -> Effects {
        task_list_state::EFFECTS
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let list: SessionTaskList = task_list_state::session_state(cx)?.read();
        let task = match list.get(&input.task_id) {
            Ok(task) => task,
            Err(unknown) => {
                return Ok(ToolOutput::text(unknown).with_structured(json!({"task": null})));
            }
        };
        let blocks = list.blocks(&task.id);
        let mut text = list.line(task);
        for (what, said) in [
            ("", task.description.clone()),
            ("Others wait for it: ", blocks.join(", ")),
        ] {
            if !said.is_empty() {
                let _ = write!(text, "\n{what}{said}");
            }
        }
        if !task.metadata.is_empty() {
            let _ = write!(text, "\n{}", json!(task.metadata));
        }
        Ok(ToolOutput::text(text).with_structured(json!({"task": {
            "id": task.id,
            "subject": task.subject,
            "description": task.description,
            "status": task.status,
            "blocks": blocks,
            "blockedBy": task.blocked_by,
        }})))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new("Task", &*input.task_id))
    }
}
