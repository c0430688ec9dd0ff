//! The search engine that a session creates once and uses for all its searches.

use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;

use crate::glob::{self, GlobQuery, GlobReport};
use crate::grep::{self, GrepQuery, GrepReport, MatcherCache};
use crate::index::TreeStore;
use crate::{IndexSettings, IndexStatus, SearchError, StopCondition};

/// More threads than this contend for the kernel's directory locks instead of searching faster;
/// ripgrep has the same limit.
const MAX_THREADS: usize = 12;

/// Answers `Grep` and `Glob`. Cheap to create: nothing is read before the first call.
#[derive(Debug)]
pub struct SearchEngine {
    threads: usize,
    matchers: MatcherCache,
    /// The trees and indexes cached between calls. `None` if the settings disable them.
    trees: Option<TreeStore>,
}

impl SearchEngine {
    /// Creates an engine that uses all cores and caches what it learns in memory.
    pub fn new() -> Self {
        Self::with(IndexSettings::default().with_environment())
    }

    /// Creates an engine that caches between calls what the settings allow.
    pub fn with(settings: IndexSettings) -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = cores.min(MAX_THREADS);
        Self {
            threads,
            matchers: MatcherCache::default(),
            trees: TreeStore::new(settings, threads),
        }
    }

    /// Searches file contents. Blocks; call it on a thread that may block.
    pub fn grep(&self, query: &GrepQuery, stop: &StopCondition) -> Result<GrepReport, SearchError> {
        grep::run(
            query,
            stop,
            self.threads,
            &self.matchers,
            self.trees.as_ref(),
        )
    }

    /// Returns the error that [`Self::grep`] would return for an invalid query, without searching.
    pub fn check_grep(&self, query: &GrepQuery) -> Result<(), SearchError> {
        grep::check(query, &self.matchers)
    }

    /// Returns the error that [`Self::glob`] would return for an invalid query, without walking.
    pub fn check_glob(&self, query: &GlobQuery) -> Result<(), SearchError> {
        glob::check(query)
    }

    /// Lists files by name. Blocks; call it on a thread that may block.
    pub fn glob(&self, query: &GlobQuery, stop: &StopCondition) -> Result<GlobReport, SearchError> {
        glob::run(query, stop, self.threads, self.trees.as_ref())
    }
}

/// Identifies a file and the version of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// The device number.
    pub device: u64,
    /// The inode number on that device.
    pub inode: u64,
    /// The modification time, in nanoseconds since 1970.
    pub modified_ns: i128,
}

impl SearchEngine {
    /// Passes the engine the whole content of a file that was just renamed into place, so that the
    /// next search need not read the file. `path` must be free of links. This only affects speed.
    pub fn on_file_written(&self, path: &Path, content: &[u8], identity: &FileIdentity) {
        if let Some(trees) = &self.trees {
            trees.on_file_written(path, content, identity);
        }
    }

    /// Reads the tree below `root`, together with the index that earlier sessions stored, and
    /// returns its state: what a search there would start from. `root` must be free of links.
    /// Returns `None` if nothing is cached.
    pub fn inspect(&self, root: &Path) -> Option<IndexStatus> {
        let trees = self.trees.as_ref()?;
        trees.inspect(root)
    }

    /// Returns the state of every tree that is cached between calls.
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

/// One engine shared by all callers that search in the same place. The first caller that knows the
/// settings creates it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SharedEngine(Arc<OnceLock<Arc<SearchEngine>>>);

impl SharedEngine {
    /// Returns the engine if it was created.
    pub fn get(&self) -> Option<Arc<SearchEngine>> {
        self.0.get().cloned()
    }

    /// Returns the engine, and creates it with these settings if it does not exist yet.
    pub fn get_or_make(&self, settings: IndexSettings) -> Arc<SearchEngine> {
        let make = || Arc::new(SearchEngine::with(settings));
        Arc::clone(self.0.get_or_init(make))
    }
}
