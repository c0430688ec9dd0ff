//! Scans directories for paths that match patterns and names, because the kernel can protect only
//! paths.
//!
//! The scan for files that deny rules hide is limited only by [`MAX_SCAN_TIME`]: if a directory is
//! not scanned by then, the command must not start. The scan for control files is bounded
//! ([`MAX_CONTROL_DIRECTORIES`]), because the guard of a command also checks their names. For
//! directories that have not changed since the last scan, only the times are read ([`ScanCache`]).

use std::{
    collections::{HashSet, VecDeque},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use haft_contract::HomeControl;
use haft_settings::{git_repository, real_path};

use super::{
    super::{
        Policy, home_control::HomeRules, protected_files::may_be_control_name, rules::PathPattern,
    },
    control_files,
    paths::{around, outermost},
    scan_cache::{MatchReason, ScanCache, ScanListings, ScannedEntryKind},
};

/// The maximum number of directories that are scanned for control files.
const MAX_CONTROL_DIRECTORIES: usize = 1_000;

/// The maximum number of files that are scanned for control files.
const MAX_CONTROL_FILES: usize = 50_000;

/// The time limit of a scan for hidden files. A command whose scan takes longer is refused. The
/// cache keeps what was read, so that the next scan gets further.
const MAX_SCAN_TIME: Duration = Duration::from_secs(30);

/// One scan of directories, with the paths that it found.
pub(super) struct PathScan<'a> {
    hiding: Vec<&'a PathPattern>,
    locking: Vec<&'a PathPattern>,
    /// Paths that may not be read.
    pub(super) hidden: Vec<PathBuf>,
    /// Paths that may not be changed.
    pub(super) locked: Vec<PathBuf>,
    /// Paths that decide what other programs run.
    pub(super) control: Vec<PathBuf>,
    /// A directory that should have been scanned for hidden files, and was not.
    pub(super) unscanned: Option<PathBuf>,
    home: HomeControl,
}

/// A directory to scan.
struct ScanDirectory {
    /// The path under which it was found: links on the way are not resolved.
    path: PathBuf,
    /// Whether to scan for control files, too.
    controls: bool,
    /// Whether a link leads here.
    linked: bool,
}

impl<'a> PathScan<'a> {
    /// Creates a scan for these patterns. Resolves those that name their paths; the others are
    /// scanned for.
    pub(super) fn new(hiding: Vec<&'a PathPattern>, locking: Vec<&'a PathPattern>) -> Self {
        let mut look = Self {
            hiding,
            locking,
            hidden: Vec::new(),
            locked: Vec::new(),
            control: Vec::new(),
            unscanned: None,
            home: HomeControl::default(),
        };
        // A hidden file may be missing now and appear while a command runs. Then the command is
        // ended.
        for (patterns, found, missing) in [
            (&mut look.hiding, &mut look.hidden, true),
            (&mut look.locking, &mut look.locked, false),
        ] {
            patterns.retain(|pattern| match pattern.fixed_paths() {
                Some(wholes) => {
                    let there = wholes.iter().filter(|path| missing || path.exists());
                    found.extend(there.map(|path| real_path::resolve_links(path)));
                    false
                }
                None => true,
            });
        }
        look
    }

    /// Scans these directories for control files and, if patterns are left, the directories that
    /// the patterns cover.
    pub(super) fn walk(&mut self, writable: Vec<PathBuf>, policy: &Policy) {
        static CACHE: ScanCache = ScanCache::new();
        self.walk_at(writable, policy, &CACHE, SystemTime::now());
    }

    /// Like [`Self::walk`], but with this cache and time. Returns the number of directories that
    /// were read.
    fn walk_at(
        &mut self,
        writable: Vec<PathBuf>,
        policy: &Policy,
        kept: &ScanCache,
        clock: SystemTime,
    ) -> usize {
        self.home = policy.home_control();
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
            } else if controls && (is_git(&path) || control_files::is_module(&path)) {
                self.control
                    .extend(control_files::git_control_files(&real_path::resolve_links(
                        &path,
                    )));
            } else if controls && control_files::is_control_folder(&path) {
                self.control.push(path);
            } else {
                waiting.push_back(ScanDirectory {
                    path,
                    controls,
                    linked: false,
                });
            }
        }
        let patterns = [&self.hiding[..], &self.locking[..]];
        let mut listings = kept.take(&policy.roots, patterns, clock);
        listings.compare_times();
        self.scan(waiting, &mut listings, Instant::now() + MAX_SCAN_TIME);
        listings.store_scan()
    }

    fn scan(
        &mut self,
        mut waiting: VecDeque<ScanDirectory>,
        listings: &mut ScanListings<'_>,
        deadline: Instant,
    ) {
        let starts: Vec<PathBuf> = waiting.iter().map(|start| start.path.clone()).collect();
        let mut linked = HashSet::new();
        let (mut scanned, mut seen) = (0, 0);
        while let Some(mut directory) = waiting.pop_front() {
            scanned += 1;
            directory.controls &= scanned <= MAX_CONTROL_DIRECTORIES && seen <= MAX_CONTROL_FILES;
            let hides = self.hides_below(&directory.path);
            if !directory.controls && !hides {
                continue;
            }
            if hides && scanned % 256 == 0 && Instant::now() > deadline {
                self.unscanned = Some(directory.path);
                // Programs that start without asking see no part of the tree.
                self.hidden.extend(starts);
                return;
            }
            let listing = listings.listing(&directory.path, |path, kind| self.why(path, kind));
            seen += listing.entries;
            // The directory's owner may make it readable later.
            if listing.is_unreadable && hides {
                self.hidden.push(real_path::resolve_links(&directory.path));
                continue;
            }
            for entry in &listing.notable {
                let path = directory.path.join(&entry.name);
                let is_dir = entry.kind == ScannedEntryKind::Directory;
                let found = self.finds(&path, entry.why, is_dir, directory.controls);
                if found && entry.why == MatchReason::Hidden {
                    continue;
                }
                let follows = entry.kind == ScannedEntryKind::Link
                    && self.follows(&path, &starts, &mut linked);
                if follows || (is_dir && !is_of_system(&path, directory.linked)) {
                    // Control files in installed code are not obeyed there.
                    let installed = control_files::INSTALLED
                        .iter()
                        .any(|name| entry.name == *name);
                    waiting.push_back(ScanDirectory {
                        path,
                        controls: directory.controls && is_dir && !found && !installed,
                        linked: directory.linked || follows,
                    });
                }
            }
        }
    }

    /// Returns whether a pattern may hide a file below this directory.
    fn hides_below(&self, directory: &Path) -> bool {
        let mut hiding = self.hiding.iter();
        hiding.any(|pattern| pattern.reaches_below(directory))
    }

    /// Returns whether the directory to which this link leads must be scanned. It need not if the
    /// patterns find the same files under names that are scanned anyway.
    fn follows(&self, link: &Path, starts: &[PathBuf], linked: &mut HashSet<(u64, u64)>) -> bool {
        let is_dir = fs::metadata(link).ok().filter(fs::Metadata::is_dir);
        let Some(found) = is_dir.filter(|_| self.hides_below(link)) else {
            return false;
        };
        let real = real_path::resolve_links(link);
        let above = link
            .parent()
            .map(real_path::resolve_links)
            .unwrap_or_default();
        // A loop leads to names that were scanned without it.
        if above.starts_with(&real) || is_of_system(link, true) {
            return false;
        }
        let is_scanned = starts.iter().any(|start| real.starts_with(start));
        let mut hiding = self.hiding.iter();
        let finds_same = is_scanned && hiding.all(|pattern| pattern.floats_below(&real));
        !finds_same && linked.insert((found.dev(), found.ino()))
    }

    /// Returns the directories to start from, and whether to scan them for control files.
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
            // A directory below that is already in the list is scanned twice; the second scan reads
            // only times.
            let known = starts.iter().any(|(path, _)| stem.starts_with(path));
            if !known {
                starts.push((stem.to_path_buf(), false));
            }
        }
        starts
    }

    /// Returns the reason to check a path, if any. Depends only on the patterns and the name.
    fn why(&self, path: &Path, kind: ScannedEntryKind) -> Option<MatchReason> {
        let is_dir = kind == ScannedEntryKind::Directory;
        // A link may lead to a directory.
        let is_link = kind == ScannedEntryKind::Link;
        let stops = |patterns: &[&PathPattern]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| {
                pattern.covers_entirely(path, is_dir)
                    || (is_link && pattern.covers_entirely(path, true))
            })
        };
        if stops(&self.hiding) {
            Some(MatchReason::Hidden)
        } else if stops(&self.locking) {
            Some(MatchReason::Locked)
        } else if path.file_name().is_some_and(may_be_control_name) || is_head(path) {
            Some(MatchReason::Telling)
        } else if is_link && !self.hiding.is_empty() {
            Some(MatchReason::Link)
        } else {
            is_dir.then_some(MatchReason::Directory)
        }
    }

    /// Adds a path to the result if it belongs there. Returns whether control files below it need
    /// no check.
    fn finds(&mut self, path: &Path, why: MatchReason, is_dir: bool, controls: bool) -> bool {
        match why {
            MatchReason::Hidden => {
                self.hidden.push(real_path::resolve_links(path));
                return true;
            }
            MatchReason::Locked => {
                self.locked.push(real_path::resolve_links(path));
                return true;
            }
            MatchReason::Directory | MatchReason::Link | MatchReason::Telling => {}
        }
        if controls && self.home.is_at_home(path) && self.home.is_control(path) {
            self.protect_at_home(path);
            return true;
        }
        if why != MatchReason::Telling {
            return false;
        }
        if is_head(path) {
            let directory = path.parent().unwrap_or(path);
            if controls && git_repository::has_repository_parts(directory) {
                let found = control_files::git_control_files(&real_path::resolve_links(directory));
                self.control.extend(found);
            }
            return false;
        }
        if is_git(path) {
            if controls {
                self.control
                    .extend(control_files::git_control_files(&real_path::resolve_links(
                        path,
                    )));
            }
            return true;
        }
        if !controls {
            return false;
        }
        // The directories above the path were checked before.
        let name = name_below(path);
        if is_dir && control_files::is_control_folder(&name) {
            // Worktrees in a settings directory are working directories.
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
        let is_control = control_files::is_control_file(&name);
        if is_control {
            self.control.push(real_path::resolve_links(path));
        }
        is_control
    }

    /// Adds a path of a home to the control files, or what is in it, if data may be below.
    fn protect_at_home(&mut self, path: &Path) {
        if !self.home.is_control(path) {
            return;
        }
        if !self.home.leads_on(path) || path.is_symlink() {
            self.control.push(real_path::resolve_links(path));
            return;
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            self.protect_at_home(&entry.path());
        }
    }
}

/// Returns the last three names of a path: no name in the tables is longer.
fn name_below(path: &Path) -> PathBuf {
    let mut above = path.ancestors();
    let top = above.nth(3).unwrap_or(Path::new(""));
    path.strip_prefix(top).unwrap_or(path).to_path_buf()
}

/// Returns whether a path is a directory of the kernel, which a scan does not enter. `linked`: the path may lead
/// through a link.
fn is_of_system(path: &Path, linked: bool) -> bool {
    let is_system = |path: &Path| {
        ["/dev", "/proc", "/sys"]
            .iter()
            .any(|one| path == Path::new(one))
    };
    match linked {
        true => is_system(&real_path::resolve_links(path)),
        false => is_system(path),
    }
}

/// Returns whether the path has the name of the file that every git repository has.
fn is_head(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "HEAD")
}

fn is_git(path: &Path) -> bool {
    let name = path.file_name();
    name.is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
#[path = "path_scan_tests.rs"]
mod tests;
