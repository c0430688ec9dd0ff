//! The choice of the tools for the task list.

use std::env;

/// The two interfaces of the task list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskListTool {
    /// One tool that replaces the list.
    Todo,
    /// A tool for each operation on a task.
    Tasks,
}

impl TaskListTool {
    /// Returns whether the environment selects this one.
    pub(super) fn is_selected(self) -> bool {
        let value = |name: &str| env::var(name).ok();
        let asked = selected_tool(
            value("CLAUDE_CODE_ENABLE_TASKS").as_deref(),
            value("CLAUDE_CODE_ENABLE_TODO_TOOLS").as_deref(),
        );
        asked == Some(self)
    }
}

fn selected_tool(tasks: Option<&str>, any: Option<&str>) -> Option<TaskListTool> {
    let off = |value: Option<&str>| matches!(value, Some("0" | "false"));
    match (off(any), off(tasks)) {
        (true, _) => None,
        (false, true) => Some(TaskListTool::Todo),
        (false, false) => Some(TaskListTool::Tasks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_way_or_none() {
        let cases = [
            (None, None, Some(TaskListTool::Tasks)),
            (Some("1"), Some("1"), Some(TaskListTool::Tasks)),
            (Some("0"), None, Some(TaskListTool::Todo)),
            (Some("0"), Some("1"), Some(TaskListTool::Todo)),
            (Some("0"), Some("0"), None),
            (None, Some("0"), None),
        ];
        for (tasks, any, way) in cases {
            assert_eq!(selected_tool(tasks, any), way, "{tasks:?} {any:?}");
        }
    }
}
