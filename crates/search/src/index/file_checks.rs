//! Discards the cached knowledge about a file when the file changes, as reported by its watch or by
//! a check with `stat`.

use std::path::PathBuf;
use std::thread;

use super::file_fingerprint::FileFingerprint;
use super::tree::{ContentKnowledge, EntryNumber, LiveTree};
use super::watch::WatchNumber;

/// Fewer files than this are checked by one thread.
const MANY: usize = 500;

impl<T: ContentKnowledge> LiveTree<T> {
    /// Discards what is known about a file's content.
    pub(crate) fn drop_content(&mut self, number: EntryNumber) {
        let entry = &mut self.entries[number as usize];
        entry.version += 1;
        entry.data = T::default();
        if let Some(watch) = entry.watch.take() {
            self.end_watch(watch);
        }
    }

    /// Ends the watch of a file. Then the file is not watched under its other names either.
    fn end_watch(&mut self, watch: WatchNumber) {
        for entry in self.file_watches.take(watch) {
            self.entries[entry as usize].watch = None;
        }
        if let Some(watcher) = &self.watcher {
            watcher.unwatch(watch);
        }
    }

    /// Enters the watch of a file; the watch must have been started before the file was read or
    /// checked. Returns false if the file has changed since. Then the cached knowledge about it is
    /// discarded.
    pub(crate) fn enter_watch(&mut self, number: EntryNumber, watch: WatchNumber) -> bool {
        let is_watched = self.file_watches.enter(watch, number);
        match is_watched {
            true => self.entries[number as usize].watch = Some(watch),
            false => self.refresh_mark(number),
        }
        is_watched
    }

    /// Discards the cached knowledge about a file after an event, and records its new fingerprint.
    pub(crate) fn refresh_mark(&mut self, number: EntryNumber) {
        self.drop_content(number);
        let found = self.top.stat_below(&self.path_of(number));
        if let Some(found) = found {
            self.entries[number as usize].mark = FileFingerprint::from_stat(&found);
        }
    }

    /// Checks files that are not watched, and discards the knowledge about those that changed.
    pub(crate) fn check_files(&mut self, numbers: &[EntryNumber]) {
        let threads = match numbers.len() < MANY {
            true => 1,
            false => self.threads.max(1),
        };
        let tree = &*self;
        let has_changed = |number: EntryNumber, path: &mut PathBuf| {
            let entry = &tree.entries[number as usize];
            let is_same = tree.stat_entry(entry, path) == Some(entry.mark);
            !is_same || !entry.data.is_settled()
        };
        let part = numbers.len().div_ceil(threads).max(1);
        let changed: Vec<EntryNumber> = thread::scope(|scope| {
            let look = |part| -> Vec<EntryNumber> {
                let (part, mut path): (&[EntryNumber], _) = (part, PathBuf::new());
                let changed = part.iter().copied();
                changed.filter(|it| has_changed(*it, &mut path)).collect()
            };
            let mut parts = numbers.chunks(part);
            let own = parts.next();
            let others: Vec<_> = parts.map(|part| scope.spawn(move || look(part))).collect();
            let mut changed = own.map(look).unwrap_or_default();
            for other in others {
                match other.join() {
                    Ok(more) => changed.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            changed
        });
        for number in changed {
            self.refresh_mark(number);
        }
    }
}
