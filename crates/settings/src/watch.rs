//! Settings files that change while a session runs: which of them, and what they say then.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use super::{
    Flags, Settings, SettingsPlaces, Trust,
    files::{self, LOCAL},
};
/// Checks whether settings files have changed.
#[derive(Debug)]
pub struct Watch {
    places: SettingsPlaces,
    flags: Flags,
    seen: Mutex<Vec<Stamp>>,
}

/// What hooks know the administrator's files by.
pub const POLICY: &str = "policy_settings";

/// What tells one version of a file from another without reading it: which file it is, when its
/// content and when anything about it changed, and how long it is.
type Stamp = Option<(PathBuf, u64, [i64; 4], u64)>;

/// One that has seen as much: every copy of a session's context is watched by itself.
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
    pub fn changed(&self) -> Vec<(&'static str, PathBuf)> {
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

    /// What the files say now.
    pub fn load(&self) -> Settings {
        let mut settings = Settings::load(self.places.clone(), &self.flags, Trust::default());
        // What is not trusted must not stand in the way of what is stricter.
        settings.trust = Trust::of(&self.places, &self.flags, &settings.running_things());
        settings
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
        let root = files::local_root(&self.places);
        if root != self.places.cwd {
            files.push((local, root.join(LOCAL)));
        }
        files.extend([
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
