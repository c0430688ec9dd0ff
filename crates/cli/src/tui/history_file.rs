//! The prompt history and the current draft: `haft/history.jsonl` and `haft/drafts/` in the user's
//! settings folder. Everything here waits for the disk, so it must not run on the drawing thread.
//!
//! Several processes may write concurrently. A line is appended under a file lock. A process that
//! gets the lock of a file that was replaced in the meantime opens the new one. A draft belongs to
//! the process that holds its lock, so a draft that can be locked was left by a process that has
//! died.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use haft::{SecretFile, SecretPath};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// The maximum number of entries.
pub(crate) const MAX_ENTRIES: usize = 10_000;

/// The number of entries by which the file may exceed the limit before it is trimmed. Trimming
/// reads the complete file.
const SLACK: usize = 1_000;

/// The maximum file size in bytes. A larger file is trimmed to half of it, regardless of the number
/// of entries.
const MAX_FILE: u64 = 64 << 20;

/// A prompt in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PromptHistoryEntry {
    pub(crate) text: String,
    /// The working directory of the session.
    pub(crate) project: PathBuf,
    pub(crate) session: String,
    /// Milliseconds since 1970.
    pub(crate) time_ms: u64,
}

/// The scope of a history search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum HistoryScope {
    Session,
    #[default]
    Project,
    All,
}

impl HistoryScope {
    #[must_use]
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Session => Self::Project,
            Self::Project => Self::All,
            Self::All => Self::Session,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Session => "this session",
            Self::Project => "this project",
            Self::All => "all projects",
        }
    }
}

/// Returns the texts of a scope, oldest first.
pub(crate) fn history_texts(
    entries: &[PromptHistoryEntry],
    scope: HistoryScope,
    project: &Path,
    session: &str,
) -> Vec<String> {
    let fits = |entry: &&PromptHistoryEntry| match scope {
        HistoryScope::Session => entry.session == session,
        HistoryScope::Project => entry.project == project,
        HistoryScope::All => true,
    };
    entries
        .iter()
        .filter(fits)
        .map(|entry| entry.text.clone())
        .collect()
}

/// The history file.
#[derive(Debug, Clone)]
pub(crate) struct HistoryFile {
    path: SecretPath,
}

impl HistoryFile {
    /// Returns the history file in the user's settings folder.
    pub(crate) fn in_folder(user_folder: &Path) -> Self {
        Self {
            path: SecretFile::PromptHistory.below(user_folder),
        }
    }

    /// Returns the newest entries, oldest first. Skips invalid lines.
    pub(crate) fn load(&self) -> Vec<PromptHistoryEntry> {
        let Ok(file) = File::open(&self.path) else {
            return Vec::new();
        };
        let mut entries: Vec<PromptHistoryEntry> = lines(file)
            .iter()
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        entries.drain(..entries.len().saturating_sub(MAX_ENTRIES));
        entries
    }

    /// Appends an entry. Returns `false` without storing it if it is empty or begins with
    /// whitespace.
    pub(crate) fn append(&self, entry: &PromptHistoryEntry) -> io::Result<bool> {
        let text = &entry.text;
        if text.trim().is_empty() || text.starts_with(char::is_whitespace) {
            return Ok(false);
        }
        let mut line = serde_json::to_vec(entry).map_err(io::Error::other)?;
        line.push(b'\n');
        let mut file = self.locked()?;
        // If another process died in the middle of a line, this entry must not become part of it.
        if ends_with_newline(&mut file)? {
            file.write_all(&line)?;
        } else {
            file.write_all(&[b"\n", line.as_slice()].concat())?;
        }
        self.trim(file)?;
        Ok(true)
    }

    /// Opens and locks the file, and ensures that it has not been replaced in the meantime.
    fn locked(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            make_private_folder(folder)?;
        }
        loop {
            let file = private()
                .read(true)
                .append(true)
                .create(true)
                .open(&self.path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            let (ours, named) = (file.metadata()?, fs::metadata(&self.path));
            if named.is_ok_and(|named| named.ino() == ours.ino() && named.dev() == ours.dev()) {
                return Ok(file);
            }
        }
    }

    /// Trims the file if it is too long. Holds the lock until the trimmed file has replaced it.
    fn trim(&self, mut file: File) -> io::Result<()> {
        let length = file.metadata()?.len();
        // Most entries have more than 80 bytes, so the entries of shorter files are not counted.
        let may_be_long = length > (MAX_ENTRIES as u64) * 80;
        if !may_be_long {
            return Ok(());
        }
        file.seek(SeekFrom::Start(0))?;
        let lines = lines(file.try_clone()?);
        let mut from = match lines.len() > MAX_ENTRIES + SLACK {
            true => lines.len() - MAX_ENTRIES,
            false => 0,
        };
        if length > MAX_FILE {
            let mut bytes = 0;
            let newest = lines.iter().rev().take_while(|line| {
                bytes += line.len() as u64;
                bytes <= MAX_FILE / 2
            });
            from = from.max(lines.len() - newest.count());
        }
        if from == 0 {
            return Ok(());
        }
        let mut text = Vec::new();
        for line in &lines[from..] {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        let next = self.path.with_extension(format!("{}.new", process::id()));
        let mut file = private()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&next)?;
        file.write_all(&text)?;
        fs::rename(&next, &self.path)
    }
}

fn lines(file: File) -> Vec<Vec<u8>> {
    let lines = BufReader::new(file).split(b'\n');
    lines
        .map_while(Result::ok)
        .filter(|line| !line.is_empty())
        .collect()
}

fn ends_with_newline(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

/// A draft that a process left when it died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecoveredDraft {
    pub(crate) text: String,
    pub(crate) project: PathBuf,
    pub(crate) session: String,
}

/// Distinguishes the draft files of one process.
static DRAFTS_OF_PROCESS: AtomicU64 = AtomicU64::new(0);

/// Stores the draft of this process. Its file is removed on drop, and remains if the process is
/// killed.
#[derive(Debug)]
pub(crate) struct DraftFile {
    folder: SecretPath,
    project: PathBuf,
    /// Open and locked once there has been a draft.
    file: Option<(File, PathBuf)>,
}

impl DraftFile {
    pub(crate) fn new(user_folder: &Path, project: &Path) -> Self {
        Self {
            folder: drafts(user_folder),
            project: project.to_path_buf(),
            file: None,
        }
    }

    /// Stores the current draft. An empty draft clears the file.
    pub(crate) fn store_draft(&mut self, text: &str, session: &str) -> io::Result<()> {
        let is_empty = text.trim().is_empty();
        if is_empty && self.file.is_none() {
            return Ok(());
        }
        let draft = RecoveredDraft {
            text: text.to_owned(),
            project: self.project.clone(),
            session: session.to_owned(),
        };
        let line = match is_empty {
            true => Vec::new(),
            false => serde_json::to_vec(&draft).map_err(io::Error::other)?,
        };
        let file = self.file()?;
        // The new draft is written before the rest of the old one is cut off. A reader parses only
        // the first value, so the file contains a valid draft at any time.
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&line)?;
        file.set_len(line.len() as u64)
    }

    fn file(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            make_private_folder(&self.folder)?;
            let number = DRAFTS_OF_PROCESS.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}.json", process::id());
            let path = self.folder.join(name);
            let file = private()
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            self.file = Some((file, path));
        }
        match &mut self.file {
            Some((file, _)) => Ok(file),
            None => Err(io::Error::other("the draft has no file")),
        }
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        if let Some((_, path)) = self.file.take() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes and returns the newest draft that a dead process left in this project. Drafts of running
/// processes are not touched.
pub(crate) fn take_recovered_draft(user_folder: &Path, project: &Path) -> Option<RecoveredDraft> {
    let entries = fs::read_dir(drafts(user_folder)).ok()?;
    let mut left = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(mut file) = OpenOptions::new().read(true).write(true).open(&path) else {
            continue;
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let mut text = String::new();
        let draft = file.read_to_string(&mut text).ok();
        let first = serde_json::Deserializer::from_str(&text).into_iter().next();
        let draft: Option<RecoveredDraft> = draft.and(first).and_then(Result::ok);
        match draft {
            Some(draft) if draft.project == project => {
                let changed = file.metadata().and_then(|found| found.modified()).ok();
                left.push((changed, path, draft, file));
            }
            Some(_) => {}
            // The process had no draft, or died while writing it.
            None => {
                let _ = fs::remove_file(&path);
            }
        }
    }
    left.sort_by_key(|(changed, ..)| *changed);
    let (_, path, draft, _locked) = left.pop()?;
    let _ = fs::remove_file(path);
    Some(draft)
}

fn drafts(user_folder: &Path) -> SecretPath {
    SecretFile::PromptDrafts.below(user_folder)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt, thread};

    use super::*;

    fn entry(text: &str, project: &str, session: &str) -> PromptHistoryEntry {
        PromptHistoryEntry {
            text: text.to_owned(),
            project: project.into(),
            session: session.to_owned(),
            time_ms: 1,
        }
    }

    #[test]
    fn entries_are_kept_privately_and_none_with_a_leading_blank() {
        let dir = tempfile::tempdir().unwrap();
        let history = HistoryFile::in_folder(dir.path());
        assert_eq!(history.load(), []);
        assert!(history.append(&entry("one\nline", "/p", "s")).unwrap());
        assert!(!history.append(&entry(" secret", "/p", "s")).unwrap());
        assert!(!history.append(&entry("\n", "/p", "s")).unwrap());
        assert!(history.append(&entry("two", "/q", "t")).unwrap());
        let entries = history.load();
        let texts = |scope| history_texts(&entries, scope, Path::new("/p"), "t");
        assert_eq!(texts(HistoryScope::All), ["one\nline", "two"]);
        assert_eq!(texts(HistoryScope::Project), ["one\nline"]);
        assert_eq!(texts(HistoryScope::Session), ["two"]);
        let mode = fs::metadata(&history.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn several_that_write_at_once_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let history = HistoryFile::in_folder(dir.path());
                thread::spawn(move || {
                    for number in 0..50 {
                        let text = format!("{writer}-{number}");
                        assert!(history.append(&entry(&text, "/p", "s")).unwrap());
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        let mut texts: Vec<String> = HistoryFile::in_folder(dir.path())
            .load()
            .into_iter()
            .map(|entry| entry.text)
            .collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 200);
    }

    #[test]
    fn the_oldest_go_and_a_half_line_harms_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let history = HistoryFile::in_folder(dir.path());
        history.append(&entry("first", "/p", "s")).unwrap();
        let line = serde_json::to_string(&entry(&"x".repeat(60), "/p", "s")).unwrap();
        let mut text = format!("{line}\n").repeat(MAX_ENTRIES + SLACK);
        text += "{\"text\": \"half";
        let mut file = OpenOptions::new().append(true).open(&history.path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        history.append(&entry("last", "/p", "s")).unwrap();
        let entries = history.load();
        assert!(entries.len() <= MAX_ENTRIES && entries.len() >= MAX_ENTRIES - 1);
        assert_eq!(entries.last().unwrap().text, "last");
        assert_ne!(entries[0].text, "first");
        let written = fs::read_to_string(&history.path).unwrap();
        assert_eq!(written.lines().count(), MAX_ENTRIES, "the file was cut");
        let mode = fs::metadata(&history.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    /// Vector 34, up to the offer: a keeper that is forgotten without being dropped is a process that was killed.
    #[test]
    fn the_draft_of_a_process_that_died_is_offered_once() {
        let dir = tempfile::tempdir().unwrap();
        let project = Path::new("/p");
        let mut alive = DraftFile::new(dir.path(), project);
        alive.store_draft("still typing", "s1").unwrap();
        assert_eq!(
            take_recovered_draft(dir.path(), project),
            None,
            "it is at work"
        );

        let mut killed = DraftFile::new(dir.path(), project);
        killed.store_draft("an old draft", "s2").unwrap();
        killed.store_draft("half a tho", "s2").unwrap();
        // As the kernel does it: the lock goes, the file stays.
        let (file, _) = killed.file.take().unwrap();
        drop(file);
        assert_eq!(take_recovered_draft(dir.path(), Path::new("/q")), None);
        let draft = take_recovered_draft(dir.path(), project).unwrap();
        assert_eq!(
            (draft.text.as_str(), draft.session.as_str()),
            ("half a tho", "s2")
        );
        assert_eq!(take_recovered_draft(dir.path(), project), None, "only once");
    }

    #[test]
    fn nothing_stays_of_a_draft_that_was_sent() {
        let dir = tempfile::tempdir().unwrap();
        let mut keeper = DraftFile::new(dir.path(), Path::new("/p"));
        keeper.store_draft("", "s").unwrap();
        assert!(!drafts(dir.path()).exists(), "nothing was typed");
        keeper.store_draft("text", "s").unwrap();
        keeper.store_draft("", "s").unwrap();
        let (_, path) = keeper.file.as_ref().unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "");
        drop(keeper);
        assert_eq!(fs::read_dir(drafts(dir.path())).unwrap().count(), 0);
    }
}
