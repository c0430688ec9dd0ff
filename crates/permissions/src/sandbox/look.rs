//! A look at what is there, for patterns and names that the kernel does not know.
//!
//! It is bounded: in a tree of more than [`MOST_DIRECTORIES`] directories the farthest are left out. Of
//! directories that have not changed since the last look only the times are read ([`KeptLooks`]).

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{
    super::{Policy, protected::is_telling, rules::PathPattern},
    control,
    listings::{KeptLooks, Why},
    paths::{around, outermost},
};
use haft_settings::{git_repository, resolve};

/// At most this many directories are looked through.
const MOST_DIRECTORIES: usize = 1_000;

/// And this many files.
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
        static KEPT: KeptLooks = KeptLooks::new();
        self.walk_at(writable, policy, &KEPT, SystemTime::now());
    }

    /// The same with these looks before, at this time; how many directories were read.
    fn walk_at(
        &mut self,
        writable: Vec<PathBuf>,
        policy: &Policy,
        kept: &KeptLooks,
        clock: SystemTime,
    ) -> usize {
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
        let patterns = [&self.hiding[..], &self.locking[..]];
        let mut listings = kept.take(&policy.roots, patterns, clock);
        let (mut looked, mut seen) = (0, 0);
        while let Some((directory, controls)) = waiting.pop_front() {
            looked += 1;
            if looked > MOST_DIRECTORIES || seen > MOST_FILES {
                tracing::debug!(directory = %directory.display(), "not looked at any more");
                break;
            }
            let listing = listings.of(&directory, |path, is_dir| self.why(path, is_dir));
            seen += listing.entries;
            for entry in &listing.notable {
                let path = directory.join(&entry.name);
                if self.finds(&path, entry.why, entry.is_dir, controls) || !entry.is_dir {
                    continue;
                }
                if !control::INSTALLED
                    .iter()
                    .any(|installed| entry.name == *installed)
                {
                    waiting.push_back((path, controls));
                }
            }
        }
        listings.keep()
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

    /// Why a path is worth a look, if it is: by the patterns and its name alone.
    fn why(&self, path: &Path, is_dir: bool) -> Option<Why> {
        let stops = |patterns: &[&PathPattern]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| pattern.stops_at(path, is_dir))
        };
        if stops(&self.hiding) {
            Some(Why::Hidden)
        } else if stops(&self.locking) {
            Some(Why::Locked)
        } else if path.file_name().is_some_and(is_telling) || is_head(path) {
            Some(Why::Telling)
        } else {
            is_dir.then_some(Why::Directory)
        }
    }

    /// Notes what the path is, if anything; then what is below it need not be looked at.
    fn finds(&mut self, path: &Path, why: Why, is_dir: bool, controls: bool) -> bool {
        match why {
            Why::Hidden => {
                self.hidden.push(resolve::real(path));
                return true;
            }
            Why::Locked => {
                self.locked.push(resolve::real(path));
                return true;
            }
            Why::Directory => return false,
            Why::Telling => {}
        }
        if is_head(path) {
            let directory = path.parent().unwrap_or(path);
            if controls && git_repository::has_repository_parts(directory) {
                let found = control::of_git(&resolve::real(directory));
                self.control.extend(found);
            }
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

/// Returns whether a path may be the `HEAD` of a repository.
fn is_head(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "HEAD")
}

fn is_git(path: &Path) -> bool {
    let name = path.file_name();
    name.is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use haft_contract::PermissionMode;

    use super::{
        super::super::rules::{Bases, List},
        *,
    };

    /// A tree, looked at as if it were older than any time that could be mistaken.
    struct Tree {
        _dir: tempfile::TempDir,
        root: PathBuf,
        policy: Policy,
        kept: KeptLooks,
        hiding: Vec<PathPattern>,
        locking: Vec<PathPattern>,
    }

    impl Tree {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(dir.path()).unwrap();
            for number in 0..20 {
                fs::create_dir_all(root.join(format!("d{number}/e"))).unwrap();
                fs::write(root.join(format!("d{number}/e/a.rs")), "").unwrap();
            }
            let mut tree = Self {
                policy: Policy::new(PermissionMode::Default, vec![root.clone()]),
                _dir: dir,
                root,
                kept: KeptLooks::new(),
                hiding: Vec::new(),
                locking: Vec::new(),
            };
            tree.locking = vec![tree.pattern("**/*.locked")];
            tree
        }

        fn pattern(&self, pattern: &str) -> PathPattern {
            let bases = Bases {
                home: PathBuf::from("/nowhere"),
                slash: self.root.clone(),
                cwd: self.root.clone(),
            };
            PathPattern::new(pattern, List::Deny, &bases).unwrap()
        }

        /// How many directories were read, and the names of what was found.
        fn look(&self, ahead: Duration) -> (usize, Vec<String>) {
            let mut look = Look::new(self.hiding.iter().collect(), self.locking.iter().collect());
            let roots = vec![self.root.clone()];
            let clock = SystemTime::now() + ahead;
            let read = look.walk_at(roots, &self.policy, &self.kept, clock);
            let found = [look.hidden, look.locked, look.control];
            let found = found.iter().flatten();
            let names = found.map(|path| path.strip_prefix(&self.root).unwrap());
            let mut names: Vec<_> = names.map(|name| name.display().to_string()).collect();
            names.sort_unstable();
            (read, names)
        }

        fn look_later(&self) -> (usize, Vec<String>) {
            self.look(Duration::from_secs(60))
        }
    }

    #[test]
    fn only_directories_that_changed_are_read_again() {
        let tree = Tree::new();
        let none: Vec<String> = Vec::new();
        assert_eq!(tree.look_later(), (41, none.clone()));
        assert_eq!(tree.look_later(), (0, none.clone()));
        // What appears between two looks is seen.
        fs::write(tree.root.join("d7/e/.npmrc"), "").unwrap();
        assert_eq!(tree.look_later(), (1, vec!["d7/e/.npmrc".to_owned()]));
        assert_eq!(tree.look_later(), (0, vec!["d7/e/.npmrc".to_owned()]));
        fs::create_dir_all(tree.root.join("d3/new/.vscode")).unwrap();
        fs::write(tree.root.join("d3/new/x.locked"), "").unwrap();
        let found = ["d3/new/.vscode", "d3/new/x.locked", "d7/e/.npmrc"];
        let (read, names) = tree.look_later();
        assert_eq!(names, found);
        assert_eq!(read, 2, "the one it is in, and itself");
        // What goes away is gone.
        fs::remove_dir_all(tree.root.join("d3")).unwrap();
        assert_eq!(tree.look_later(), (1, vec!["d7/e/.npmrc".to_owned()]));
        // A directory in the place of another, with the same name.
        fs::rename(tree.root.join("d7/e"), tree.root.join("d8/f")).unwrap();
        fs::create_dir(tree.root.join("d7/e")).unwrap();
        assert_eq!(tree.look_later().1, ["d8/f/.npmrc"]);
        fs::remove_file(tree.root.join("d8/f/.npmrc")).unwrap();
        assert_eq!(tree.look_later(), (1, none));
    }

    #[test]
    fn a_name_that_appears_is_seen_although_the_times_of_its_directory_are_set_back() {
        let tree = Tree::new();
        tree.look_later();
        let directory = tree.root.join("d1");
        let before = fs::metadata(&directory).unwrap().modified().unwrap();
        fs::write(directory.join(".envrc"), "").unwrap();
        let opened = fs::File::open(&directory).unwrap();
        opened.set_modified(before).unwrap();
        assert_eq!(tree.look_later(), (1, vec!["d1/.envrc".to_owned()]));
    }

    #[test]
    fn the_settings_and_hooks_of_a_bare_repository_are_found() {
        let tree = Tree::new();
        let bare = tree.root.join("d4/x.git");
        for part in ["objects", "refs", "hooks"] {
            fs::create_dir_all(bare.join(part)).unwrap();
        }
        for name in ["HEAD", "config", "description"] {
            fs::write(bare.join(name), "").unwrap();
        }
        fs::write(tree.root.join("d5/HEAD"), "").unwrap();
        fs::write(tree.root.join("d5/config"), "").unwrap();
        let found = ["d4/x.git/config", "d4/x.git/hooks"];
        assert_eq!(tree.look_later().1, found);
    }

    #[test]
    fn what_changed_a_moment_ago_is_read_each_time() {
        let tree = Tree::new();
        assert_eq!(tree.look(Duration::ZERO).0, 41);
        assert_eq!(tree.look(Duration::ZERO).0, 41);
    }

    #[test]
    fn other_patterns_are_another_look() {
        let mut tree = Tree::new();
        fs::write(tree.root.join("d5/key.pem"), "").unwrap();
        assert_eq!(tree.look_later().1, Vec::<String>::new());
        tree.hiding = vec![tree.pattern("**/*.pem")];
        assert_eq!(tree.look_later().1, ["d5/key.pem"]);
        assert_eq!(tree.look_later(), (0, vec!["d5/key.pem".to_owned()]));
        fs::write(tree.root.join("d6/other.pem"), "").unwrap();
        assert_eq!(tree.look_later().1, ["d5/key.pem", "d6/other.pem"]);
        tree.hiding.clear();
        assert_eq!(tree.look_later().1, Vec::<String>::new());
    }

    #[test]
    fn a_directory_that_cannot_be_read_is_tried_again() {
        let tree = Tree::new();
        tree.look_later();
        fs::remove_dir_all(tree.root.join("d2")).unwrap();
        fs::write(tree.root.join("d2"), "").unwrap();
        tree.look_later();
        fs::remove_file(tree.root.join("d2")).unwrap();
        fs::create_dir(tree.root.join("d2")).unwrap();
        fs::write(tree.root.join("d2/.npmrc"), "").unwrap();
        assert_eq!(tree.look_later().1, ["d2/.npmrc"]);
    }
}
