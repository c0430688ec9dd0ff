//! Stores for the lines of a session.
//!
//! The trait is small, so that a store other than a file is easy to add, such as a stream to another
//! machine. A [`FileStore`] locks its session: no second store can be opened for it concurrently.

use std::{
    fmt::Debug,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
};

/// The time for which locking a file is retried.
const LEFT_JUST_NOW: Duration = Duration::from_millis(300);

/// The lines of one session.
pub trait TranscriptStore: Send + Sync + Debug {
    /// Appends a line, if the number of lines is the expected one.
    fn append(&self, expected: u64, line: &str) -> Result<(), TranscriptStoreError>;

    /// Returns the lines from this index on. Invalid UTF-8 is replaced.
    fn read(&self, from: u64) -> Result<Vec<String>, TranscriptStoreError>;

    /// Returns the file that contains the lines, if any.
    fn path(&self) -> Option<&Path> {
        None
    }
}

/// The reason why lines cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptStoreError {
    /// Another writer has appended lines.
    #[error("the session has {actual} lines, not {expected}: another program is writing to it")]
    Moved {
        /// The expected number of lines.
        expected: u64,
        /// The actual number of lines.
        actual: u64,
    },
    /// Another process has locked the session.
    #[error("{path} is in use by another process; end it, or fork the session", path = path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file exists already.
    #[error("{path} exists already", path = path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The operating system reported an error.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Lines in a file that only its owner can read. The file is created with its first line.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    state: Mutex<StoreState>,
}

#[derive(Debug, Default)]
struct StoreState {
    /// Locked while it is open.
    file: Option<File>,
    lines: u64,
    /// Whether the last line is incomplete, because a process died while it was writing.
    torn: bool,
}

impl FileStore {
    /// Creates a store for a new session. The file must not exist yet.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, TranscriptStoreError> {
        let path = path.into();
        match path.symlink_metadata() {
            Ok(_) => Err(TranscriptStoreError::Exists { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self {
                path,
                state: Mutex::default(),
            }),
            Err(source) => Err(TranscriptStoreError::Io { path, source }),
        }
    }

    /// Opens the store of a session that is resumed.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TranscriptStoreError> {
        let path = path.into();
        let file = open_transcript(OpenOptions::new().read(true).append(true), &path);
        let file = file.map_err(|source| TranscriptStoreError::Io {
            path: path.clone(),
            source,
        })?;
        lock(&file, &path)?;
        let store = Self {
            path,
            state: Mutex::new(StoreState {
                file: Some(file),
                ..StoreState::default()
            }),
        };
        {
            let mut state = store.state();
            let bytes = store.bytes(&mut state)?;
            state.lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            state.torn = bytes.last().is_some_and(|last| *last != b'\n');
            state.lines += u64::from(state.torn);
        }
        Ok(store)
    }

    fn bytes(&self, state: &mut StoreState) -> Result<Vec<u8>, TranscriptStoreError> {
        let mut bytes = Vec::new();
        if let Some(file) = &mut state.file {
            file.seek(SeekFrom::Start(0))
                .map_err(|source| self.failed(source))?;
            file.read_to_end(&mut bytes)
                .map_err(|source| self.failed(source))?;
        }
        Ok(bytes)
    }

    fn create_file(&self) -> Result<File, TranscriptStoreError> {
        if let Some(folder) = self.path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|source| self.failed(source))?;
        }
        let made = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.path);
        let file = made.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => TranscriptStoreError::Exists {
                path: self.path.clone(),
            },
            _ => self.failed(source),
        })?;
        lock(&file, &self.path)?;
        Ok(file)
    }

    fn failed(&self, source: io::Error) -> TranscriptStoreError {
        TranscriptStoreError::Io {
            path: self.path.clone(),
            source,
        }
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(file: &File, path: &Path) -> Result<(), TranscriptStoreError> {
    // A child process that is being started inherits open files until it executes its program,
    // including the lock of a session that was just closed. This takes only a short time.
    let until = Instant::now() + LEFT_JUST_NOW;
    loop {
        let path = || path.to_path_buf();
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(Errno::WOULDBLOCK) => return Err(TranscriptStoreError::InUse { path: path() }),
            Err(Errno::INTR) => {}
            Err(other) => {
                return Err(TranscriptStoreError::Io {
                    path: path(),
                    source: other.into(),
                });
            }
        }
    }
}

/// Returns whether the file is locked. A process that tries to lock it at the same time retries.
pub(crate) fn is_in_use(path: &Path) -> bool {
    open_transcript(OpenOptions::new().read(true), path).is_ok_and(|file| {
        flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
    })
}

impl TranscriptStore for FileStore {
    fn append(&self, expected: u64, line: &str) -> Result<(), TranscriptStoreError> {
        let mut state = self.state();
        if state.lines != expected {
            let actual = state.lines;
            return Err(TranscriptStoreError::Moved { expected, actual });
        }
        if state.file.is_none() {
            state.file = Some(self.create_file()?);
        }
        let mut bytes = Vec::with_capacity(line.len() + 2);
        if state.torn {
            bytes.push(b'\n');
        }
        bytes.extend(line.as_bytes());
        bytes.push(b'\n');
        if let Some(file) = &mut state.file {
            // If writing fails, the next line starts with a line break.
            let written = file.write_all(&bytes);
            state.torn = written.is_err();
            written.map_err(|source| self.failed(source))?;
            state.lines += 1;
        }
        Ok(())
    }

    fn read(&self, from: u64) -> Result<Vec<String>, TranscriptStoreError> {
        let bytes = self.bytes(&mut self.state())?;
        Ok(lines_of(&bytes, from))
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

/// Returns the lines of a file that another process may be writing.
pub(crate) fn read_shared(path: &Path) -> Result<Vec<String>, TranscriptStoreError> {
    let failed = |source| TranscriptStoreError::Io {
        path: path.to_path_buf(),
        source,
    };
    let mut file = open_transcript(OpenOptions::new().read(true), path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(lines_of(&bytes, 0))
}

/// Opens a transcript. A symlink, a pipe or a device is an error: reading it could block, never end,
/// or return another file's content.
fn open_transcript(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = options.custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Returns whether a transcript is at this path. A symlink is not a transcript.
pub(crate) fn is_transcript(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

fn lines_of(bytes: &[u8], from: u64) -> Vec<String> {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if body.is_empty() {
        return Vec::new();
    }
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let lines = body.split(|byte| *byte == b'\n').skip(from);
    lines
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

/// Lines that exist only in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    lines: Mutex<Vec<String>>,
}

impl TranscriptStore for MemoryStore {
    fn append(&self, expected: u64, line: &str) -> Result<(), TranscriptStoreError> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let actual = lines.len() as u64;
        if actual != expected {
            return Err(TranscriptStoreError::Moved { expected, actual });
        }
        lines.push(line.to_owned());
        Ok(())
    }

    fn read(&self, from: u64) -> Result<Vec<String>, TranscriptStoreError> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        Ok(lines.iter().skip(from).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_private_has_one_writer_and_is_made_late() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("project/session.jsonl");
        let store = FileStore::create(&path).unwrap();
        assert!(!path.exists());
        store.append(0, "{}").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert!(matches!(
            store.append(0, "{}"),
            Err(TranscriptStoreError::Moved { actual: 1, .. })
        ));
        assert!(matches!(
            FileStore::open(&path),
            Err(TranscriptStoreError::InUse { .. })
        ));
        assert!(matches!(
            FileStore::create(&path),
            Err(TranscriptStoreError::Exists { .. })
        ));
        drop(store);
        let store = FileStore::open(&path).unwrap();
        store.append(1, "{\"a\":1}").unwrap();
        assert_eq!(store.read(1).unwrap(), ["{\"a\":1}"]);
    }

    #[test]
    fn a_line_that_was_cut_off_does_not_spoil_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, "{\"a\":1}\n{\"b\":").unwrap();
        let store = FileStore::open(&path).unwrap();
        store.append(2, "{\"c\":3}").unwrap();
        store.append(3, "{\"d\":4}").unwrap();
        assert_eq!(
            store.read(0).unwrap(),
            ["{\"a\":1}", "{\"b\":", "{\"c\":3}", "{\"d\":4}"]
        );
    }
}
