//! The model's task list, as reported by the results of its calls.

use haft_host::{TodoBoard, TodoEntry, TodoStatus};
use haft_terminal::{TextLine, TextStyle};
use serde_json::Value;

use super::{cards::one_line, ui_style::UiStyle};

/// The maximum number of rows.
const MAX_ROWS: usize = 5;

#[derive(Debug, Default)]
pub(crate) struct TodoList {
    board: TodoBoard,
    pub(crate) is_hidden: bool,
}

impl TodoList {
    /// Updates the list from the result of a call, if it contains the list.
    pub(crate) fn update_from_result(&mut self, structured: &Value) {
        self.board.update_from_result(structured);
    }

    pub(crate) fn clear(&mut self) {
        self.board.todos.clear();
    }

    /// Returns the list on one row if it fits, otherwise one row per task around the current one.
    pub(crate) fn rows(&self, look: &UiStyle) -> Vec<TextLine> {
        if self.is_hidden || self.board.is_complete() {
            return Vec::new();
        }
        let is_done = |todo: &&TodoEntry| todo.status == TodoStatus::Done;
        let done = self.board.todos.iter().filter(is_done).count();
        let heading = format!(" Tasks {done}/{}", self.board.todos.len());
        let mut line = TextLine::styled(&heading, look.theme.faint);
        for todo in &self.board.todos {
            line.push("  ", TextStyle::new());
            line.append(&drawn(todo, look));
        }
        if line.width() <= look.size.row_width() {
            return vec![line];
        }
        let mut rows = vec![TextLine::styled(&heading, look.theme.faint)];
        let is_open = |todo: &TodoEntry| todo.status != TodoStatus::Done;
        let first = self
            .board
            .todos
            .iter()
            .position(is_open)
            .unwrap_or_default();
        let room = MAX_ROWS - 1;
        let last_start = self.board.todos.len().saturating_sub(room);
        let from = first.saturating_sub(1).min(last_start);
        for todo in self.board.todos.iter().skip(from).take(room) {
            let mut row = TextLine::plain("  ");
            row.append(&drawn(todo, look));
            rows.push(row);
        }
        rows
    }
}

fn drawn(todo: &TodoEntry, look: &UiStyle) -> TextLine {
    let (mark, style) = match todo.status {
        TodoStatus::Done => ("[x] ", look.theme.faint),
        TodoStatus::Doing => ("[>] ", TextStyle::new().bold()),
        TodoStatus::Open => ("[ ] ", TextStyle::new()),
    };
    TextLine::styled(&format!("{mark}{}", one_line(&todo.text)), style)
}
