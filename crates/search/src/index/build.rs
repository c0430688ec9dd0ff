//! The background thread of a tree: it adds files to the index after a call was answered, at low
//! priority, some thousand at a time.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::contents::{
    CachedContent, CachedTextKind, Coverage, FileData, MAX_INDEXED, MAX_TRIGRAMS, ReadText,
};
use super::file_fingerprint::FileFingerprint;
use super::indexed_tree::{IndexMiss, IndexedTree, SegmentSlot, UnindexedFiles, ViewKey};
use super::segment::{MAX_TEXTS, SegmentBuilder};
use super::tree::{EntryNumber, LiveTree, LiveTreeEntry};
use super::tree_handle::{TreeHandle, TreeStage};
use super::trigram::TrigramCollector;
use super::watch::{WatchNumber, Watcher};
use crate::handle::Directory;
use crate::walk::NameRules;

/// The amount of text in bytes below which a few files are searched faster than indexed.
const LITTLE_TEXT: u64 = 3 << 20;
/// The maximum number of bytes of text in one segment.
const MAX_BYTES: u64 = 96 << 20;
/// If there are more segments than this, the smaller half is indexed again.
const MAX_SEGMENTS: usize = 24;

/// Checking fewer unwatched files than this at each call costs almost nothing.
const MANY_UNWATCHED: usize = 30;

/// The delay before the thread starts to work. If a process makes only one call, the thread must
/// not start work that it cannot finish.
const BEFORE_START: Duration = Duration::from_millis(250);

impl UnindexedFiles {
    /// Returns whether these files are worth indexing.
    pub(crate) fn is_much(self, few_files: usize) -> bool {
        self.files >= few_files || self.bytes >= LITTLE_TEXT
    }

    /// Returns whether there are files to index or to watch.
    pub(crate) fn needs_work(self, few_files: usize) -> bool {
        self.is_much(few_files) || self.unwatched >= MANY_UNWATCHED
    }
}

/// Ensures that a thread brings the index up to date, and frees the cached texts when they have not
/// been used for `contents_lifetime`.
pub(crate) fn start(holder: &Arc<TreeHandle>, wants_index: bool) {
    let mut work = holder.work();
    work.is_wanted = true;
    work.wants_index |= wants_index;
    work.last_asked = Instant::now();
    if work.has_thread {
        holder.news.notify_all();
        return;
    }
    let own = Arc::clone(holder);
    let spawned = thread::Builder::new()
        .name("haft-search-index".to_owned())
        .spawn(move || run(&own));
    work.has_thread = spawned.is_ok();
}

/// Records that cached texts are in use.
pub(crate) fn touch(holder: &Arc<TreeHandle>) {
    let mut work = holder.work();
    work.last_asked = Instant::now();
    let has_thread = work.has_thread;
    drop(work);
    if !has_thread && holder.budget.used() > 0 {
        // A thread must free them later.
        start(holder, true);
    }
}

fn run(holder: &TreeHandle) {
    // On Linux this sets the priority of this thread only.
    let _ = rustix::process::setpriority_process(None, 10);
    wait(holder, BEFORE_START, |_| true);
    loop {
        let wants_index = {
            let mut work = holder.work();
            work.is_wanted = false;
            work.wants_index
        };
        if !holder.has_ended() {
            holder.read();
        }
        // Known files are watched first.
        for some in [watch_some, index_some, watch_some] {
            while wants_index && !holder.has_ended() && some(holder) == BuildProgress::Made {}
        }
        if !holder.has_ended() {
            super::file::save(holder);
        }
        // Wait for more work, or until nothing was requested for `contents_lifetime`.
        loop {
            let idle = holder.work().last_asked.elapsed();
            // Without cached texts, nothing has to be freed, so do not wait.
            if holder.has_ended() || idle >= holder.contents_lifetime || holder.budget.used() == 0 {
                break;
            }
            wait(holder, holder.contents_lifetime - idle, |work| {
                !work.is_wanted
            });
            if holder.work().is_wanted {
                break;
            }
        }
        let mut work = holder.work();
        if !work.is_wanted || holder.has_ended() {
            work.has_thread = false;
            break;
        }
    }
    if !holder.has_ended() {
        let _ = holder.with_exclusive(|kept| {
            kept.drop_texts();
            Ok(())
        });
    }
}

fn wait(
    holder: &TreeHandle,
    at_most: Duration,
    goes_on: impl Fn(&super::tree_handle::BackgroundWork) -> bool,
) {
    let until = Instant::now() + at_most;
    let mut work = holder.work();
    while goes_on(&work) && !holder.has_ended() {
        let Some(rest) = until.checked_duration_since(Instant::now()) else {
            return;
        };
        work = match holder.news.wait_timeout(work, rest) {
            Ok((work, _)) => work,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuildProgress {
    Made,
    /// No work is left that is worth doing, or it cannot be done.
    Done,
}

/// A file to index.
struct IndexJob {
    entry: EntryNumber,
    version: u32,
    path: std::path::PathBuf,
    mark: FileFingerprint,
}

/// The result of indexing one file.
struct IndexedFile {
    entry: EntryNumber,
    version: u32,
    mark: FileFingerprint,
    /// The file's number in the segment. `None` if the file must always be searched.
    text: Option<usize>,
    held: Option<CachedContent>,
    is_settled: bool,
    /// The watch of the file itself, started before the file was read.
    watch: Option<WatchNumber>,
}

/// A batch of files to index or to watch.
struct IndexBatch {
    jobs: Vec<IndexJob>,
    top: Arc<Directory>,
    /// Dropped if the tree was read again in the meantime.
    watcher: Weak<Watcher>,
    /// The number of files that may still be watched.
    room: usize,
    epoch: u64,
}

impl IndexBatch {
    fn new(kept: &mut IndexedTree, jobs: Vec<IndexJob>) -> Self {
        if !jobs.is_empty() {
            kept.tree.file_watches.begin();
        }
        let watcher = kept.tree.watcher.as_ref();
        Self {
            jobs,
            top: Arc::clone(&kept.tree.top),
            watcher: watcher.map(Arc::downgrade).unwrap_or_default(),
            room: kept.tree.file_watches.room(),
            epoch: kept.epoch,
        }
    }

    /// Watches a file, unless the limit is reached.
    fn watch(
        &mut self,
        watch: impl FnOnce(&Watcher) -> io::Result<WatchNumber>,
    ) -> Option<WatchNumber> {
        let watcher = self.watcher.upgrade().filter(|_| self.room > 0)?;
        match watch(&watcher) {
            Ok(watch) => {
                self.room -= 1;
                Some(watch)
            }
            Err(error) => {
                if error.raw_os_error() == Some(Errno::NOSPC.raw_os_error()) {
                    self.room = 0;
                }
                None
            }
        }
    }

    /// Enters the results into the tree, unless its files have been renumbered since.
    fn hand_in(self, holder: &TreeHandle, enter: impl FnOnce(&mut IndexedTree)) {
        if let TreeStage::Ready(kept) = &mut *holder.lock()
            && kept.epoch == self.epoch
        {
            enter(kept);
            let watches = &mut kept.tree.file_watches;
            watches.end();
            if self.room == 0 {
                watches.set_full();
            }
        }
    }
}

/// Enters the watch of a file, or ends the watch if the file has changed since. Returns true if the
/// cached content is still the file's content.
fn enter_watch(
    tree: &mut LiveTree<FileData>,
    entry: EntryNumber,
    watch: Option<WatchNumber>,
    is_same: bool,
) -> bool {
    match watch {
        Some(watch) if is_same => tree.enter_watch(entry, watch),
        Some(watch) => {
            // Keep the watch if another name of the same file uses it.
            if let Some(watcher) = &tree.watcher
                && !tree.file_watches.has(watch)
            {
                watcher.unwatch(watch);
            }
            false
        }
        None => is_same,
    }
}

/// Watches known files that have no watch yet.
pub(crate) fn watch_some(holder: &TreeHandle) -> BuildProgress {
    let Ok(mut batch) = holder.with_fresh(|kept, _| unwatched(kept)) else {
        return BuildProgress::Done;
    };
    if batch.jobs.is_empty() {
        return BuildProgress::Done;
    }
    let mut done = Vec::with_capacity(batch.jobs.len());
    for job in std::mem::take(&mut batch.jobs) {
        if holder.has_ended() {
            return BuildProgress::Done;
        }
        let top = Arc::clone(&batch.top);
        let watch = batch.watch(|watcher| watcher.watch_file_below(&top, &job.path));
        let found = watch.and_then(|_| top.stat_below(&job.path));
        let is_same = found.is_some_and(|found| FileFingerprint::from_stat(&found) == job.mark);
        done.push((job, watch, is_same));
    }
    let mut progress = BuildProgress::Done;
    batch.hand_in(holder, |kept| {
        for (job, watch, is_same) in done {
            let entry = &kept.tree.entries[job.entry as usize];
            let is_known = entry.version == job.version && entry.is_there;
            let (tree, number) = (&mut kept.tree, job.entry);
            if is_known && watch.is_some() {
                progress = BuildProgress::Made;
            }
            if !enter_watch(tree, number, watch, is_same && is_known) && is_known && watch.is_some()
            {
                tree.refresh_mark(number);
            }
        }
    });
    progress
}

fn unwatched(kept: &mut IndexedTree) -> Result<IndexBatch, IndexMiss> {
    let seen = kept.visible_files(&all_files(), &NameRules::default())?;
    let most = kept.tree.file_watches.room().min(MAX_TEXTS);
    let entries = seen
        .files
        .iter()
        .map(|number| (*number, &kept.tree.entries[*number as usize]));
    let is_wanted = |entry: &LiveTreeEntry<FileData>| {
        entry.watch.is_none() && entry.data.coverage != Coverage::Unread && entry.data.is_settled
    };
    let jobs = entries
        .filter(|(_, entry)| is_wanted(entry))
        .take(most)
        .map(|(number, entry)| IndexJob {
            entry: number,
            version: entry.version,
            path: kept.tree.path_in(entry),
            mark: entry.mark,
        })
        .collect();
    Ok(IndexBatch::new(kept, jobs))
}

fn all_files() -> ViewKey {
    ViewKey {
        directory: 0,
        globs: Vec::new(),
        file_type: None,
        current_dir: std::path::PathBuf::new(),
    }
}

/// Indexes the next batch of files.
pub(crate) fn index_some(holder: &TreeHandle) -> BuildProgress {
    let Ok(mut batch) = holder.with_fresh(|kept, _| choose(kept, holder.few_files)) else {
        return BuildProgress::Done;
    };
    if batch.jobs.is_empty() {
        return BuildProgress::Done;
    }
    let jobs = std::mem::take(&mut batch.jobs);
    let mut builder = SegmentBuilder::default();
    let mut collector = TrigramCollector::new();
    let mut done = Vec::with_capacity(jobs.len());
    for job in jobs {
        if holder.has_ended() {
            return BuildProgress::Done;
        }
        done.push(index_one(
            holder,
            &mut batch,
            job,
            &mut builder,
            &mut collector,
        ));
    }
    let segment = (builder.len() > 0).then(|| builder.build());
    batch.hand_in(holder, |kept| {
        let number = kept.segments.len() as u32;
        let mut files = vec![EntryNumber::MAX; segment.as_ref().map_or(0, |it| it.texts())];
        for indexed in done {
            let entry = &kept.tree.entries[indexed.entry as usize];
            let is_same =
                entry.version == indexed.version && entry.mark == indexed.mark && entry.is_there;
            let is_there = entry.version == indexed.version && entry.is_there;
            if !enter_watch(&mut kept.tree, indexed.entry, indexed.watch, is_same) {
                if is_there && !is_same {
                    // The file changed under a name that is not watched.
                    kept.tree.refresh_mark(indexed.entry);
                }
                continue;
            }
            let entry = &mut kept.tree.entries[indexed.entry as usize];
            entry.data.coverage = match indexed.text {
                Some(text) => {
                    files[text] = indexed.entry;
                    Coverage::Indexed {
                        segment: number,
                        text: text as u32,
                    }
                }
                None => Coverage::Always,
            };
            if entry.data.held.is_none() {
                entry.data.held = indexed.held;
            }
            entry.data.is_settled = indexed.is_settled;
        }
        if let Some(segment) = segment {
            let segment = Arc::new(segment);
            kept.segments.push(SegmentSlot { segment, files });
        }
        kept.is_saved = false;
    });
    BuildProgress::Made
}

/// Chooses the files to index next. If there are too many segments, the files of the smallest ones
/// are indexed again into a new segment.
fn choose(kept: &mut IndexedTree, few_files: usize) -> Result<IndexBatch, IndexMiss> {
    let seen = kept.visible_files(&all_files(), &NameRules::default())?;
    if kept.segments.len() > MAX_SEGMENTS {
        merge(kept);
    }
    let mut all = UnindexedFiles::default();
    let (mut jobs, mut bytes) = (Vec::new(), 0);
    for number in seen.files.iter() {
        let entry = &kept.tree.entries[*number as usize];
        if entry.data.coverage != Coverage::Unread {
            continue;
        }
        all.files += 1;
        all.bytes += entry.mark.size;
        if jobs.len() < MAX_TEXTS && bytes < MAX_BYTES {
            bytes += entry.mark.size.min(MAX_INDEXED);
            jobs.push(IndexJob {
                entry: *number,
                version: entry.version,
                path: kept.tree.path_of(*number),
                mark: entry.mark,
            });
        }
    }
    if !all.is_much(few_files) {
        jobs.clear();
    }
    Ok(IndexBatch::new(kept, jobs))
}

fn merge(kept: &mut IndexedTree) {
    let mut living = vec![0_usize; kept.segments.len()];
    for entry in &kept.tree.entries {
        if let Coverage::Indexed { segment, .. } = entry.data.coverage {
            living[segment as usize] += 1;
        }
    }
    let mut order: Vec<usize> = (0..living.len()).collect();
    order.sort_by_key(|segment| living[*segment]);
    let dropped = &order[..order.len() / 2];
    let mut places = vec![None; living.len()];
    let mut kept_ones = Vec::new();
    for (number, slot) in std::mem::take(&mut kept.segments).into_iter().enumerate() {
        if !dropped.contains(&number) {
            places[number] = Some(kept_ones.len() as u32);
            kept_ones.push(slot);
        }
    }
    kept.segments = kept_ones;
    for entry in &mut kept.tree.entries {
        if let Coverage::Indexed { segment, text } = entry.data.coverage {
            entry.data.coverage = match places[segment as usize] {
                Some(segment) => Coverage::Indexed { segment, text },
                None => Coverage::Unread,
            };
        }
    }
}

fn index_one(
    holder: &TreeHandle,
    batch: &mut IndexBatch,
    job: IndexJob,
    builder: &mut SegmentBuilder,
    collector: &mut TrigramCollector,
) -> IndexedFile {
    let mut indexed = IndexedFile {
        entry: job.entry,
        version: job.version,
        mark: job.mark,
        text: None,
        held: None,
        is_settled: true,
        watch: None,
    };
    let opened = batch.top.open_below(&job.path);
    let read = match opened {
        Ok(Some(mut file)) => {
            indexed.watch = batch.watch(|watcher| watcher.watch_file(&file));
            ReadText::read(&mut file, MAX_INDEXED)
        }
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    let Ok(Some(text)) = read else {
        indexed.is_settled = false;
        return indexed;
    };
    indexed.mark = text.mark;
    indexed.is_settled = text.is_settled;
    indexed.held = text.hold(&holder.budget);
    // A UTF-8 byte order mark does not affect trigrams. Files with any other mark or with NUL bytes
    // must always be searched.
    let is_text = match text.kind {
        CachedTextKind::Plain => true,
        CachedTextKind::Unusual => {
            text.bytes.starts_with(b"\xef\xbb\xbf") && memchr::memchr(0, &text.bytes).is_none()
        }
        CachedTextKind::Beginning => false,
    };
    if is_text && let Some(trigrams) = collector.collect(&text.bytes, MAX_TRIGRAMS) {
        indexed.text = Some(builder.add(trigrams));
    }
    indexed
}
