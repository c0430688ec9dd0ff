//! Whose contents are kept first, if not all can be.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::walk::{EntryKind, TreeEntry};

/// In order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The command line names it, or a directory above it.
    Named,
    Plain,
    /// What git keeps of a repository: branches, index, configuration, hooks.
    Repository,
    /// Git's objects never change: new ones need only be removed again.
    Objects,
    /// Can mostly be made again.
    Ignored,
}

/// Ignored wherever they are, also without git.
const MADE_AGAIN: [&str; 5] = ["node_modules", "__pycache__", ".venv", ".cache", ".gradle"];

/// A larger `.gitignore` is not worth the time.
const LARGEST: u64 = 1 << 20;

impl Rank {
    /// Of a directory inside one of this rank.
    pub(crate) fn of_directory(
        self,
        path: &Path,
        name: &OsStr,
        in_repository: bool,
        ignores: Option<&Ignores>,
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

    /// Of anything else inside one of this rank.
    pub(crate) fn of_file(self, path: &Path, ignores: Option<&Ignores>) -> Self {
        match self {
            Self::Plain => self.unless_ignored(path, false, ignores),
            _ => self,
        }
    }

    fn unless_ignored(self, path: &Path, is_dir: bool, ignores: Option<&Ignores>) -> Self {
        if ignores.is_some_and(|ignores| ignores.ignores(path, is_dir)) {
            Self::Ignored
        } else {
            self
        }
    }

    /// Is this the directory that git keeps a repository in?
    pub(crate) fn is_repository(entries: &[TreeEntry]) -> bool {
        let has = |name: &str| entries.iter().any(|entry| entry.name == name);
        has("HEAD") && has("objects") && has("refs")
    }
}

/// The `.gitignore` of a directory, after those above it.
#[derive(Debug)]
pub(crate) struct Ignores {
    own: Gitignore,
    above: Option<Arc<Self>>,
}

impl Ignores {
    /// Those of a directory with these names in it.
    pub(crate) fn extend(
        directory: &Path,
        entries: &[TreeEntry],
        above: Option<Arc<Self>>,
        rank: Rank,
    ) -> Option<Arc<Self>> {
        // A pipe of that name would be waited for.
        let is_own = |one: &TreeEntry| {
            one.name == ".gitignore" && one.kind() == EntryKind::File && one.stamp.size <= LARGEST
        };
        let has_own = rank == Rank::Plain && entries.iter().any(is_own);
        if !has_own {
            return above;
        }
        let mut builder = GitignoreBuilder::new(directory);
        // A line that cannot be read ignores nothing.
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
