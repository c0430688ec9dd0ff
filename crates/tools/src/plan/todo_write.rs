//! `TodoWrite`: replaces the whole list.

use haft_contract::{
    CallContext, Card, CardSection, Effects, Tool, ToolAccess, ToolError, ToolOutput, ToolProfile,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    task_list_choice::TaskListTool,
    task_list_state::{self, ListedTask, SessionTaskList, Status},
};
use crate::plural::counted;

/// Replaces the to-do list. Use it for work of three steps or more; keep one item in progress, and
/// mark each as completed when it is done.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The whole list.
    todos: Vec<Todo>,
}

/// An item of the to-do list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Todo {
    /// The item.
    #[schemars(length(min = 1))]
    content: String,
    status: Status,
    /// The item as an activity, such as "Running tests".
    #[schemars(length(min = 1))]
    active_form: String,
}

impl Todo {
    fn from_task(task: &ListedTask) -> Self {
        let doing = task.active_form.as_ref();
        Self {
            content: task.subject.clone(),
            status: task.status,
            active_form: doing.unwrap_or(&task.subject).clone(),
        }
    }

    fn task(&self) -> ListedTask {
        ListedTask {
            subject: self.content.clone(),
            active_form: Some(self.active_form.clone()),
            status: self.status,
            ..ListedTask::default()
        }
    }
}

pub(crate) struct TodoWrite;

impl Tool for TodoWrite {
    type Input = Input;
    const NAME: &'static str = "TodoWrite";

    fn profile(&self) -> ToolProfile {
        ToolProfile {
            family: "plan".into(),
            search_hint: "todo task list plan steps".into(),
            access: ToolAccess::Reads,
            ..ToolProfile::default()
        }
    }

    async fn is_enabled(&self) -> bool {
        TaskListTool::Todo.is_selected()
    }

    fn effects(&self, _: &Input) -> Effects {
        task_list_state::EFFECTS
    }

    async fn call(&self, input: &Input, cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let count = |status| {
            input
                .todos
                .iter()
                .filter(|todo| todo.status == status)
                .count()
        };
        let (doing, done) = (count(Status::InProgress), count(Status::Completed));
        let finished = done == input.todos.len();
        let old = task_list_state::session_state(cx)?.change(|list: &mut SessionTaskList| {
            let old: Vec<Todo> = list.tasks().iter().map(Todo::from_task).collect();
            match finished {
                true => list.replace([]),
                false => list.replace(input.todos.iter().map(Todo::task)),
            }
            Ok::<_, ToolError>(old)
        })?;
        let mut text = match finished {
            true => "Everything is done; the list is empty.".to_owned(),
            false => format!(
                "The list is saved: {done} done, {doing} in progress, {} to do.",
                count(Status::Pending)
            ),
        };
        if doing > 1 {
            text += &format!(
                " {doing} items are in progress: keep it to one, unless you really do them concurrently."
            );
        }
        Ok(ToolOutput::text(text).with_structured(json!({
            "oldTodos": old,
            "newTodos": input.todos,
        })))
    }

    fn render_use(&self, input: &Input) -> Option<Card> {
        let tasks: Vec<ListedTask> = input.todos.iter().map(Todo::task).collect();
        let card = Card::new("Todos", "").with_summary(counted(tasks.len() as u64, "item"));
        Some(match tasks.is_empty() {
            true => card,
            false => card.with(CardSection::Text(task_list_state::drawn(&tasks))),
        })
    }

    fn render_result(&self, input: &Input, _: &ToolOutput) -> Option<Card> {
        self.render_use(input)
    }
}
