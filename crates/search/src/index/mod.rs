//! The state that an engine caches between calls, so that most of a tree need not be read again.
//!
//! A tree is read once and then updated from the kernel's change events, which are drained at the
//! start of each call. A trigram index shows which files a pattern can match in. Only those are
//! searched, by the usual searcher, and from memory if their texts fit. In any doubt the result is
//! [`IndexMiss`], and a plain walk answers the call.
//!
//! - Data structures without I/O: `trigram`, `bits`, `segment` (the index), `trigram_query` (the
//!   trigrams that a pattern needs).
//! - The tree: `file_fingerprint`, `outside_files`, `watch` and `watch_overflow` (events),
//!   `file_watches`, `load` (reading it), `tree`, `file_checks`, `contents` and `written_contents`
//!   (texts), `indexed_tree` (the tree with its index).
//! - Its lifecycle: `tree_handle` (the handle), `build` (the background thread), `file` (the index
//!   on disk), `store` (the trees of an engine).

mod bits;
mod build;
mod contents;
mod file;
mod file_checks;
mod file_fingerprint;
mod file_watches;
mod indexed_tree;
mod load;
mod outside_files;
mod segment;
mod store;
mod tree;
mod tree_handle;
mod trigram;
mod trigram_query;
mod watch;
mod watch_overflow;
mod written_contents;

use std::path::{Path, PathBuf};

/// Returns the path of a tree's index file in the cache folder.
pub(crate) fn file_place(folder: &Path, root: &Path) -> Option<PathBuf> {
    Some(file::place(folder, root, root))
}

pub(crate) use contents::{CachedTextKind, MAX_CACHED_LENGTH, ReadText};
pub(crate) use file_fingerprint::FileFingerprint;
pub(crate) use indexed_tree::{
    Candidate, IndexCandidates, IndexMiss, IndexedTree, UnindexedFiles, ViewKey,
};
pub(crate) use store::{IndexNeed, QueriedTree, TreeStore};
pub(crate) use tree_handle::TreeHandle;
pub(crate) use trigram_query::{TrigramQuery, plan};

/// Items that fuzz targets use.
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzed {
    pub(crate) use super::segment::{Segment, SegmentBuilder, decode};
    pub(crate) use super::trigram::TrigramCollector;
    pub(crate) use super::trigram_query::{TrigramQuery, plan};
}
