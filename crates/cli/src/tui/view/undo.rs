//! `/undo`: lists the changes with diffs, and undoes one of them or all since a message.

use std::{any::Any, sync::Arc, time::SystemTime};

use haft_host::{UndoEntry, UndoReport, UndoWhich};
use haft_terminal::{Key, TextLine, Theme};

use super::{
    close,
    detail::{card_lines, changed_files_text, quoted, short_time},
    job,
    list::{ListEntry, ListStep, ListView},
    session::ViewSession,
    stay,
};
use crate::tui::{
    overlay::{FullScreenView, ViewEffect, ViewOutcome},
    ui_style::UiStyle,
};

/// The changes of this session, newest first.
pub(crate) struct UndoView {
    session: Arc<dyn ViewSession>,
    list: ListView,
    entries: Vec<UndoEntry>,
    theme: Theme,
    status: String,
    now: SystemTime,
}

/// The result of a job.
enum UndoData {
    List(Result<Vec<UndoEntry>, String>),
    Preview(String, Result<UndoReport, String>),
    Done(String, Result<UndoReport, String>),
}

impl UndoView {
    pub(crate) fn open(session: Arc<dyn ViewSession>, now: SystemTime) -> (Self, Vec<ViewEffect>) {
        let view = Self {
            session: Arc::clone(&session),
            list: ListView::new(Vec::new()),
            entries: Vec::new(),
            theme: Theme::default(),
            status: "reading".to_owned(),
            now,
        };
        (view, vec![job(move || UndoData::List(session.undo_list()))])
    }

    fn set_entries(&mut self, entries: Vec<UndoEntry>) {
        let rows = entries
            .iter()
            .map(|entry| ListEntry::new(self.label(entry)));
        self.list.replace(rows.collect());
        self.entries = entries;
    }

    fn label(&self, entry: &UndoEntry) -> TextLine {
        let mut label = TextLine::plain(&format!("{} ", short_time(entry.time, self.now)));
        let what = match entry.about.as_str() {
            "" => entry.tool.clone(),
            about => format!("{} {about}", entry.tool),
        };
        let what: String = what.replace('\n', " ").chars().take(60).collect();
        let style = haft_terminal::TextStyle::default();
        label.push(
            &format!("{what} {}", changed_files_text(&entry.files)),
            style,
        );
        if entry.is_undo {
            label.push("  (an undo)", self.theme.faint);
        }
        if let Err(why) = &entry.undoable {
            label.push(&format!("  ({why})"), self.theme.faint);
        }
        if let Some((_, message)) = &entry.message {
            label.push(&format!("  {}", quoted(message, 40)), self.theme.faint);
        }
        label
    }

    /// Shows or hides the diff, which is created when it is first shown.
    fn unfold(&mut self, number: usize) -> Vec<ViewEffect> {
        let (Some(entry), Some(row)) =
            (self.entries.get(number), self.list.entries.get_mut(number))
        else {
            return Vec::new();
        };
        row.is_open = !row.is_open;
        if !row.is_open || !row.detail.is_empty() {
            return Vec::new();
        }
        row.detail = vec![TextLine::styled("reading", self.theme.faint)];
        let (session, id) = (Arc::clone(&self.session), entry.id.clone());
        vec![job(move || {
            let report = session.undo(&UndoWhich::Entry(id.clone()), true);
            UndoData::Preview(id, report)
        })]
    }

    fn undo_entry(&mut self, which: UndoWhich, id: String) -> ViewOutcome {
        self.status = "undoing".to_owned();
        let session = Arc::clone(&self.session);
        ViewOutcome::Stay(vec![job(move || {
            UndoData::Done(id, session.undo(&which, false))
        })])
    }

    /// Sets the lines below an entry.
    fn set_detail(&mut self, id: &str, lines: Vec<TextLine>) {
        let place = self.entries.iter().position(|entry| entry.id == id);
        if let Some(row) = place.and_then(|place| self.list.entries.get_mut(place)) {
            row.detail = lines;
            row.is_open = true;
        }
    }

    fn report_lines(&self, report: &Result<UndoReport, String>) -> Vec<TextLine> {
        let mut lines = Vec::new();
        match report {
            Err(why) => lines.extend(TextLine::lines(why, self.theme.failure)),
            Ok(report) => {
                if let Some(conflict) = &report.conflict {
                    lines.extend(TextLine::lines(conflict, self.theme.failure));
                }
                for card in &report.cards {
                    lines.extend(card_lines(card, &self.theme));
                }
                for (path, why) in &report.left {
                    let text = format!("unchanged: {}: {why}", path.display());
                    lines.push(TextLine::styled(&text, self.theme.warning));
                }
            }
        }
        if lines.is_empty() {
            lines.push(TextLine::styled("nothing would change", self.theme.faint));
        }
        lines
    }
}

impl FullScreenView for UndoView {
    fn rows(&mut self, look: &UiStyle) -> Vec<TextLine> {
        self.theme = look.theme.clone();
        let title = match self.status.as_str() {
            "" => TextLine::styled("Undo", look.theme.heading),
            status => {
                let mut title = TextLine::styled("Undo  ", look.theme.heading);
                title.push(status, look.theme.warning);
                title
            }
        };
        let hint = match look.is_narrow() {
            true => " Enter diff  u  A  q",
            false => " Enter diff  u undo  A all since this message  / n N  y copy  v editor  q",
        };
        self.list.rows(&title, hint, look)
    }

    fn key(&mut self, key: Key) -> ViewOutcome {
        let step = self.list.key(key);
        let entry = self.entries.get(self.list.chosen);
        match (step, key.typed(), entry) {
            (ListStep::Close, ..) => close(),
            (ListStep::Enter(number), ..) => ViewOutcome::Stay(self.unfold(number)),
            (ListStep::Copy(text), ..) => ViewOutcome::Stay(vec![ViewEffect::Copy(text)]),
            (ListStep::Edit(text), ..) => ViewOutcome::Stay(vec![ViewEffect::Edit(text)]),
            (ListStep::Other, Some('u'), Some(entry)) => {
                let id = entry.id.clone();
                self.undo_entry(UndoWhich::Entry(id.clone()), id)
            }
            (ListStep::Other, Some('A'), Some(entry)) => match entry.message.clone() {
                Some((message, _)) => {
                    let id = entry.id.clone();
                    self.undo_entry(UndoWhich::Since(message), id)
                }
                None => {
                    self.status = "the message of this change is unknown".to_owned();
                    stay()
                }
            },
            _ => stay(),
        }
    }

    fn loaded(&mut self, data: Box<dyn Any + Send>) -> ViewOutcome {
        let Ok(data) = data.downcast::<UndoData>() else {
            return stay();
        };
        match *data {
            UndoData::List(Ok(entries)) => {
                if self.status == "reading" {
                    self.status = String::new();
                }
                if entries.is_empty() {
                    self.status = "nothing was changed".to_owned();
                }
                self.set_entries(entries);
            }
            UndoData::List(Err(why)) => self.status = why,
            UndoData::Preview(id, report) => {
                let lines = self.report_lines(&report);
                self.set_detail(&id, lines);
            }
            UndoData::Done(id, report) => {
                let lines = self.report_lines(&report);
                match &report {
                    Ok(done) if done.conflict.is_none() => {
                        let count = done.cards.len();
                        let files = if count == 1 { "file" } else { "files" };
                        self.status = match &done.redo {
                            Some(_) => {
                                format!("undone: {count} {files}; u on the newest entry redoes it")
                            }
                            None => "there was nothing to undo".to_owned(),
                        };
                        let session = Arc::clone(&self.session);
                        return ViewOutcome::Stay(vec![job(move || {
                            UndoData::List(session.undo_list())
                        })]);
                    }
                    _ => {
                        self.status = "nothing was changed".to_owned();
                        self.set_detail(&id, lines);
                    }
                }
            }
        }
        stay()
    }
}
