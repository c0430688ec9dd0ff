//! The list of tasks that the model keeps, as results of calls report it.

use haft_terminal::{TextLine, TextStyle};
use serde_json::Value;

use super::{cards::one_line, look::Look};

/// So many rows it takes at most.
const MOST_ROWS: usize = 5;

#[derive(Debug, Default)]
pub(crate) struct TodoList {
    todos: Vec<Todo>,
    pub(crate) is_hidden: bool,
}

#[derive(Debug)]
struct Todo {
    id: String,
    text: String,
    status: TodoStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TodoStatus {
    Open,
    Doing,
    Done,
}

impl TodoStatus {
    fn of(value: &Value) -> Self {
        match value.as_str() {
            Some("completed") => Self::Done,
            Some("in_progress") => Self::Doing,
            _ => Self::Open,
        }
    }
}

impl TodoList {
    /// What a result says of the list, if it says something.
    pub(crate) fn note(&mut self, structured: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(all) = structured["newTodos"].as_array() {
            let todo = |todo: &Value| Todo {
                id: String::new(),
                text: text(&todo["content"]),
                status: TodoStatus::of(&todo["status"]),
            };
            self.todos = all.iter().map(todo).collect();
        } else if let Some(all) = structured["tasks"].as_array() {
            let todo = |task: &Value| Todo {
                id: text(&task["id"]),
                text: text(&task["subject"]),
                status: TodoStatus::of(&task["status"]),
            };
            self.todos = all.iter().map(todo).collect();
        } else if structured["task"]["subject"].is_string() {
            let task = &structured["task"];
            let id = text(&task["id"]);
            if !self.todos.iter().any(|todo| todo.id == id) {
                self.todos.push(Todo {
                    id,
                    text: text(&task["subject"]),
                    status: TodoStatus::Open,
                });
            }
        } else if let Some(id) = structured["taskId"].as_str() {
            let to = &structured["statusChange"]["to"];
            if to == "deleted" {
                self.todos.retain(|todo| todo.id != id);
            } else if to.is_string()
                && let Some(todo) = self.todos.iter_mut().find(|todo| todo.id == id)
            {
                todo.status = TodoStatus::of(to);
            }
        }
    }

    /// All of it is done, or there is none.
    fn is_over(&self) -> bool {
        self.todos
            .iter()
            .all(|todo| todo.status == TodoStatus::Done)
    }

    pub(crate) fn clear(&mut self) {
        self.todos.clear();
    }

    /// In one row where there is room for all; else a row each around what is being done.
    pub(crate) fn rows(&self, look: &Look) -> Vec<TextLine> {
        if self.is_hidden || self.is_over() {
            return Vec::new();
        }
        let is_done = |todo: &&Todo| todo.status == TodoStatus::Done;
        let done = self.todos.iter().filter(is_done).count();
        let heading = format!(" Tasks {done}/{}", self.todos.len());
        let mut line = TextLine::styled(&heading, look.theme.faint);
        for todo in &self.todos {
            line.push("  ", TextStyle::new());
            line.append(&todo.drawn(look));
        }
        if line.width() <= look.size.row_width() {
            return vec![line];
        }
        let mut rows = vec![TextLine::styled(&heading, look.theme.faint)];
        let is_open = |todo: &Todo| todo.status != TodoStatus::Done;
        let first = self.todos.iter().position(is_open).unwrap_or_default();
        let room = MOST_ROWS - 1;
        let last_start = self.todos.len().saturating_sub(room);
        let from = first.saturating_sub(1).min(last_start);
        for todo in self.todos.iter().skip(from).take(room) {
            let mut row = TextLine::plain("  ");
            row.append(&todo.drawn(look));
            rows.push(row);
        }
        rows
    }
}

impl Todo {
    fn drawn(&self, look: &Look) -> TextLine {
        let (mark, style) = match self.status {
            TodoStatus::Done => ("[x] ", look.theme.faint),
            TodoStatus::Doing => ("[>] ", TextStyle::new().bold()),
            TodoStatus::Open => ("[ ] ", TextStyle::new()),
        };
        TextLine::styled(&format!("{mark}{}", one_line(&self.text)), style)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_list_follows_what_results_say() {
        let mut list = TodoList::default();
        list.note(&json!({"task": {"id": "1", "subject": "find"}}));
        list.note(&json!({"task": {"id": "2", "subject": "fix"}}));
        list.note(&json!({"taskId": "1", "statusChange": {"from": "pending", "to": "completed"}}));
        let states: Vec<_> = list.todos.iter().map(|todo| todo.status).collect();
        assert_eq!(states, [TodoStatus::Done, TodoStatus::Open]);
        list.note(&json!({"taskId": "2", "statusChange": {"to": "deleted"}}));
        assert!(list.is_over());
        list.note(&json!({"newTodos": [{"content": "a", "status": "in_progress"}]}));
        assert!(!list.is_over());
        list.note(&json!({"matches": 3}));
        assert_eq!(list.todos.len(), 1);
    }
}
