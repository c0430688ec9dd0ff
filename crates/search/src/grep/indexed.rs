//! Grep over an indexed tree: only the files that the index cannot rule out are searched.
//!
//! The scanner and the collection of results are the same as in a plain walk.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::collector::ResultCollector;
use super::scan::{CachedText, FileMatches, FileOrigin, FileScanner, SearchInput};
use super::{GrepPlan, GrepQuery, GrepReport};
use crate::exclusions::Exclusions;
use crate::handle::Directory;
use crate::index::{
    CachedTextKind, Candidate, FileFingerprint, IndexCandidates, IndexMiss, IndexedTree,
    MAX_CACHED_LENGTH, QueriedTree, ReadText, TreeHandle, ViewKey,
};
use crate::root::OpenedRoot;
use crate::skip::{SkipLog, SkipReason};
use crate::stop::{StopCondition, StopFlag};
use crate::walk::NameRules;

/// The number of files a thread takes at a time.
const BLOCK: usize = 48;

/// The number of bytes of work for which each further thread is started.
const WORTH_A_THREAD: u64 = 768 << 10;

/// The number of bytes searched before the read lock on the tree is released.
const AT_ONCE: usize = 1 << 20;

/// Answers a query from the indexed tree. Returns `IndexMiss` if the index cannot answer exactly.
pub(super) fn run(
    query: &GrepQuery,
    built: &GrepPlan,
    stop: &StopCondition,
    threads: usize,
    asked: &QueriedTree,
) -> Result<(GrepReport, crate::index::UnindexedFiles), IndexMiss> {
    let OpenedRoot::Directory(root) = &built.root.opened else {
        return Err(IndexMiss);
    };
    let here = FileFingerprint::from_stat(&root.stat().map_err(|_| IndexMiss)?);
    let needed = built.matcher.needed(query);
    let (candidates, top) = asked.with_fresh(|kept, has_looked| {
        let below = built
            .root
            .real
            .strip_prefix(&kept.tree.root)
            .map_err(|_| IndexMiss)?;
        let directory = kept.tree.find(below).ok_or(IndexMiss)?;
        let known = &kept.tree.directories[directory as usize].mark;
        if (known.device, known.inode) != (here.device, here.inode)
            || !kept
                .tree
                .covers(directory, &query.current_dir, &query.leave_out)
        {
            return Err(IndexMiss);
        }
        let key = ViewKey {
            directory,
            globs: query.globs.clone(),
            file_type: query.file_type.clone(),
            current_dir: query.current_dir.clone(),
        };
        let rules = NameRules {
            overrides: Arc::clone(&built.overrides),
            types: Arc::clone(&built.types),
            ..NameRules::default()
        };
        let seen = kept.visible_files(&key, &rules)?;
        let Ok(candidates) = kept.candidates(&seen, needed, has_looked) else {
            kept.drop_index();
            return Err(IndexMiss);
        };
        Ok((candidates, Arc::clone(&kept.tree.top)))
    })?;

    let watch = StopFlag::new(stop);
    let skips = SkipLog::default();
    let harvest = ResultCollector::new(query);
    let scanner = FileScanner::new(built.matcher.exact(), query, harvest.rows_needed(), &watch)
        .with_narrowing(built.matcher.narrowing(query));
    let search = IndexedSearch {
        holder: &asked.holder,
        candidates: &candidates,
        top: &top,
        collector: &harvest,
        skips: &skips,
        watch: &watch,
        left_out: ExclusionCache::new(&query.leave_out, &query.path),
        spares_looks: candidates.files.len() > asked.holder.checked_candidates,
        next: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        is_lost: AtomicBool::new(false),
    };
    for skip in candidates.skips.iter() {
        let directory = match skip.reason {
            SkipReason::IgnoreFile { .. } => skip.path.as_deref().and_then(Path::parent),
            _ => skip.path.as_deref(),
        };
        // Problems above the root are always reported, even if everything below it is excluded.
        let is_below = directory.is_some_and(|path| path.starts_with(&query.path));
        if !is_below || !directory.is_some_and(|path| search.left_out.excludes(path)) {
            skips.add(skip.path.as_deref(), skip.reason.clone());
        }
    }
    let blocks = candidates.files.len().div_ceil(BLOCK);
    let worth = usize::try_from(candidates.work / WORTH_A_THREAD).unwrap_or(usize::MAX);
    thread::scope(|scope| {
        for _ in 1..threads.min(blocks).min(worth.saturating_add(1)) {
            let scanner = scanner.clone();
            let search = &search;
            scope.spawn(move || search.work(scanner));
        }
        search.work(scanner);
    });
    if search.is_lost.load(Ordering::Relaxed) {
        return Err(IndexMiss);
    }
    drop(search);
    let report = asked.holder.with_shared(|kept| {
        let path_of = |place: &usize| kept.path_of(candidates.files[*place]).0;
        match kept.epoch == candidates.epoch {
            true => Ok(harvest.report(query, skips, watch.completion(), path_of)),
            false => Err(IndexMiss),
        }
    })?;
    Ok((report, candidates.unread))
}

struct IndexedSearch<'a> {
    holder: &'a TreeHandle,
    candidates: &'a IndexCandidates,
    top: &'a Directory,
    /// Files are identified by their index among the candidates.
    collector: &'a ResultCollector<usize>,
    skips: &'a SkipLog,
    watch: &'a StopFlag,
    left_out: ExclusionCache<'a>,
    spares_looks: bool,
    next: AtomicUsize,
    /// Set when nothing further can be shown, or the time is up.
    is_over: AtomicBool,
    /// Set when the files have been renumbered.
    is_lost: AtomicBool,
}

impl IndexedSearch<'_> {
    /// Runs one thread until no work is left.
    fn work(&self, mut scanner: FileScanner) {
        loop {
            let mut from = self.next.fetch_add(BLOCK, Ordering::Relaxed);
            let end = self.candidates.files.len().min(from + BLOCK);
            if from >= end || self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let mut to_read = Vec::new();
            while from < end {
                let held = self.holder.with_shared(|kept| {
                    self.search_held(kept, &mut scanner, from..end, &mut to_read)
                });
                let Ok(reached) = held else {
                    self.is_lost.store(true, Ordering::Relaxed);
                    self.is_over.store(true, Ordering::Relaxed);
                    return;
                };
                from = reached;
            }
            self.search_files(&mut scanner, &to_read);
        }
    }

    /// Returns whether nothing from this candidate on can be shown, or the time is up. Then no
    /// further block needs to be started; blocks that other threads are searching come before it.
    fn ends_before(&self, place: usize) -> bool {
        let ends = self.watch.must_stop() || self.collector.is_beyond(&place);
        if ends {
            self.is_over.store(true, Ordering::Relaxed);
        }
        ends
    }

    /// Searches the files whose text is cached and adds the others to `to_read`. Returns the index
    /// of the first candidate that was not processed.
    fn search_held(
        &self,
        kept: &IndexedTree,
        scanner: &mut FileScanner,
        places: Range<usize>,
        to_read: &mut Vec<(usize, Candidate)>,
    ) -> Result<usize, IndexMiss> {
        if kept.epoch != self.candidates.epoch {
            return Err(IndexMiss);
        }
        let (mut bytes, mut buffer) = (0, PathBuf::new());
        for place in places.clone() {
            if bytes > AT_ONCE {
                return Ok(place);
            }
            if self.ends_before(place) {
                break;
            }
            let number = self.candidates.files[place];
            let Some(entry) = kept.file(number) else {
                continue;
            };
            let path = || kept.path_of(number).0;
            if !self.left_out.is_empty() && self.left_out.excludes(&path()) {
                continue;
            }
            let Some(held) = kept.text_of(entry, self.spares_looks, &mut buffer) else {
                to_read.push((place, kept.candidate(number)));
                continue;
            };
            bytes += held.bytes.len();
            let text = CachedText {
                bytes: &held.bytes,
                is_plain: held.kind == CachedTextKind::Plain,
                is_ascii: held.is_ascii,
                size: entry.mark.size,
                modified: entry.mark.modified(),
            };
            let content = || Ok(Some(SearchInput::Cached(text)));
            let shared = || path().into();
            let finding = scanner.search_content(&shared, content, FileOrigin::Walked);
            self.add(place, finding, path);
        }
        Ok(places.end)
    }

    /// Searches files that must be read, and caches their texts.
    fn search_files(&self, scanner: &mut FileScanner, files: &[(usize, Candidate)]) {
        let mut read = Vec::new();
        for (place, file) in files {
            if self.ends_before(*place) {
                break;
            }
            if let Some(text) = self.search_file(scanner, *place, file) {
                read.push((file.entry, file.version, text));
            }
        }
        if !read.is_empty() {
            let _ = self.holder.with_exclusive(|kept| {
                if kept.epoch == self.candidates.epoch {
                    for (entry, version, text) in &read {
                        kept.keep_text(*entry, *version, text);
                    }
                }
                Ok(())
            });
        }
    }

    /// Searches one file. Returns the text that was read, so that it can be cached.
    fn search_file(
        &self,
        scanner: &mut FileScanner,
        place: usize,
        file: &Candidate,
    ) -> Option<ReadText> {
        let mut read = None;
        let opened = match self.top.open_below(file.below()) {
            Ok(Some(mut file)) => {
                read = read_text(&mut file);
                Ok(Some(file))
            }
            other => other,
        };
        let open = || -> io::Result<Option<SearchInput<'_>>> {
            let file = opened?;
            Ok(match &read {
                Some(text) => Some(SearchInput::Cached(CachedText {
                    bytes: &text.bytes,
                    is_plain: text.kind == CachedTextKind::Plain,
                    is_ascii: text.is_ascii,
                    size: text.mark.size,
                    modified: text.mark.modified(),
                })),
                None => file.map(SearchInput::File),
            })
        };
        let path = || file.path.as_path().into();
        let finding = scanner.search_content(&path, open, FileOrigin::Walked);
        self.add(place, finding, || file.path.clone());
        read
    }

    fn add(&self, place: usize, mut finding: FileMatches, path: impl Fn() -> PathBuf) {
        if let Some(reason) = finding.skipped.take() {
            self.skips.add(Some(&path()), reason);
        }
        self.collector.add(|| place, finding);
    }
}

/// Reads a file into memory. If that fails, the file is rewound, and the searcher reports the
/// error.
fn read_text(file: &mut File) -> Option<ReadText> {
    let read = ReadText::read(file, MAX_CACHED_LENGTH);
    if read.is_err() {
        let _ = file.rewind();
    }
    read.ok().flatten()
}

/// The excluded paths, checked for a file and every directory above it up to the root. Caches the
/// result for each directory.
struct ExclusionCache<'a> {
    leave_out: &'a Exclusions,
    root: &'a Path,
    directories: Mutex<HashMap<PathBuf, bool>>,
}

impl<'a> ExclusionCache<'a> {
    fn new(leave_out: &'a Exclusions, root: &'a Path) -> Self {
        Self {
            leave_out,
            root,
            directories: Mutex::default(),
        }
    }

    fn is_empty(&self) -> bool {
        self.leave_out.is_empty()
    }

    fn excludes(&self, path: &Path) -> bool {
        if self.leave_out.is_empty() || path == self.root {
            return false;
        }
        let above = path
            .parent()
            .is_some_and(|above| self.excludes_directory(above));
        above || self.leave_out.excludes(path)
    }

    fn excludes_directory(&self, path: &Path) -> bool {
        if path == self.root || !path.starts_with(self.root) {
            return false;
        }
        let known = self
            .directories
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(path) {
            return *known;
        }
        drop(known);
        let is_held = self.excludes(path);
        let mut known = self
            .directories
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.insert(path.to_path_buf(), is_held);
        is_held
    }
}
