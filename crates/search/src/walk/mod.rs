//! Finds the files of a search with one parallel walk, by ripgrep's rules.
//!
//! `.gitignore`, `.ignore`, `.rgignore`, `.git/info/exclude` and the user's global excludes apply
//! as in ripgrep, including those of the directories above the root. Links are not followed, and
//! version control directories are never entered unless the root itself is inside one.
//!
//! Every directory and every file is opened by name relative to its parent directory, so a
//! concurrent rename cannot lead the walk out of the tree (see `handle`).
//!
//! - `ignores`: the names that ignore files exclude
//! - `threads`: the threads and their tasks
//! - this module: the tree, its entries, and the listing of a single directory

mod ignores;
mod threads;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ignore::overrides::Override;
use ignore::types::Types;

use crate::SearchError;
use crate::exclusions::Exclusions;
use crate::handle::{Directory, EntryKind, kind_of, modified};
use crate::root::{self, OpenedRoot};
use crate::skip::SkipLog;
use crate::stop::StopFlag;
pub(crate) use ignores::{
    IgnoreFilesPresent, IgnoreLevel, IgnoreRules, IgnoreVerdict, NameRules, is_telling,
};

const VERSION_CONTROL: [&str; 5] = [".git", ".svn", ".hg", ".bzr", ".jj"];

/// A tree and the rules that decide which of its entries are visible.
pub(crate) struct WalkTree<'a> {
    /// The root as passed in; the paths of entries start with it.
    pub(crate) root: &'a Path,
    /// The root with all links resolved.
    pub(crate) real: &'a Path,
    pub(crate) directory: Directory,
    /// The equivalent of ripgrep's current directory: the user's global excludes are relative to
    /// it.
    pub(crate) current_dir: &'a Path,
    pub(crate) respect_ignore: bool,
    pub(crate) hidden: bool,
    pub(crate) overrides: Arc<Override>,
    pub(crate) types: Arc<Types>,
    pub(crate) threads: usize,
    pub(crate) leave_out: Exclusions,
}

/// The action of one thread for each entry that is not a directory.
pub(crate) type EntryVisitor<'s> = Box<dyn FnMut(&WalkEntry) + Send + 's>;

/// An entry of the tree, opened through its parent directory.
#[derive(Debug)]
pub(crate) struct WalkEntry {
    directory: Arc<Directory>,
    path: PathBuf,
    kind: EntryKind,
    depth: usize,
}

impl WalkEntry {
    /// Returns the path, below the root as passed in.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// Returns the depth, which is 1 for entries directly in the root.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Opens the file. Returns `None` if it is no longer a regular file.
    pub(crate) fn open(&self) -> io::Result<Option<File>> {
        self.directory.open(self.name())
    }

    /// Returns the modification time of a file, or `None` for other entries. For a link, the time
    /// of its target.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        let found = match self.kind {
            EntryKind::File => self.directory.stat_entry(self.name()),
            EntryKind::Link => self.directory.stat_target(self.name()),
            _ => None,
        };
        let file = found.filter(|found| kind_of(found) == Some(EntryKind::File));
        file.as_ref().map(modified)
    }
}

impl WalkTree<'_> {
    /// Calls one visitor per thread until the tree is done or `watch` stops the search. `keep` is
    /// called once for every entry before anything is read from it, so a directory that it rejects
    /// costs nothing.
    pub(crate) fn walk<'s>(
        self,
        watch: &'s StopFlag,
        skips: &'s SkipLog,
        keep: impl Fn(&WalkEntry) -> bool + Send + Sync + 's,
        visitor: impl FnMut() -> EntryVisitor<'s>,
    ) {
        let rules = IgnoreRules::new(
            self.root,
            self.real,
            self.current_dir,
            NameRules {
                overrides: self.overrides,
                types: self.types,
                respect_ignore: self.respect_ignore,
                hidden: self.hidden,
            },
            self.leave_out.clone(),
            skips,
        );
        let leave_out = self.leave_out;
        let keep = move |entry: &WalkEntry| {
            // Checked here too, because a directory with a million entries is listed without a
            // visit in between.
            !watch.must_stop()
                && !is_version_control(entry.name())
                && keep(entry)
                && !leave_out.excludes(entry.path())
        };
        let walk = threads::ParallelWalk::new(&rules, &keep, watch, skips);
        walk.run(self.directory, self.root, self.threads, visitor);
    }
}

/// One entry of a directory.
#[derive(Clone, Debug)]
pub struct ListedEntry {
    /// The name of the entry.
    pub name: OsString,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// The size in bytes, only for files.
    pub size: Option<u64>,
    /// The modification time.
    pub modified: Option<SystemTime>,
    /// The target of a link as written in it.
    pub target: Option<PathBuf>,
    /// True if a search that starts in this directory would skip the entry. Version control
    /// directories are not reported as ignored.
    pub ignored: bool,
}

/// Lists one directory, in no order. `authorized` is the real path that the permission check
/// resolved, if it did. `current_dir` is the directory that the user's global excludes are relative
/// to.
pub fn list_directory(
    path: &Path,
    authorized: Option<&Path>,
    current_dir: &Path,
) -> Result<DirectoryList, SearchError> {
    let opened = root::open(path, authorized)?;
    let OpenedRoot::Directory(directory) = opened.opened else {
        return Err(SearchError::NotADirectory {
            path: path.to_path_buf(),
        });
    };
    let mut names = Vec::new();
    let mut telling = IgnoreFilesPresent::default();
    let listed = directory.list(|name, kind| {
        telling.record(&name);
        names.push((name, kind));
    });
    listed.map_err(|source| SearchError::PathUnreadable {
        path: path.to_path_buf(),
        source,
    })?;
    let skips = SkipLog::default();
    let rules = IgnoreRules::new(
        path,
        &opened.real,
        current_dir,
        NameRules::default(),
        Exclusions::default(),
        &skips,
    );
    let level = rules.enter(&directory, path, &telling, rules.start(), &skips);
    Ok(DirectoryList {
        directory,
        names,
        rules,
        level,
    })
}

/// An opened directory with the names in it.
pub struct DirectoryList {
    directory: Directory,
    /// The names and kinds of its entries.
    pub names: Vec<(OsString, EntryKind)>,
    rules: IgnoreRules,
    level: Option<Arc<IgnoreLevel>>,
}

impl DirectoryList {
    /// Returns the details of one of the names. A link is not followed; if the entry no longer
    /// exists, it has no details.
    pub fn entry(&self, name: &OsStr, kind: EntryKind) -> ListedEntry {
        let found = self.directory.stat_entry(name);
        let is = |wanted| kind == wanted;
        ListedEntry {
            kind,
            size: found
                .as_ref()
                .filter(|_| is(EntryKind::File))
                .and_then(|found| u64::try_from(found.st_size).ok()),
            modified: found.as_ref().map(modified),
            target: is(EntryKind::Link)
                .then(|| self.directory.link(name))
                .flatten(),
            ignored: {
                let (path, is_dir) = (self.rules.root.join(name), is(EntryKind::Directory));
                self.rules.hide(&path, is_dir, self.level.as_deref())
            },
            name: name.to_os_string(),
        }
    }
}

impl std::fmt::Debug for DirectoryList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectoryList")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

pub(crate) fn is_version_control(name: &OsStr) -> bool {
    VERSION_CONTROL.iter().any(|known| name == *known)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_are_ignored_that_an_ignore_file_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("sub/out")).unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".gitignore"), "*.log\n/sub/out\n").unwrap();
        fs::write(root.join("sub/.rgignore"), "b\n").unwrap();
        for name in ["a.log", "sub/a", "sub/b", "sub/c.log"] {
            fs::write(root.join(name), "").unwrap();
        }
        let names = |directory: &str| {
            let list = list_directory(&root.join(directory), None, root).unwrap();
            let entries = list
                .names
                .iter()
                .map(|(name, kind)| list.entry(name, *kind));
            let mut names: Vec<_> = entries
                .filter(|entry| !entry.ignored)
                .map(|entry| entry.name.into_string().unwrap())
                .collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names(""), [".git", ".gitignore", "sub"]);
        assert_eq!(names("sub"), [".rgignore", "a"], "rules from above apply");
        assert!(list_directory(&root.join("missing"), None, root).is_err());
        assert!(list_directory(&root.join("a.log"), None, root).is_err());
    }
}
