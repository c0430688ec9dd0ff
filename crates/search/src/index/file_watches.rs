//! Watches on individual files.
//!
//! The watch of a directory reports only changes made through a file's name in that directory. A
//! file may have, or get at any time, another name outside the tree and be written through that
//! name; only a watch on the file itself reports this. So a file that the index may rule out
//! without a `stat` is watched, and a file that cannot be watched is checked with `stat` before
//! each answer. A watch ends with its first event. After that, the state of the file is unknown
//! until it is read again, so repeated writes do not fill the event queue.

use std::collections::{HashMap, HashSet};
use std::fs;

use super::tree::EntryNumber;
use super::watch::WatchNumber;

/// The maximum number of watched files, even if the kernel permits more: each takes about 1 KB of
/// kernel memory.
const MAX_COUNT: usize = 150_000;

/// The files that are watched individually.
#[derive(Debug)]
pub(crate) struct FileWatches {
    files: HashMap<WatchNumber, EntryNumber>,
    /// Further names (hard links) of the same file.
    others: HashMap<WatchNumber, Vec<EntryNumber>>,
    /// Watches that ended before they were entered here. `Some` while a thread adds watches.
    ended_early: Option<HashSet<WatchNumber>>,
    most: usize,
}

impl FileWatches {
    pub(crate) fn new(most: Option<usize>) -> Self {
        Self {
            files: HashMap::new(),
            others: HashMap::new(),
            ended_early: None,
            most: most.unwrap_or_else(by_default),
        }
    }

    /// Returns an empty set with the same limit. If the kernel refused watches for directories, the
    /// limit is half of the files that are watched now.
    pub(crate) fn anew(&self, ran_out: bool) -> Self {
        let most = match ran_out {
            true => self.files.len() / 2,
            false => self.most,
        };
        Self::new(Some(most))
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns the number of files that may still be watched.
    pub(crate) fn room(&self) -> usize {
        self.most.saturating_sub(self.files.len())
    }

    /// Stops adding watches: the kernel grants no further ones.
    pub(crate) fn set_full(&mut self) {
        self.most = self.files.len();
    }

    /// Marks that a thread starts to add watches: those that end before they are entered are
    /// recorded.
    pub(crate) fn begin(&mut self) {
        self.ended_early.get_or_insert_default();
    }

    /// Marks that the thread has entered all its watches.
    pub(crate) fn end(&mut self) {
        self.ended_early = None;
    }

    pub(crate) fn has(&self, watch: WatchNumber) -> bool {
        self.files.contains_key(&watch)
    }

    /// Enters a watch. Returns false if the watch has already ended.
    pub(crate) fn enter(&mut self, watch: WatchNumber, entry: EntryNumber) -> bool {
        let ended = self.ended_early.as_ref();
        if ended.is_some_and(|ended| ended.contains(&watch)) {
            return false;
        }
        if let Some(first) = self.files.insert(watch, entry)
            && first != entry
        {
            self.others.entry(watch).or_default().push(first);
        }
        true
    }

    /// Removes a watch that had an event or was ended. Returns its files.
    pub(crate) fn take(&mut self, watch: WatchNumber) -> Vec<EntryNumber> {
        // The watch may be about to be entered for another name of the same file.
        if let Some(ended) = &mut self.ended_early {
            ended.insert(watch);
        }
        let mut entries = self.others.remove(&watch).unwrap_or_default();
        entries.extend(self.files.remove(&watch));
        entries
    }
}

/// Returns half of the kernel's limit per user, because other programs of the same user need
/// watches too.
fn by_default() -> usize {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
    let limit = limit
        .ok()
        .and_then(|text| text.trim().parse::<usize>().ok());
    (limit.unwrap_or(8192) / 2).min(MAX_COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_two_names_has_one_watch() {
        let mut watches = FileWatches::new(Some(3));
        assert!(watches.enter(1, 10) && watches.enter(1, 11) && watches.enter(2, 20));
        assert_eq!((watches.len(), watches.room()), (2, 1));
        let mut both = watches.take(1);
        both.sort_unstable();
        assert_eq!(both, [10, 11]);
        assert!(watches.take(1).is_empty());
        assert_eq!(watches.take(2), [20]);
    }

    #[test]
    fn what_ends_before_it_is_entered_does_not_count() {
        let mut watches = FileWatches::new(None);
        assert!(watches.take(5).is_empty(), "no one adds any");
        watches.begin();
        assert!(watches.take(7).is_empty());
        assert!(watches.enter(5, 1) && !watches.enter(7, 2));
        assert_eq!(watches.take(5), [1]);
        assert!(!watches.enter(5, 3), "another name of the same file");
        watches.end();
        assert!(watches.enter(7, 2));
    }

    #[test]
    fn where_directories_run_out_there_are_fewer() {
        let mut watches = FileWatches::new(Some(8));
        for number in 1..=8 {
            assert!(watches.enter(number, number as EntryNumber));
        }
        assert_eq!(watches.anew(false).room(), 8);
        assert_eq!(watches.anew(true).room(), 4);
        watches.take(1);
        watches.set_full();
        assert_eq!(watches.room(), 0);
    }
}
