//! Hooks on changes of the task list.

use haft_contract::{CallContext, Content, HookEvent, HookService, ToolOutput};
use serde_json::json;

use super::task_list_state::ListedTask;

/// The output of hooks about a task.
#[derive(Debug, Default)]
pub(super) struct TaskHookOutcome {
    /// The reason why the hooks object, if they do.
    pub(super) objection: Option<String>,
    context: Vec<String>,
}

/// Fires the event before a task is created.
pub(super) async fn created(cx: &CallContext, task: &ListedTask) -> TaskHookOutcome {
    fire(cx, "TaskCreated", task).await
}

/// Fires the event before a task is completed.
pub(super) async fn completed(cx: &CallContext, task: &ListedTask) -> TaskHookOutcome {
    fire(cx, "TaskCompleted", task).await
}

async fn fire(cx: &CallContext, event: &str, task: &ListedTask) -> TaskHookOutcome {
    let mut fields = json!({"task_id": task.id, "task_subject": task.subject});
    if !task.description.is_empty() {
        fields["task_description"] = json!(task.description);
    }
    let verdict = HookService::fire(cx, HookEvent::new(event, "", fields)).await;
    TaskHookOutcome {
        objection: verdict.block,
        context: verdict.context,
    }
}

impl TaskHookOutcome {
    /// Adds the hooks' text for the model to an output.
    pub(super) fn add_context_to(self, mut output: ToolOutput) -> ToolOutput {
        let texts = self.context.iter();
        let texts = texts.map(|text| format!("<system-reminder>\n{text}\n</system-reminder>"));
        output.content.extend(texts.map(Content::text));
        output
    }
}
