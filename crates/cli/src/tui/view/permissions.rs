//! `/permissions`: lists the rules with their files, adds and removes rules, and tests command
//! lines.

use std::{any::Any, path::PathBuf, sync::Arc};

use haft::RuleList;
use haft_host::RuleInfo;
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

/// The marks of the text inputs.
const ADD: char = '+';
const TRY: char = '?';

/// The rules in force.
pub(crate) struct PermissionsView {
    session: Arc<dyn ViewSession>,
    list: ListView,
    rules: Vec<RuleInfo>,
    theme: Theme,
    status: String,
    /// The decision about the command line that was tested.
    explained: Vec<TextLine>,
}

/// The result of a job.
enum PermissionsData {
    Rules(Result<Vec<RuleInfo>, String>),
    Saved(Result<Option<PathBuf>, String>),
    Removed(Result<PathBuf, String>),
    Explained(String, Result<String, String>),
}

impl PermissionsView {
    pub(crate) fn open(session: Arc<dyn ViewSession>) -> (Self, Vec<ViewEffect>) {
        let view = Self {
            session,
            list: ListView::new(Vec::new()),
            rules: Vec::new(),
            theme: Theme::default(),
            status: "reading".to_owned(),
            explained: Vec::new(),
        };
        let effects = vec![view.read()];
        (view, effects)
    }

    fn read(&self) -> ViewEffect {
        let session = Arc::clone(&self.session);
        job(move || PermissionsData::Rules(session.rules()))
    }

    fn set_rules(&mut self, rules: Vec<RuleInfo>) {
        let mut entries: Vec<ListEntry> = rules.iter().map(|rule| self.entry(rule)).collect();
        if !self.explained.is_empty() {
            let mut tried = ListEntry::new(self.explained[0].clone());
            tried.detail = self.explained[1..].to_vec();
            tried.is_open = true;
            entries.push(tried);
        }
        self.list.replace(entries);
        self.rules = rules;
    }

    fn entry(&self, rule: &RuleInfo) -> ListEntry {
        let (list, style) = match rule.list {
            RuleList::Allow => ("allow", self.theme.success),
            RuleList::Ask => ("ask  ", self.theme.warning),
            RuleList::Deny => ("deny ", self.theme.failure),
        };
        let mut label = TextLine::styled(list, style);
        label.push(&format!(" {}", rule.rule), TextStyle::default());
        let place = match (&rule.file, rule.line) {
            (Some(file), Some(line)) => format!("{}:{line}", file.display()),
            (Some(file), None) => file.display().to_string(),
            (None, _) => rule.scope.clone(),
        };
        label.push(&format!("  {place}"), self.theme.faint);
        ListEntry::new(label)
    }

    /// Adds a rule: `allow Bash(npm *)`, or a rule alone, which is an allow rule.
    fn add(&self, typed: &str) -> Option<ViewEffect> {
        let typed = typed.trim();
        let (list, rule) = match typed.split_once(' ') {
            Some(("allow", rule)) => (RuleList::Allow, rule),
            Some(("ask", rule)) => (RuleList::Ask, rule),
            Some(("deny", rule)) => (RuleList::Deny, rule),
            _ => (RuleList::Allow, typed),
        };
        let rule = rule.trim().to_owned();
        let session = Arc::clone(&self.session);
        let keep = move || PermissionsData::Saved(session.save_rule(list, &rule));
        (!typed.is_empty()).then(|| job(keep))
    }

    fn explain(&self, typed: String) -> Option<ViewEffect> {
        let session = Arc::clone(&self.session);
        (!typed.trim().is_empty()).then(|| {
            job(move || {
                let explained = session.explain(typed.trim());
                PermissionsData::Explained(typed, explained)
            })
        })
    }
}

impl FullScreenView for PermissionsView {
    fn rows(&mut self, look: &UiStyle) -> Vec<TextLine> {
        self.theme = look.theme.clone();
        let mut title = TextLine::styled("Permissions", look.theme.heading);
        title.push(&format!("  {}", self.status), look.theme.faint);
        let hint = match look.is_narrow() {
            true => " a add  d remove  t try  q",
            false => " a add (allow Bash(npm *))  d remove  t try a command  / n N  y copy  q",
        };
        self.list.rows(&title, hint, look)
    }

    fn key(&mut self, key: Key) -> ViewOutcome {
        let step = self.list.key(key);
        let rule = self.rules.get(self.list.chosen);
        let effect = match (step, key.typed(), rule) {
            (ListStep::Close, ..) => return close(),
            (ListStep::Copy(text), ..) => Some(ViewEffect::Copy(text)),
            (ListStep::Edit(text), ..) => Some(ViewEffect::Edit(text)),
            (ListStep::Typed(ADD, typed), ..) => self.add(&typed),
            (ListStep::Typed(_, typed), ..) => self.explain(typed),
            (ListStep::Other, Some('a'), _) => {
                self.list.begin_text_input(ADD);
                None
            }
            (ListStep::Other, Some('t'), _) => {
                self.list.begin_text_input(TRY);
                None
            }
            (ListStep::Other, Some('d'), Some(rule)) => {
                let (session, rule) = (Arc::clone(&self.session), rule.clone());
                Some(job(move || {
                    PermissionsData::Removed(session.remove_rule(&rule))
                }))
            }
            _ => None,
        };
        ViewOutcome::Stay(effect.into_iter().collect())
    }

    fn loaded(&mut self, data: Box<dyn Any + Send>) -> ViewOutcome {
        let Ok(data) = data.downcast::<PermissionsData>() else {
            return stay();
        };
        match *data {
            PermissionsData::Rules(Ok(rules)) => {
                if self.status == "reading" {
                    self.status = String::new();
                }
                self.set_rules(rules);
                return stay();
            }
            PermissionsData::Saved(Ok(file)) => {
                self.status = match file {
                    Some(file) => format!("saved in {}", file.display()),
                    None => "applies to this session".to_owned(),
                };
            }
            PermissionsData::Removed(Ok(file)) => {
                self.status = format!("removed from {}", file.display());
            }
            PermissionsData::Explained(typed, explained) => {
                let (text, style) = match &explained {
                    Ok(text) => (text, TextStyle::default()),
                    Err(why) => (why, self.theme.failure),
                };
                let heading = TextLine::styled(&format!("? {typed}"), self.theme.accent);
                self.explained = vec![heading];
                self.explained.extend(TextLine::lines(text, style));
                let rules = std::mem::take(&mut self.rules);
                self.set_rules(rules);
                self.list.choose(usize::MAX);
                return stay();
            }
            PermissionsData::Rules(Err(why))
            | PermissionsData::Saved(Err(why))
            | PermissionsData::Removed(Err(why)) => {
                self.status = why;
                return stay();
            }
        }
        ViewOutcome::Stay(vec![self.read()])
    }
}
