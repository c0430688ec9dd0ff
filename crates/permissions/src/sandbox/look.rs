//! A look at what is there, for patterns and names that the kernel does not know.
//!
//! It is bounded: in a tree of more than [`MOST_DIRECTORIES`] directories the farthest are left out.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
};

use super::{
    super::{Policy, protected::is_telling, rules::PathPattern},
    control,
    paths::{around, outermost},
};
use haft_settings::resolve;

/// So many directories are looked through.
const MOST_DIRECTORIES: usize = 1_000;

/// And so many files.
const MOST_FILES: usize = 50_000;

/// A look at what is there.
pub(super) struct Look<'a> {
    hiding: Vec<&'a PathPattern>,
    locking: Vec<&'a PathPattern>,
    /// May not be read.
    pub(super) hidden: Vec<PathBuf>,
    /// May not be changed.
    pub(super) locked: Vec<PathBuf>,
    /// Decide what other programs run.
    pub(super) control: Vec<PathBuf>,
}

impl<'a> Look<'a> {
    /// Takes what names its paths by itself; the patterns are left.
    pub(super) fn new(hiding: Vec<&'a PathPattern>, locking: Vec<&'a PathPattern>) -> Self {
        let mut look = Self {
            hiding,
            locking,
            hidden: Vec::new(),
            locked: Vec::new(),
            control: Vec::new(),
        };
        // What is hidden may be missing now and come back while a command runs: then that is ended.
        for (patterns, found, missing) in [
            (&mut look.hiding, &mut look.hidden, true),
            (&mut look.locking, &mut look.locked, false),
        ] {
            patterns.retain(|pattern| match pattern.wholes() {
                Some(wholes) => {
                    let there = wholes.iter().filter(|path| missing || path.exists());
                    found.extend(there.map(|path| resolve::real(path)));
                    false
                }
                None => true,
            });
        }
        look
    }

    /// Looks through these directories for control files, and where patterns are left also through
    /// the directories they speak of.
    pub(super) fn walk(&mut self, writable: Vec<PathBuf>, policy: &Policy) {
        let mut waiting = VecDeque::new();
        for (path, controls) in self.starts(writable, policy) {
            let covered = |patterns: &[&PathPattern]| {
                let mut patterns = patterns.iter();
                patterns.any(|pattern| pattern.covers(&path))
            };
            if covered(&self.hiding) {
                self.hidden.push(path);
            } else if covered(&self.locking) {
                self.locked.push(path);
            } else if controls && (is_git(&path) || control::is_module(&path)) {
                self.control.extend(control::of_git(&resolve::real(&path)));
            } else if controls && control::is_control_folder(&path) {
                self.control.push(path);
            } else {
                waiting.push_back((path, controls));
            }
        }
        let (mut looked, mut seen) = (0, 0);
        while let Some((directory, controls)) = waiting.pop_front() {
            looked += 1;
            if looked > MOST_DIRECTORIES || seen > MOST_FILES {
                tracing::debug!(directory = %directory.display(), "not looked at any more");
                return;
            }
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                seen += 1;
                let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let path = entry.path();
                if self.finds(&path, is_dir, controls) || !is_dir {
                    continue;
                }
                let name = entry.file_name();
                if !control::INSTALLED
                    .iter()
                    .any(|installed| name == *installed)
                {
                    waiting.push_back((path, controls));
                }
            }
        }
    }

    /// Where to look, and whether for control files too.
    fn starts(&self, writable: Vec<PathBuf>, policy: &Policy) -> Vec<(PathBuf, bool)> {
        let writable = outermost(writable).into_iter();
        let writable = writable.filter(|path| path.is_dir());
        let mut starts: Vec<(PathBuf, bool)> = writable.map(|path| (path, true)).collect();
        if self.hiding.is_empty() {
            return starts;
        }
        for root in &policy.roots {
            if !starts.iter().any(|(path, _)| root.starts_with(path)) {
                starts.push((root.clone(), false));
            }
        }
        for stem in self.hiding.iter().flat_map(|pattern| pattern.stems()) {
            let wide = stem.parent().is_none() || policy.home.as_deref() == Some(stem);
            let known = starts
                .iter()
                .any(|(path, _)| path.starts_with(stem) || stem.starts_with(path));
            if !wide && !known {
                starts.push((stem.to_path_buf(), false));
            }
        }
        starts
    }

    /// Notes what the path is, if anything; then what is below it need not be looked at.
    fn finds(&mut self, path: &Path, is_dir: bool, controls: bool) -> bool {
        let covers = |patterns: &[&PathPattern]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| pattern.stops_at(path, is_dir))
        };
        if covers(&self.hiding) {
            self.hidden.push(resolve::real(path));
            return true;
        }
        if covers(&self.locking) {
            self.locked.push(resolve::real(path));
            return true;
        }
        if !path.file_name().is_some_and(is_telling) {
            return false;
        }
        if is_git(path) {
            if controls {
                self.control.extend(control::of_git(&resolve::real(path)));
            }
            return true;
        }
        if !controls {
            return false;
        }
        // What is above has been looked at already.
        let name = name_below(path);
        if is_dir && control::is_control_folder(&name) {
            // Worktrees in a folder of settings are places to work in.
            let worktrees = path.join("worktrees");
            match around(path, &[&worktrees]) {
                Some(others) if worktrees.is_dir() => self.control.extend(others),
                _ => {
                    self.control.push(path.to_path_buf());
                    return true;
                }
            }
            return false;
        }
        let is_control = control::is_control_file(&name);
        if is_control {
            self.control.push(resolve::real(path));
        }
        is_control
    }
}

/// The name with that of the directory it is in.
fn name_below(path: &Path) -> PathBuf {
    let directory = path.parent().and_then(Path::file_name);
    let names = directory.into_iter().chain(path.file_name());
    names.collect()
}

fn is_git(path: &Path) -> bool {
    let name = path.file_name();
    name.is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}
