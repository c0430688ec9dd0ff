//! What an engine keeps between calls, so that most of a tree need not be read again.
//!
//! A tree is read once and then followed through the kernel's events, drained at the beginning of
//! each call. An index of trigrams says which files a pattern can match in; only those are searched,
//! by the same searcher as ever, and from memory if they fit. Where anything is in doubt the answer is
//! [`NotKnown`], and the call is answered by a plain walk.
//!
//! Pure: `trigram`, `bits`, `segment` (the index), `plan` (what a pattern needs).
//! The tree: `mark`, `guards`, `watch`, `flood`, `file_watches`, `load`, `tree`, `looks`; `contents`, `handed_over`; `kept` (all of it); `holder` (its life),
//! `build` (the thread behind it), `file` (on disk), `store` (the trees of an engine).

mod bits;
mod build;
mod contents;
mod file;
mod file_watches;
mod flood;
mod guards;
mod handed_over;
mod holder;
mod kept;
mod load;
mod looks;
mod mark;
mod plan;
mod segment;
mod store;
mod tree;
mod trigram;
mod watch;

use std::path::{Path, PathBuf};

/// Where the index file of a tree is, in the folder of all.
pub(crate) fn file_place(folder: &Path, root: &Path) -> Option<PathBuf> {
    Some(file::place(folder, root, root))
}

pub(crate) use contents::{LONGEST_HELD, ReadText, TextKind};
pub(crate) use holder::Holder;
pub(crate) use kept::{Candidate, Candidates, KeptTree, NotKnown, Unread, ViewKey};
pub(crate) use mark::Mark;
pub(crate) use plan::{TrigramQuery, plan};
pub(crate) use store::{AskedTree, Need, TreeStore};

/// What fuzz targets look at.
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzed {
    pub(crate) use super::plan::{TrigramQuery, plan};
    pub(crate) use super::segment::{Segment, SegmentBuilder, decode};
    pub(crate) use super::trigram::TrigramCollector;
}
