//! The model's list of tasks, as the plan of an editor.

use haft_host::{TodoBoard, TodoStatus};
use serde_json::{Value, json};

/// Calls of these are shown as the plan and not by themselves.
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

/// The whole list: it takes the place of what was shown before.
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
