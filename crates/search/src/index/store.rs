//! The trees of an engine.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::build::{self, BuildProgress};
use super::contents::{Coverage, FileData, TextBudget};
use super::indexed_tree::{IndexMiss, IndexedTree, UnindexedFiles};
use super::tree::{LiveTreeEntry, RefreshOutcome};
use super::tree_handle::{TreeHandle, TreeStage};
use crate::FileIdentity;
use crate::handle::EntryKind;
use crate::settings::{IndexSettings, IndexStatus};
use crate::walk::IgnoreVerdict;

/// The maximum number of trees to cache; the least recently used one is dropped first.
const MAX_TREES: usize = 4;

/// All trees of an engine.
#[derive(Debug)]
pub(crate) struct TreeStore {
    settings: IndexSettings,
    budget: Arc<TextBudget>,
    threads: usize,
    /// Most recently used first.
    trees: Mutex<Vec<Arc<TreeHandle>>>,
}

impl TreeStore {
    /// Creates the store. Returns `None` if the settings disable caching.
    pub(crate) fn new(settings: IndexSettings, threads: usize) -> Option<Self> {
        if !settings.enabled {
            return None;
        }
        let budget = match settings.memory {
            Some(most) => TextBudget::new(most),
            None => TextBudget::by_default(),
        };
        Some(Self {
            settings,
            budget,
            threads,
            trees: Mutex::default(),
        })
    }

    /// Returns whether every answer is compared with that of a plain walk.
    pub(crate) fn verifies(&self) -> bool {
        self.settings.verify
    }

    /// Returns the tree for a search below `real`: that of the current directory, if `real` is in
    /// it. Returns `None` if the directory must not be indexed.
    pub(crate) fn holder(&self, real: &Path, current_dir: &Path) -> Option<QueriedTree> {
        let root = match real.starts_with(current_dir) {
            true => current_dir,
            false => real,
        };
        // Never index `/` or a directory directly below it, such as `/home`.
        if root.components().count() < 3 {
            return None;
        }
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let at = trees
            .iter()
            .position(|tree| real.starts_with(&tree.root) && tree.current_dir == current_dir);
        let holder = match at {
            Some(at) => trees.remove(at),
            None => {
                let (budget, threads) = (&self.budget, self.threads);
                Arc::new(TreeHandle::new(
                    root,
                    current_dir,
                    budget,
                    threads,
                    &self.settings,
                ))
            }
        };
        trees.insert(0, Arc::clone(&holder));
        if let Some(oldest) = trees.get(MAX_TREES) {
            oldest.end();
            trees.truncate(MAX_TREES);
        }
        let read_now = match self.settings.at_once {
            true => {
                let read_now = holder.read();
                let mut is_new = false;
                while build::index_some(&holder) == BuildProgress::Made {
                    is_new = true;
                }
                while build::watch_some(&holder) == BuildProgress::Made {}
                if is_new {
                    super::file::save(&holder);
                }
                read_now
            }
            false => holder.read_if_indexed(),
        };
        Some(QueriedTree { holder, read_now })
    }

    /// Passes a content to the trees that contain the file.
    pub(crate) fn on_file_written(&self, path: &Path, content: &[u8], identity: &FileIdentity) {
        let trees = self
            .trees
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for holder in trees {
            if let Ok(below) = path.strip_prefix(&holder.root) {
                let _ = holder.with_exclusive(|kept| {
                    kept.add_written_content(below, content, identity);
                    Ok(())
                });
            }
        }
    }

    pub(crate) fn inspect(&self, root: &Path) -> Option<IndexStatus> {
        let asked = self.holder(root, root)?;
        asked.holder.read();
        let status = self.status();
        status.into_iter().find(|status| status.root == root)
    }

    pub(crate) fn status(&self) -> Vec<IndexStatus> {
        let trees = self
            .trees
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let status = |holder: &Arc<TreeHandle>| {
            let mut status = IndexStatus {
                root: holder.root.clone(),
                is_ready: false,
                refused: match &*holder.lock() {
                    TreeStage::Refused(refused) => Some(refused.reason()),
                    _ => None,
                },
                is_watched: false,
                watched_files: 0,
                files: 0,
                indexed: 0,
                index_bytes: 0,
                held_bytes: self.budget.used(),
                memory: self.budget.most,
            };
            let _ = holder.with_exclusive(|kept| {
                let entries = || kept.tree.entries.iter().filter(|entry| entry.is_there);
                let is_file = |entry: &&LiveTreeEntry<FileData>| {
                    entry.kind == EntryKind::File && entry.verdict != IgnoreVerdict::Ignored
                };
                let is_indexed = |entry: &&LiveTreeEntry<FileData>| {
                    matches!(entry.data.coverage, Coverage::Indexed { .. })
                };
                status.is_ready = true;
                status.is_watched = kept.tree.is_watched();
                status.watched_files = kept.tree.file_watches.len();
                status.files = entries().filter(is_file).count();
                status.indexed = entries().filter(is_indexed).count();
                status.index_bytes = kept.segments.iter().map(|slot| slot.segment.weight()).sum();
                Ok(())
            });
            status
        };
        trees.iter().map(status).collect()
    }

    /// Starts the background work that makes later answers faster. Called after each answer.
    pub(crate) fn start_background_work(&self, holder: &Arc<TreeHandle>, need: IndexNeed) {
        if self.settings.at_once {
            return;
        }
        match need {
            IndexNeed::Index(Some(unread)) if !unread.needs_work(holder.few_files) => {
                build::touch(holder)
            }
            IndexNeed::Index(_) => build::start(holder, true),
            IndexNeed::Tree if holder.is_unread() => build::start(holder, false),
            IndexNeed::Tree => {}
        }
    }
}

/// The tree that a query is about.
pub(crate) struct QueriedTree {
    pub(crate) holder: Arc<TreeHandle>,
    /// The number of the reading, if the tree was read for this query.
    read_now: Option<u64>,
}

impl QueriedTree {
    /// Brings the tree up to date and calls `ask` with it. The second argument of `ask` says
    /// whether every file was checked since the query started.
    pub(crate) fn with_fresh<T>(
        &self,
        ask: impl FnOnce(&mut IndexedTree, bool) -> Result<T, IndexMiss>,
    ) -> Result<T, IndexMiss> {
        self.holder.with_fresh(|kept, refreshed| {
            let has_looked =
                refreshed == RefreshOutcome::ReadAgain || self.read_now == Some(kept.epoch);
            ask(kept, has_looked)
        })
    }
}

/// The part of the cache that a call needs to be answered fast.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IndexNeed {
    /// The names only.
    Tree,
    /// The contents too. Contains the files that are not indexed, or `None` without a tree.
    Index(Option<UnindexedFiles>),
}

impl Drop for TreeStore {
    fn drop(&mut self) {
        let trees = self.trees.get_mut().unwrap_or_else(PoisonError::into_inner);
        for holder in trees.drain(..) {
            holder.end();
        }
    }
}
