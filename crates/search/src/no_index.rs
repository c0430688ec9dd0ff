//! Replaces `index` on systems without a drainable event queue: nothing is cached between calls.

use std::path::{Path, PathBuf};

use crate::settings::{IndexSettings, IndexStatus};

pub(crate) fn file_place(_: &Path, _: &Path) -> Option<PathBuf> {
    None
}

/// A store that is never created.
pub(crate) enum NoTrees {}

pub(crate) use NoTrees as TreeStore;

impl NoTrees {
    pub(crate) fn new(_: IndexSettings, _: usize) -> Option<Self> {
        None
    }

    pub(crate) fn on_file_written(&self, _: &Path, _: &[u8], _: &crate::FileIdentity) {}

    pub(crate) fn inspect(&self, _: &Path) -> Option<IndexStatus> {
        None
    }

    pub(crate) fn status(&self) -> Vec<IndexStatus> {
        Vec::new()
    }
}
