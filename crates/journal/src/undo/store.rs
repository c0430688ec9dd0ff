//! What the undo journal keeps on disk: a folder with `log.jsonl`, one record a
//! line, and `blobs/`, contents named by their hash.
//!
//! - Nothing is created before the first mutation; only the owner can read it.
//! - Anyone who changes files holds a shared lock on the log until the outcome is
//!   written; recovery and the dropping of old units hold it alone.
//! - A line that was cut off by a crash is passed over, and never continued.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::record::Record;
use crate::commit::{missing_parents, same_content};
use crate::error::JournalError;
use crate::open::open_real;
use crate::snapshot::clone;
use crate::stamp::ContentHash;

const LOG: &str = "log.jsonl";
/// The log that is about to take its place.
const NEW_LOG: &str = "log.jsonl.new";
const BLOBS: &str = "blobs";
const IGNORE: &str = ".ignore";
/// Blobs that are being written; what a crash leaves of them goes at the next start.
const UNFINISHED: &str = "unfinished-";
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    state: Mutex<UndoStoreState>,
}

#[derive(Debug, Default)]
struct UndoStoreState {
    /// Hashes of blobs that this process knows to be on the disk.
    durable: HashSet<String>,
    unfinished: u64,
}

/// How sure a blob must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Survives a power failure: something is overwritten because of it.
    Durably,
    /// Nice to have: only shown to readers.
    Loosely,
}

/// A place in the log. What is behind it was recorded later.
#[derive(Debug)]
pub(crate) struct LogMark {
    /// The log and its length then. It stays open, so that no other file can be taken for it; `None`: there was none.
    pub(super) end: Option<(File, u64)>,
    /// When that was, in milliseconds after the epoch: for a log that was rewritten since.
    time: u64,
}

impl LogMark {
    /// A moment at which no one looked at the log.
    pub(super) fn at(time: u64) -> Self {
        Self { end: None, time }
    }
}

/// The log, opened and locked.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
}

impl Store {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
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

    fn blob_path(&self, hash: &str) -> PathBuf {
        self.folder.join(BLOBS).join(hash)
    }

    pub(super) fn failed(&self, source: io::Error) -> JournalError {
        JournalError::UndoJournal {
            folder: self.folder.clone(),
            source,
        }
    }

    /// Opens the log for a mutation, making the folder if it is the first.
    pub(super) fn open(&self) -> Result<Log, JournalError> {
        self.open_log(FlockOperation::NonBlockingLockShared)
            .map_err(|error| self.failed(error))
    }

    /// Opens the log when no one is mutating; `None` if there is none.
    pub(super) fn open_alone(&self) -> Result<Option<Log>, JournalError> {
        if !self.exists() {
            return Ok(None);
        }
        self.open_log(FlockOperation::NonBlockingLockExclusive)
            .map(Some)
            .map_err(|error| self.failed(error))
    }

    /// The same, if that is so at this moment and certain: not where there are no locks.
    pub(super) fn try_open_alone(&self) -> Result<Option<Log>, JournalError> {
        let path = self.log_path();
        let opened = OpenOptions::new().read(true).append(true).open(&path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result.map_err(|error| self.failed(error))?,
        };
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let log = Log { file, path };
        Ok((locked && log.is_current().map_err(|error| self.failed(error))?).then_some(log))
    }

    pub(super) fn exists(&self) -> bool {
        self.log_path().exists()
    }

    fn open_log(&self, operation: FlockOperation) -> io::Result<Log> {
        let path = self.log_path();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut options = OpenOptions::new();
            options.read(true).append(true).mode(0o600);
            let file = match options.open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let made = missing_parents(&path)?;
                    self.make_folder()?;
                    let file = options.create(true).open(&path)?;
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
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Err(Errno::WOULDBLOCK) => return Err(Errno::WOULDBLOCK.into()),
                Err(Errno::INTR) => continue,
                // Some network file systems have no locks.
                Ok(()) | Err(_) => {}
            }
            let path = path.clone();
            let log = Log { file, path };
            if log.is_current()? {
                return Ok(log);
            }
        }
    }

    /// All records that can be read, oldest first.
    pub(super) fn records(&self) -> Result<Vec<Record>, JournalError> {
        match fs::read(self.log_path()) {
            Ok(text) => Ok(records_in(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Where the log ends now.
    pub(super) fn mark(&self, time: u64) -> LogMark {
        let opened = File::open(self.log_path());
        let end = opened.and_then(|log| log.metadata().map(|found| (log, found.len())));
        LogMark {
            end: end.ok(),
            time,
        }
    }

    /// The records behind a mark, oldest first; only the end of the log is read for them.
    pub(super) fn records_behind(&self, mark: &LogMark) -> Result<Vec<Record>, JournalError> {
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
            Record::Intent(intent) => intent.time > mark.time,
            _ => true,
        });
        Ok(records)
    }

    /// Keeps a content and gives the hash it is found by.
    pub(super) fn put(&self, content: &[u8], keep: Keep) -> Result<String, JournalError> {
        let hash = ContentHash::of(content).to_string();
        // Another process may have dropped it with old units since.
        let is_there = self.lock().durable.contains(&hash) && self.blob_path(&hash).exists();
        if !is_there {
            self.write_blob(&hash, content, keep)
                .map_err(|error| self.failed(error))?;
            if keep == Keep::Durably {
                self.lock().durable.insert(hash.clone());
            }
        }
        Ok(hash)
    }

    fn write_blob(&self, hash: &str, content: &[u8], keep: Keep) -> io::Result<()> {
        let blobs = self.folder.join(BLOBS);
        match File::open(self.blob_path(hash)) {
            // Not its length: a power failure may have left anything in it.
            Ok(file) if same_content(&file, content)? => {
                if keep == Keep::Durably {
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
            if keep == Keep::Durably {
                file.sync_all()?;
            }
            fs::rename(&unfinished, self.blob_path(hash))
        })();
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written?;
        match keep {
            Keep::Durably => sync_directory(&blobs),
            Keep::Loosely => Ok(()),
        }
    }

    /// A file without a name, of which nothing is left when no one uses it any more.
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

    fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.folder.join(BLOBS))?;
        // Where someone works in the folder above: searches do not look in here.
        fs::write(self.folder.join(IGNORE), "*\n")
    }

    /// Keeps the content of a file, which must have this hash.
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
                return Err(io::Error::other("it was changed meanwhile"));
            }
            if sync {
                copy.sync_all()?;
            }
            fs::rename(&unfinished, self.blob_path(hash))
        })();
        if kept.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        kept
    }

    /// Makes everything durable that was kept.
    pub(super) fn sync_all(&self) {
        // Not every system can; then the disk's own pace must do.
        #[cfg(target_os = "linux")]
        if let Ok(folder) = File::open(&self.folder) {
            let _ = rustix::fs::syncfs(folder);
        }
    }

    /// A kept content, to be read; the one who reads it must look at its hash.
    pub(super) fn open_blob(&self, hash: &str) -> Result<Option<File>, JournalError> {
        match File::open(self.blob_path(hash)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// What was kept of this path cannot be used.
    pub(super) fn damaged(&self, path: &Path) -> JournalError {
        let text = format!("what it keeps of {} is missing or damaged", path.display());
        self.failed(io::Error::other(text))
    }

    fn unfinished(&self) -> PathBuf {
        let mut state = self.lock();
        state.unfinished += 1;
        let name = format!("{UNFINISHED}{}-{}", std::process::id(), state.unfinished);
        self.folder.join(BLOBS).join(name)
    }

    /// A kept content; `None` if it is gone or damaged.
    pub(super) fn get(&self, hash: &str) -> Result<Option<Vec<u8>>, JournalError> {
        let content = match fs::read(self.blob_path(hash)) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        Ok((ContentHash::of(&content).to_string() == hash).then_some(content))
    }

    /// What no one needs: every blob that is not named, and what a crash left unfinished.
    pub(super) fn litter(&self, hashes: &HashSet<&str>) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.join(BLOBS));
        let entries = entries.into_iter().flatten().flatten();
        let needed = |name: &str| hashes.contains(name);
        let blobs = entries.filter(|entry| !entry.file_name().to_str().is_some_and(needed));
        let log = Some(self.folder.join(NEW_LOG)).filter(|path| path.exists());
        blobs.map(|entry| entry.path()).chain(log).collect()
    }

    /// Removes all that. Only with the log opened alone.
    pub(super) fn keep_only(&self, hashes: &HashSet<&str>) {
        for path in self.litter(hashes) {
            let _ = fs::remove_file(path);
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

impl Log {
    /// Is it still the one that has the name? It may have been rewritten while we waited for it.
    fn is_current(&self) -> io::Result<bool> {
        is_at(&self.file, &self.path)
    }

    /// Adds a record with a single write.
    pub(super) fn append(&self, record: &Record, keep: Keep) -> io::Result<()> {
        self.append_all(std::slice::from_ref(record), keep)
    }

    /// Adds several with a single write.
    pub(super) fn append_all(&self, records: &[Record], keep: Keep) -> io::Result<()> {
        // Whatever was cut off before it, it is a line of its own.
        let mut lines = vec![b'\n'];
        for record in records {
            serde_json::to_writer(&mut lines, record)?;
            lines.push(b'\n');
        }
        (&self.file).write_all(&lines)?;
        match keep {
            Keep::Durably => self.file.sync_data(),
            Keep::Loosely => Ok(()),
        }
    }

    /// Puts these records in place of all others. Only if it was opened alone.
    pub(super) fn rewrite(&self, records: &[Record]) -> io::Result<()> {
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

/// Is this file the one that has that name now?
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let current = fs::metadata(path).ok();
    let own = file.metadata()?;
    Ok(current.is_some_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino())))
}

/// What can be read of these lines.
fn records_in(text: &[u8]) -> Vec<Record> {
    let lines = text.split(|&byte| byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

fn sync_directory(path: &Path) -> io::Result<()> {
    // Not every file system can; then there is nothing more to be done.
    let _ = File::open(path)?.sync_all();
    Ok(())
}
