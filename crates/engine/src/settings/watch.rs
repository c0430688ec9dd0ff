//! Settings files that change while a session runs.
//!
//! A session may become stricter because a file changed, never looser. From the next turn on a rule
//! counts that appears and denies or asks, and one that allowed no longer does if it disappears. What
//! would loosen waits for the next session: rules that allow, the end of rules that deny. The same
//! goes for how commands are confined.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use haft_contract::PermissionMode;
use serde_json::Value;

use super::{
    Flags, Settings, SettingsPlaces, Trust,
    files::{self, LOCAL},
};
use crate::{
    SessionContext,
    permissions::{List, rules::Rule},
};

/// Looks whether settings files have changed.
#[derive(Debug)]
pub struct Watch {
    places: SettingsPlaces,
    flags: Flags,
    seen: Mutex<Vec<Stamp>>,
}

/// What hooks know the administrator's files by.
pub(crate) const POLICY: &str = "policy_settings";

/// What tells one version of a file from another without reading it: which file it is, when its
/// content and when anything about it changed, and how long it is.
type Stamp = Option<(PathBuf, u64, [i64; 4], u64)>;

/// One that has seen as much: who has a copy of a session's context watches over it for themselves.
impl Clone for Watch {
    fn clone(&self) -> Self {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            places: self.places.clone(),
            flags: self.flags.clone(),
            seen: Mutex::new(seen.clone()),
        }
    }
}

impl Watch {
    /// Watches from now on.
    pub fn new(places: SettingsPlaces, flags: Flags) -> Self {
        let watch = Self {
            places,
            flags,
            seen: Mutex::default(),
        };
        let now = watch.stamps();
        *watch.seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
        watch
    }

    /// The files that have changed since the last look, each with the name that hooks know its scope
    /// by; a few `stat` calls.
    pub(crate) fn changed(&self) -> Vec<(&'static str, PathBuf)> {
        let now = self.stamps();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == now {
            return Vec::new();
        }
        let before = std::mem::replace(&mut *seen, now.clone());
        let files = self.files().into_iter().enumerate();
        let changed = files.filter(|(at, _)| before.get(*at) != now.get(*at));
        changed.map(|(_, (source, file))| (source, file)).collect()
    }

    /// Makes a session as strict as the files have become.
    pub(crate) fn tighten(&self, context: &mut SessionContext) {
        let mut settings = Settings::load(self.places.clone(), &self.flags, Trust::default());
        // What is not trusted must not stand in the way of what is stricter.
        settings.trust = Trust::of(&self.places, &self.flags, &settings.running_things());
        let mut read = settings.rules(&[], &[]);
        let rules = Arc::make_mut(&mut context.rules);
        // Whether a rule that allows still stands there is looked at, trusted or not: none is added.
        let standing = Standing::of(&settings);
        rules.retain(|rule| rule.list != List::Allow || standing.has(rule));
        read.retain(|rule| rule.list != List::Allow);
        rules.extend(read);
        // A file that is broken just now, in the middle of being edited, takes nothing away.
        let whole = !settings.broken;
        let sandbox = settings.sandbox();
        Arc::make_mut(&mut context.sandbox).tighten(sandbox, whole);
        if context.mode == PermissionMode::BypassPermissions && settings.bypass_is_disabled() {
            context.mode = PermissionMode::Default;
        }
    }

    fn stamps(&self) -> Vec<Stamp> {
        let stamp = |file: PathBuf| {
            let metadata = fs::metadata(&file).ok()?;
            let times = [
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime(),
                metadata.ctime_nsec(),
            ];
            Some((file, metadata.ino(), times, metadata.len()))
        };
        let files = self.files().into_iter();
        files.map(|(_, file)| stamp(file)).collect()
    }

    /// The files, each with the name that hooks know its scope by.
    fn files(&self) -> Vec<(&'static str, PathBuf)> {
        let (local, project, user) = ("local_settings", "project_settings", "user_settings");
        let managed = files::managed(&self.places).into_iter();
        let mut files: Vec<_> = managed.map(|file| (POLICY, file)).collect();
        files.extend([
            (local, files::local_root(&self.places).join(LOCAL)),
            (local, self.places.cwd.join(LOCAL)),
            (project, self.places.cwd.join(".claude/settings.json")),
            (user, self.places.user.join("settings.json")),
        ]);
        // The one of the command line is the user's own.
        let given = self.flags.settings.as_ref();
        files.extend(given.map(|given| (user, self.places.cwd.join(given))));
        files
    }
}

/// Rules that allow, as they are written now.
struct Standing<'a> {
    files: HashSet<&'a Path>,
    rules: HashSet<(&'a Path, &'a str)>,
}

impl<'a> Standing<'a> {
    fn of(settings: &'a Settings) -> Self {
        let mut standing = Self {
            files: HashSet::new(),
            rules: HashSet::new(),
        };
        for layer in &settings.layers {
            let Some(file) = layer.file.as_deref() else {
                continue;
            };
            standing.files.insert(file);
            let list = layer.document.value.pointer("/permissions/allow");
            let entries = list.and_then(Value::as_array).into_iter().flatten();
            let texts = entries.filter_map(Value::as_str).map(str::trim);
            standing.rules.extend(texts.map(|text| (file, text)));
        }
        standing
    }

    /// Is it still written where it was? A file that is broken just now, in the middle of being
    /// edited, takes nothing away.
    fn has(&self, rule: &Rule) -> bool {
        match rule.source.file.as_deref() {
            None => true,
            Some(file) if self.files.contains(file) => self.rules.contains(&(file, &rule.text)),
            Some(file) => file.exists(),
        }
    }
}
