//! The session's own `/tmp` and `/var/tmp`.
//!
//! Confined commands of a session see folders of the session there, and not the machine's files. A
//! path below these directories therefore means a file of the session if one exists, and otherwise
//! the file of the machine, which asks like every path outside. Files of the session are treated
//! like those of a working directory.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
};

use haft_contract::{ConfinementProfile, PermissionMode};
use haft_settings::real_path;

use super::{
    CallFacts, Policy, TouchedPath, sandbox,
    shell_facts::{PathAccess, PathLocation, PathUse},
};

/// The directories that a session can have as its own.
pub const PRIVATE_DIRECTORIES: [&str; 2] = ["/tmp", "/var/tmp"];

/// The maximum number of links on a path; the kernel has the same limit.
const MAX_LINKS: usize = 40;

/// The private directories of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivateTmp {
    /// Each directory as commands name it, and the folder that it is.
    directories: Vec<(PathBuf, PathBuf)>,
    /// Paths that are always those of the machine: working directories, the home.
    shown: Vec<PathBuf>,
}

/// The use of a path that decides between a file of the session and one of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathPurpose {
    /// Any use by a file tool, or a read by a command.
    Any,
    /// A command writes the path.
    CommandWrite,
}

impl PrivateTmp {
    /// Returns the private directories of a session with this policy. `directories` are pairs of the
    /// path that commands use, and the folder that it is.
    pub fn new(directories: Vec<(PathBuf, PathBuf)>, policy: &Policy) -> Self {
        let writable = sandbox::session_paths(policy);
        let is_open = |path: &Path| writable.iter().any(|open| path.starts_with(open));
        let kept = directories.into_iter();
        let kept = kept.filter(|(path, _)| !policy.sandbox.files_open && !is_open(path));
        let shown = policy.readable.iter().chain(&policy.home);
        Self {
            directories: kept.collect(),
            shown: shown.cloned().chain(writable).collect(),
        }
    }

    /// Returns the private directories of a new session, whose folders are empty.
    pub fn for_new_session(policy: &Policy) -> Self {
        // haft creates no folder of this name.
        let folder = Path::new("/tmp/haft-tmp-");
        let missing = |path: &&str| {
            let name = path.replace('/', "-");
            (PathBuf::from(path), folder.join(name))
        };
        Self::new(PRIVATE_DIRECTORIES.iter().map(missing).collect(), policy)
    }

    /// Returns each directory as commands name it, and the folder that it is.
    pub fn directories(&self) -> &[(PathBuf, PathBuf)] {
        &self.directories
    }

    /// Returns the path that commands use for a file of the session.
    fn command_path(&self, place: &Path) -> Option<PathBuf> {
        self.directories.iter().find_map(|(path, folder)| {
            let rest = place.strip_prefix(folder).ok()?;
            Some(path.components().chain(rest.components()).collect())
        })
    }

    /// Returns whether a real path is a file of the session.
    pub(super) fn holds(&self, real: &Path) -> bool {
        let mut folders = self.directories.iter().map(|(_, folder)| folder);
        folders.any(|folder| real_path::is_below(real, folder))
    }

    /// Returns whether this path may mean a file of the session.
    fn concerns(&self, touched: &TouchedPath) -> bool {
        let mut directories = self.directories.iter();
        directories.any(|(path, _)| {
            real_path::is_below(&touched.given, path) || real_path::is_below(&touched.real, path)
        })
    }

    /// Returns the folder that contains the session's file for a path, and that file. `None` if the
    /// path is not below a private directory, or always that of the machine.
    fn counterpart(&self, path: &Path) -> Option<(&Path, PathBuf)> {
        if self.shown.iter().any(|shown| path.starts_with(shown)) {
            return None;
        }
        let (directory, folder) = self
            .directories
            .iter()
            .find(|(directory, _)| path.starts_with(directory))?;
        let rest = path.strip_prefix(directory).ok()?;
        // The mount point of something of the machine.
        let first = rest.components().next();
        if first.is_some_and(|first| is_mount_point(&folder.join(first))) {
            return None;
        }
        // Without a slash at the end.
        let file = match rest.as_os_str().is_empty() {
            true => folder.clone(),
            false => folder.join(rest),
        };
        Some((folder, file))
    }

    /// Returns the place on the machine of a path that a command uses, if it means a file of the
    /// session. Links in the path above it must be resolved.
    fn private_place(&self, path: &Path, purpose: PathPurpose) -> Option<PathBuf> {
        let (folder, file) = self.counterpart(path)?;
        if file == folder || exists(&file) {
            return Some(file);
        }
        if exists(path) {
            let is_private = purpose == PathPurpose::CommandWrite
                && file
                    .parent()
                    .is_some_and(|above| above == folder || above.is_dir());
            return is_private.then_some(file);
        }
        // A new file: of the session, unless only the machine has a directory for it. The folder may
        // not exist yet.
        let missing = |path: &Path, end: &Path| {
            let above = path.ancestors().skip(1);
            above
                .take_while(|above| *above != end && !exists(above))
                .count()
        };
        let is_private = missing(&file, folder) <= missing(path, Path::new("/"));
        is_private.then_some(file)
    }

    /// Returns the real path of a path that a command or file tool uses: links are resolved as a
    /// command sees them. `None` if the machine's own resolution is right.
    fn resolve(&self, given: &Path, purpose: PathPurpose) -> Option<PathBuf> {
        let mut real = PathBuf::from("/");
        let mut rest = names(given);
        let mut links = 0;
        let mut is_private = false;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                real.pop();
                continue;
            }
            let next = real.join(name);
            let place = self.private_place(&next, PathPurpose::Any);
            is_private |= place.is_some();
            match fs::read_link(place.as_deref().unwrap_or(&next)) {
                Ok(target) if links < MAX_LINKS => {
                    links += 1;
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    for name in names(&target).into_iter().rev() {
                        rest.push_front(name);
                    }
                }
                _ => real = next,
            }
        }
        match self.private_place(&real, purpose) {
            Some(place) => Some(place),
            // A link of the session led to a file of the machine.
            None if is_private => Some(real_path::resolve_links(&real)),
            None => None,
        }
    }
}

/// Returns whether the entry was created as the mount point of a path of the machine.
fn is_mount_point(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|found| !found.is_symlink() && found.permissions().mode() & 0o7777 == 0)
}

/// Returns whether something is at this path, also a symlink that leads nowhere.
fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

impl CallFacts {
    /// Returns whether a path of this call may mean a file in a private directory.
    pub fn names_private_directory(&self) -> bool {
        let is_below = |path: &Path| {
            let mut directories = PRIVATE_DIRECTORIES.iter();
            directories.any(|directory| path.starts_with(directory))
        };
        let of_shell = self.shell.iter().flat_map(|shell| shell.paths.iter());
        let mut touched = of_shell.flatten().flat_map(PathUse::places);
        let mut listed = self.reads.iter().chain(&self.writes);
        let concerns = |one: &TouchedPath| is_below(&one.given) || is_below(&one.real);
        listed.any(concerns) || touched.any(concerns)
    }

    /// Resolves the paths of a call that mean files of the session. Does nothing for a command that
    /// sees the machine's `/tmp`, because it would not be confined.
    pub fn resolve_private_tmp(&mut self, policy: &Policy) {
        let Some(private) = policy.private_tmp.as_deref() else {
            return;
        };
        for touched in self.reads.iter_mut().chain(&mut self.writes) {
            private.apply(touched, PathPurpose::Any);
        }
        let is_confined = !policy.sandbox.unconfined
            && sandbox::profile(policy, self)
                .is_some_and(|(profile, _)| profile != ConfinementProfile::Full);
        let Some(shell) = self.shell.as_mut().filter(|_| is_confined) else {
            return;
        };
        let mut written: Vec<PathBuf> = Vec::new();
        for path in shell.paths.iter_mut().flatten() {
            if !matches!(path.access, PathAccess::Write(_)) {
                continue;
            }
            for touched in path.places_mut() {
                private.apply(touched, PathPurpose::CommandWrite);
                if private.holds(&touched.real) {
                    written.push(touched.given.clone());
                }
            }
        }
        for path in shell.paths.iter_mut().chain(&mut shell.stored).flatten() {
            if matches!(path.access, PathAccess::Write(_)) {
                continue;
            }
            for touched in path.places_mut() {
                // The line itself creates the file that it reads.
                let purpose = match written.contains(&touched.given) {
                    true => PathPurpose::CommandWrite,
                    false => PathPurpose::Any,
                };
                private.apply(touched, purpose);
            }
        }
    }

    /// Returns the paths of a file tool that mean other files than those of the machine: each as given,
    /// and its place. To be called after [`Self::resolve_private_tmp`].
    pub fn private_places(&self, policy: &Policy) -> Vec<(PathBuf, PathBuf)> {
        let Some(private) = policy.private_tmp.as_deref() else {
            return Vec::new();
        };
        let touched = self.reads.iter().chain(&self.writes);
        touched
            .filter(|touched| touched.given != touched.real && private.concerns(touched))
            .filter(|touched| {
                let real = private.resolve(&touched.given, PathPurpose::Any);
                real.as_ref() == Some(&touched.real)
            })
            .map(|touched| (touched.given.clone(), touched.real.clone()))
            .collect()
    }

    /// Names files of the session as commands do, so that rules apply to these paths.
    pub fn name_private_files(&mut self, policy: &Policy) {
        let Some(private) = policy.private_tmp.as_deref() else {
            return;
        };
        for touched in self.reads.iter_mut().chain(&mut self.writes) {
            if let Some(path) = private.command_path(&touched.given) {
                touched.given = path;
            }
        }
    }

    /// Returns whether the call uses a file of the session's `/tmp`. Only in a full sandbox does its
    /// path mean this file.
    pub fn uses_private_tmp(&self, policy: &Policy) -> bool {
        let of_shell = self.shell.iter().flat_map(|shell| shell.paths.iter());
        let mut touched = of_shell.flatten().flat_map(PathUse::places);
        touched.any(|touched| policy.is_private(&touched.real))
    }
}

impl PrivateTmp {
    fn apply(&self, touched: &mut TouchedPath, purpose: PathPurpose) {
        if self.concerns(touched)
            && let Some(real) = self.resolve(&touched.given, purpose)
        {
            touched.real = real;
        }
    }
}

impl PathUse {
    /// Returns the paths of this location.
    pub(super) fn places(&self) -> &[TouchedPath] {
        match &self.place {
            PathLocation::Known(places) | PathLocation::Below(Some(places)) => places,
            PathLocation::Below(None) => &[],
        }
    }

    fn places_mut(&mut self) -> &mut [TouchedPath] {
        match &mut self.place {
            PathLocation::Known(places) | PathLocation::Below(Some(places)) => places,
            PathLocation::Below(None) => &mut [],
        }
    }
}

impl Policy {
    /// Returns whether a real path is a file of the session's own `/tmp`.
    pub(super) fn is_private(&self, real: &Path) -> bool {
        let private = self.private_tmp.as_deref();
        private.is_some_and(|private| private.holds(real))
    }

    /// Returns whether commands may write files of the session's own `/tmp` without asking.
    pub(super) fn may_write_private(&self) -> bool {
        self.private_tmp.is_some() && self.mode != PermissionMode::Plan
    }
}
