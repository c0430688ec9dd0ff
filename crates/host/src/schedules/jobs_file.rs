//! Schedules on disk: those of a session in its folder, and durable ones in the workspace.
//!
//! Any program that runs in the workspace, or the workspace's author, may have written
//! `.claude/scheduled_tasks.json`, and its prompts reach the model without the user. So a job in
//! the file is only used if haft itself wrote it, for this user and this directory. A hash of the
//! job in the user's own folder proves that. All other entries are left unchanged. Symlinks are
//! never followed, neither for reading nor for writing.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use rustix::{
    fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstat, open, openat, renameat, unlinkat},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The maximum size of a file of jobs in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// The number of attempts to take a lock that another session holds, and the pause between them.
const TRIES: u32 = 100;
const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// The location of durable jobs below the session's directory.
const FOLDER: &str = ".claude";
const FILE: &str = "scheduled_tasks.json";

/// A job as stored in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredJob {
    pub(crate) id: String,
    pub(crate) cron: String,
    pub(crate) prompt: String,
    /// The time of creation, in milliseconds since 1970.
    pub(crate) created_at: i64,
    #[serde(default)]
    pub(crate) recurring: bool,
}

impl StoredJob {
    fn hash(&self) -> String {
        let all = json!([
            self.id,
            self.cron,
            self.prompt,
            self.created_at,
            self.recurring
        ]);
        blake3::hash(all.to_string().as_bytes())
            .to_hex()
            .to_string()
    }
}

/// Reads the jobs of a session; none if the file does not exist.
pub(crate) fn read_session_jobs(file: &Path) -> Result<Vec<StoredJob>, String> {
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    let (_, entries) = read_document(opened)?;
    Ok(entries.iter().filter_map(stored).collect())
}

/// Writes the jobs of a session; removes the file if the list is empty.
pub(crate) fn write_session_jobs(file: &Path, jobs: &[StoredJob]) -> io::Result<()> {
    if jobs.is_empty() {
        return match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let Some(folder) = file.parent() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let folder = open_folder(folder)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    replace(&folder, &name, &text(&json!({"tasks": jobs}))?)
}

/// The durable jobs of a directory.
#[derive(Debug)]
pub(crate) struct DurableJobs {
    /// The directory of the session.
    directory: PathBuf,
    /// The record of the jobs that haft wrote, in the user's own folder.
    written: PathBuf,
    /// The lock held by the one session of the directory that fires its jobs.
    firing: Mutex<Option<OwnedFd>>,
}

/// The contents of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DurableContent {
    /// The jobs that haft wrote.
    pub(crate) jobs: Vec<StoredJob>,
    /// The number of other jobs.
    pub(crate) foreign: usize,
}

/// The hashes of the jobs that haft wrote, by directory and id.
type WrittenJobs = BTreeMap<String, BTreeMap<String, String>>;

/// A file of jobs: the document without the jobs, and the jobs.
type JobsDocument = (Map<String, Value>, Vec<Value>);

impl DurableJobs {
    pub(crate) fn new(directory: PathBuf, user_folder: &Path) -> Self {
        Self {
            directory,
            written: user_folder.join("haft/schedules.json"),
            firing: Mutex::default(),
        }
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(FOLDER).join(FILE)
    }

    /// Reads the file.
    pub(crate) fn read(&self) -> Result<DurableContent, String> {
        let Some((_, entries)) = self.document()? else {
            return Ok(DurableContent::default());
        };
        let mut written = self.written();
        let written = written.remove(&self.key()).unwrap_or_default();
        let all = entries.len();
        let ours = entries.iter().filter_map(stored);
        let jobs: Vec<StoredJob> = ours
            .filter(|job| written.get(&job.id) == Some(&job.hash()))
            .collect();
        Ok(DurableContent {
            foreign: all - jobs.len(),
            jobs,
        })
    }

    /// Adds a job.
    pub(crate) fn add(&self, job: &StoredJob) -> Result<(), String> {
        self.change(|entries, written| {
            entries.retain(|entry| entry["id"] != *job.id);
            entries.push(serde_json::to_value(job).unwrap_or_default());
            written.insert(job.id.clone(), job.hash());
        })
    }

    /// Removes a job.
    pub(crate) fn remove(&self, id: &str) -> Result<(), String> {
        self.change(|entries, written| {
            entries.retain(|entry| entry["id"] != *id);
            written.remove(id);
        })
    }

    /// Returns whether this session fires the durable jobs. Only one session of each directory
    /// does, for as long as it lives.
    pub(crate) fn is_mine(&self) -> bool {
        let mut firing = self.firing.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(folder) = open_folder(&self.directory.join(FOLDER)) else {
            return false;
        };
        // If the folder was removed and created again, a lock on the old one is useless.
        let is_same = |held: &OwnedFd| match (fstat(held), fstat(&folder)) {
            (Ok(held), Ok(now)) => (held.st_dev, held.st_ino) == (now.st_dev, now.st_ino),
            _ => false,
        };
        if firing.as_ref().is_some_and(is_same) {
            return true;
        }
        *firing = None;
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err() {
            return false;
        }
        *firing = Some(folder);
        true
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Value>, &mut BTreeMap<String, String>),
    ) -> Result<(), String> {
        let put = |error: io::Error| format!("{}: {error}", self.path().display());
        let _lock = self
            .lock()
            .map_err(|error| format!("{}: {error}", self.written.display()))?;
        let (mut document, mut entries) = self.document()?.unwrap_or_default();
        let mut written = self.written();
        let before = entries.clone();
        change(&mut entries, written.entry(self.key()).or_default());
        // A job that is no longer in the file was removed by another program.
        if let Some(known) = written.get_mut(&self.key()) {
            known.retain(|id, _| entries.iter().any(|entry| entry["id"] == **id));
            if known.is_empty() {
                written.remove(&self.key());
            }
        }
        // Write the record first: after a crash in between, a job is ignored, and never trusted by
        // mistake.
        self.write_written(&written)
            .map_err(|error| format!("{}: {error}", self.written.display()))?;
        if entries == before {
            return Ok(());
        }
        let folder = self.directory.join(FOLDER);
        if !folder.is_symlink() && !folder.exists() {
            fs::create_dir(&folder).map_err(put)?;
        }
        let folder = open_folder(&folder).map_err(put)?;
        if entries.is_empty() && document.len() <= 1 {
            let removed = unlinkat(&folder, FILE, AtFlags::empty());
            // The folder may have been created only for the file. It is kept if it contains other
            // files.
            let _ = fs::remove_dir(self.directory.join(FOLDER));
            return match removed {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(error) => Err(put(error.into())),
            };
        }
        document.insert("tasks".to_owned(), Value::Array(entries));
        let text = text(&Value::Object(document)).map_err(put)?;
        replace(&folder, FILE, &text).map_err(put)
    }

    /// Reads the whole document and its jobs; `None` if the file does not exist.
    fn document(&self) -> Result<Option<JobsDocument>, String> {
        let put = |why: String| format!("{}: {why}", self.path().display());
        let folder = match open_folder(&self.directory.join(FOLDER)) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(put(error.to_string())),
        };
        // Non-blocking, in case the file is a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match openat(&folder, FILE, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(put("it is a link, and none is followed".to_owned())),
            Err(error) => return Err(put(io::Error::from(error).to_string())),
        };
        read_document(file).map(Some).map_err(put)
    }

    fn written(&self) -> WrittenJobs {
        // A missing or damaged record is treated as empty.
        let text = fs::read_to_string(&self.written).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn write_written(&self, written: &WrittenJobs) -> io::Result<()> {
        let folder = self.written.parent().unwrap_or(Path::new("/"));
        let folder = open_folder(folder)?;
        let name = self
            .written
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        replace(&folder, &name, &text(written)?)
    }

    fn key(&self) -> String {
        let real = fs::canonicalize(&self.directory).unwrap_or_else(|_| self.directory.clone());
        real.to_string_lossy().into_owned()
    }

    /// Takes a lock, so that concurrent changes of two sessions are both recorded.
    fn lock(&self) -> io::Result<OwnedFd> {
        let folder = self.written.parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let folder = open_folder(folder)?;
        for _ in 0..TRIES {
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(folder),
                Err(Errno::WOULDBLOCK | Errno::INTR) => thread::sleep(RETRY_PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "another session holds it",
        ))
    }
}

fn stored(entry: &Value) -> Option<StoredJob> {
    serde_json::from_value(entry.clone()).ok()
}

fn read_document(file: File) -> Result<JobsDocument, String> {
    let facts = file.metadata().map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("it is not a file".to_owned());
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user".to_owned());
    }
    let mut text = String::new();
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_BYTES {
        return Err("it is longer than 1 MiB".to_owned());
    }
    if text.trim().is_empty() {
        return Ok(Default::default());
    }
    let damaged = "it is damaged: expected {\"tasks\": […]}. Repair or remove it";
    let Ok(Value::Object(document)) = serde_json::from_str(&text) else {
        return Err(damaged.to_owned());
    };
    let entries = match document.get("tasks") {
        None => Vec::new(),
        Some(Value::Array(entries)) => entries.clone(),
        Some(_) => return Err(damaged.to_owned()),
    };
    Ok((document, entries))
}

fn open_folder(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(open(folder, flags, Mode::empty())?)
}

/// Replaces a file atomically.
fn replace(folder: &OwnedFd, name: &str, text: &str) -> io::Result<()> {
    let new = format!(".{name}.{}", haft_agent::random_id().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, &*new, flags, Mode::RUSR | Mode::WUSR)?);
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(renameat(folder, &*new, folder, name)?));
    if written.is_err() {
        let _ = unlinkat(folder, &*new, AtFlags::empty());
    }
    written
}

fn text(value: &impl Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    text.push('\n');
    Ok(text)
}
