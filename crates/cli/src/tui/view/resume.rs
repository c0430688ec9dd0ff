//! `/resume`: lists the sessions of this folder or of all folders.

use std::{any::Any, io, path::PathBuf, sync::Arc, time::SystemTime};

use haft_host::{Environment, SessionEntry, session_entries};
use haft_terminal::{Key, KeyCode, TextLine, Theme};

use super::{
    close,
    detail::{quoted, short_time},
    job,
    list::{ListEntry, ListStep, ListView},
    stay,
};
use crate::tui::{
    overlay::{FullScreenView, ViewEffect, ViewOutcome},
    ui_style::UiStyle,
};

type SessionLister = Arc<dyn Fn(bool) -> io::Result<Vec<SessionEntry>> + Send + Sync>;

/// The sessions that can be resumed, newest first.
pub(crate) struct ResumeView {
    lister: SessionLister,
    list: ListView,
    sessions: Vec<SessionEntry>,
    /// Whether the sessions of all folders are listed.
    all: bool,
    theme: Theme,
    status: String,
    now: SystemTime,
}

struct ResumeData {
    all: bool,
    found: io::Result<Vec<SessionEntry>>,
}

impl ResumeView {
    pub(crate) fn open(
        cwd: PathBuf,
        environment: Environment,
        now: SystemTime,
    ) -> (Self, Vec<ViewEffect>) {
        let lister = move |all| session_entries(&environment, &cwd, all);
        Self::with(Arc::new(lister), now)
    }

    fn with(lister: SessionLister, now: SystemTime) -> (Self, Vec<ViewEffect>) {
        let view = Self {
            lister,
            list: ListView::new(Vec::new()),
            sessions: Vec::new(),
            all: false,
            theme: Theme::default(),
            status: "reading".to_owned(),
            now,
        };
        let effects = vec![view.read()];
        (view, effects)
    }

    fn read(&self) -> ViewEffect {
        let (lister, all) = (Arc::clone(&self.lister), self.all);
        job(move || ResumeData {
            all,
            found: lister(all),
        })
    }

    fn entry(&self, session: &SessionEntry) -> ListEntry {
        let about = session.title.as_ref().or(session.first_prompt.as_ref());
        let about = about.map_or_else(|| "(no messages)".to_owned(), |text| quoted(text, 60));
        let time = short_time(session.changed, self.now);
        let mut label = TextLine::plain(&format!("{time} {about}"));
        if let Some(cwd) = session.cwd.as_ref().filter(|_| self.all) {
            label.push(&format!("  {}", cwd.display()), self.theme.faint);
        }
        let mut entry = ListEntry::new(label);
        let id = TextLine::styled(&session.id.to_string(), self.theme.faint);
        entry.detail = vec![id];
        let first = session.first_prompt.as_deref().unwrap_or_default();
        entry
            .detail
            .extend(TextLine::lines(first, self.theme.faint));
        entry
    }
}

impl FullScreenView for ResumeView {
    fn rows(&mut self, look: &UiStyle) -> Vec<TextLine> {
        self.theme = look.theme.clone();
        let what = if self.all {
            "all folders"
        } else {
            "this folder"
        };
        let mut title = TextLine::styled(&format!("Resume, {what}"), look.theme.heading);
        title.push(&format!("  {}", self.status), look.theme.faint);
        let hint = " Enter resume  Tab all folders  / n N  q";
        self.list.rows(&title, hint, look)
    }

    fn key(&mut self, key: Key) -> ViewOutcome {
        match self.list.key(key) {
            ListStep::Close => close(),
            ListStep::Enter(number) => match self.sessions.get(number) {
                Some(session) => {
                    ViewOutcome::Close(vec![ViewEffect::Resume(session.id.to_string())])
                }
                None => stay(),
            },
            ListStep::Copy(text) => ViewOutcome::Stay(vec![ViewEffect::Copy(text)]),
            ListStep::Edit(text) => ViewOutcome::Stay(vec![ViewEffect::Edit(text)]),
            ListStep::Other if key.code == KeyCode::Tab => {
                self.all = !self.all;
                self.status = "reading".to_owned();
                ViewOutcome::Stay(vec![self.read()])
            }
            _ => stay(),
        }
    }

    fn loaded(&mut self, data: Box<dyn Any + Send>) -> ViewOutcome {
        let data = data.downcast::<ResumeData>();
        // Ignores the result of an outdated request.
        if let Ok(data) = data
            && data.all == self.all
        {
            match data.found {
                Ok(sessions) => {
                    let entries = sessions.iter().map(|session| self.entry(session)).collect();
                    self.status = match sessions.len() {
                        1 => "1 session".to_owned(),
                        count => format!("{count} sessions"),
                    };
                    self.list.replace(entries);
                    self.list.choose(0);
                    self.sessions = sessions;
                }
                Err(error) => self.status = error.to_string(),
            }
        }
        stay()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haft::SessionId;

    use super::*;
    use crate::tui::view::test_screen::{key, keys, run_jobs, shown, test_style};

    fn entry(number: u128, title: Option<&str>, cwd: &str) -> SessionEntry {
        SessionEntry {
            id: SessionId(uuid::Uuid::from_u128(number)),
            title: title.map(str::to_owned),
            first_prompt: Some(format!("prompt {number}\nof two lines")),
            changed: SystemTime::UNIX_EPOCH + Duration::from_secs(60 * number as u64),
            path: "/t".into(),
            cwd: Some(cwd.into()),
        }
    }

    #[test]
    fn sessions_of_this_folder_and_of_all() {
        let lister = |all: bool| {
            let mut found = vec![entry(2, Some("Basket"), "/p"), entry(1, None, "/p")];
            if all {
                found.insert(0, entry(3, None, "/home/me/other"));
            }
            Ok(found)
        };
        let (mut view, effects) = ResumeView::with(Arc::new(lister), SystemTime::UNIX_EPOCH);
        let (wide, narrow) = (test_style(80, 8), test_style(40, 8));
        let reading = shown(&mut view, &wide);
        run_jobs(&mut view, effects);
        let here = shown(&mut view, &wide);
        key(&mut view, Key::plain(KeyCode::Tab));
        let all = shown(&mut view, &wide);
        let small = shown(&mut view, &narrow);
        insta::assert_snapshot!([reading, here, all, small].join("\n=====\n"));
        keys(&mut view, "j");
        let ViewOutcome::Close(effects) = view.key(Key::RETURN) else {
            panic!("it stays")
        };
        let id = uuid::Uuid::from_u128(2).to_string();
        assert!(matches!(&effects[..], [ViewEffect::Resume(taken)] if *taken == id));
    }
}
