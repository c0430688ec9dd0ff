//! One tree of an engine: not read yet, being read, ready, or refused.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::contents::Budget;
use super::file;
use super::kept::{KeptTree, NotKnown};
use super::load::Refused;
use crate::settings::IndexSettings;

/// A tree, by the directory it begins at.
pub(crate) struct Holder {
    pub(crate) root: PathBuf,
    pub(crate) current_dir: PathBuf,
    pub(crate) budget: Arc<Budget>,
    pub(crate) threads: usize,
    /// Where index files are.
    pub(crate) folder: Option<PathBuf>,
    /// Fewer files are not worth an index.
    pub(crate) few_files: usize,
    state: Mutex<Stage>,
    /// Of the thread behind it, if there is one.
    pub(crate) work: Mutex<Work>,
    pub(crate) news: Condvar,
    has_ended: AtomicBool,
}

pub(crate) enum Stage {
    Unread,
    /// By a thread, which will put it here.
    Reading,
    Ready(Box<KeptTree>),
    Refused(Refused),
}

#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) has_thread: bool,
    /// There is something to do.
    pub(crate) is_wanted: bool,
    /// Contents are asked for, not only names.
    pub(crate) wants_index: bool,
    pub(crate) last_asked: Instant,
}

impl Holder {
    pub(crate) fn new(
        root: &Path,
        current_dir: &Path,
        budget: &Arc<Budget>,
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
            state: Mutex::new(Stage::Unread),
            work: Mutex::new(Work {
                has_thread: false,
                is_wanted: false,
                wants_index: false,
                last_asked: Instant::now(),
            }),
            news: Condvar::new(),
            has_ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Stage> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the tree, if it is ready.
    pub(crate) fn with<T>(
        &self,
        ask: impl FnOnce(&mut KeptTree) -> Result<T, NotKnown>,
    ) -> Result<T, NotKnown> {
        match &mut *self.lock() {
            Stage::Ready(kept) => ask(kept),
            _ => Err(NotKnown),
        }
    }

    /// Asks the tree as it is now. A tree that cannot be brought up to date is given up.
    pub(crate) fn with_fresh<T>(
        &self,
        ask: impl FnOnce(&mut KeptTree) -> Result<T, NotKnown>,
    ) -> Result<T, NotKnown> {
        let mut stage = self.lock();
        let Stage::Ready(kept) = &mut *stage else {
            return Err(NotKnown);
        };
        match kept.refresh() {
            Ok(()) => ask(kept),
            Err(Refused::Failed | Refused::Stopped) => {
                // Perhaps it can be read another time.
                *stage = Stage::Unread;
                Err(NotKnown)
            }
            Err(refused) => {
                *stage = Stage::Refused(refused);
                Err(NotKnown)
            }
        }
    }

    /// Reads the tree, if no one did yet. It is ready afterwards, or refused.
    pub(crate) fn read(&self) {
        {
            let mut stage = self.lock();
            if !matches!(*stage, Stage::Unread) {
                return;
            }
            *stage = Stage::Reading;
        }
        let stop = || self.has_ended();
        let read = KeptTree::read(
            &self.root,
            &self.current_dir,
            self.threads,
            &self.budget,
            &stop,
        );
        *self.lock() = match read {
            Ok(mut kept) => {
                file::load(self, &mut kept);
                Stage::Ready(Box::new(kept))
            }
            Err(refused) => Stage::Refused(refused),
        };
    }

    pub(crate) fn is_unread(&self) -> bool {
        matches!(*self.lock(), Stage::Unread)
    }

    /// Reads the tree at once if an earlier session left an index: it is faster then than a plain
    /// search.
    pub(crate) fn read_if_indexed(&self) {
        if self.is_unread() && file::is_there(self) {
            self.read();
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// The engine is gone: its thread ends soon.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.news.notify_all();
    }
}

impl std::fmt::Debug for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holder")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}
