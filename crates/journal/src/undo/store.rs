//! The undo journal on disk: a folder with `log.jsonl`, one record per line, and `blobs/`, contents
//! named by their hash.
//!
//! - Nothing is created before the first change; only the owner can read it.
//! - A process that changes files holds a shared lock on the log until the outcome is written.
//!   Recovery and the dropping of old units hold it exclusively.
//! - A line that was cut off by a crash is skipped, and never continued.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::keep;
use super::record::UndoRecord;
use super::units::UndoUnits;
use crate::commit::{missing_parents, same_content};
use crate::error::JournalError;
use crate::open::open_real;
use crate::snapshot::clone;
use crate::stamp::ContentHash;

const LOG: &str = "log.jsonl";
/// The new log before it is renamed over the old one.
const NEW_LOG: &str = "log.jsonl.new";
const BLOBS: &str = "blobs";
const KEPT: &str = "keep";
const LIVE: &str = "live";
const SHARED_COPIES: &str = ".copies";
const IGNORE: &str = ".ignore";
/// The prefix of blobs that are being written; those left by a crash are removed at the next start.
const UNFINISHED: &str = "unfinished-";
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct UndoStore {
    folder: PathBuf,
    kept: PathBuf,
    state: Mutex<UndoStoreState>,
}

#[derive(Debug, Default)]
struct UndoStoreState {
    /// Hashes of blobs that this process knows to be durable.
    durable: HashSet<String>,
    unfinished: u64,
}

/// The required durability of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// Survives a power failure: the next write overwrites data that only the blob preserves.
    Durable,
    /// May be lost in a power failure: only shown to readers.
    BestEffort,
}

/// A position in the log. Records after it were written later.
#[derive(Debug)]
pub(crate) struct LogMark {
    /// The log and its length at that time. The file stays open, so that no other file can get its
    /// inode. `None` if the log did not exist.
    pub(super) end: Option<(File, u64)>,
    /// The time of the mark in milliseconds since the epoch, in case the log is rewritten since.
    time: u64,
}

impl LogMark {
    /// Creates a mark for a time, without a position in the log.
    pub(crate) fn from_time(time: u64) -> Self {
        Self { end: None, time }
    }
}

/// The log, opened and locked.
#[derive(Debug)]
pub(super) struct UndoLogFile {
    file: File,
    path: PathBuf,
}

impl UndoStore {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            kept: folder.join(KEPT),
            folder,
            state: Mutex::default(),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn log_path(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    pub(super) fn blob_path(&self, hash: &str) -> PathBuf {
        self.folder.join(BLOBS).join(hash)
    }

    /// Returns the folder of stored files that are not named by their hash.
    pub(super) fn kept_folder(&self) -> &Path {
        &self.kept
    }

    /// Returns the folder of the commands that run, or that a crash interrupted.
    pub(super) fn live_folder(&self) -> PathBuf {
        self.folder.join(LIVE)
    }

    /// Returns the folder of the copies that commands share. It is in the folder that guards may
    /// write to.
    pub(super) fn shared_copies_folder(&self) -> PathBuf {
        self.live_folder().join(SHARED_COPIES)
    }

    pub(super) fn failed(&self, source: io::Error) -> JournalError {
        JournalError::UndoJournal {
            folder: self.folder.clone(),
            source,
        }
    }

    /// Opens the log for a change, creating the folder if it is the first one.
    pub(super) fn open(&self) -> Result<UndoLogFile, JournalError> {
        self.open_log(FlockOperation::NonBlockingLockShared)
            .map_err(|error| self.failed(error))
    }

    /// Opens the log exclusively, waiting until no change is running; `None` if the log does not
    /// exist.
    pub(super) fn open_alone(&self) -> Result<Option<UndoLogFile>, JournalError> {
        if !self.exists() {
            return Ok(None);
        }
        self.open_log(FlockOperation::NonBlockingLockExclusive)
            .map(Some)
            .map_err(|error| self.failed(error))
    }

    /// Like [`Self::open_alone`], but does not wait: returns `None` unless the exclusive lock was
    /// obtained, which also needs a file system with locks.
    pub(super) fn try_open_alone(&self) -> Result<Option<UndoLogFile>, JournalError> {
        let path = self.log_path();
        let opened = open_regular(OpenOptions::new().read(true).append(true), &path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result.map_err(|error| self.failed(error))?,
        };
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let log = UndoLogFile { file, path };
        Ok((locked && log.is_current().map_err(|error| self.failed(error))?).then_some(log))
    }

    pub(super) fn exists(&self) -> bool {
        self.log_path().exists()
    }

    fn open_log(&self, operation: FlockOperation) -> io::Result<UndoLogFile> {
        let path = self.log_path();
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            let mut options = OpenOptions::new();
            options.read(true).append(true).mode(0o600);
            let file = match open_regular(&mut options, &path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let made = missing_parents(&path)?;
                    self.make_folder()?;
                    let file = open_regular(options.create(true), &path)?;
                    sync_directory(&self.folder)?;
                    for above in made.iter().filter_map(|made| made.parent()) {
                        sync_directory(above)?;
                    }
                    file
                }
                result => result?,
            };
            match flock(&file, operation) {
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    std::thread::sleep(LOCK_RETRY_PAUSE);
                    continue;
                }
                Err(Errno::WOULDBLOCK) => return Err(Errno::WOULDBLOCK.into()),
                Err(Errno::INTR) => continue,
                // Some network file systems have no locks.
                Ok(()) | Err(_) => {}
            }
            let path = path.clone();
            let log = UndoLogFile { file, path };
            if log.is_current()? {
                return Ok(log);
            }
        }
    }

    /// Returns whether the log belongs to the user of this process, or does not exist yet.
    pub(super) fn is_of_this_user(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        match fs::symlink_metadata(self.log_path()) {
            Ok(found) => found.uid() == own,
            // A command may have been interrupted before the first record.
            Err(error) => {
                error.kind() == io::ErrorKind::NotFound
                    && fs::symlink_metadata(&self.folder).map_or(true, |found| found.uid() == own)
            }
        }
    }

    /// Returns all records that can be read, oldest first.
    pub(super) fn records(&self) -> Result<Vec<UndoRecord>, JournalError> {
        match read_regular(&self.log_path()) {
            Ok(text) => Ok(records_in(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Returns a mark for the present end of the log.
    pub(super) fn mark(&self, time: u64) -> LogMark {
        let opened = open_regular(OpenOptions::new().read(true), &self.log_path());
        let end = opened.and_then(|log| log.metadata().map(|found| (log, found.len())));
        LogMark {
            end: end.ok(),
            time,
        }
    }

    /// Returns the records after a mark, oldest first. Usually reads only the end of the log.
    pub(super) fn records_after(&self, mark: &LogMark) -> Result<Vec<UndoRecord>, JournalError> {
        if let Some((log, length)) = &mark.end
            && is_at(log, &self.log_path()).map_err(|error| self.failed(error))?
        {
            let mut text = Vec::new();
            let mut log = log;
            log.seek(SeekFrom::Start(*length))
                .and_then(|_| log.read_to_end(&mut text))
                .map_err(|error| self.failed(error))?;
            return Ok(records_in(&text));
        }
        let mut records = self.records()?;
        records.retain(|record| match record {
            UndoRecord::Intent(intent) => intent.time > mark.time,
            _ => true,
        });
        Ok(records)
    }

    /// Stores a content and returns its hash.
    pub(super) fn put(&self, content: &[u8], keep: Durability) -> Result<String, JournalError> {
        let hash = ContentHash::compute(content).to_string();
        // Another process may have dropped the blob with old units since.
        let is_there = self.lock().durable.contains(&hash) && self.blob_path(&hash).exists();
        if !is_there {
            self.write_blob(&hash, content, keep)
                .map_err(|error| self.failed(error))?;
            if keep == Durability::Durable {
                self.lock().durable.insert(hash.clone());
            }
        }
        Ok(hash)
    }

    fn write_blob(&self, hash: &str, content: &[u8], keep: Durability) -> io::Result<()> {
        let blobs = self.folder.join(BLOBS);
        match open_regular(OpenOptions::new().read(true), &self.blob_path(hash)) {
            // The content is compared and not only the length: a power failure may have left any
            // bytes in the file.
            Ok(file) if same_content(&file, content)? => {
                if keep == Durability::Durable {
                    file.sync_all()?;
                    sync_directory(&blobs)?;
                }
                return Ok(());
            }
            _ => {}
        }
        let unfinished = self.unfinished();
        let written = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(content)?;
            if keep == Durability::Durable {
                file.sync_all()?;
            }
            fs::rename(&unfinished, self.blob_path(hash))
        })();
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written?;
        match keep {
            Durability::Durable => sync_directory(&blobs),
            Durability::BestEffort => Ok(()),
        }
    }

    /// Creates an unnamed file, which disappears when it is closed.
    pub(super) fn nameless(&self) -> io::Result<File> {
        self.make_folder()?;
        let path = self.unfinished();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    }

    pub(super) fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.folder.join(BLOBS))?;
        // The parent folder may be a workspace: searches must skip this folder.
        fs::write(self.folder.join(IGNORE), "*\n")
    }

    /// Stores the content of a file, which must have this hash.
    pub(super) fn put_file(&self, from: &Path, hash: &str, sync: bool) -> io::Result<()> {
        let unfinished = self.unfinished();
        let kept = (|| {
            let mut file = File::from(open_real(from, OFlags::RDONLY | OFlags::NONBLOCK)?);
            let mut copy = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)?;
            if !clone(&copy, &file) {
                io::copy(&mut file, &mut copy)?;
            }
            copy.rewind()?;
            let mut hasher = blake3::Hasher::new();
            io::copy(&mut copy, &mut hasher)?;
            if ContentHash::finish(&hasher).to_string() != hash {
                return Err(io::Error::other("it changed while it was read"));
            }
            if sync {
                copy.sync_all()?;
            }
            fs::rename(&unfinished, self.blob_path(hash))?;
            match sync {
                true => sync_directory(&self.folder.join(BLOBS)),
                false => Ok(()),
            }
        })();
        if kept.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        kept
    }

    /// Stores a file on the same file system under the hash of its content, as a hard link if
    /// possible.
    pub(super) fn adopt(&self, from: &Path, hash: &str) -> io::Result<()> {
        self.make_folder()?;
        let to = self.blob_path(hash);
        if let Ok(known) = to.symlink_metadata()
            && known.len() == from.symlink_metadata()?.len()
        {
            return Ok(());
        }
        let unfinished = self.unfinished();
        match fs::hard_link(from, &unfinished) {
            Ok(()) => fs::rename(&unfinished, &to),
            Err(_) => self.put_file(from, hash, false),
        }
    }

    /// Makes all stored contents durable.
    pub(super) fn sync_all(&self) {
        // Without this call the system writes the contents later.
        #[cfg(target_os = "linux")]
        if let Ok(folder) = File::open(&self.folder) {
            let _ = rustix::fs::syncfs(folder);
        }
    }

    /// Opens a stored content for reading. The reader must check its hash.
    pub(super) fn open_blob(&self, hash: &str) -> Result<Option<File>, JournalError> {
        match open_regular(OpenOptions::new().read(true), &self.blob_path(hash)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Returns the error for a missing or damaged content of this path.
    pub(super) fn damaged(&self, path: &Path) -> JournalError {
        let text = format!(
            "the stored content of {} is missing or damaged",
            path.display()
        );
        self.failed(io::Error::other(text))
    }

    fn unfinished(&self) -> PathBuf {
        let mut state = self.lock();
        state.unfinished += 1;
        let name = format!("{UNFINISHED}{}-{}", std::process::id(), state.unfinished);
        self.folder.join(BLOBS).join(name)
    }

    /// Returns a stored content; `None` if it is missing or damaged.
    pub(super) fn get(&self, hash: &str) -> Result<Option<Vec<u8>>, JournalError> {
        let content = match read_regular(&self.blob_path(hash)) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        Ok((ContentHash::compute(&content).to_string() == hash).then_some(content))
    }

    /// Returns all unneeded files: blobs and kept files that no record names, and files that a crash left
    /// unfinished.
    pub(super) fn litter(&self, units: &UndoUnits) -> Vec<PathBuf> {
        let hashes = units.hashes();
        let entries = fs::read_dir(self.folder.join(BLOBS));
        let entries = entries.into_iter().flatten().flatten();
        let needed = |name: &str| hashes.contains(name);
        let blobs = entries.filter(|entry| !entry.file_name().to_str().is_some_and(needed));
        let log = Some(self.folder.join(NEW_LOG)).filter(|path| path.exists());
        let kept = keep::unneeded(&self.kept, &units.kept_below(&self.kept), &units.damaged());
        let blobs = blobs.map(|entry| entry.path());
        blobs.chain(log).chain(kept).collect()
    }

    /// Removes all unneeded files. Must be called only with the log opened exclusively.
    pub(super) fn keep_only(&self, units: &UndoUnits) {
        for path in self.litter(units) {
            keep::remove(&path);
        }
        self.lock().durable.clear();
    }

    #[cfg(test)]
    pub(super) fn known_blobs(&self) -> usize {
        self.lock().durable.len()
    }

    fn lock(&self) -> MutexGuard<'_, UndoStoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UndoLogFile {
    /// Returns whether this is still the file with the log's name. It may have been replaced while
    /// we waited for the lock.
    fn is_current(&self) -> io::Result<bool> {
        is_at(&self.file, &self.path)
    }

    /// Appends a record with a single write.
    pub(super) fn append(&self, record: &UndoRecord, keep: Durability) -> io::Result<()> {
        self.append_all(std::slice::from_ref(record), keep)
    }

    /// Appends several records with a single write.
    pub(super) fn append_all(&self, records: &[UndoRecord], keep: Durability) -> io::Result<()> {
        // The leading line break ends a line that a crash may have cut off.
        let mut lines = vec![b'\n'];
        for record in records {
            serde_json::to_writer(&mut lines, record)?;
            lines.push(b'\n');
        }
        (&self.file).write_all(&lines)?;
        match keep {
            Durability::Durable => self.file.sync_data(),
            Durability::BestEffort => Ok(()),
        }
    }

    /// Replaces all records by these. Must be called only if the log was opened exclusively.
    pub(super) fn rewrite(&self, records: &[UndoRecord]) -> io::Result<()> {
        let mut text = Vec::new();
        for record in records {
            serde_json::to_writer(&mut text, record)?;
            text.push(b'\n');
        }
        let new = self.path.with_file_name(NEW_LOG);
        let replaced = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, &self.path)
        })();
        if replaced.is_err() {
            let _ = fs::remove_file(&new);
        }
        replaced?;
        match self.path.parent() {
            Some(folder) => sync_directory(folder),
            None => Ok(()),
        }
    }
}

/// Opens a file, unless the name is a link, or a pipe or device that would block or never end.
fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = options.custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(OpenOptions::new().read(true), path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns whether the path now refers to this file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let current = fs::metadata(path).ok();
    let own = file.metadata()?;
    Ok(current.is_some_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino())))
}

/// Parses the readable records of these lines.
fn records_in(text: &[u8]) -> Vec<UndoRecord> {
    let lines = text.split(|&byte| byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

fn sync_directory(path: &Path) -> io::Result<()> {
    // Not every file system can sync directories; errors are ignored.
    let _ = File::open(path)?.sync_all();
    Ok(())
}
