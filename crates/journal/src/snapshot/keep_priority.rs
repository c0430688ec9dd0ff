//! The priority of files for storing, if the budget does not suffice for all.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::walk::{ScannedKind, TreeEntry};

/// The priority; earlier variants come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeepPriority {
    /// The command line names the file, or a directory above it.
    Named,
    Plain,
    /// Git's own files of a repository: branches, index, configuration, hooks.
    Repository,
    /// Git objects, which never change: undo only needs to remove new ones.
    Objects,
    /// Files that can mostly be generated again.
    Ignored,
}

/// Directories that are treated as ignored everywhere, even without git.
const MADE_AGAIN: [&str; 5] = ["node_modules", "__pycache__", ".venv", ".cache", ".gradle"];

/// The size limit of a `.gitignore`, in bytes; larger ones are not read.
const MAX_SIZE: u64 = 1 << 20;

impl KeepPriority {
    /// Returns the rank of a directory inside one of this rank.
    pub(crate) fn for_directory(
        self,
        path: &Path,
        name: &OsStr,
        in_repository: bool,
        ignores: Option<&DirectoryIgnores>,
    ) -> Self {
        match self {
            Self::Named | Self::Objects | Self::Ignored => self,
            _ if in_repository && name == "objects" => Self::Objects,
            Self::Repository => self,
            Self::Plain if name == ".git" => Self::Repository,
            Self::Plain if MADE_AGAIN.iter().any(|known| name == *known) => Self::Ignored,
            Self::Plain => self.unless_ignored(path, true, ignores),
        }
    }

    /// Returns the rank of a file inside a directory of this rank.
    pub(crate) fn for_file(self, path: &Path, ignores: Option<&DirectoryIgnores>) -> Self {
        match self {
            Self::Plain => self.unless_ignored(path, false, ignores),
            _ => self,
        }
    }

    fn unless_ignored(self, path: &Path, is_dir: bool, ignores: Option<&DirectoryIgnores>) -> Self {
        if ignores.is_some_and(|ignores| ignores.ignores(path, is_dir)) {
            Self::Ignored
        } else {
            self
        }
    }

    /// Returns whether these are the entries of a git directory.
    pub(crate) fn is_repository(entries: &[TreeEntry]) -> bool {
        let has = |name: &str| entries.iter().any(|entry| entry.name == name);
        has("HEAD") && has("objects") && has("refs")
    }
}

/// The ignore rules of a directory and of those above it.
#[derive(Debug)]
pub(crate) struct DirectoryIgnores {
    own: Gitignore,
    above: Option<Arc<Self>>,
}

impl DirectoryIgnores {
    /// Returns the rules of a directory with these entries.
    pub(crate) fn extend(
        directory: &Path,
        entries: &[TreeEntry],
        above: Option<Arc<Self>>,
        rank: KeepPriority,
    ) -> Option<Arc<Self>> {
        // A named pipe called `.gitignore` would block.
        let is_own = |one: &TreeEntry| {
            one.name == ".gitignore"
                && one.kind() == ScannedKind::File
                && one.stamp.size <= MAX_SIZE
        };
        let has_own = rank == KeepPriority::Plain && entries.iter().any(is_own);
        if !has_own {
            return above;
        }
        let mut builder = GitignoreBuilder::new(directory);
        // Invalid lines are skipped.
        let _ = builder.add(directory.join(".gitignore"));
        match builder.build() {
            Ok(own) => Some(Arc::new(Self { own, above })),
            Err(_) => above,
        }
    }

    fn ignores(&self, path: &Path, is_dir: bool) -> bool {
        let matched = self.own.matched(path, is_dir);
        if matched.is_none() {
            let above = self.above.as_ref();
            return above.is_some_and(|above| above.ignores(path, is_dir));
        }
        matched.is_ignore()
    }
}
