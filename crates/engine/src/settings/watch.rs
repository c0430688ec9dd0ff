//! Settings files that change while a session runs.
//!
//! A session may become stricter because a file changed, never looser: a rule that appears counts
//! from the next turn on if it denies or asks, and one that disappears stays.

use std::{
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use super::{Flags, Places, Settings, Trust};
use crate::permissions::{List, Rules};

/// Looks whether settings files have changed.
#[derive(Debug)]
pub struct Watch {
    places: Places,
    flags: Flags,
    seen: Mutex<Vec<Stamp>>,
}

/// What tells one version of a file from another without reading it.
type Stamp = Option<(SystemTime, u64)>;

impl Watch {
    /// Watches from now on.
    pub fn new(places: Places, flags: Flags) -> Self {
        let watch = Self {
            places,
            flags,
            seen: Mutex::default(),
        };
        let now = watch.stamps();
        *watch.seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
        watch
    }

    /// Rules that deny or ask, if a file has changed since the last look. A few `stat` calls
    /// otherwise.
    pub fn tightened(&self) -> Option<Rules> {
        let now = self.stamps();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == now {
            return None;
        }
        *seen = now;
        let mut settings = Settings::load(self.places.clone(), &self.flags, Trust::default());
        let mut rules = settings.rules(&[], &[]);
        rules.retain(|rule| rule.list != List::Allow);
        Some(rules)
    }

    fn stamps(&self) -> Vec<Stamp> {
        self.files()
            .iter()
            .map(|file| {
                let metadata = fs::metadata(file).ok()?;
                Some((metadata.modified().ok()?, metadata.len()))
            })
            .collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        let local = super::files::local_root(&self.places);
        let mut files = vec![
            self.places.managed.join("managed-settings.json"),
            self.places.managed.join("managed-settings.d"),
            local.join(".claude/settings.local.json"),
            self.places.cwd.join(".claude/settings.local.json"),
            self.places.cwd.join(".claude/settings.json"),
            self.places.user.join("settings.json"),
        ];
        if let Some(given) = &self.flags.settings {
            files.push(self.places.cwd.join(given));
        }
        files
    }
}
