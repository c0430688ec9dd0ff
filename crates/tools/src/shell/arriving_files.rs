//! Control files that a command creates in directories that it has created itself, for example by
//! `git clone`. They are permitted, because haft does not use them until the user trusts the directory.

use std::{
    collections::HashMap,
    fs::{self, File},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_contract::{CallContext, ControlAccess, ControlAction, ControlFiles};
use haft_sandbox::{NameAction, NameUse, NewDirectory};
use haft_settings::UntrustedDirectories;

use super::profile;
use crate::paths::shown;

/// The maximum number of files that a result names.
const MAX_NAMED: usize = 20;

/// The maximum number of files and of their directories that are remembered.
const MAX_FILES: usize = 10_000;
const MAX_DIRECTORIES: usize = 256;

/// Other names in a directory from which haft takes instructions, or that make it a project.
const SOURCES: [&str; 4] = [".git", "claude.md", "claude.local.md", "agents.md"];

/// The control files that a command created in its own new directories.
pub(crate) struct ArrivingFiles {
    /// The record of these directories. `None`: no control file may arrive.
    untrusted: Option<Arc<UntrustedDirectories>>,
    created: Mutex<CreatedControlFiles>,
}

/// A control file.
#[derive(PartialEq, Eq)]
struct CreatedControlFile {
    /// The path of its directory when it was created.
    directory: PathBuf,
    /// Its path below that.
    below: PathBuf,
    /// Whether a note names it. An empty directory is not named.
    is_named: bool,
}

#[derive(Default)]
struct CreatedControlFiles {
    /// Files and directories.
    files: Vec<CreatedControlFile>,
    /// These directories, by their paths then: the command may move them.
    directories: HashMap<PathBuf, File>,
    /// Whether there were too many.
    is_incomplete: bool,
    /// The number of files that a note has named.
    reported: usize,
}

impl CreatedControlFiles {
    fn add(&mut self, path: &Path, directory: &Path, is_named: bool) {
        let file = CreatedControlFile {
            directory: directory.to_path_buf(),
            below: path.strip_prefix(directory).unwrap_or(path).to_path_buf(),
            is_named,
        };
        if self.files.contains(&file) {
            return;
        }
        if self.files.len() >= MAX_FILES {
            self.is_incomplete = true;
            return;
        }
        if !self.directories.contains_key(directory) {
            match File::open(directory) {
                Ok(open) if self.directories.len() < MAX_DIRECTORIES => {
                    self.directories.insert(directory.to_path_buf(), open);
                }
                _ => self.is_incomplete = true,
            }
        }
        self.files.push(file);
    }

    /// Returns the path that a file has now, if it exists.
    fn path_now(&self, file: &CreatedControlFile) -> Option<PathBuf> {
        let open = self.directories.get(&file.directory);
        let now = open.map(|open| fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd())));
        let now = now.and_then(Result::ok);
        let path = now.as_deref().unwrap_or(&file.directory).join(&file.below);
        path.symlink_metadata().is_ok().then_some(path)
    }
}

impl ArrivingFiles {
    pub(crate) fn for_call(cx: &CallContext) -> Self {
        let untrusted = cx.services.get::<UntrustedDirectories>().ok();
        if let Some(untrusted) = &untrusted {
            untrusted.prepare();
        }
        Self {
            untrusted,
            created: Mutex::default(),
        }
    }

    /// Returns whether a command may use a name in this way. Records the new directories before a
    /// control file is created in one.
    pub(crate) fn permits(&self, control: &ControlFiles, used: &NameUse) -> bool {
        if let NameAction::ReplaceDirectory { from } = &used.action {
            return !self.has_below(from) || profile::permits(control, used, true);
        }
        let untrusted = self.untrusted.as_ref();
        let Some(untrusted) = untrusted.filter(|_| !used.new_directories.is_empty()) else {
            return profile::permits(control, used, false);
        };
        if !profile::permits(control, used, true) {
            return false;
        }
        if matches!(used.action, NameAction::Remove { .. }) {
            return true;
        }
        let is_control = !profile::permits(control, used, false);
        let name = used.path.file_name().unwrap_or_default();
        if !is_control && !SOURCES.iter().any(|one| name.eq_ignore_ascii_case(one)) {
            return true;
        }
        // Directories with only control files, like `.cargo`, cannot be moved to other names.
        let is_control_directory = |directory: &&NewDirectory| {
            let action = ControlAction::MakeDirectory;
            !control.permits(&ControlAccess {
                path: &directory.path,
                action,
                settings: None,
                new_directory: None,
            })
        };
        let directories = used.new_directories.iter();
        let directories = directories.take_while(|one| !is_control_directory(one));
        let directories: Vec<&NewDirectory> = directories.collect();
        let Some(innermost) = directories.last() else {
            return !is_control;
        };
        let added = directories.iter().map(|one| (one.path.as_path(), one.id));
        let added = untrusted.add(added);
        if is_control {
            let is_named = !matches!(used.action, NameAction::MakeDirectory);
            self.lock().add(&used.path, &innermost.path, is_named);
        }
        added.is_ok() || !is_control
    }

    /// Returns whether one of the files is below a directory.
    fn has_below(&self, directory: &Path) -> bool {
        let created = self.lock();
        let mut paths = created
            .files
            .iter()
            .filter_map(|file| created.path_now(file));
        created.is_incomplete || paths.any(|path| path.starts_with(directory))
    }

    fn lock(&self) -> MutexGuard<'_, CreatedControlFiles> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the note about the files that were not named yet and exist, if any.
    pub(crate) fn next_note(&self, cwd: &Path) -> Option<String> {
        let mut created = self.lock();
        let new = created.files.iter().skip(created.reported);
        let new = new.filter(|file| file.is_named);
        let files: Vec<PathBuf> = new.filter_map(|file| created.path_now(file)).collect();
        created.reported = created.files.len();
        let named: Vec<String> = files
            .iter()
            .take(MAX_NAMED)
            .map(|path| shown(path, cwd))
            .collect();
        let mut named = named.join(", ");
        if named.is_empty() {
            return None;
        }
        if files.len() > MAX_NAMED {
            named += &format!(" and {} more", files.len() - MAX_NAMED);
        }
        Some(format!(
            "The command created files that decide what other programs run, in directories that it also \
             created: {named}. haft uses no settings, memory files or extensions there until the user \
             trusts the directory (`haft permissions trust`)."
        ))
    }
}
