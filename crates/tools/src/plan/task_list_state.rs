//! The task list of a session.

use std::{collections::BTreeSet, fmt::Write, sync::Arc};

use haft_contract::{CallContext, Effects, SessionState, StateSlot, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Calls that use the list run in order.
pub(super) const EFFECTS: Effects = Effects::queueing("tasks");

/// The maximum number of tasks; more are a sign of an error.
const MAX_COUNT: usize = 1000;

/// A task list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SessionTaskList {
    /// The number of the newest task, even if it was removed.
    last: u64,
    tasks: Vec<ListedTask>,
}

/// A task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ListedTask {
    pub(super) id: String,
    pub(super) subject: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) active_form: Option<String>,
    #[serde(default)]
    pub(super) status: Status,
    #[serde(default)]
    pub(super) owner: Option<String>,
    /// Tasks that must be done first.
    #[serde(default)]
    pub(super) blocked_by: BTreeSet<String>,
    #[serde(default)]
    pub(super) metadata: Map<String, Value>,
}

/// The progress of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    #[default]
    Pending,
    InProgress,
    Completed,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

impl StateSlot for SessionTaskList {
    const KEY: &'static str = "tasks";

    fn reminder(&self) -> Option<String> {
        let open = self.tasks.iter().any(|task| task.is_open());
        open.then(|| format!("The current task list:\n{self}"))
    }
}

impl std::fmt::Display for SessionTaskList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<String> = self.tasks.iter().map(|task| self.line(task)).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl ListedTask {
    pub(super) fn is_open(&self) -> bool {
        self.status != Status::Completed
    }
}

impl SessionTaskList {
    pub(super) fn tasks(&self) -> &[ListedTask] {
        &self.tasks
    }

    pub(super) fn get(&self, id: &str) -> Result<&ListedTask, String> {
        self.tasks
            .iter()
            .find(|task| task.id == id)
            .ok_or_else(|| self.unknown(id))
    }

    /// Returns a task with the next number. It is not added to the list.
    pub(super) fn draft(&self, subject: &str, description: &str) -> Result<ListedTask, String> {
        if self.tasks.len() >= MAX_COUNT {
            return Err(format!(
                "The list has {MAX_COUNT} tasks: complete or delete some before adding more."
            ));
        }
        Ok(ListedTask {
            id: (self.last + 1).to_string(),
            subject: subject.to_owned(),
            description: description.to_owned(),
            ..ListedTask::default()
        })
    }

    /// Adds a task, or replaces the one with the same id.
    pub(super) fn put(&mut self, task: ListedTask) {
        if let Ok(number) = task.id.parse::<u64>() {
            self.last = self.last.max(number);
        }
        match self.tasks.iter_mut().find(|known| known.id == task.id) {
            Some(known) => *known = task,
            None => self.tasks.push(task),
        }
    }

    /// Removes a task, also from the blockers of others.
    pub(super) fn remove(&mut self, id: &str) {
        self.tasks.retain(|task| task.id != id);
        for task in &mut self.tasks {
            task.blocked_by.remove(id);
        }
    }

    /// Replaces all tasks.
    pub(super) fn replace(&mut self, tasks: impl IntoIterator<Item = ListedTask>) {
        self.tasks.clear();
        for mut task in tasks {
            task.id = (self.last + 1).to_string();
            self.put(task);
        }
    }

    /// Records that `first` must be done before `then`. The error is the reason why that is
    /// impossible.
    pub(super) fn order(&mut self, first: &str, then: &str) -> Result<(), String> {
        self.get(first)?;
        self.get(then)?;
        if first == then {
            return Err(format!("Task {first} cannot wait for itself."));
        }
        if self.waits(first, then) {
            return Err(format!(
                "Task {then} cannot wait for task {first}: that one waits for it already, so neither \
                 could ever begin."
            ));
        }
        if let Some(task) = self.tasks.iter_mut().find(|task| task.id == then) {
            task.blocked_by.insert(first.to_owned());
        }
        Ok(())
    }

    /// Returns whether one task waits for the other, directly or indirectly.
    fn waits(&self, task: &str, other: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut next = vec![task];
        while let Some(id) = next.pop() {
            if id == other {
                return true;
            }
            if seen.insert(id)
                && let Ok(task) = self.get(id)
            {
                next.extend(task.blocked_by.iter().map(String::as_str));
            }
        }
        false
    }

    /// Returns the tasks that wait for this one, in the order of the list.
    pub(super) fn blocks(&self, id: &str) -> Vec<&str> {
        let waiting = self
            .tasks
            .iter()
            .filter(|task| task.blocked_by.contains(id));
        waiting.map(|task| task.id.as_str()).collect()
    }

    /// Returns the open tasks that this task waits for, in the order of the list.
    pub(super) fn open_blockers(&self, task: &ListedTask) -> Vec<&str> {
        let open = self.tasks.iter().filter(|other| other.is_open());
        let blockers = open.filter(|other| task.blocked_by.contains(&other.id));
        blockers.map(|other| other.id.as_str()).collect()
    }

    /// Formats a task for the model.
    pub(super) fn line(&self, task: &ListedTask) -> String {
        let mut line = format!("{}. [{}] {}", task.id, task.status.name(), task.subject);
        if let Some(owner) = &task.owner {
            let _ = write!(line, " (owner: {owner})");
        }
        let blockers = self.open_blockers(task);
        if !blockers.is_empty() {
            let _ = write!(line, " (waits for {})", blockers.join(", "));
        }
        line
    }

    fn unknown(&self, id: &str) -> String {
        let ids: Vec<&str> = self.tasks.iter().map(|task| task.id.as_str()).collect();
        match ids.is_empty() {
            true => format!("Task {id} does not exist: the list is empty."),
            false => format!(
                "Task {id} does not exist. Existing tasks: {}.",
                ids.join(", ")
            ),
        }
    }
}

/// Returns the service that stores the list of a session.
pub(super) fn session_state(cx: &CallContext) -> Result<Arc<SessionState>, ToolError> {
    cx.services.get::<SessionState>()
}

/// Returns the symbol of a status.
pub(super) fn mark(status: Status) -> &'static str {
    match status {
        Status::Pending => "☐",
        Status::InProgress => "▶",
        Status::Completed => "☑",
    }
}

/// Formats the list for display.
pub(super) fn drawn(tasks: &[ListedTask]) -> String {
    let lines: Vec<String> = tasks
        .iter()
        .map(|task| {
            let doing = task.active_form.as_ref();
            let shown = doing.filter(|_| task.status == Status::InProgress);
            format!("{} {}", mark(task.status), shown.unwrap_or(&task.subject))
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(count: usize) -> SessionTaskList {
        let mut list = SessionTaskList::default();
        for _ in 0..count {
            let task = list.draft("do it", "").unwrap();
            list.put(task);
        }
        list
    }

    #[test]
    fn numbers_are_never_given_twice() {
        let mut list = of(2);
        list.remove("2");
        assert_eq!(list.draft("x", "").unwrap().id, "3");
        list.replace([ListedTask::default()]);
        assert_eq!(list.tasks()[0].id, "3");
    }

    #[test]
    fn a_task_that_is_gone_holds_nothing_up() {
        let mut list = of(2);
        list.order("1", "2").unwrap();
        assert_eq!(list.blocks("1"), ["2"]);
        list.remove("1");
        assert_eq!(list.get("2").unwrap().blocked_by.len(), 0);
    }

    proptest! {
        /// Whatever is asked for, some open task can always be begun.
        #[test]
        fn no_circle_ever(edges in prop::collection::vec((1_u8..6, 1_u8..6), 0..30)) {
            let mut list = of(5);
            for (first, then) in edges {
                let _ = list.order(&first.to_string(), &then.to_string());
            }
            let mut done = 0;
            while let Some(free) = list
                .tasks()
                .iter()
                .find(|task| task.is_open() && list.open_blockers(task).is_empty())
            {
                let mut free = free.clone();
                free.status = Status::Completed;
                list.put(free);
                done += 1;
            }
            prop_assert_eq!(done, 5);
        }
    }
}
