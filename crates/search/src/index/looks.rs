//! What is known of a tree's files is lost when something happens to them: by the watch of the file
//! itself, or by a look at it.

use std::path::PathBuf;
use std::thread;

use super::mark::Mark;
use super::tree::{EntryNumber, FileKnowledge, LiveTree};
use super::watch::WatchNumber;

/// Fewer files are looked at by one thread.
const MANY: usize = 500;

impl<T: FileKnowledge> LiveTree<T> {
    /// What is known of a file's content is not so any more.
    pub(crate) fn lose(&mut self, number: EntryNumber) {
        let entry = &mut self.entries[number as usize];
        entry.version += 1;
        entry.data = T::default();
        if let Some(watch) = entry.watch.take() {
            self.end_watch(watch);
        }
    }

    /// Ends the watch of a file; by its other names it is not watched either.
    fn end_watch(&mut self, watch: WatchNumber) {
        for entry in self.file_watches.take(watch) {
            self.entries[entry as usize].watch = None;
        }
        if let Some(watcher) = &self.watcher {
            watcher.unwatch(watch);
        }
    }

    /// Enters the watch of a file that was begun before it was read or looked at. False if something
    /// has happened to the file since: then it is not known any more.
    pub(crate) fn enter_watch(&mut self, number: EntryNumber, watch: WatchNumber) -> bool {
        let is_watched = self.file_watches.enter(watch, number);
        match is_watched {
            true => self.entries[number as usize].watch = Some(watch),
            false => self.look_again(number),
        }
        is_watched
    }

    /// Something happened to a file.
    pub(crate) fn look_again(&mut self, number: EntryNumber) {
        self.lose(number);
        let found = self.top.look_below(&self.path_of(number));
        if let Some(found) = found {
            self.entries[number as usize].mark = Mark::of(&found);
        }
    }

    /// Looks at files that are not watched. What is known of those that changed is lost.
    pub(crate) fn look_at(&mut self, numbers: &[EntryNumber]) {
        let threads = match numbers.len() < MANY {
            true => 1,
            false => self.threads.max(1),
        };
        let tree = &*self;
        let has_changed = |number: EntryNumber, path: &mut PathBuf| {
            let entry = &tree.entries[number as usize];
            let is_same = tree.look_at_entry(entry, path) == Some(entry.mark);
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
            self.look_again(number);
        }
    }
}
