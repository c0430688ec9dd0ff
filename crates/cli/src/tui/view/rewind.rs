//! `/rewind`: goes back to a message and restores the conversation, the files or both, or
//! summarizes the conversation from there. The selection starts at `now`, where Enter changes
//! nothing.

use std::{any::Any, sync::Arc, time::SystemTime};

use haft_host::{RewindKind, RewindPoint};
use haft_terminal::{Key, TextLine, TextStyle, Theme};

use super::{
    close,
    detail::{changed_files_text, quoted, short_time},
    job,
    list::{ListEntry, ListStep, ListView},
    session::ViewSession,
    stay,
};
use crate::tui::{
    overlay::{FullScreenView, ViewEffect, ViewOutcome},
    ui_style::UiStyle,
};

const KINDS: [RewindKind; 4] = [
    RewindKind::Both,
    RewindKind::Conversation,
    RewindKind::Files,
    RewindKind::Summary,
];

/// The messages of a session, oldest first, followed by `now`.
pub(crate) struct RewindView {
    session: Arc<dyn ViewSession>,
    points: Vec<RewindPoint>,
    messages: ListView,
    /// The selected message and its actions.
    step: Option<(RewindPoint, ListView)>,
    theme: Theme,
    status: String,
    now: SystemTime,
}

struct RewindData(Result<Vec<RewindPoint>, String>);

impl RewindView {
    pub(crate) fn open(session: Arc<dyn ViewSession>, now: SystemTime) -> (Self, Vec<ViewEffect>) {
        let view = Self {
            session: Arc::clone(&session),
            points: Vec::new(),
            messages: ListView::new(vec![ListEntry::new(TextLine::plain("now"))]),
            step: None,
            theme: Theme::default(),
            status: "reading".to_owned(),
            now,
        };
        (view, vec![job(move || RewindData(session.rewind_points()))])
    }

    fn set_points(&mut self, points: Vec<RewindPoint>) {
        let mut entries: Vec<ListEntry> = Vec::new();
        for point in &points {
            let time = point.time.map(|time| short_time(time, self.now));
            let time = time.unwrap_or_default();
            let mut label = TextLine::plain(&format!("{time} {}", quoted(&point.text, 60)));
            if !point.files.is_empty() {
                let files = format!("  since then: {}", changed_files_text(&point.files));
                label.push(&files, self.theme.faint);
            }
            let mut entry = ListEntry::new(label);
            let lines = TextLine::lines(&point.text, TextStyle::default());
            entry.detail = lines;
            entries.push(entry);
        }
        entries.push(ListEntry::new(TextLine::plain("now")));
        let now = entries.len() - 1;
        self.messages.replace(entries);
        self.messages.choose(now);
        self.points = points;
    }

    /// Returns the actions for a message and their effects.
    fn choices(&self, point: &RewindPoint) -> ListView {
        let files = match point.files.len() {
            0 => "no file has changed since".to_owned(),
            _ => format!("files go back: {}", changed_files_text(&point.files)),
        };
        let entries = KINDS.iter().map(|kind| {
            let (name, does) = match kind {
                RewindKind::Both => (
                    "conversation and files",
                    format!("drops newer messages; {files}"),
                ),
                RewindKind::Conversation => (
                    "conversation",
                    "drops newer messages; files stay".to_owned(),
                ),
                RewindKind::Files => ("files", format!("the conversation stays; {files}")),
                RewindKind::Summary => (
                    "summary from here",
                    "newer messages become a summary; files stay".to_owned(),
                ),
            };
            let mut label = TextLine::plain(name);
            label.push(&format!("  {does}"), self.theme.faint);
            let mut entry = ListEntry::new(label);
            if matches!(kind, RewindKind::Both | RewindKind::Files) {
                let lines = point.files.iter().map(|file| {
                    let text =
                        format!("{}  +{} -{}", file.path.display(), file.added, file.removed);
                    TextLine::plain(&text)
                });
                entry.detail = lines.collect();
                entry.is_open = point.files.len() <= 5;
            }
            entry
        });
        ListView::new(entries.collect())
    }

    fn act(&mut self, point: &RewindPoint, kind: RewindKind) -> ViewOutcome {
        let (session, uuid) = (Arc::clone(&self.session), point.uuid);
        let mut effects = vec![job(move || session.rewind_to(uuid, kind))];
        if matches!(kind, RewindKind::Both | RewindKind::Conversation) {
            effects.push(ViewEffect::SetDraft(point.text.clone()));
        }
        ViewOutcome::Close(effects)
    }
}

impl FullScreenView for RewindView {
    fn rows(&mut self, look: &UiStyle) -> Vec<TextLine> {
        self.theme = look.theme.clone();
        if let Some((point, list)) = &mut self.step {
            let title = TextLine::styled(
                &format!("Rewind to {}", quoted(&point.text, 50)),
                look.theme.heading,
            );
            return list.rows(
                &title,
                " Enter rewind (/undo restores files)  Esc back",
                look,
            );
        }
        let mut title = TextLine::styled("Rewind", look.theme.heading);
        title.push(&format!("  {}", self.status), look.theme.faint);
        self.messages.rows(&title, " Enter choose  / n N  q", look)
    }

    fn key(&mut self, key: Key) -> ViewOutcome {
        if let Some((point, list)) = &mut self.step {
            return match list.key(key) {
                ListStep::Close => {
                    self.step = None;
                    stay()
                }
                ListStep::Enter(number) => {
                    let point = point.clone();
                    match KINDS.get(number) {
                        Some(kind) => self.act(&point, *kind),
                        None => stay(),
                    }
                }
                _ => stay(),
            };
        }
        match self.messages.key(key) {
            ListStep::Close => close(),
            ListStep::Enter(number) => match self.points.get(number).cloned() {
                Some(point) => {
                    let choices = self.choices(&point);
                    self.step = Some((point, choices));
                    stay()
                }
                // At `now` there is nothing to rewind.
                None => close(),
            },
            ListStep::Copy(text) => ViewOutcome::Stay(vec![ViewEffect::Copy(text)]),
            ListStep::Edit(text) => ViewOutcome::Stay(vec![ViewEffect::Edit(text)]),
            _ => stay(),
        }
    }

    fn loaded(&mut self, data: Box<dyn Any + Send>) -> ViewOutcome {
        if let Ok(data) = data.downcast::<RewindData>() {
            match data.0 {
                Ok(points) => {
                    self.status = "Enter at now changes nothing".to_owned();
                    self.set_points(points);
                }
                Err(why) => self.status = why,
            }
        }
        stay()
    }
}
