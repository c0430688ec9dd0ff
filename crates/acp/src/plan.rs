//! The model's task list, displayed as the editor's plan.

use haft_host::{TodoBoard, TodoStatus};
use serde_json::{Value, json};

/// Calls of these tools update the plan and are not displayed separately.
const TOOLS: [&str; 5] = [
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TodoWrite",
];

pub(crate) fn is_of_plan(tool: &str) -> bool {
    TOOLS.contains(&tool)
}

/// Returns an update with the whole list. It replaces the displayed list.
pub(crate) fn update(board: &TodoBoard) -> Value {
    let entry = |todo: &haft_host::TodoEntry| {
        let status = match todo.status {
            TodoStatus::Open => "pending",
            TodoStatus::Doing => "in_progress",
            TodoStatus::Done => "completed",
        };
        json!({"content": todo.text, "priority": "medium", "status": status})
    };
    let entries: Vec<Value> = board.todos.iter().map(entry).collect();
    json!({"sessionUpdate": "plan", "entries": entries})
}
