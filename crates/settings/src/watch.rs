//! Detection of changes of settings files while a session runs.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    Settings, SettingsFlags, SettingsPlaces, TrustState,
    files::{self, LOCAL},
};

/// Checks whether settings files have changed.
#[derive(Debug)]
pub struct SettingsWatch {
    places: SettingsPlaces,
    flags: SettingsFlags,
    /// The files with fixed paths, each with the index of its folder.
    files: Vec<(NamedFile, usize)>,
    /// The folders of these files, without duplicates; the first is the administrator's.
    folders: Vec<PathBuf>,
    seen: Mutex<Vec<SeenFile>>,
}

/// The name of the administrator's files for hooks.
pub const POLICY: &str = "policy_settings";

/// A file with the name of its scope for hooks.
type NamedFile = (&'static str, PathBuf);

/// The stamp of a file: inode, times of the last content and status change, and length.
type SettingsStamp = (u64, [i64; 4], u64);

/// A file that existed at the last check.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeenFile {
    named: NamedFile,
    stamp: SettingsStamp,
}

/// A clone starts with the same state and then checks independently. Each copy of the session context
/// has its own clone.
impl Clone for SettingsWatch {
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

impl SettingsWatch {
    /// Starts with the present state of the files.
    pub fn new(places: SettingsPlaces, flags: SettingsFlags) -> Self {
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
        let now = watch.scan();
        *watch.seen() = now;
        watch
    }

    /// Returns the files that have changed since the last call, each with the name of its scope for
    /// hooks; costs a few `stat` calls.
    pub fn changed(&self) -> Vec<(&'static str, PathBuf)> {
        let now = self.scan();
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

    /// Loads the present settings.
    pub fn load(&self) -> Settings {
        let mut settings = Settings::load(self.places.clone(), &self.flags, TrustState::default());
        // Trust is determined again, so that an untrusted file cannot prevent stricter settings.
        settings.apply_trust(&self.flags);
        settings
    }

    /// Returns the files that exist now. This runs before every turn, and mostly none exists, so
    /// a folder is checked before the files in it.
    fn scan(&self) -> Vec<SeenFile> {
        let mut found = Vec::new();
        let mut look = |named: &NamedFile| {
            let stamp = stamp(&named.1);
            found.extend(stamp.map(|stamp| SeenFile {
                named: named.clone(),
                stamp,
            }));
        };
        // A folder that cannot be accessed may contain any file.
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

fn stamp(file: &Path) -> Option<SettingsStamp> {
    let metadata = fs::metadata(file).ok()?;
    let times = [
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ];
    Some((metadata.ino(), times, metadata.len()))
}

/// Returns the files whose paths are known when a session starts.
fn fixed(places: &SettingsPlaces, flags: &SettingsFlags) -> Vec<NamedFile> {
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
    // The file of the command line belongs to the user.
    let given = flags.settings.as_ref();
    fixed.extend(given.map(|given| (user, places.cwd.join(given))));
    fixed
}
