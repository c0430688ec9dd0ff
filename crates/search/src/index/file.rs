//! The index on disk, for later sessions in the same tree.
//!
//! There is one file per tree. It is written under a temporary name and renamed, so a reader finds
//! either the old file or the new one, never a part. A lock decides which process writes; readers
//! do not wait. A file that is corrupt, of another version, or writable by another user is ignored.
//! Layout, with little-endian numbers:
//!
//! ```text
//! magic and version, checksum of the rest u64, length of the rest u64, length of the table u64
//! table      root and current directory, number of segments, their sizes, then the directories
//! directory  its path, number of its files u32, and for each, by name: its name, its fingerprint,
//!            segment u32 (all ones: always searched), text u32
//! segments   one after the other
//! ```

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::contents::Coverage;
use super::file_fingerprint::FileFingerprint;
use super::indexed_tree::IndexedTree;
use super::segment::{CorruptIndex, Segment, SegmentSize};
use super::tree::{DirectoryNumber, EntryNumber, TreeDirectory};
use super::tree_handle::{TreeHandle, TreeStage};

const MAGIC: [u8; 8] = *b"haftidx\x02";
const HEADER: u64 = 32;

/// Files that changed less than this before the index is written are not stored; they are read
/// again.
const YOUNG: Duration = Duration::from_secs(2);

/// The maximum total size and number of index files. The least recently used files are removed
/// first.
const MAX_INDEX_BYTES: u64 = 1 << 30;
const MAX_FILES: usize = 24;

/// An index is stored for trees with at least `WORTH` times `few_files` entries.
const WORTH: usize = 2;

const ALWAYS: u32 = u32::MAX;

/// Returns the path of a tree's index file.
pub(crate) fn place(folder: &Path, root: &Path, current_dir: &Path) -> PathBuf {
    let mut sum = Checksum::new();
    sum.add(root.as_os_str().as_bytes());
    sum.add(&[0]);
    sum.add(current_dir.as_os_str().as_bytes());
    folder.join(format!("{:016x}.index", sum.value()))
}

/// Returns whether the path belongs to the current user and no other user can write to it.
fn is_ours(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| {
        found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
    })
}

/// Writes the index of a tree to disk, if it is large enough and no other process is writing it.
pub(crate) fn save(holder: &TreeHandle) {
    let Some(folder) = &holder.folder else {
        return;
    };
    if let Err(error) = save_in(folder, holder) {
        // The session works without the file; only the next session has to build the index again.
        tracing::info!(
            "the search index cannot be stored in {}: {error}",
            folder.display()
        );
    }
}

fn save_in(folder: &Path, holder: &TreeHandle) -> io::Result<()> {
    let Some((table, segments, epoch)) = gather(holder) else {
        return Ok(());
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    if !is_ours(folder) {
        return Err(io::Error::other("the folder belongs to others"));
    }
    let path = place(folder, &holder.root, &holder.current_dir);
    let own = |path: &Path| {
        let mut options = OpenOptions::new();
        options
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600);
        options.open(path)
    };
    let lock = own(&path.with_extension("lock"))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    let temporary = path.with_extension("new");
    let file = own(&temporary)?;
    let written = write(&file, &table, &segments);
    let places = match written {
        Ok(places) => places,
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
    };
    fs::rename(&temporary, &path)?;
    use_file(holder, file, &places, epoch);
    bound(folder, &path);
    Ok(())
}

type IndexSnapshot = (Vec<u8>, Vec<Arc<Segment>>, u64);

/// Collects what is to be written while the tree is locked. Returns `None` if there is nothing to
/// write.
fn gather(holder: &TreeHandle) -> Option<IndexSnapshot> {
    let TreeStage::Ready(kept) = &mut *holder.lock() else {
        return None;
    };
    // Reading a small tree again is faster than checking what changed in it.
    let is_small = kept.tree.entries.len() < WORTH * holder.few_files;
    if kept.is_saved || kept.segments.is_empty() || is_small {
        return None;
    }
    kept.is_saved = true;
    let now = SystemTime::now();
    let old_enough = now.checked_sub(YOUNG)?;
    let mut table = Vec::new();
    put_bytes(&mut table, holder.root.as_os_str().as_bytes());
    put_bytes(&mut table, holder.current_dir.as_os_str().as_bytes());
    let mut files = Vec::new();
    for directory in &kept.tree.directories {
        let mut count = 0_u32;
        let start = files.len();
        put_bytes(&mut files, directory.path.as_os_str().as_bytes());
        let count_at = files.len();
        files.extend([0; 4]);
        for number in &directory.entries {
            let entry = &kept.tree.entries[*number as usize];
            let (segment, text) = match entry.data.coverage {
                Coverage::Indexed { segment, text } => (segment, text),
                Coverage::Always => (ALWAYS, 0),
                Coverage::Unread => continue,
            };
            if !entry.is_there || !entry.data.is_settled || !entry.mark.is_settled(old_enough) {
                continue;
            }
            count += 1;
            put_bytes(&mut files, entry.name.as_bytes());
            put_mark(&mut files, &entry.mark);
            files.extend(segment.to_le_bytes());
            files.extend(text.to_le_bytes());
        }
        match count {
            0 => files.truncate(start),
            _ => files[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes()),
        }
    }
    let segments: Vec<_> = kept
        .segments
        .iter()
        .map(|slot| Arc::clone(&slot.segment))
        .collect();
    table.extend((segments.len() as u64).to_le_bytes());
    for segment in &segments {
        let size = segment.size();
        for number in [size.texts, size.trigrams, size.lists] {
            table.extend(number.to_le_bytes());
        }
    }
    table.append(&mut files);
    Some((table, segments, kept.epoch))
}

type SegmentPlaces = Vec<(u64, SegmentSize)>;

fn write(mut file: &File, table: &[u8], segments: &[Arc<Segment>]) -> io::Result<SegmentPlaces> {
    file.set_len(0)?;
    file.write_all(&[0; HEADER as usize])?;
    let mut out = ChecksumWriter {
        inner: BufWriter::with_capacity(1 << 20, file),
        sum: Checksum::new(),
        length: 0,
    };
    out.write_all(table)?;
    let mut places = SegmentPlaces::new();
    for segment in segments {
        let start = HEADER + out.length;
        places.push((start, segment.write(&mut out)?));
    }
    let (sum, length) = (out.sum.value(), out.length);
    out.inner.flush()?;
    drop(out);
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&MAGIC)?;
    file.write_all(&sum.to_le_bytes())?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(&(table.len() as u64).to_le_bytes())?;
    file.sync_data()?;
    Ok(places)
}

/// Makes the tree read its posting lists from the file instead of from memory.
fn use_file(holder: &TreeHandle, file: File, places: &SegmentPlaces, epoch: u64) {
    let file = Arc::new(file);
    let opened: Result<Vec<Segment>, CorruptIndex> = places
        .iter()
        .map(|(start, size)| Segment::open(&file, *start, *size))
        .collect();
    if let (TreeStage::Ready(kept), Ok(opened)) = (&mut *holder.lock(), opened)
        && kept.epoch == epoch
        && kept.segments.len() >= opened.len()
    {
        for (slot, segment) in kept.segments.iter_mut().zip(opened) {
            if slot.segment.size() == segment.size() {
                slot.segment = Arc::new(segment);
            }
        }
    }
}

/// Removes the least recently used index files if there are too many.
fn bound(folder: &Path, newest: &Path) {
    let Ok(files) = fs::read_dir(folder) else {
        return;
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = files
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|it| it == "index"))
        .filter_map(|entry| {
            let found = entry.metadata().ok()?;
            Some((found.modified().ok()?, found.len(), entry.path()))
        })
        .collect();
    files.sort_unstable();
    let mut room: u64 = files.iter().map(|(_, size, _)| size).sum();
    let mut count = files.len();
    for (_, size, path) in files {
        if (room <= MAX_INDEX_BYTES && count <= MAX_FILES) || path == newest {
            continue;
        }
        let _ = fs::remove_file(path.with_extension("lock"));
        if fs::remove_file(&path).is_ok() {
            room -= size;
            count -= 1;
        }
    }
}

/// Returns whether an index file exists for this tree.
pub(crate) fn has_index_file(holder: &TreeHandle) -> bool {
    let folder = holder.folder.as_deref();
    folder.is_some_and(|folder| place(folder, &holder.root, &holder.current_dir).is_file())
}

/// Reads the index that an earlier session stored, if it is usable. May run while the tree is being
/// read.
pub(crate) fn read(holder: &TreeHandle) -> Option<IndexContents> {
    let folder = holder.folder.as_deref()?;
    let path = place(folder, &holder.root, &holder.current_dir);
    if !path.is_file() || !is_ours(folder) || !is_ours(&path) {
        return None;
    }
    let Ok(index) = open(&path, holder) else {
        give_up(&path);
        return None;
    };
    // The modification time records the last use.
    if let Ok(file) = OpenOptions::new().append(true).open(&path) {
        let _ = file.set_modified(SystemTime::now());
    }
    Some(index)
}

fn give_up(path: &Path) {
    tracing::warn!(
        "the search index {} is damaged or of another version: it is built again",
        path.display()
    );
    let _ = fs::remove_file(path);
}

/// The contents of an index file.
pub(crate) struct IndexContents {
    path: PathBuf,
    segments: Vec<Segment>,
    /// The table of the file.
    table: Vec<u8>,
    /// The offset in the table at which the directories start.
    start: usize,
}

fn open(path: &Path, holder: &TreeHandle) -> Result<IndexContents, CorruptIndex> {
    let mut file = File::open(path)?;
    let mut header = [0; HEADER as usize];
    file.read_exact(&mut header)?;
    let length = u64::from_le_bytes(array(&header[16..])?);
    let table_length = u64::from_le_bytes(array(&header[24..])?);
    if header[..8] != MAGIC
        || file.metadata()?.len() != HEADER.checked_add(length).ok_or(CorruptIndex)?
        || table_length > length
    {
        return Err(CorruptIndex);
    }
    let mut table = vec![0; usize::try_from(table_length).map_err(|_| CorruptIndex)?];
    file.read_exact(&mut table)?;
    let mut sum = Checksum::new();
    sum.add(&table);
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => sum.add(&piece[..count]),
        }
    }
    if sum.value() != u64::from_le_bytes(array(&header[8..])?) {
        return Err(CorruptIndex);
    }
    let mut source = TableReader(&table);
    if source.bytes()? != holder.root.as_os_str().as_bytes()
        || source.bytes()? != holder.current_dir.as_os_str().as_bytes()
    {
        return Err(CorruptIndex);
    }
    let count = source.number()?;
    let mut sizes = Vec::new();
    for _ in 0..count.min(1 << 16) {
        sizes.push(SegmentSize {
            texts: source.number()?,
            trigrams: source.number()?,
            lists: source.number()?,
        });
    }
    let at = table.len() - source.0.len();
    let mut start = HEADER + table_length;
    let file = Arc::new(file);
    let mut segments = Vec::new();
    for size in sizes {
        segments.push(Segment::open(&file, start, size)?);
        start += size.bytes().ok_or(CorruptIndex)?;
    }
    match start == HEADER + length {
        true => Ok(IndexContents {
            path: path.to_path_buf(),
            segments,
            table,
            start: at,
        }),
        false => Err(CorruptIndex),
    }
}

/// Applies what an earlier session stored about files that have not changed since.
pub(crate) fn adopt_index(kept: &mut IndexedTree, index: IndexContents) {
    match adopt_files(kept, &index) {
        Ok(()) => {
            kept.add_segments(index.segments);
            kept.is_saved = true;
        }
        Err(CorruptIndex) => {
            kept.drop_index();
            give_up(&index.path);
        }
    }
}

fn adopt_files(kept: &mut IndexedTree, index: &IndexContents) -> Result<(), CorruptIndex> {
    let mut source = TableReader(&index.table[index.start..]);
    let mut next = 0;
    while !source.0.is_empty() {
        let path = Path::new(OsStr::from_bytes(source.bytes()?));
        // The directories are nearly always stored in the same order.
        let directories = &kept.tree.directories;
        let is_next = |it: &TreeDirectory| it.path.as_os_str() == path.as_os_str();
        let directory = match directories.get(next).is_some_and(is_next) {
            true => Some(next as DirectoryNumber),
            false => kept.tree.find(path),
        };
        next = directory.map_or(next, |number| number as usize + 1);
        let entries: &[EntryNumber] = match directory {
            Some(number) => &kept.tree.directories[number as usize].entries,
            None => &[],
        };
        // Both lists are sorted by name.
        let mut entries = entries.iter().copied().peekable();
        for _ in 0..source.small()? {
            let name = OsStr::from_bytes(source.bytes()?);
            let mark = source.mark()?;
            let (segment, text) = (source.small()?, source.small()?);
            let here = |number: EntryNumber| &*kept.tree.entries[number as usize].name;
            while entries.next_if(|number| *here(*number) < *name).is_some() {}
            let Some(number) = entries.next_if(|number| *here(*number) == *name) else {
                continue;
            };
            let entry = &mut kept.tree.entries[number as usize];
            if entry.mark == mark {
                entry.data.is_settled = true;
                entry.data.coverage = match segment {
                    ALWAYS => Coverage::Always,
                    segment => Coverage::Indexed { segment, text },
                };
            }
        }
    }
    Ok(())
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], CorruptIndex> {
    bytes
        .get(..N)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(CorruptIndex)
}

fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend((bytes.len() as u32).to_le_bytes());
    into.extend(bytes);
}

fn put_mark(into: &mut Vec<u8>, mark: &FileFingerprint) {
    for number in [mark.device, mark.inode, mark.size] {
        into.extend(number.to_le_bytes());
    }
    for (seconds, rest) in [mark.modified, mark.changed] {
        into.extend(seconds.to_le_bytes());
        into.extend(rest.to_le_bytes());
    }
}

/// The rest of a table that is not parsed yet.
struct TableReader<'a>(&'a [u8]);

impl<'a> TableReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], CorruptIndex> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(CorruptIndex)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, CorruptIndex> {
        Ok(u64::from_le_bytes(array(self.take(8)?)?))
    }

    fn small(&mut self) -> Result<u32, CorruptIndex> {
        Ok(u32::from_le_bytes(array(self.take(4)?)?))
    }

    fn bytes(&mut self) -> Result<&'a [u8], CorruptIndex> {
        let length = self.small()? as usize;
        self.take(length)
    }

    fn mark(&mut self) -> Result<FileFingerprint, CorruptIndex> {
        let [device, inode, size] = [self.number()?, self.number()?, self.number()?];
        let modified = (self.number()? as i64, self.small()?);
        let changed = (self.number()? as i64, self.small()?);
        Ok(FileFingerprint {
            device,
            inode,
            size,
            modified,
            changed,
        })
    }
}

/// A writer that computes a checksum and the length of what is written.
struct ChecksumWriter<W> {
    inner: W,
    sum: Checksum,
    length: u64,
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write_all(bytes)?;
        self.sum.add(bytes);
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A checksum that detects accidental changes, not deliberate ones.
struct Checksum {
    state: u64,
    rest: Vec<u8>,
    length: u64,
}

impl Checksum {
    fn new() -> Self {
        Self {
            state: 0x9e37_79b9_7f4a_7c15,
            rest: Vec::with_capacity(8),
            length: 0,
        }
    }

    fn add(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if !self.rest.is_empty() {
            let missing = (8 - self.rest.len()).min(bytes.len());
            self.rest.extend(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.rest.len() == 8 {
                let word = std::mem::take(&mut self.rest);
                self.add_words(&word);
            }
        }
        let whole = bytes.len() / 8 * 8;
        self.add_words(&bytes[..whole]);
        self.rest.extend(&bytes[whole..]);
    }

    fn add_words(&mut self, bytes: &[u8]) {
        for word in bytes.chunks_exact(8) {
            let word = u64::from_le_bytes([
                word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7],
            ]);
            self.state = (self.state ^ word)
                .wrapping_mul(0xff51_afd7_ed55_8ccd)
                .rotate_left(29);
        }
    }

    fn value(&self) -> u64 {
        let mut last = [0; 8];
        last[..self.rest.len()].copy_from_slice(&self.rest);
        let mixed = (self.state ^ u64::from_le_bytes(last)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        (mixed ^ mixed >> 32 ^ self.length).wrapping_mul(0xff51_afd7_ed55_8ccd)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
