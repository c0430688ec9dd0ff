//! `/tasks`: lists the running tasks with their output, and stops them.

use std::{any::Any, sync::Arc};

use haft::TaskKind;
use haft_host::{RunningTask, SessionEvent};
use haft_terminal::{Key, TextLine, TextStyle, Theme};

use super::{
    close, job,
    list::{ListEntry, ListStep, ListView},
    session::ViewSession,
    stay,
};
use crate::tui::{
    overlay::{FullScreenView, ViewEffect, ViewOutcome},
    ui_style::UiStyle,
};

/// The running tasks.
pub(crate) struct TasksView {
    session: Arc<dyn ViewSession>,
    list: ListView,
    tasks: Vec<RunningTask>,
    theme: Theme,
    status: String,
    is_stale: bool,
}

/// The result of a job.
enum TasksData {
    List(Vec<RunningTask>),
    Output(String, Result<String, String>),
    Stopped(String, Result<(), String>),
}

impl TasksView {
    pub(crate) fn open(session: Arc<dyn ViewSession>) -> (Self, Vec<ViewEffect>) {
        let view = Self {
            session,
            list: ListView::new(Vec::new()),
            tasks: Vec::new(),
            theme: Theme::default(),
            status: "reading".to_owned(),
            is_stale: false,
        };
        let effects = vec![view.read()];
        (view, effects)
    }

    fn read(&self) -> ViewEffect {
        let session = Arc::clone(&self.session);
        job(move || TasksData::List(session.tasks()))
    }

    fn label(&self, task: &RunningTask) -> TextLine {
        let kind = match task.kind {
            TaskKind::Shell => "command",
            TaskKind::Agent => "agent",
            TaskKind::Monitor => "monitor",
            TaskKind::Schedule => "schedule",
        };
        let mut label = TextLine::plain(&format!("{} {kind} {}", task.id, task.description));
        if !task.in_background {
            label.push("  (waited for)", self.theme.faint);
        }
        label
    }

    fn set_tasks(&mut self, tasks: Vec<RunningTask>) {
        self.status = match tasks.len() {
            0 => "nothing runs".to_owned(),
            _ => String::new(),
        };
        // Entries that were unfolded stay unfolded.
        let old: Vec<(String, ListEntry)> = self
            .tasks
            .iter()
            .map(|task| task.id.clone())
            .zip(self.list.entries.drain(..))
            .collect();
        let entries = tasks.iter().map(|task| {
            let known = old.iter().find(|(id, _)| *id == task.id);
            let mut entry = known.map_or_else(ListEntry::default, |(_, entry)| entry.clone());
            entry.label = self.label(task);
            entry
        });
        let entries = entries.collect();
        self.list.replace(entries);
        self.tasks = tasks;
    }

    fn set_detail(&mut self, id: &str, lines: Vec<TextLine>) {
        let place = self.tasks.iter().position(|task| task.id == id);
        if let Some(entry) = place.and_then(|place| self.list.entries.get_mut(place)) {
            entry.detail = lines;
            entry.is_open = true;
        }
    }
}

impl FullScreenView for TasksView {
    fn rows(&mut self, look: &UiStyle) -> Vec<TextLine> {
        self.theme = look.theme.clone();
        let mut title = TextLine::styled("Tasks", look.theme.heading);
        title.push(&format!("  {}", self.status), look.theme.faint);
        let hint = " Enter output  s stop  y copy  v editor  q";
        self.list.rows(&title, hint, look)
    }

    fn key(&mut self, key: Key) -> ViewOutcome {
        let mut effects = Vec::new();
        if std::mem::take(&mut self.is_stale) {
            effects.push(self.read());
        }
        let step = self.list.key(key);
        let task = self.tasks.get(self.list.chosen);
        match (step, key.typed(), task) {
            (ListStep::Close, ..) => return close(),
            (ListStep::Copy(text), ..) => effects.push(ViewEffect::Copy(text)),
            (ListStep::Edit(text), ..) => effects.push(ViewEffect::Edit(text)),
            (ListStep::Enter(number), _, Some(task)) => {
                let is_open = self.list.entries.get_mut(number).is_some_and(|entry| {
                    entry.is_open = !entry.is_open;
                    entry.is_open
                });
                let (session, id) = (Arc::clone(&self.session), task.id.clone());
                if is_open {
                    effects.push(job(move || {
                        let output = session.task_output(&id);
                        TasksData::Output(id, output)
                    }));
                }
            }
            (ListStep::Other, Some('s'), Some(task)) => {
                let (session, id) = (Arc::clone(&self.session), task.id.clone());
                effects.push(job(move || {
                    let stopped = session.stop_task(&id);
                    TasksData::Stopped(id, stopped)
                }));
            }
            _ => {}
        }
        ViewOutcome::Stay(effects)
    }

    fn loaded(&mut self, data: Box<dyn Any + Send>) -> ViewOutcome {
        let Ok(data) = data.downcast::<TasksData>() else {
            return stay();
        };
        match *data {
            TasksData::List(tasks) => self.set_tasks(tasks),
            TasksData::Output(id, Ok(text)) => {
                let lines = TextLine::lines(&text, TextStyle::default());
                self.set_detail(&id, lines);
            }
            TasksData::Output(id, Err(why)) => {
                let lines = TextLine::lines(&why, self.theme.failure);
                self.set_detail(&id, lines);
            }
            TasksData::Stopped(_, Ok(())) => return ViewOutcome::Stay(vec![self.read()]),
            TasksData::Stopped(id, Err(why)) => {
                let lines = TextLine::lines(&why, self.theme.failure);
                self.set_detail(&id, lines);
            }
        }
        stay()
    }

    fn on_event(&mut self, event: &SessionEvent) {
        self.is_stale |= matches!(event, SessionEvent::Task(_));
    }
}
