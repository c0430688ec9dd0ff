//! The threads of a walk and their task queue.
//!
//! The queue is last-in, first-out, so only a few directories are open at a time, however large the
//! tree is. Files are handed out in batches, because a flat directory must not keep one thread busy
//! while the others are idle.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::io::Errno;

use super::ignores::{IgnoreFilesPresent, IgnoreLevel, IgnoreRules};
use super::{EntryVisitor, WalkEntry};
use crate::handle::{Directory, EntryKind};
use crate::skip::{SkipLog, SkipReason};
use crate::stop::StopFlag;

/// The maximum number of files in a batch.
const BATCH: usize = 32;

/// Returns whether an entry is part of the walk.
pub(super) type EntryFilter<'a> = dyn Fn(&WalkEntry) -> bool + Sync + 'a;

pub(super) struct ParallelWalk<'a> {
    rules: &'a IgnoreRules,
    keep: &'a EntryFilter<'a>,
    watch: &'a StopFlag,
    skips: &'a SkipLog,
    queue: WalkQueue,
}

enum WalkTask {
    /// Enter a directory of the tree.
    Enter {
        entry: WalkEntry,
        level: Option<Arc<IgnoreLevel>>,
    },
    Visit(Vec<WalkEntry>),
}

#[derive(Default)]
struct WalkQueue {
    state: Mutex<WalkQueueState>,
    news: Condvar,
}

#[derive(Default)]
struct WalkQueueState {
    tasks: Vec<WalkTask>,
    /// Threads that may still add tasks.
    busy: usize,
    /// Threads that wait for a task.
    waiting: usize,
    ended: bool,
}

impl<'a> ParallelWalk<'a> {
    pub(super) fn new(
        rules: &'a IgnoreRules,
        keep: &'a EntryFilter<'a>,
        watch: &'a StopFlag,
        skips: &'a SkipLog,
    ) -> Self {
        Self {
            rules,
            keep,
            watch,
            skips,
            queue: WalkQueue::default(),
        }
    }

    pub(super) fn run<'s>(
        &self,
        root: Directory,
        path: &Path,
        threads: usize,
        mut visitor: impl FnMut() -> EntryVisitor<'s>,
    ) {
        let mut tasks = Vec::new();
        self.list(&Arc::new(root), path, 0, self.rules.start(), &mut tasks);
        self.queue.lock().tasks = tasks;
        if threads <= 1 {
            return self.work(visitor());
        }
        thread::scope(|scope| {
            for _ in 1..threads {
                let visit = visitor();
                scope.spawn(move || self.work(visit));
            }
            self.work(visitor());
        });
    }

    /// Runs one thread until the queue is empty.
    fn work(&self, mut visit: EntryVisitor<'_>) {
        // If this thread panics, the others must not wait for it.
        let _end = EndOnPanic(&self.queue);
        let mut found = Vec::new();
        let mut next = self.queue.next(None);
        while let Some(task) = next {
            if self.watch.must_stop() {
                return self.queue.end();
            }
            match task {
                WalkTask::Visit(entries) => {
                    for entry in &entries {
                        if self.watch.must_stop() {
                            return self.queue.end();
                        }
                        visit(entry);
                    }
                }
                WalkTask::Enter { entry, level } => self.enter(&entry, level, &mut found),
            }
            next = self.queue.next(Some(&mut found));
        }
    }

    fn enter(&self, entry: &WalkEntry, level: Option<Arc<IgnoreLevel>>, found: &mut Vec<WalkTask>) {
        match entry.directory.enter(entry.name()) {
            Ok(directory) => {
                let directory = Arc::new(directory);
                self.list(&directory, &entry.path, entry.depth, level, found);
            }
            Err(error) if is_missing(&error) => {}
            Err(error) => self.unreadable(&entry.path, &error),
        }
    }

    fn list(
        &self,
        directory: &Arc<Directory>,
        path: &Path,
        depth: usize,
        level: Option<Arc<IgnoreLevel>>,
        found: &mut Vec<WalkTask>,
    ) {
        let mut names: Vec<(OsString, EntryKind)> = Vec::new();
        let mut telling = IgnoreFilesPresent::default();
        let listed = directory.list(|name, kind| {
            telling.record(&name);
            names.push((name, kind));
        });
        if let Err(error) = listed {
            self.unreadable(path, &error);
        }
        let level = self
            .rules
            .enter(directory, path, &telling, level, self.skips);
        let mut batch = Vec::new();
        for (name, kind) in names {
            let is_dir = kind == EntryKind::Directory;
            let path: PathBuf = path.join(name);
            if self.rules.hide(&path, is_dir, level.as_deref()) {
                continue;
            }
            let entry = WalkEntry {
                directory: Arc::clone(directory),
                path,
                kind,
                depth: depth + 1,
            };
            if !(self.keep)(&entry) {
                continue;
            }
            if is_dir {
                let level = level.clone();
                found.push(WalkTask::Enter { entry, level });
                continue;
            }
            batch.push(entry);
            if batch.len() == BATCH {
                found.push(WalkTask::Visit(std::mem::take(&mut batch)));
            }
        }
        if !batch.is_empty() {
            found.push(WalkTask::Visit(batch));
        }
    }

    fn unreadable(&self, path: &Path, error: &io::Error) {
        let message = error.to_string();
        self.skips
            .add(Some(path), SkipReason::Unreadable { message });
    }
}

/// Returns whether the directory was removed or replaced since it was listed.
fn is_missing(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
    gone.iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

impl WalkQueue {
    fn lock(&self) -> MutexGuard<'_, WalkQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the tasks that the last task found, if any, and returns the next task.
    /// Returns `None` when the walk has finished.
    fn next(&self, last: Option<&mut Vec<WalkTask>>) -> Option<WalkTask> {
        let mut state = self.lock();
        if let Some(found) = last {
            state.busy -= 1;
            // One of the new tasks is for this thread.
            if state.waiting > 0 && found.len() > 1 {
                self.news.notify_all();
            }
            state.tasks.append(found);
        }
        loop {
            if state.ended {
                return None;
            }
            if let Some(task) = state.tasks.pop() {
                state.busy += 1;
                return Some(task);
            }
            if state.busy == 0 {
                state.ended = true;
                self.news.notify_all();
                return None;
            }
            state.waiting += 1;
            state = self
                .news
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    fn end(&self) {
        self.lock().ended = true;
        self.news.notify_all();
    }
}

struct EndOnPanic<'a>(&'a WalkQueue);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end();
        }
    }
}
