//! `TaskCreate`: adds a task.

use haft_contract::{
    AgentAccess, CallContext, Card, Effects, Tool, ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    hooks,
    task_list_choice::TaskListTool,
    task_list_state::{self, SessionTaskList},
};

/// Adds a task to the session's list. Use the list for work of three steps or more, and keep it current.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// A short title.
    #[schemars(length(min = 1))]
    subject: String,
    /// The details, and when it is done.
    description: String,
    /// The title as an activity, such as "Running tests".
    active_form: Option<String>,
    /// Any other data about the task.
    #[serde(default)]
    metadata: Map<String, Value>,
}

pub(crate) struct TaskCreate;

impl Tool for TaskCreate {
    type Input = Input;
    const NAME: &'static str = "TaskCreate";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "plan".into(),
            search_hint: "todo task list plan step add".into(),
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

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let kept = task_list_state::session_state(cx)?;
        // Calls that use the list run one after the other, so the number is still free at the end.
        let draft = kept
            .read::<SessionTaskList>()
            .draft(&input.subject, &input.description);
        let mut task = draft.map_err(ToolError::Failed)?;
        task.active_form.clone_from(&input.active_form);
        task.metadata.clone_from(&input.metadata);
        let said = hooks::created(cx, &task).await;
        if let Some(why) = said.objection {
            return Err(ToolError::Failed(format!(
                "The task was not created: {why}"
            )));
        }
        let (id, subject) = (task.id.clone(), task.subject.clone());
        kept.change(|list: &mut SessionTaskList| {
            list.put(task);
            Ok(())
        })?;
        let mut told = json!({"id": id, "subject": subject});
        if !input.description.is_empty() {
            told["description"] = json!(input.description);
        }
        let text = format!("Task {id} is in the list: {subject}");
        let output = ToolOutput::text(text).with_structured(json!({"task": told}));
        Ok(said.add_context_to(output))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new("Task", &*input.subject))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let id = output.structured.as_ref()?["task"]["id"]
            .as_str()?
            .to_owned();
        Some(
            self.render_use(input)?
                .with_summary(format!("added as {id}")),
        )
    }
}
