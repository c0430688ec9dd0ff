//! How an engine keeps what it knows between calls.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::index;

/// How an engine keeps what it knows between calls. The answers are the same whatever is set.
#[derive(Clone, Debug)]
pub struct IndexSettings {
    /// Keep trees and indexes at all. Only on Linux.
    pub enabled: bool,
    /// Where index files are kept for later sessions; `None` keeps none.
    pub cache_folder: Option<PathBuf>,
    /// How many bytes of file contents may be held; an eighth of the memory by default, at most
    /// 256 MB.
    pub memory: Option<usize>,
    /// Contents are let go when no one has searched for so long.
    pub contents_kept: Duration,
    /// Compares each answer with that of a plain walk, and panics if they differ.
    pub verify: bool,
    /// Fewer files than this are not indexed: searching them is as fast.
    pub few_files: usize,
    /// How many files may be watched themselves, because they may be written under names outside the
    /// tree; others are looked at before each answer. By default half of what a user may watch.
    pub watched_files: Option<usize>,
    /// Of so many candidates each is looked at before its text is used, though it is watched: it may
    /// be mapped by another program. Of more, looking would take longer than searching.
    pub looked_at: usize,
    /// Builds everything within the calls instead of behind them: slow, for tests.
    pub at_once: bool,
}

impl Default for IndexSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            cache_folder: None,
            memory: None,
            contents_kept: Duration::from_secs(300),
            verify: false,
            few_files: 300,
            watched_files: None,
            looked_at: 512,
            at_once: false,
        }
    }
}

impl IndexSettings {
    /// The same, but `HAFT_SEARCH_INDEX=off` and `HAFT_SEARCH_VERIFY=1` in the environment count.
    #[must_use]
    pub fn with_environment(self) -> Self {
        self.with_variables(|name| std::env::var(name).ok())
    }

    /// The same with variables from elsewhere.
    #[must_use]
    pub fn with_variables(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        let is = |name: &str, value: &str| variable(name).is_some_and(|it| it == value);
        if is("HAFT_SEARCH_INDEX", "off") {
            self.enabled = false;
        }
        if is("HAFT_SEARCH_VERIFY", "1") {
            (self.verify, self.at_once, self.few_files) = (true, true, 3);
        }
        self
    }
}

/// An index on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexFile {
    /// Where it is.
    pub path: PathBuf,
    /// How large it is.
    pub bytes: u64,
    /// When it was last used.
    pub used: SystemTime,
}

impl IndexSettings {
    /// The index that sessions in this directory, a path without links, have left.
    pub fn file_of(&self, root: &Path) -> Option<IndexFile> {
        let path = index::file_place(self.cache_folder.as_deref()?, root)?;
        let found = path.metadata().ok()?;
        Some(IndexFile {
            path,
            bytes: found.len(),
            used: found.modified().ok()?,
        })
    }
}

/// What is kept of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexStatus {
    /// Where it begins.
    pub root: PathBuf,
    /// Queries are answered by it.
    pub is_ready: bool,
    /// Why it is not kept, if it is not.
    pub refused: Option<&'static str>,
    /// All its directories are watched; otherwise they are looked at before each answer.
    pub is_watched: bool,
    /// How many files are watched themselves.
    pub watched_files: usize,
    /// How many files are searched.
    pub files: usize,
    /// How many of them the index knows.
    pub indexed: usize,
    /// How much memory the index takes.
    pub index_bytes: usize,
    /// How much memory contents take, those of all trees.
    pub held_bytes: usize,
    /// What contents may take.
    pub memory: usize,
}
