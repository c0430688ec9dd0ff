//! The read ledger: what this session has read or written of each file.
//!
//! Keyed by real path. Small contents are cached too, so that a later change from outside can be
//! shown as a diff. They share a budget, and the oldest are dropped first.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memchr::memmem;

use crate::stamp::{ContentHash, Stamp};

/// The size limit of one cached content, in bytes; drift of larger files is reported without a
/// diff.
pub(crate) const KEPT_EACH: usize = 1 << 20;
const KEPT_TOTAL: usize = 32 << 20;

/// The origin of what the session knows about a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadSource {
    /// A read showed it.
    Read,
    /// The session wrote it.
    Write,
    /// A read showed it as unsaved text of an editor; it was not on disk then.
    Editor,
}

/// The lines that a read showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownLines {
    /// The first line, 1-based.
    pub first: u64,
    /// The last line.
    pub last: u64,
    /// Lines of the file, if they were counted.
    pub total_lines: Option<u64>,
}

/// The record of one read or write: the state of the file then, and how much of it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRecord {
    /// The stamp of the file at that time.
    pub stamp: Stamp,
    /// The hash of the whole content; `None` for files above 64 MB, which are not hashed.
    pub hash: Option<ContentHash>,
    /// The lines that were shown; `None` after a write, and for an empty file.
    pub shown: Option<ShownLines>,
    /// A read without offset and limit could not show everything.
    pub partial: bool,
    /// The origin of the record.
    pub source: ReadSource,
    /// The stamp alone proves that the file is unchanged (see `Stamp::is_settled`).
    pub settled: bool,
}

/// A record together with the content, if it is still cached.
#[derive(Debug, Clone)]
pub(crate) struct LedgerRecord {
    pub(crate) read_record: ReadRecord,
    pub(crate) content: Option<Arc<Vec<u8>>>,
}

/// The last read or write of each file in a session, by real path.
#[derive(Debug, Default)]
pub struct ReadLedger {
    state: Mutex<LedgerState>,
}

#[derive(Debug, Default)]
struct LedgerState {
    entries: HashMap<PathBuf, LedgerEntry>,
    kept_bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct LedgerEntry {
    seen: LedgerRecord,
    /// The parts of this content that were shown, each with its last form.
    shown_parts: HashMap<String, ShownForm>,
    recorded: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShownForm {
    InFull,
    /// By a reference to an earlier result.
    ByPointing,
}

impl ReadLedger {
    /// Records a read or write of the file at `real`; `content` is cached if it is small enough.
    pub(crate) fn record(&self, real: &Path, mut sight: ReadRecord, content: Option<Vec<u8>>) {
        let content = content
            .filter(|bytes| bytes.len() <= KEPT_EACH)
            .map(Arc::new);
        let mut state = self.lock();
        let mut told = HashMap::new();
        if let Some(earlier) = state.remove(real)
            && sight.hash.is_some()
            && sight.hash == earlier.seen.read_record.hash
        {
            // If all of the same content was shown before, a partial read does not change that.
            sight.partial &= earlier.seen.read_record.partial;
            told = earlier.shown_parts;
        }
        state.clock += 1;
        state.kept_bytes += content.as_ref().map_or(0, |bytes| bytes.len());
        let entry = LedgerEntry {
            seen: LedgerRecord {
                read_record: sight,
                content,
            },
            shown_parts: told,
            recorded: state.clock,
        };
        state.entries.insert(real.to_path_buf(), entry);
        state.keep_within_budget();
    }

    /// Returns the last record for the file at `real`.
    pub fn lookup(&self, real: &Path) -> Option<ReadRecord> {
        self.seen(real).map(|seen| seen.read_record)
    }

    pub(crate) fn remove(&self, real: &Path) {
        self.lock().remove(real);
    }

    /// Returns whether a part of the content last seen may be replaced by a reference to an earlier
    /// result that showed it. Call it when the part is about to be shown. `part` is any name that
    /// identifies the part.
    ///
    /// Never returns `true` twice in a row for a part: a model that asks again has lost the earlier
    /// result. Never returns `true` after a change, even if the change was undone, or for a file that
    /// is too large to be hashed.
    pub fn may_point_to(&self, real: &Path, part: &str) -> bool {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(real) else {
            return false;
        };
        if entry.seen.read_record.hash.is_none() {
            return false;
        }
        let told = match entry.shown_parts.get(part) {
            Some(ShownForm::InFull) => ShownForm::ByPointing,
            Some(ShownForm::ByPointing) | None => ShownForm::InFull,
        };
        entry.shown_parts.insert(part.to_owned(), told);
        told == ShownForm::ByPointing
    }

    /// Returns all known files, sorted.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.lock().entries.keys().cloned().collect();
        paths.sort_unstable();
        paths
    }

    pub(crate) fn seen(&self, real: &Path) -> Option<LedgerRecord> {
        self.lock()
            .entries
            .get(real)
            .map(|entry| entry.seen.clone())
    }

    /// Returns known files, other than `except`, whose cached content contains `needle`; at most
    /// `limit`.
    pub(crate) fn containing(&self, needle: &str, except: &Path, limit: usize) -> Vec<PathBuf> {
        let finder = memmem::Finder::new(needle);
        let state = self.lock();
        let mut paths: Vec<PathBuf> = state
            .entries
            .iter()
            .filter(|(path, _)| *path != except)
            .filter(|(_, entry)| {
                entry
                    .seen
                    .content
                    .as_ref()
                    .is_some_and(|bytes| finder.find(bytes).is_some())
            })
            .map(|(path, _)| path.clone())
            .collect();
        paths.sort_unstable();
        paths.truncate(limit);
        paths
    }

    fn lock(&self) -> MutexGuard<'_, LedgerState> {
        // Every update is complete before the lock is released, so a poisoned lock can be used.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LedgerState {
    fn remove(&mut self, real: &Path) -> Option<LedgerEntry> {
        let entry = self.entries.remove(real)?;
        self.kept_bytes -= entry.seen.content.as_ref().map_or(0, |bytes| bytes.len());
        Some(entry)
    }

    fn keep_within_budget(&mut self) {
        while self.kept_bytes > KEPT_TOTAL {
            let oldest = self
                .entries
                .values_mut()
                .filter(|entry| entry.seen.content.is_some())
                .min_by_key(|entry| entry.recorded);
            let Some(content) = oldest.and_then(|entry| entry.seen.content.take()) else {
                return;
            };
            self.kept_bytes -= content.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(content: &[u8], partial: bool) -> ReadRecord {
        ReadRecord {
            stamp: Stamp {
                device: 1,
                inode: 1,
                size: content.len() as u64,
                mtime_ns: 0,
                ctime_ns: 0,
                mode: 0o644,
                links: 1,
                uid: 0,
                gid: 0,
            },
            hash: Some(ContentHash::compute(content)),
            shown: None,
            partial,
            source: ReadSource::Read,
            settled: false,
        }
    }

    #[test]
    fn a_partial_look_does_not_undo_a_whole_one_of_the_same_content() {
        let ledger = ReadLedger::default();
        let path = Path::new("/a");
        ledger.record(path, sight(b"x", false), None);
        ledger.record(path, sight(b"x", true), None);
        assert!(!ledger.lookup(path).unwrap().partial);
        ledger.record(path, sight(b"changed", true), None);
        assert!(ledger.lookup(path).unwrap().partial);
    }

    #[test]
    fn an_answer_is_pointed_to_once_and_only_while_the_content_is_the_same() {
        let ledger = ReadLedger::default();
        let path = Path::new("/a");
        let ask = |part: &str| ledger.may_point_to(path, part);
        assert!(!ask("lines 1–2"), "never seen");
        ledger.record(path, sight(b"x", false), None);
        assert!(!ask("lines 1–2"));
        ledger.record(path, sight(b"x", false), None);
        assert!(ask("lines 1–2"));
        assert!(!ask("lines 1–1"), "another part");
        assert!(!ask("lines 1–2"), "twice in a row");
        assert!(ask("lines 1–2"));
        ledger.record(path, sight(b"changed", false), None);
        ledger.record(path, sight(b"x", false), None);
        assert!(!ask("lines 1–1"), "changed in between");
        let unhashed = ReadRecord {
            hash: None,
            ..sight(b"x", false)
        };
        ledger.record(path, unhashed.clone(), None);
        assert!(!ask("lines 1–2"));
        ledger.record(path, unhashed, None);
        assert!(!ask("lines 1–2"), "nobody knows that it is the same");
    }

    #[test]
    fn the_oldest_contents_are_dropped_when_the_budget_is_used_up() {
        let ledger = ReadLedger::default();
        let content = vec![b'x'; KEPT_EACH];
        for number in 0..40 {
            let path = PathBuf::from(format!("/{number}"));
            ledger.record(&path, sight(&content, false), Some(content.clone()));
        }
        let kept = |path: &str| ledger.seen(Path::new(path)).unwrap().content.is_some();
        assert_eq!(
            (kept("/0"), kept("/7"), kept("/8"), kept("/39")),
            (false, false, true, true)
        );
        assert_eq!(ledger.paths().len(), 40);
        ledger.remove(Path::new("/39"));
        assert!(ledger.lookup(Path::new("/39")).is_none());
        assert_eq!(ledger.lock().kept_bytes, 31 * KEPT_EACH);
    }

    #[test]
    fn contents_above_the_limit_are_not_kept() {
        let ledger = ReadLedger::default();
        let content = vec![b'x'; KEPT_EACH + 1];
        ledger.record(Path::new("/a"), sight(&content, false), Some(content));
        assert!(ledger.seen(Path::new("/a")).unwrap().content.is_none());
    }
}
