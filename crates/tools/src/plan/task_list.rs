//! `TaskList`: shows all tasks.

use haft_contract::{
    AgentAccess, CallContext, Card, CardSection, Effects, Tool, ToolAccess, ToolError, ToolOutput,
    ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    task_list_choice::TaskListTool,
    task_list_state::{self, SessionTaskList},
};
use crate::plural::counted;

/// Shows the task list.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {}

pub(crate) struct TaskList;

impl Tool for TaskList {
    type Input = Input;
    const NAME: &'static str = "TaskList";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "plan".into(),
            search_hint: "todo tasks overview".into(),
            access: ToolAccess::Reads,
            agents: AgentAccess::Foreground,
            ..ToolProfile::default()
        }
    }

    async fn is_enabled(&self) -> bool {
        TaskListTool::Tasks.is_selected()
    }

    fn effects(&self, _: &Input) -> Effects {
        task_list_state::EFFECTS
    }

    async fn call(&self, _: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let list: SessionTaskList = task_list_state::session_state(cx)?.read();
        let tasks: Vec<Value> = list
            .tasks()
            .iter()
            .map(|task| {
                let mut told = json!({
                    "id": task.id,
                    "subject": task.subject,
                    "status": task.status,
                    "blockedBy": list.open_blockers(task),
                });
                if let Some(owner) = &task.owner {
                    told["owner"] = json!(owner);
                }
                told
            })
            .collect();
        let text = match tasks.is_empty() {
            true => "The task list is empty.".to_owned(),
            false => list.to_string(),
        };
        Ok(ToolOutput::text(text).with_structured(json!({"tasks": tasks})))
    }

    fn render_use(&self, _: &Input) -> Option<Card> {
        Some(Card::new("Tasks", ""))
    }

    fn render_result(&self, _: &Input, output: &ToolOutput) -> Option<Card> {
        let tasks = output.structured.as_ref()?["tasks"].as_array()?;
        let lines: Vec<String> = tasks
            .iter()
            .map(|task| {
                let status = serde_json::from_value(task["status"].clone()).unwrap_or_default();
                let subject = task["subject"].as_str().unwrap_or_default();
                format!("{} {subject}", task_list_state::mark(status))
            })
            .collect();
        let card = Card::new("Tasks", "").with_summary(counted(tasks.len() as u64, "task"));
        Some(match lines.is_empty() {
            true => card,
            false => card.with(CardSection::Text(lines.join("\n"))),
        })
    }
}
