//! A handle on one tree of an engine: not read yet, being read, ready, or refused.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::contents::TextBudget;
use super::file;
use super::file_watches::FileWatches;
use super::indexed_tree::{IndexMiss, IndexedTree};
use super::load::TreeRefusal;
use super::tree::RefreshOutcome;
use crate::settings::IndexSettings;

/// A tree, identified by its root directory.
pub(crate) struct TreeHandle {
    pub(crate) root: PathBuf,
    pub(crate) current_dir: PathBuf,
    pub(crate) budget: Arc<TextBudget>,
    pub(crate) threads: usize,
    /// The directory for index files.
    pub(crate) folder: Option<PathBuf>,
    /// Trees with fewer files are not indexed.
    pub(crate) few_files: usize,
    /// The time without use after which cached texts are freed.
    pub(crate) contents_lifetime: Duration,
    /// The number of candidates up to which each one is checked with `stat` before its cached text
    /// is used.
    pub(crate) checked_candidates: usize,
    /// The maximum number of files that get their own watch, if the settings limit it.
    watched_files: Option<usize>,
    state: RwLock<TreeStage>,
    /// The state of the background thread, if one runs.
    pub(crate) work: Mutex<BackgroundWork>,
    pub(crate) news: Condvar,
    has_ended: AtomicBool,
    /// The number of times the tree was read from scratch.
    readings: AtomicU64,
}

pub(crate) enum TreeStage {
    Unread,
    /// A thread is reading the tree and will store the result here.
    Reading,
    Ready(Box<IndexedTree>),
    Refused(TreeRefusal),
}

#[derive(Debug)]
pub(crate) struct BackgroundWork {
    pub(crate) has_thread: bool,
    /// True if work is pending.
    pub(crate) is_wanted: bool,
    /// True if contents are requested, not only names.
    pub(crate) wants_index: bool,
    pub(crate) last_asked: Instant,
}

impl TreeHandle {
    pub(crate) fn new(
        root: &Path,
        current_dir: &Path,
        budget: &Arc<TextBudget>,
        threads: usize,
        settings: &IndexSettings,
    ) -> Self {
        Self {
            root: root.to_path_buf(),
            current_dir: current_dir.to_path_buf(),
            budget: Arc::clone(budget),
            threads,
            folder: settings.cache_folder.clone(),
            few_files: settings.few_files,
            contents_lifetime: settings.contents_lifetime,
            checked_candidates: settings.checked_candidates,
            watched_files: settings.watched_files,
            state: RwLock::new(TreeStage::Unread),
            work: Mutex::new(BackgroundWork {
                has_thread: false,
                is_wanted: false,
                wants_index: false,
                last_asked: Instant::now(),
            }),
            news: Condvar::new(),
            has_ended: AtomicBool::new(false),
            readings: AtomicU64::new(0),
        }
    }

    pub(crate) fn lock(&self) -> RwLockWriteGuard<'_, TreeStage> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn work(&self) -> MutexGuard<'_, BackgroundWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `look` with the tree, if it is ready. Other readers may run concurrently. It should
    /// not take long, because the next query must take the write lock to bring the tree up to date.
    pub(crate) fn with_shared<T>(
        &self,
        look: impl FnOnce(&IndexedTree) -> Result<T, IndexMiss>,
    ) -> Result<T, IndexMiss> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            TreeStage::Ready(kept) => look(kept),
            _ => Err(IndexMiss),
        }
    }

    /// Calls `ask` with exclusive access to the tree, if it is ready.
    pub(crate) fn with_exclusive<T>(
        &self,
        ask: impl FnOnce(&mut IndexedTree) -> Result<T, IndexMiss>,
    ) -> Result<T, IndexMiss> {
        match &mut *self.lock() {
            TreeStage::Ready(kept) => ask(kept),
            _ => Err(IndexMiss),
        }
    }

    /// Brings the tree up to date and calls `ask` with it. If the update fails, the tree is
    /// dropped. The second argument of `ask` says whether everything was read again just now.
    pub(crate) fn with_fresh<T>(
        &self,
        ask: impl FnOnce(&mut IndexedTree, RefreshOutcome) -> Result<T, IndexMiss>,
    ) -> Result<T, IndexMiss> {
        let mut stage = self.lock();
        let TreeStage::Ready(kept) = &mut *stage else {
            return Err(IndexMiss);
        };
        match kept.refresh() {
            Ok(refreshed) => ask(kept, refreshed),
            Err(TreeRefusal::Failed | TreeRefusal::Stopped) => {
                // It may succeed another time.
                *stage = TreeStage::Unread;
                Err(IndexMiss)
            }
            Err(refused) => {
                *stage = TreeStage::Refused(refused);
                Err(IndexMiss)
            }
        }
    }

    /// Reads the tree, unless another thread has read it or is reading it. Afterwards it is ready
    /// or refused. Returns the number of the reading, if this call did it.
    pub(crate) fn read(&self) -> Option<u64> {
        {
            let mut stage = self.lock();
            if !matches!(*stage, TreeStage::Unread) {
                return None;
            }
            *stage = TreeStage::Reading;
        }
        let stop = || self.has_ended();
        let (read, index) = thread::scope(|scope| {
            // The index file is read concurrently with the tree; neither depends on the other.
            let index = thread::Builder::new().spawn_scoped(scope, || file::read(self));
            let read = IndexedTree::read(
                &self.root,
                &self.current_dir,
                self.threads,
                &self.budget,
                FileWatches::new(self.watched_files),
                &stop,
            );
            let index = index.ok().and_then(|index| index.join().ok());
            (read, index.flatten())
        });
        let (stage, number) = match read {
            Ok(mut kept) => {
                if let Some(index) = index {
                    file::adopt_index(&mut kept, index);
                }
                kept.epoch = self.readings.fetch_add(1, Ordering::Relaxed) << 32;
                let number = kept.epoch;
                (TreeStage::Ready(Box::new(kept)), Some(number))
            }
            Err(refused) => (TreeStage::Refused(refused), None),
        };
        *self.lock() = stage;
        number
    }

    pub(crate) fn is_unread(&self) -> bool {
        matches!(*self.lock(), TreeStage::Unread)
    }

    /// Reads the tree now if an earlier session stored an index: then this is faster than a plain
    /// search.
    pub(crate) fn read_if_indexed(&self) -> Option<u64> {
        match self.is_unread() && file::has_index_file(self) {
            true => self.read(),
            false => None,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Asks the background thread to end. Called when the engine drops the tree.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.news.notify_all();
    }
}

impl std::fmt::Debug for TreeHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeHandle")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}
