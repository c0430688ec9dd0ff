//! A tree that is cached between calls, with its index and its cached texts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bits::NumberSet;
use super::contents::{CachedContent, CachedTextKind, Coverage, FileData, ReadText, TextBudget};
use super::file_watches::FileWatches;
use super::load::TreeRefusal;
use super::segment::{CorruptIndex, Segment};
use super::tree::{
    DirectoryNumber, EntryNumber, LiveTree, LiveTreeEntry, RefreshOutcome, WatchMode,
};
use super::trigram_query::TrigramQuery;
use super::written_contents::WrittenContents;
use crate::FileIdentity;
use crate::handle::EntryKind;
use crate::skip::Skip;
use crate::walk::{IgnoreVerdict, NameRules};

/// The number of file selections to cache.
const MAX_VIEWS: usize = 12;

const NO_FILE: EntryNumber = EntryNumber::MAX;

/// A tree with its index.
pub(crate) struct IndexedTree {
    pub(crate) tree: LiveTree<FileData>,
    pub(crate) segments: Vec<SegmentSlot>,
    views: Vec<CachedView>,
    pub(crate) budget: Arc<TextBudget>,
    /// Increases when entries are renumbered.
    pub(crate) epoch: u64,
    /// True if everything in the index is stored on disk.
    pub(crate) is_saved: bool,
    written_contents: WrittenContents,
}

/// A segment, with the current file for each of its texts.
pub(crate) struct SegmentSlot {
    pub(crate) segment: Arc<Segment>,
    pub(crate) files: Vec<EntryNumber>,
}

/// The parts of a query that select its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewKey {
    pub(crate) directory: DirectoryNumber,
    pub(crate) globs: Vec<String>,
    pub(crate) file_type: Option<String>,
    pub(crate) current_dir: PathBuf,
}

struct CachedView {
    key: ViewKey,
    structure: u64,
    /// The decision for each entry: 0 for none yet, 1 for hidden, 2 for visible.
    decided: Vec<u8>,
    seen: VisibleFiles,
}

/// The files that a walk with a query's rules would find.
#[derive(Clone)]
pub(crate) struct VisibleFiles {
    /// In path order.
    pub(crate) files: Arc<[EntryNumber]>,
    pub(crate) skips: Arc<[Skip]>,
}

/// The files to search, by number.
pub(crate) struct IndexCandidates {
    pub(crate) files: Vec<EntryNumber>,
    pub(crate) skips: Arc<[Skip]>,
    pub(crate) epoch: u64,
    /// The files that the index does not know.
    pub(crate) unread: UnindexedFiles,
    /// The cost of searching the files, as bytes of text in memory.
    pub(crate) work: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnindexedFiles {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    /// The number of files that had to be checked with `stat` because they are not watched,
    /// although they could be.
    pub(crate) unwatched: usize,
}

/// A file to search whose text is not cached.
pub(crate) struct Candidate {
    pub(crate) entry: EntryNumber,
    pub(crate) version: u32,
    /// Absolute.
    pub(crate) path: PathBuf,
    /// The offset in `path` at which the part below the root starts.
    below: usize,
}

impl Candidate {
    /// Returns the path relative to the root of the tree.
    pub(crate) fn below(&self) -> &Path {
        let bytes = self.path.as_os_str().as_bytes();
        Path::new(OsStr::from_bytes(&bytes[self.below..]))
    }
}

/// The index cannot answer the query: search without it.
#[derive(Debug)]
pub(crate) struct IndexMiss;

impl IndexedTree {
    pub(crate) fn read(
        root: &Path,
        current_dir: &Path,
        threads: usize,
        budget: &Arc<TextBudget>,
        file_watches: FileWatches,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, TreeRefusal> {
        let watching = WatchMode::Enabled;
        Ok(Self {
            tree: LiveTree::read(root, current_dir, threads, watching, file_watches, stop)?,
            segments: Vec::new(),
            views: Vec::new(),
            budget: Arc::clone(budget),
            epoch: 0,
            is_saved: false,
            written_contents: WrittenContents::default(),
        })
    }

    /// Stores a content that was just renamed into place; see `written_contents`.
    pub(crate) fn add_written_content(
        &mut self,
        below: &Path,
        content: &[u8],
        identity: &FileIdentity,
    ) {
        self.written_contents.add(below, content, identity);
    }

    /// Brings the tree up to date; see [`LiveTree::refresh`].
    pub(crate) fn refresh(&mut self) -> Result<RefreshOutcome, TreeRefusal> {
        let refreshed = self.tree.refresh()?;
        self.written_contents
            .cache_current(&mut self.tree, &self.budget);
        if refreshed == RefreshOutcome::ReadAgain {
            self.epoch += 1;
            self.views.clear();
            self.number_texts();
        }
        Ok(refreshed)
    }

    /// Adds segments to a tree that has none. The entries already refer to their texts.
    pub(crate) fn add_segments(&mut self, segments: Vec<Segment>) {
        self.segments = segments
            .into_iter()
            .map(|segment| SegmentSlot {
                segment: Arc::new(segment),
                files: Vec::new(),
            })
            .collect();
        self.number_texts();
    }

    /// Rebuilds the map from the texts of each segment to files.
    pub(crate) fn number_texts(&mut self) {
        for slot in &mut self.segments {
            slot.files = vec![NO_FILE; slot.segment.texts()];
        }
        for (number, entry) in self.tree.entries.iter_mut().enumerate() {
            if let Coverage::Indexed { segment, text } = entry.data.coverage {
                let slot = self.segments.get_mut(segment as usize);
                match slot.and_then(|slot| slot.files.get_mut(text as usize)) {
                    Some(file) => *file = number as EntryNumber,
                    None => entry.data.coverage = Coverage::Unread,
                }
            }
        }
    }

    /// Returns the files that a walk from this directory with these rules would find.
    pub(crate) fn visible_files(
        &mut self,
        key: &ViewKey,
        rules: &NameRules,
    ) -> Result<VisibleFiles, IndexMiss> {
        let known = self.views.iter().position(|view| view.key == *key);
        let mut view = match known {
            Some(at) => self.views.remove(at),
            None => CachedView {
                key: key.clone(),
                structure: u64::MAX,
                decided: Vec::new(),
                seen: VisibleFiles {
                    files: Arc::new([]),
                    skips: Arc::new([]),
                },
            },
        };
        if view.structure != self.tree.structure {
            view.decided.resize(self.tree.entries.len(), 0);
            view.seen = self.walk(key.directory, rules, &mut view.decided)?;
            view.structure = self.tree.structure;
        }
        let seen = view.seen.clone();
        self.views.truncate(MAX_VIEWS - 1);
        self.views.insert(0, view);
        Ok(seen)
    }

    fn walk(
        &self,
        start: DirectoryNumber,
        rules: &NameRules,
        decided: &mut [u8],
    ) -> Result<VisibleFiles, IndexMiss> {
        let mut files = Vec::new();
        let mut skips = self.skips_above(start);
        let by_name = !rules.overrides.is_empty() || !rules.types.is_empty() || !rules.hidden;
        // Entries still to visit, the next one last.
        let mut waiting: Vec<EntryNumber> = Vec::new();
        let enter =
            |number: DirectoryNumber, waiting: &mut Vec<EntryNumber>, skips: &mut Vec<Skip>| {
                let directory = &self.tree.directories[number as usize];
                skips.extend(directory.skips.iter().cloned());
                waiting.extend(directory.entries.iter().rev());
            };
        enter(start, &mut waiting, &mut skips);
        while let Some(number) = waiting.pop() {
            let entry = &self.tree.entries[number as usize];
            let is_dir = entry.kind == EntryKind::Directory;
            let is_hidden = match by_name {
                false => rules.respect_ignore && entry.verdict == IgnoreVerdict::Ignored,
                true => {
                    let known = &mut decided[number as usize];
                    if *known == 0 {
                        let path = self.tree.root.join(self.tree.path_of(number));
                        *known = 1 + u8::from(!rules.hide(&path, is_dir, || entry.verdict));
                    }
                    *known == 1
                }
            };
            match entry.kind {
                _ if is_hidden => {}
                EntryKind::Directory => match entry.directory {
                    Some(inside) => enter(inside, &mut waiting, &mut skips),
                    None => return Err(IndexMiss),
                },
                EntryKind::File => files.push(number),
                _ => {}
            }
        }
        Ok(VisibleFiles {
            files: files.into(),
            skips: skips.into(),
        })
    }

    /// Returns the skips of the directories above, such as problems with their ignore files.
    pub(crate) fn skips_above(&self, start: DirectoryNumber) -> Vec<Skip> {
        let start = &self.tree.directories[start as usize].path;
        let above = start
            .ancestors()
            .skip(1)
            .filter_map(|path| self.tree.find(path));
        let mut skips = self.tree.skips.clone();
        skips.extend(above.flat_map(|number| {
            let directory = &self.tree.directories[number as usize];
            directory.skips.iter().cloned()
        }));
        skips
    }

    /// Returns the files in which a pattern may match. `has_looked` is true if every file was
    /// checked since the query started.
    pub(crate) fn candidates(
        &mut self,
        seen: &VisibleFiles,
        query: &TrigramQuery,
        has_looked: bool,
    ) -> Result<IndexCandidates, CorruptIndex> {
        let found = self.indexed_candidates(query)?;
        let mut unread = UnindexedFiles::default();
        if !has_looked {
            let is_unwatched = |number: &EntryNumber| {
                let entry = &self.tree.entries[*number as usize];
                let is_indexed = matches!(entry.data.coverage, Coverage::Indexed { .. });
                entry.watch.is_none() && is_indexed && !found.holds(*number as usize)
            };
            let unwatched: Vec<_> = seen.files.iter().copied().filter(is_unwatched).collect();
            self.tree.check_files(&unwatched);
            unread.unwatched = unwatched.len().min(self.tree.file_watches.room());
        }
        let mut work = 0;
        let is_candidate = |number: &EntryNumber| {
            let entry = &self.tree.entries[*number as usize];
            let is_candidate = match entry.data.coverage {
                Coverage::Indexed { .. } => found.holds(*number as usize),
                Coverage::Always => true,
                Coverage::Unread => {
                    unread.files += 1;
                    unread.bytes += entry.mark.size;
                    true
                }
            };
            if is_candidate {
                work += entry.mark.size + entry.data.work();
            }
            is_candidate
        };
        let files = seen.files.iter().copied().filter(is_candidate).collect();
        Ok(IndexCandidates {
            files,
            skips: Arc::clone(&seen.skips),
            epoch: self.epoch,
            unread,
            work,
        })
    }

    /// Returns the files that the index cannot rule out.
    fn indexed_candidates(&self, query: &TrigramQuery) -> Result<NumberSet, CorruptIndex> {
        let mut found = NumberSet::none(self.tree.entries.len());
        for (number, slot) in self.segments.iter().enumerate() {
            for text in slot.segment.candidates(query)?.iter() {
                let file = slot.files.get(text).copied().unwrap_or(NO_FILE);
                let Some(entry) = self.tree.entries.get(file as usize) else {
                    continue;
                };
                let here = Coverage::Indexed {
                    segment: number as u32,
                    text: text as u32,
                };
                if entry.data.coverage == here {
                    found.insert(file as usize);
                }
            }
        }
        Ok(found)
    }

    /// Returns a file to search, or `None` if it no longer exists.
    pub(crate) fn file(&self, number: EntryNumber) -> Option<&LiveTreeEntry<FileData>> {
        let entry = self.tree.entries.get(number as usize);
        entry.filter(|entry| entry.is_there)
    }

    /// Returns the cached text of a file, if it is current. With `spares_look`, a file that has its
    /// own watch is not checked with `stat` (see the note on memory maps in `tree`). For `path`,
    /// see [`LiveTree::stat_entry`].
    pub(crate) fn text_of<'a>(
        &self,
        entry: &'a LiveTreeEntry<FileData>,
        spares_look: bool,
        path: &mut PathBuf,
    ) -> Option<&'a CachedContent> {
        // A `stat` alone does not detect a second change within the same clock tick.
        let is_watched = entry.watch.is_some();
        let held = entry.data.held.as_ref();
        let held = held.filter(|_| is_watched || entry.data.is_settled)?;
        if spares_look && is_watched && held.kind == CachedTextKind::Plain {
            return Some(held);
        }
        (self.tree.stat_entry(entry, path) == Some(entry.mark)).then_some(held)
    }

    /// Returns the absolute path of a file, and the offset at which the part below the root starts.
    pub(crate) fn path_of(&self, number: EntryNumber) -> (PathBuf, usize) {
        let entry = &self.tree.entries[number as usize];
        let directory = &self.tree.directories[entry.parent as usize].path;
        let length = self.tree.root.as_os_str().len() + directory.as_os_str().len();
        let mut path = PathBuf::with_capacity(length + entry.name.len() + 2);
        path.push(&self.tree.root);
        path.push("");
        let below = path.as_os_str().len();
        path.push(directory);
        path.push(&*entry.name);
        (path, below)
    }

    /// Returns what is needed to read a file.
    pub(crate) fn candidate(&self, number: EntryNumber) -> Candidate {
        let (path, below) = self.path_of(number);
        Candidate {
            entry: number,
            version: self.tree.entries[number as usize].version,
            path,
            below,
        }
    }

    /// Caches a text that was read, unless the file has changed since or its text is already
    /// cached.
    pub(crate) fn keep_text(&mut self, entry: EntryNumber, version: u32, text: &ReadText) {
        let Some(entry) = self.tree.entries.get_mut(entry as usize) else {
            return;
        };
        if entry.version != version || !entry.is_there || entry.mark != text.mark {
            return;
        }
        if entry.data.held.is_none() || !entry.data.is_settled {
            entry.data.held = text.hold(&self.budget);
        }
        if entry.data.coverage == Coverage::Unread {
            entry.data.is_settled = text.is_settled;
        } else {
            entry.data.is_settled &= text.is_settled;
        }
    }

    /// Drops the index. It is built again.
    pub(crate) fn drop_index(&mut self) {
        self.segments.clear();
        for entry in &mut self.tree.entries {
            entry.data.coverage = Coverage::Unread;
        }
    }

    /// Frees all cached texts.
    pub(crate) fn drop_texts(&mut self) {
        for entry in &mut self.tree.entries {
            entry.data.held = None;
        }
    }
}
