//! Which files exist for a search: one parallel walk by ripgrep's rules.
//!
//! `.gitignore`, `.ignore`, `.rgignore`, `.git/info/exclude` and the user's global excludes apply
//! as in ripgrep, including those of the directories above the root. Links are not followed, and
//! version control directories are never entered unless the root itself lies inside one.
//!
//! Every directory is opened by its name in the one above it, and so is every file: the walk cannot
//! be led out of the tree by what others rename meanwhile, see `handle`.
//!
//! - `ignores`: which names the ignore files leave out
//! - `threads`: the threads and what they have to do
//! - here: the tree, its entries, and one directory by itself

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
use crate::handle::{Directory, EntryKind, kind_of, modified};
use crate::leave_out::LeaveOut;
use crate::root::{self, Opened};
use crate::skip::SkipLog;
use crate::stop::Watch;
pub(crate) use ignores::{IgnoreRules, Level, NameRules, Telling, Verdict, is_telling};

const VERSION_CONTROL: [&str; 5] = [".git", ".svn", ".hg", ".bzr", ".jj"];

/// A tree and the rules that decide what of it is visible.
pub(crate) struct Tree<'a> {
    /// As it was given; entries are named below it.
    pub(crate) root: &'a Path,
    /// After all links.
    pub(crate) real: &'a Path,
    pub(crate) directory: Directory,
    /// What ripgrep's current directory would be: the user's global excludes are relative to it.
    pub(crate) current_dir: &'a Path,
    pub(crate) respect_ignore: bool,
    pub(crate) hidden: bool,
    pub(crate) overrides: Arc<Override>,
    pub(crate) types: Arc<Types>,
    pub(crate) threads: usize,
    pub(crate) leave_out: LeaveOut,
}

/// What one thread does with each entry that is not a directory.
pub(crate) type Visitor<'s> = Box<dyn FnMut(&Entry) + Send + 's>;

/// Something in the tree, known by the opened directory it is in.
#[derive(Debug)]
pub(crate) struct Entry {
    directory: Arc<Directory>,
    path: PathBuf,
    kind: EntryKind,
    depth: usize,
}

impl Entry {
    /// Below the root as it was given.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// 1 for what is in the root.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Opens it; `None` if it is no regular file any more.
    pub(crate) fn open(&self) -> io::Result<Option<File>> {
        self.directory.open(self.name())
    }

    /// When the file last changed; `None` for what is no file. A link counts as what it leads to.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        let found = match self.kind {
            EntryKind::File => self.directory.look(self.name()),
            EntryKind::Link => self.directory.look_through(self.name()),
            _ => None,
        };
        let file = found.filter(|found| kind_of(found) == Some(EntryKind::File));
        file.as_ref().map(modified)
    }
}

impl Tree<'_> {
    /// Calls one visitor per thread until the tree is done or `watch` says stop. `keep` is asked
    /// once for every entry before anything is read from it, so a directory it refuses costs
    /// nothing.
    pub(crate) fn walk<'s>(
        self,
        watch: &'s Watch,
        skips: &'s SkipLog,
        keep: impl Fn(&Entry) -> bool + Send + Sync + 's,
        visitor: impl FnMut() -> Visitor<'s>,
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
        let keep = move |entry: &Entry| {
            // Asked here too, because a directory of a million entries is listed without a visit in
            // between.
            !watch.must_stop()
                && !is_version_control(entry.name())
                && keep(entry)
                && !leave_out.holds(entry.path())
        };
        let walk = threads::Walk::new(&rules, &keep, watch, skips);
        walk.run(self.directory, self.root, self.threads, visitor);
    }
}

/// One entry of a directory.
#[derive(Clone, Debug)]
pub struct ListedEntry {
    /// Its name.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
    /// In bytes; only of files.
    pub size: Option<u64>,
    /// When it was last changed.
    pub modified: Option<SystemTime>,
    /// Where a link leads, as it is written.
    pub target: Option<PathBuf>,
    /// A search that begins here would not look at it. Version control directories are not ignored.
    pub ignored: bool,
}

/// What is in one directory, in no order. `judged`: where the path led when it was permitted, if
/// that was judged. `current_dir` is what the user's global excludes are relative to.
pub fn list_directory(
    path: &Path,
    judged: Option<&Path>,
    current_dir: &Path,
) -> Result<DirectoryList, SearchError> {
    let opened = root::open(path, judged)?;
    let Opened::Directory(directory) = opened.opened else {
        return Err(SearchError::NotADirectory {
            path: path.to_path_buf(),
        });
    };
    let mut names = Vec::new();
    let mut telling = Telling::default();
    let listed = directory.list(|name, kind| {
        telling.note(&name);
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
        LeaveOut::default(),
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
    /// What is in it.
    pub names: Vec<(OsString, EntryKind)>,
    rules: IgnoreRules,
    level: Option<Arc<Level>>,
}

impl DirectoryList {
    /// What there is to say of one of its names. A link is not followed; what has gone meanwhile has
    /// no facts.
    pub fn entry(&self, name: &OsStr, kind: EntryKind) -> ListedEntry {
        let found = self.directory.look(name);
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
