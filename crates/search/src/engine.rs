//! The handle a session keeps for all its searches.

use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;

use crate::glob::{self, GlobQuery, GlobReport};
use crate::grep::{self, GrepQuery, GrepReport, MatcherCache};
use crate::index::TreeStore;
use crate::{IndexSettings, IndexStatus, SearchError, Stop};

/// More threads than this fight over the kernel's directory locks instead of searching; ripgrep
/// stops here too.
const MAX_THREADS: usize = 12;

/// Answers `Grep` and `Glob`. Cheap to create: nothing is read before the first call.
#[derive(Debug)]
pub struct SearchEngine {
    threads: usize,
    matchers: MatcherCache,
    /// What is kept between calls.
    trees: Option<TreeStore>,
}

impl SearchEngine {
    /// One that uses all cores and keeps what it knows in memory.
    pub fn new() -> Self {
        Self::with(IndexSettings::default().with_environment())
    }

    /// One that keeps between calls what the settings say.
    pub fn with(settings: IndexSettings) -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = cores.min(MAX_THREADS);
        Self {
            threads,
            matchers: MatcherCache::default(),
            trees: TreeStore::new(settings, threads),
        }
    }

    /// Searches file contents. Blocks; run it on a thread that may.
    pub fn grep(&self, query: &GrepQuery, stop: &Stop) -> Result<GrepReport, SearchError> {
        grep::run(
            query,
            stop,
            self.threads,
            &self.matchers,
            self.trees.as_ref(),
        )
    }

    /// Says what is wrong with a query, as [`Self::grep`] would, without searching.
    pub fn check_grep(&self, query: &GrepQuery) -> Result<(), SearchError> {
        grep::check(query, &self.matchers)
    }

    /// Says what is wrong with a query, as [`Self::glob`] would, without walking.
    pub fn check_glob(&self, query: &GlobQuery) -> Result<(), SearchError> {
        glob::check(query)
    }

    /// Lists files by name. Blocks; run it on a thread that may.
    pub fn glob(&self, query: &GlobQuery, stop: &Stop) -> Result<GlobReport, SearchError> {
        glob::run(query, stop, self.threads, self.trees.as_ref())
    }
}

/// Which file it is, and when its content was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Number of the device.
    pub device: u64,
    /// Number of the file on it.
    pub inode: u64,
    /// In nanoseconds since 1970.
    pub modified_ns: i128,
}

impl SearchEngine {
    /// The whole content of a file, by its path without links, that was put in place by a rename just
    /// now: the next search need not read it. Only speed depends on it.
    pub fn wrote(&self, path: &Path, content: &[u8], identity: &FileIdentity) {
        if let Some(trees) = &self.trees {
            trees.wrote(path, content, identity);
        }
    }

    /// Reads the tree of a directory, a path without links, with the index that earlier sessions left:
    /// what a search there would begin with. `None` if nothing is kept.
    pub fn inspect(&self, root: &Path) -> Option<IndexStatus> {
        let trees = self.trees.as_ref()?;
        trees.inspect(root)
    }

    /// What is kept between calls, a tree each.
    pub fn index_status(&self) -> Vec<IndexStatus> {
        self.trees
            .as_ref()
            .map(TreeStore::status)
            .unwrap_or_default()
    }
}

impl Default for SearchEngine {
    fn default() -> Self {
        Self::new()
    }
}

/// One engine for all who search in the same place, made by the first who knows how. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SharedEngine(Arc<OnceLock<Arc<SearchEngine>>>);

impl SharedEngine {
    /// The engine, if it is made.
    pub fn get(&self) -> Option<Arc<SearchEngine>> {
        self.0.get().cloned()
    }

    /// The engine, made with these settings if there is none.
    pub fn get_or_make(&self, settings: IndexSettings) -> Arc<SearchEngine> {
        let make = || Arc::new(SearchEngine::with(settings));
        Arc::clone(self.0.get_or_init(make))
    }
}
