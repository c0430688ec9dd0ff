//! Settings files that change while a session runs: which of them, and what they say then.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
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
    /// Those that have fixed places, each with its folder.
    files: Vec<(NamedFile, usize)>,
    /// Their folders, each once; the first is the administrator's.
    folders: Vec<PathBuf>,
    seen: Mutex<Vec<SeenFile>>,
}

/// What hooks know the administrator's files by.
pub const POLICY: &str = "policy_settings";

/// A file, with the name that hooks know its scope by.
type NamedFile = (&'static str, PathBuf);

/// What tells one version of a file from another without reading it: which file it is, when its
/// content and when anything about it changed, and how long it is.
type Stamp = (u64, [i64; 4], u64);

/// A file that was there when it was looked for last.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeenFile {
    named: NamedFile,
    stamp: Stamp,
}

/// One that has seen as much: every copy of a session's context is watched by itself.
impl Clone for Watch {
    fn clone(&self) -> Self {
        Self {
            places: self.places.clone(),
            flags: self.flags.clone(),
            files: self.files.clone(),
            folders: self.folders.clone(),
            seen: Mutex::new(self.seen().clone()),
        }
    }
}

impl Watch {
    /// Watches from now on.
    pub fn new(places: SettingsPlaces, flags: Flags) -> Self {
        let mut folders = vec![places.managed.clone()];
        let mut folder_of = |file: &Path| {
            let folder = file.parent().unwrap_or(Path::new("/"));
            let known = folders.iter().position(|known| known == folder);
            known.unwrap_or_else(|| {
                folders.push(folder.to_path_buf());
                folders.len() - 1
            })
        };
        let files = fixed(&places, &flags).into_iter();
        let files = files.map(|named| {
            let folder = folder_of(&named.1);
            (named, folder)
        });
        let watch = Self {
            files: files.collect(),
            folders,
            places,
            flags,
            seen: Mutex::default(),
        };
        let now = watch.look();
        *watch.seen() = now;
        watch
    }

    /// The files that have changed since the last look, each with the name that hooks know its scope
    /// by; a few `stat` calls.
    pub fn changed(&self) -> Vec<(&'static str, PathBuf)> {
        let now = self.look();
        let mut seen = self.seen();
        if *seen == now {
            return Vec::new();
        }
        let before = std::mem::replace(&mut *seen, now.clone());
        drop(seen);
        let changed = now.iter().filter(|file| !before.contains(file));
        let is_gone = |file: &&SeenFile| now.iter().all(|other| other.named != file.named);
        let gone = before.iter().filter(is_gone);
        changed.chain(gone).map(|file| file.named.clone()).collect()
    }

    /// What the files say now.
    pub fn load(&self) -> Settings {
        let mut settings = Settings::load(self.places.clone(), &self.flags, Trust::default());
        // What is not trusted must not stand in the way of what is stricter.
        settings.trust = Trust::of(&self.places, &self.flags, &settings.running_things());
        settings
    }

    /// The files that are there now. This is done before every turn, and mostly there are none: a folder is looked for
    /// before the files in it.
    fn look(&self) -> Vec<SeenFile> {
        let mut found = Vec::new();
        let mut look = |named: &NamedFile| {
            let stamp = stamp(&named.1);
            found.extend(stamp.map(|stamp| SeenFile {
                named: named.clone(),
                stamp,
            }));
        };
        // One that may not be looked into may hold anything.
        let is_there = |folder: &PathBuf| folder.try_exists().unwrap_or(true);
        let are_there: Vec<bool> = self.folders.iter().map(is_there).collect();
        for (named, folder) in &self.files {
            if are_there[*folder] {
                look(named);
            }
        }
        if are_there[0] {
            for file in files::drop_ins(&self.places.managed) {
                look(&(POLICY, file));
            }
        }
        found
    }

    fn seen(&self) -> MutexGuard<'_, Vec<SeenFile>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamp(file: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(file).ok()?;
    let times = [
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ];
    Some((metadata.ino(), times, metadata.len()))
}

/// The files whose places are known when a session begins.
fn fixed(places: &SettingsPlaces, flags: &Flags) -> Vec<NamedFile> {
    let (local, project, user) = ("local_settings", "project_settings", "user_settings");
    let mut fixed = vec![(POLICY, files::managed_base(places))];
    let root = files::local_root(places);
    if root != places.cwd {
        fixed.push((local, root.join(LOCAL)));
    }
    fixed.extend([
        (local, places.cwd.join(LOCAL)),
        (project, places.cwd.join(".claude/settings.json")),
        (user, places.user.join("settings.json")),
    ]);
    // The one of the command line is the user's own.
    let given = flags.settings.as_ref();
    fixed.extend(given.map(|given| (user, places.cwd.join(given))));
    fixed
}
