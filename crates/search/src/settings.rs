//! Settings of what an engine caches between calls.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::index;

/// Settings of what an engine caches between calls. They do not change any answer.
#[derive(Clone, Debug)]
pub struct IndexSettings {
    /// Cache trees and indexes. Has an effect only on Linux.
    pub enabled: bool,
    /// The directory for index files, for later sessions; `None` stores none.
    pub cache_folder: Option<PathBuf>,
    /// The maximum number of bytes of file contents to cache. By default one eighth of the physical
    /// memory, at most 256 MB.
    pub memory: Option<usize>,
    /// The time without a search after which cached contents are freed.
    pub contents_lifetime: Duration,
    /// Compares each answer with that of a plain walk, and panics if they differ.
    pub verify: bool,
    /// Trees with fewer files than this are not indexed: searching them is as fast.
    pub few_files: usize,
    /// The maximum number of files that get their own watch, because they may be written under
    /// names outside the tree. Other files are checked before each answer. By default half of what
    /// the kernel allows a user.
    pub watched_files: Option<usize>,
    /// The number of candidates up to which each file is checked with `stat` before its cached text
    /// is used, even if it is watched: another program may write to it through a memory map. With
    /// more candidates, the checks would take longer than the search.
    pub checked_candidates: usize,
    /// Builds everything within the calls instead of in the background: slow, for tests.
    pub at_once: bool,
}

impl Default for IndexSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            cache_folder: None,
            memory: None,
            contents_lifetime: Duration::from_secs(300),
            verify: false,
            few_files: 300,
            watched_files: None,
            checked_candidates: 512,
            at_once: false,
        }
    }
}

impl IndexSettings {
    /// Applies `HAFT_SEARCH_INDEX=off` and `HAFT_SEARCH_VERIFY=1` from the environment.
    #[must_use]
    pub fn with_environment(self) -> Self {
        self.with_variables(|name| std::env::var(name).ok())
    }

    /// Like [`Self::with_environment`], but reads the variables with `variable`.
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
    /// The path of the file.
    pub path: PathBuf,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The time of the last use of the file.
    pub used: SystemTime,
}

impl IndexSettings {
    /// Returns the index file that sessions in this directory have stored. `root` must be free of
    /// links.
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

/// The state of a cached tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexStatus {
    /// The root directory of the tree.
    pub root: PathBuf,
    /// True if queries are answered from it.
    pub is_ready: bool,
    /// The reason why the tree is not cached, if it was refused.
    pub refused: Option<&'static str>,
    /// True if all its directories are watched; otherwise everything is checked before each answer.
    pub is_watched: bool,
    /// The number of files that have their own watch.
    pub watched_files: usize,
    /// The number of searchable files.
    pub files: usize,
    /// The number of indexed files.
    pub indexed: usize,
    /// The memory that the index takes, in bytes.
    pub index_bytes: usize,
    /// The memory that cached contents of all trees take, in bytes.
    pub held_bytes: usize,
    /// The limit for cached contents, in bytes.
    pub memory: usize,
}
