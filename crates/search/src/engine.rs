//! The handle a session keeps for all its searches.

use std::num::NonZero;
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

impl SearchEngine {
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
