//! The preimages: contents of files before a command, stored as long as the session lives.
//!
//! All contents are in a few unnamed files, one for each copying thread, so that thousands of small
//! files cost little, and no file remains however the process ends. After a command, the contents
//! that the record of its changes needs are copied to permanent files. Stored contents are
//! identified by their stamps, so later commands only need to compare stamps.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustix::fs::OFlags;

use super::keep_priority::KeepPriority;
use super::listings::ListingTree;
use super::shared_map::SharedMap;
use super::walk::{ScannedKind, ScannedListing, ScannedTree, threads_for};
use crate::commit::FileAttributes;
use crate::open::open_real;
use crate::stamp::{ContentHash, Stamp, now_ns};

/// The minimum size in bytes of files that the kernel copies, if it can. On file systems that can
/// share blocks, such a copy takes no space.
const LARGE: u64 = 64 << 10;
/// The alignment of blocks that can be shared.
const BLOCK: u64 = 4096;
/// The size of the write buffer, in bytes.
const COLLECTED: usize = 1 << 20;

/// A file whose content is stored.
#[derive(Debug, Clone)]
pub(crate) struct PreimageFile {
    /// The stamp at the time of reading.
    pub(crate) stamp: Stamp,
    pub(crate) hash: String,
    pub(crate) extended: Vec<(Vec<u8>, Vec<u8>)>,
    /// Any later change must alter the stamp.
    certain: bool,
    pack: Arc<File>,
    offset: u64,
}

impl PreimageFile {
    /// Returns the content after checking its hash.
    pub(crate) fn content(&self) -> io::Result<Vec<u8>> {
        let mut content = vec![0; usize::try_from(self.stamp.size).unwrap_or(usize::MAX)];
        self.pack.read_exact_at(&mut content, self.offset)?;
        if ContentHash::compute(&content).to_string() != self.hash {
            return Err(io::Error::other("it is damaged"));
        }
        Ok(content)
    }
}

/// Device and inode.
pub(crate) type ObjectKey = (u64, u64);

/// All stored contents, by object.
pub(crate) type PreimageMap = SharedMap<ObjectKey, Arc<PreimageFile>>;

/// The limits for storing contents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreimageBudget {
    pub(crate) bytes: u64,
    pub(crate) file: u64,
    pub(crate) deadline: Option<Instant>,
}

#[derive(Debug, Default)]
pub(crate) struct PreimageStore {
    contents: PreimageMap,
    packs: Vec<PreimagePack>,
    /// Files of the last tree that could not be stored, with the reason.
    unkept: SharedMap<ObjectKey, Arc<str>>,
    /// The directories of the last tree, and the total size of their stored contents.
    complete: Option<(ListingTree, u64)>,
    /// Files that could not be stored in time; the most important one is the last.
    pub(super) backlog: Vec<PreimageRequest>,
    /// A thread is working on the backlog.
    pub(super) is_worked_on: bool,
    /// A thread is scanning directories that could not be scanned in time.
    pub(super) is_looking: bool,
    /// The bytes stored since everything was counted last.
    since_counted: u64,
    /// Roots that exceeded a limit, with the reason and the time, so that the scan is not repeated
    /// immediately.
    pub(crate) gave_up: Option<(Vec<PathBuf>, String, Instant)>,
}

/// The result of [`PreimageStore::store_preimages`]: the stored contents, and the reasons why others
/// are missing.
#[derive(Debug, Default)]
pub(crate) struct PreimageFill {
    pub(crate) contents: PreimageMap,
    pub(crate) unkept: SharedMap<ObjectKey, Arc<str>>,
    /// The directories that are new since the last scan.
    pub(crate) new: Vec<Arc<ScannedListing>>,
    /// The number of files that were copied now.
    pub(crate) copied: usize,
}

#[derive(Debug)]
pub(super) struct PreimageRequest {
    rank: KeepPriority,
    path: PathBuf,
    stamp: Stamp,
}

impl PreimageStore {
    /// Stores the contents of all files in the tree, within the budget. `new_pack` creates an
    /// unnamed file.
    pub(crate) fn store_preimages(
        &mut self,
        tree: &ScannedTree,
        budget: PreimageBudget,
        new_pack: &dyn Fn() -> io::Result<File>,
    ) -> io::Result<PreimageFill> {
        let held: u64 = self.packs.iter().map(|pack| pack.end).sum();
        if held > budget.bytes.saturating_mul(2) {
            // Most of the contents are no longer needed: start again.
            *self = Self::default();
        }
        if self.since_counted > budget.bytes / 4 {
            // Some of the counted contents may no longer be needed.
            self.complete = None;
            self.since_counted = 0;
        }
        let KnownPreimages {
            contents,
            wanted,
            bytes,
            new,
        } = self.known(tree);
        let threads = threads_for(wanted.len());
        while self.packs.len() < threads && !wanted.is_empty() {
            self.packs.push(PreimagePack::new(new_pack()?));
        }
        let copier = PreimageCopier {
            wanted: &wanted,
            budget,
            next: AtomicUsize::new(0),
            bytes: AtomicU64::new(bytes),
            done: Mutex::default(),
        };
        std::thread::scope(|scope| {
            let mut packs = self.packs.iter_mut().take(threads);
            let own = packs.next();
            for pack in packs {
                scope.spawn(|| copier.work(pack));
            }
            if let Some(pack) = own {
                copier.work(pack);
            }
        });
        let bytes = copier.bytes.load(Ordering::Relaxed);
        let done = copier.into_done();
        if self.complete.take().is_none() {
            self.unkept = SharedMap::default();
            self.backlog.clear();
        }
        self.contents = contents;
        self.complete = Some((tree.listings.clone(), bytes));
        let copied = self.take(wanted, done);
        Ok(PreimageFill {
            contents: self.contents.clone(),
            unkept: self.unkept.clone(),
            new,
            copied,
        })
    }

    /// Adds the results of copying. Returns the number of copied files.
    fn take(&mut self, wanted: Vec<PreimageRequest>, done: Vec<CopiedContent>) -> usize {
        let mut copied = 0;
        let mut uncertain = HashSet::new();
        let mut late = HashSet::new();
        let mut replaced = 0;
        for (object, result) in done {
            match result {
                Ok(kept) => {
                    copied += 1;
                    self.since_counted += kept.stamp.size;
                    if !kept.certain {
                        uncertain.insert(object);
                    }
                    if let Some(old) = self.contents.insert(object, Arc::new(kept)) {
                        replaced += old.stamp.size;
                    }
                    self.unkept.remove(&object);
                }
                Err(why) => {
                    if why == NO_TIME {
                        late.insert(object);
                    }
                    self.unkept.insert(object, Arc::from(why));
                }
            }
        }
        let object = |one: &PreimageRequest| (one.stamp.device, one.stamp.inode);
        if let Some((listings, bytes)) = &mut self.complete {
            *bytes = bytes.saturating_sub(replaced);
            // If a change of a file might not show in its stamp, its directory is checked again.
            for one in wanted.iter().filter(|one| uncertain.contains(&object(one))) {
                if let Some(directory) = one.path.parent() {
                    listings.remove(directory);
                }
            }
        }
        let late = wanted.into_iter().filter(|one| late.contains(&object(one)));
        self.backlog.extend(late.rev());
        copied
    }

    /// Stores one batch of the backlog; returns `false` if the backlog is empty. The lock is not
    /// held while copying.
    pub(super) fn process_backlog(shelf: &Mutex<Self>, budget: PreimageBudget) -> bool {
        let lock = || shelf.lock().unwrap_or_else(PoisonError::into_inner);
        let (wanted, mut pack, before) = {
            let mut shelf = lock();
            let from = shelf.backlog.len().saturating_sub(BATCH);
            let mut wanted = shelf.backlog.split_off(from);
            wanted.reverse();
            let bytes = shelf.complete.as_ref().map(|(_, bytes)| *bytes);
            match (shelf.packs.pop(), bytes) {
                (Some(pack), Some(bytes)) if !wanted.is_empty() => (wanted, pack, bytes),
                (pack, _) => {
                    shelf.packs.extend(pack);
                    shelf.is_worked_on = false;
                    return false;
                }
            }
        };
        let copier = PreimageCopier {
            wanted: &wanted,
            budget,
            next: AtomicUsize::new(0),
            bytes: AtomicU64::new(before),
            done: Mutex::default(),
        };
        copier.work(&mut pack);
        let more = copier.bytes.load(Ordering::Relaxed).saturating_sub(before);
        let done = copier.into_done();
        let mut shelf = lock();
        shelf.packs.push(pack);
        if let Some((_, bytes)) = &mut shelf.complete {
            *bytes += more;
        }
        shelf.take(wanted, done);
        true
    }

    /// Returns all stored contents.
    pub(crate) fn contents(&self) -> PreimageMap {
        self.contents.clone()
    }

    /// Determines which contents of the tree are already stored. Directories that the last tree
    /// had, too, are skipped.
    fn known(&mut self, tree: &ScannedTree) -> KnownPreimages {
        let complete = self.complete.as_ref();
        let known_before = self.contents.clone();
        let mut contents = match complete {
            Some(_) => std::mem::take(&mut self.contents),
            None => PreimageMap::default(),
        };
        let mut wanted = Vec::new();
        let mut new = Vec::new();
        let mut bytes = complete.map_or(0, |(_, bytes)| *bytes);
        let adds = complete.is_none();
        let mut add =
            |stamp: &Stamp, path: &dyn Fn() -> PathBuf, listing: Option<&ScannedListing>| {
                let object = (stamp.device, stamp.inode);
                let known = known_before.get(&object);
                if let Some(kept) = known.filter(|kept| kept.certain && kept.stamp.is_same(stamp)) {
                    // Hard links are counted once.
                    if adds && contents.insert(object, Arc::clone(kept)).is_none() {
                        bytes += stamp.size;
                    }
                    return;
                }
                let path = path();
                let rank = match listing {
                    Some(listing) => listing.rank.for_file(&path, listing.ignores.as_deref()),
                    None => KeepPriority::Named,
                };
                wanted.push(PreimageRequest {
                    rank,
                    path,
                    stamp: stamp.clone(),
                });
            };
        for (path, entry) in &tree.points {
            if let Some(entry) = entry
                .as_ref()
                .filter(|entry| entry.kind() == ScannedKind::File)
            {
                add(&entry.stamp, &|| path.clone(), None);
            }
        }
        let nothing = ListingTree::default();
        let before = complete.map_or(&nothing, |(listings, _)| listings);
        for (directory, _, listing) in before.different(&tree.listings) {
            let Some(listing) = listing else {
                continue;
            };
            new.push(Arc::clone(listing));
            for entry in listing
                .entries
                .iter()
                .filter(|one| one.kind() == ScannedKind::File)
            {
                add(&entry.stamp, &|| directory.join(&entry.name), Some(listing));
            }
        }
        // Smaller files first, because more of them fit. Each object once, under its most important
        // name.
        wanted.sort_unstable_by(|a, b| {
            (a.rank, a.stamp.size, &a.path).cmp(&(b.rank, b.stamp.size, &b.path))
        });
        let mut seen = HashSet::new();
        wanted.retain(|one| seen.insert((one.stamp.device, one.stamp.inode)));
        KnownPreimages {
            contents,
            wanted,
            bytes,
            new,
        }
    }
}

/// The contents of a tree that are already stored, and those that are missing.
struct KnownPreimages {
    contents: PreimageMap,
    /// The missing contents, by priority.
    wanted: Vec<PreimageRequest>,
    /// The total size of the stored contents.
    bytes: u64,
    new: Vec<Arc<ScannedListing>>,
}

/// A file that holds many contents, one after the other.
#[derive(Debug)]
struct PreimagePack {
    file: Arc<File>,
    end: u64,
    /// The buffered end of the file, not yet written.
    collected: Vec<u8>,
}

impl PreimagePack {
    fn new(file: File) -> Self {
        Self {
            file: Arc::new(file),
            end: 0,
            collected: Vec::new(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.collected, self.end)?;
        self.end += self.collected.len() as u64;
        self.collected.clear();
        Ok(())
    }

    /// Appends a file; returns its offset and hash.
    fn add(&mut self, file: &File, size: u64) -> io::Result<(u64, String)> {
        if size >= LARGE {
            self.flush()?;
            let start = self.end.next_multiple_of(BLOCK);
            if copy_inside(file, &self.file, start, size) {
                self.end = start + size;
                return Ok((start, self.hash(start, size)?));
            }
        }
        let from = self.collected.len();
        let read = read_whole(file, size, &mut self.collected);
        if let Err(error) = read {
            self.collected.truncate(from);
            return Err(error);
        }
        let content = &self.collected[from..];
        let hash = ContentHash::compute(content).to_string();
        let start = self.end + from as u64;
        if self.collected.len() > COLLECTED {
            self.flush()?;
        }
        Ok((start, hash))
    }

    fn hash(&self, start: u64, size: u64) -> io::Result<String> {
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 256 << 10];
        let mut at = 0;
        while at < size {
            let piece = buffer
                .len()
                .min(usize::try_from(size - at).unwrap_or(usize::MAX));
            self.file.read_exact_at(&mut buffer[..piece], start + at)?;
            hasher.update(&buffer[..piece]);
            at += piece as u64;
        }
        Ok(ContentHash::finish(&hasher).to_string())
    }
}

/// Appends exactly `size` bytes of the file. Usually one call: if the file has grown, the one
/// additional byte is filled.
fn read_whole(file: &File, size: u64, into: &mut Vec<u8>) -> io::Result<()> {
    let (from, size) = (into.len(), usize::try_from(size).unwrap_or(usize::MAX));
    into.resize(from.saturating_add(size).saturating_add(1), 0);
    let mut at = from;
    while at - from <= size {
        match (&*file).read(&mut into[at..]) {
            Ok(0) => break,
            Ok(count) => at += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        // A short read is the end of a regular file; the caller checks the stamp afterwards.
        if at - from == size {
            break;
        }
    }
    into.truncate(at);
    if at - from != size {
        return Err(changed_meanwhile());
    }
    Ok(())
}

/// Copies or shares blocks inside the kernel; `false` if that is not possible or the file is too
/// short.
fn copy_inside(from: &File, to: &File, start: u64, size: u64) -> bool {
    #[cfg(target_os = "linux")]
    {
        let (mut read, mut written) = (0, start);
        while read < size {
            let rest = usize::try_from(size - read).unwrap_or(usize::MAX);
            match rustix::fs::copy_file_range(from, Some(&mut read), to, Some(&mut written), rest) {
                Ok(0) | Err(_) => return false,
                Ok(_) => {}
            }
        }
        true
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, to, start, size);
        false
    }
}

/// The reason for files that are stored later.
const NO_TIME: &str = "there was not enough time";
/// The number of files in one batch of background work.
const BATCH: usize = 256;

/// An object with its stored content, or the reason why it is missing.
type CopiedContent = (ObjectKey, Result<PreimageFile, String>);

struct PreimageCopier<'a> {
    wanted: &'a [PreimageRequest],
    budget: PreimageBudget,
    next: AtomicUsize,
    bytes: AtomicU64,
    done: Mutex<Vec<CopiedContent>>,
}

impl PreimageCopier<'_> {
    fn into_done(self) -> Vec<CopiedContent> {
        self.done
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, pack: &mut PreimagePack) {
        let mut own = Vec::new();
        while let Some(one) = self.wanted.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let object = (one.stamp.device, one.stamp.inode);
            own.push((object, self.store_preimage(one, pack)));
        }
        if let Err(error) = pack.flush() {
            // The buffered contents are lost, so all results of this thread are marked as failed.
            for (_, result) in &mut own {
                *result = Err(error.to_string());
            }
        }
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.append(&mut own);
    }

    fn store_preimage(
        &self,
        one: &PreimageRequest,
        pack: &mut PreimagePack,
    ) -> Result<PreimageFile, String> {
        let size = one.stamp.size;
        if size > self.budget.file {
            return Err(format!("larger than {} MB", self.budget.file >> 20));
        }
        let deadline = self.budget.deadline;
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Err(NO_TIME.to_owned());
        }
        if self.bytes.fetch_add(size, Ordering::Relaxed) + size > self.budget.bytes {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            return Err(format!(
                "more than {} MB of contents in this session",
                self.budget.bytes >> 20
            ));
        }
        copy(one, pack).map_err(|error| {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            error.to_string()
        })
    }
}

fn copy(one: &PreimageRequest, pack: &mut PreimagePack) -> io::Result<PreimageFile> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(open_real(&one.path, flags)?);
    let stamp = Stamp::from_metadata(&file.metadata()?);
    let certain = stamp.until_certain(now_ns()).is_zero();
    if !stamp.is_same(&one.stamp) {
        return Err(changed_meanwhile());
    }
    let (offset, hash) = pack.add(&file, stamp.size)?;
    if !stamp.is_same(&Stamp::from_metadata(&file.metadata()?)) {
        return Err(changed_meanwhile());
    }
    Ok(PreimageFile {
        extended: FileAttributes::from_file(&file, &stamp)?.extended,
        stamp,
        hash,
        certain,
        pack: pack.file.clone(),
        offset,
    })
}

fn changed_meanwhile() -> io::Error {
    io::Error::other("it changed while it was read")
}

/// Shares the blocks of a file instead of copying them, if the file system can.
pub(crate) fn clone(to: &File, from: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::ioctl_ficlone(to, from).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (to, from);
        false
    }
}
