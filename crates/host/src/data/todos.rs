//! The model's task list, as reported in the results of calls.

use serde_json::Value;

/// The tasks that the model has set itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TodoBoard {
    /// The tasks, in order.
    pub todos: Vec<TodoEntry>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoEntry {
    id: String,
    /// A description of the task.
    pub text: String,
    /// Its status.
    pub status: TodoStatus,
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TodoStatus {
    /// Not started.
    Open,
    /// In progress.
    Doing,
    /// Done.
    Done,
}

impl TodoStatus {
    fn from_json(value: &Value) -> Self {
        match value.as_str() {
            Some("completed") => Self::Done,
            Some("in_progress") => Self::Doing,
            _ => Self::Open,
        }
    }
}

impl TodoBoard {
    /// Updates the list from the structured result of a call. Returns whether the result was about
    /// the list.
    pub fn update_from_result(&mut self, structured: &Value) -> bool {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(all) = structured["newTodos"].as_array() {
            let todo = |todo: &Value| TodoEntry {
                id: String::new(),
                text: text(&todo["content"]),
                status: TodoStatus::from_json(&todo["status"]),
            };
            self.todos = all.iter().map(todo).collect();
        } else if let Some(all) = structured["tasks"].as_array() {
            let todo = |task: &Value| TodoEntry {
                id: text(&task["id"]),
                text: text(&task["subject"]),
                status: TodoStatus::from_json(&task["status"]),
            };
            self.todos = all.iter().map(todo).collect();
        } else if structured["task"]["subject"].is_string() {
            let task = &structured["task"];
            let id = text(&task["id"]);
            if self.todos.iter().any(|todo| todo.id == id) {
                return false;
            }
            self.todos.push(TodoEntry {
                id,
                text: text(&task["subject"]),
                status: TodoStatus::Open,
            });
        } else if let Some(id) = structured["taskId"].as_str() {
            let to = &structured["statusChange"]["to"];
            if to == "deleted" {
                self.todos.retain(|todo| todo.id != id);
            } else if to.is_string()
                && let Some(todo) = self.todos.iter_mut().find(|todo| todo.id == id)
            {
                todo.status = TodoStatus::from_json(to);
            }
        } else {
            return false;
        }
        true
    }

    /// Returns whether all tasks are done, or the list is empty.
    pub fn is_complete(&self) -> bool {
        self.todos
            .iter()
            .all(|todo| todo.status == TodoStatus::Done)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_list_follows_what_results_say() {
        let mut list = TodoBoard::default();
        list.update_from_result(&json!({"task": {"id": "1", "subject": "find"}}));
        list.update_from_result(&json!({"task": {"id": "2", "subject": "fix"}}));
        list.update_from_result(
            &json!({"taskId": "1", "statusChange": {"from": "pending", "to": "completed"}}),
        );
        let states: Vec<_> = list.todos.iter().map(|todo| todo.status).collect();
        assert_eq!(states, [TodoStatus::Done, TodoStatus::Open]);
        list.update_from_result(&json!({"taskId": "2", "statusChange": {"to": "deleted"}}));
        assert!(list.is_complete());
        list.update_from_result(&json!({"newTodos": [{"content": "a", "status": "in_progress"}]}));
        assert!(!list.is_complete());
        assert!(!list.update_from_result(&json!({"matches": 3})));
        assert_eq!(list.todos.len(), 1);
    }
}
