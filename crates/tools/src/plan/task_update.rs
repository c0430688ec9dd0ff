//! `TaskUpdate`: changes or removes a task.

use std::fmt::Write;

use haft_contract::{
    AgentAccess, CallContext, Card, Effects, Tool, ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    hooks,
    task_list_choice::TaskListTool,
    task_list_state::{self, ListedTask, SessionTaskList, Status},
};

/// Changes a task: set it to in_progress when you begin it, to completed once it is really done.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Its number.
    task_id: String,
    /// `deleted` removes it from the list.
    status: Option<NewStatus>,
    #[schemars(length(min = 1))]
    subject: Option<String>,
    description: Option<String>,
    active_form: Option<String>,
    /// Tasks that wait for this one.
    #[serde(default)]
    add_blocks: Vec<String>,
    /// Tasks this one waits for.
    #[serde(default)]
    add_blocked_by: Vec<String>,
    owner: Option<String>,
    /// Merged into the existing data; null removes a key.
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NewStatus {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

impl NewStatus {
    /// Returns the status; `None` if the task is to be removed.
    fn status(self) -> Option<Status> {
        match self {
            Self::Pending => Some(Status::Pending),
            Self::InProgress => Some(Status::InProgress),
            Self::Completed => Some(Status::Completed),
            Self::Deleted => None,
        }
    }
}

pub(crate) struct TaskUpdate;

/// The result of a change.
#[derive(Debug, Default)]
struct TaskChange {
    fields: Vec<&'static str>,
    /// The previous and the new status.
    status: Option<(Status, Option<Status>)>,
    subject: String,
    /// Tasks that became unblocked.
    freed: Vec<String>,
}

impl Tool for TaskUpdate {
    type Input = Input;
    const NAME: &'static str = "TaskUpdate";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "plan".into(),
            search_hint: "todo task list status done complete".into(),
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
        let id = &input.task_id;
        let kept = task_list_state::session_state(cx)?;
        let refused = |error: String| {
            let told = json!({
                "success": false, "taskId": id, "updatedFields": [], "error": error,
            });
            Ok(ToolOutput::text(error).as_failure().with_structured(told))
        };
        let mut said = hooks::TaskHookOutcome::default();
        if input.status == Some(NewStatus::Completed)
            && let Ok(task) = kept.read::<SessionTaskList>().get(id)
            && task.is_open()
        {
            said = hooks::completed(cx, task).await;
        }
        if let Some(why) = said.objection {
            return refused(format!("The task was not completed: {why}"));
        }
        let done = match kept.change(|list: &mut SessionTaskList| change(list, input)) {
            Ok(done) => done,
            Err(error) => return refused(error),
        };
        let mut told = json!({"success": true, "taskId": id, "updatedFields": done.fields});
        let mut text = match done.fields.as_slice() {
            [] => format!("Task {id} is unchanged: {}", done.subject),
            fields => format!(
                "Task {id} ({}): {} changed",
                done.subject,
                fields.join(", ")
            ),
        };
        if let Some((from, to)) = done.status {
            let to = to.map_or("deleted", Status::name);
            told["statusChange"] = json!({"from": from, "to": to});
            let _ = write!(text, "; {} → {to}", from.name());
        }
        if !done.freed.is_empty() {
            let _ = write!(text, ". Can be started now: {}", done.freed.join(", "));
        }
        Ok(said.add_context_to(ToolOutput::text(text).with_structured(told)))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        Some(Card::new("Task", &*input.task_id))
    }

    fn render_result(&self, input: &Input, output: &ToolOutput) -> Option<Card> {
        let told = output.structured.as_ref()?;
        if told["success"] != true {
            return None;
        }
        let to = told["statusChange"]["to"].as_str();
        let changed = told["updatedFields"].as_array()?.is_empty();
        let changed = if changed { "unchanged" } else { "changed" };
        let summary = to.unwrap_or(changed).replace('_', " ");
        Some(self.render_use(input)?.with_summary(summary))
    }
}

/// Applies a change. If it fails, the caller discards the list, so nothing is changed.
fn change(list: &mut SessionTaskList, input: &Input) -> Result<TaskChange, String> {
    let before = list.get(&input.task_id)?.clone();
    let mut done = TaskChange {
        subject: before.subject.clone(),
        ..TaskChange::default()
    };
    let waited: Vec<String> = waiting(list, &before);
    let mut task = before.clone();
    let mut set = |name: &'static str, differs: bool| {
        if differs {
            done.fields.push(name);
        }
    };
    if let Some(status) = input.status {
        set("status", status.status() != Some(before.status));
        if status.status() != Some(before.status) {
            done.status = Some((before.status, status.status()));
        }
        task.status = status.status().unwrap_or(before.status);
    }
    if let Some(subject) = &input.subject {
        set("subject", *subject != before.subject);
        task.subject.clone_from(subject);
        done.subject.clone_from(subject);
    }
    if let Some(description) = &input.description {
        set("description", *description != before.description);
        task.description.clone_from(description);
    }
    if input.active_form.is_some() {
        set("activeForm", input.active_form != before.active_form);
        task.active_form.clone_from(&input.active_form);
    }
    if input.owner.is_some() {
        set("owner", input.owner != before.owner);
        task.owner.clone_from(&input.owner);
    }
    for (key, value) in &input.metadata {
        match value {
            Value::Null => {
                task.metadata.shift_remove(key);
            }
            value => {
                task.metadata.insert(key.clone(), value.clone());
            }
        }
    }
    set("metadata", task.metadata != before.metadata);
    list.put(task);
    for then in &input.add_blocks {
        list.order(&input.task_id, then)?;
    }
    for first in &input.add_blocked_by {
        list.order(first, &input.task_id)?;
    }
    if !input.add_blocks.is_empty() {
        done.fields.push("blocks");
    }
    if !input.add_blocked_by.is_empty() {
        done.fields.push("blockedBy");
    }
    if matches!(done.status, Some((_, None))) {
        list.remove(&input.task_id);
    }
    let free = |id: &String| {
        list.get(id)
            .is_ok_and(|task| task.is_open() && list.open_blockers(task).is_empty())
    };
    done.freed = waited.into_iter().filter(free).collect();
    Ok(done)
}

/// Returns the tasks that wait for this one now.
fn waiting(list: &SessionTaskList, task: &ListedTask) -> Vec<String> {
    if !task.is_open() {
        return Vec::new();
    }
    list.blocks(&task.id)
        .into_iter()
        .map(str::to_owned)
        .collect()
}
