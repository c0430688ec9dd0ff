//! The sessions of a project.

use std::{
    cmp::Reverse,
    fs,
    io::{self, BufReader},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use haft_contract::SessionId;
use serde_json::{Value, json};

use super::{
    FileStore, LoadedTranscript, MemoryStore, TranscriptStore, TranscriptStoreError,
    load::load,
    stats::{ShortLine, ShortLines},
    store::{is_in_use, is_transcript, read_shared},
    tee_store::TeeStore,
    truncation_check,
};

/// The minimum length of an id prefix that identifies a session.
const MIN_PREFIX: usize = 4;

/// The folder for deleted sessions, which can still be restored.
const SET_ASIDE: &str = "deleted";

/// The reason why a session is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No session has this name.
    #[error("no session {0} in this project; list them to see which there are")]
    Unknown(String),
    /// Several sessions have this name.
    #[error("{count} sessions are called {name}; name one by its id: {ids}")]
    Ambiguous {
        /// The name.
        name: String,
        /// The number of sessions.
        count: usize,
        /// Their ids.
        ids: String,
    },
    /// A session with this id exists already.
    #[error("session {0} exists already; resume it, or choose another id")]
    Taken(SessionId),
    /// The session has no such message.
    #[error("session {session} has no message {message}")]
    NoMessage {
        /// The id of the session.
        session: SessionId,
        /// The id of the message.
        message: String,
    },
    /// More than the intended turn would be dropped.
    #[error("Resume rejected by --resume-drops-turn: {0}")]
    DropsMore(String),
    /// The transcript cannot be read or written.
    #[error(transparent)]
    Store(#[from] TranscriptStoreError),
}

/// The opened transcript of a session. While it exists, the session cannot be opened again.
#[derive(Debug)]
pub struct OpenTranscript {
    pub(crate) id: SessionId,
    pub(crate) store: Arc<dyn TranscriptStore>,
    pub(crate) loaded: LoadedTranscript,
    pub(crate) origin: SessionOrigin,
}

/// The origin of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionOrigin {
    /// A new session.
    New,
    /// A resumed session.
    Resumed,
    /// A copy of another session.
    Forked,
}

impl SessionOrigin {
    /// Returns the name in hook input.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "startup",
            Self::Resumed => "resume",
            Self::Forked => "fork",
        }
    }
}

impl OpenTranscript {
    /// Creates a session that exists only in memory.
    pub fn in_memory(id: SessionId) -> Self {
        Self::new(id, Arc::new(MemoryStore::default()))
    }

    /// Creates a session in a store.
    pub fn new(id: SessionId, store: Arc<dyn TranscriptStore>) -> Self {
        Self {
            id,
            store,
            loaded: LoadedTranscript::default(),
            origin: SessionOrigin::New,
        }
    }

    /// Resumes a session from a store. With `until` it ends with that message.
    pub fn resume(
        id: SessionId,
        store: Arc<dyn TranscriptStore>,
        until: Option<&str>,
    ) -> Result<Self, SessionError> {
        let loaded = load(&store.read(0)?, until).ok_or_else(|| no_message(id, until))?;
        Ok(Self {
            id,
            store,
            loaded,
            origin: SessionOrigin::Resumed,
        })
    }

    /// Returns the id.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns human-readable descriptions of errors in the transcript and their repairs.
    pub fn repairs(&self) -> &[String] {
        &self.loaded.repairs
    }

    /// Sets a callback for new lines. For a copy of another session it also receives the copied
    /// lines.
    pub fn with_line_callback(
        mut self,
        hear: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, SessionError> {
        if self.origin == SessionOrigin::Forked {
            for line in self.store.read(0)? {
                hear(&line);
            }
        }
        self.store = Arc::new(TeeStore {
            store: self.store,
            on_line: Box::new(hear),
        });
        Ok(self)
    }

    /// Returns the loaded data.
    pub fn loaded(&self) -> &LoadedTranscript {
        &self.loaded
    }
}

fn no_message(session: SessionId, until: Option<&str>) -> SessionError {
    SessionError::NoMessage {
        session,
        message: until.unwrap_or_default().to_owned(),
    }
}

/// The sessions in a project's folder: one file `ID.jsonl` each.
#[derive(Debug, Clone)]
pub struct ProjectSessions {
    folder: PathBuf,
}

/// An entry of the session list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionListing {
    /// The id.
    pub id: SessionId,
    /// The title that the user set.
    pub title: Option<String>,
    /// The beginning of the first prompt.
    pub first_prompt: Option<String>,
    /// The time of the last change.
    pub changed: SystemTime,
}

impl ProjectSessions {
    /// Returns the sessions in this folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Returns the sessions of each project. `folder` contains one folder per project.
    pub fn all_projects(folder: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        Ok(paths.filter(|path| path.is_dir()).map(Self::new).collect())
    }

    /// Creates a session. Its file is created when the first line is written.
    pub fn create(&self, id: SessionId) -> Result<OpenTranscript, SessionError> {
        Ok(OpenTranscript::new(id, Arc::new(self.store(id)?)))
    }

    /// Resumes a session. With `until` it ends with that message.
    pub fn resume(
        &self,
        id: SessionId,
        until: Option<&str>,
    ) -> Result<OpenTranscript, SessionError> {
        let path = self.path(id);
        if !is_transcript(&path) {
            return Err(SessionError::Unknown(id.to_string()));
        }
        OpenTranscript::resume(id, Arc::new(FileStore::open(path)?), until)
    }

    /// Returns whether a process, possibly this one, has the session open for writing.
    pub fn is_in_use(&self, id: SessionId) -> bool {
        is_in_use(&self.path(id))
    }

    /// Checks that resuming after the message `until` drops only the turn of this prompt.
    pub fn check_drops_only(
        &self,
        id: SessionId,
        until: &str,
        prompt: &str,
    ) -> Result<(), SessionError> {
        let path = self.path(id);
        if !is_transcript(&path) {
            return Err(SessionError::Unknown(id.to_string()));
        }
        truncation_check::check(&read_shared(&path)?, until, prompt)
            .map_err(SessionError::DropsMore)
    }

    /// Creates a session as a copy of another, which may be in use.
    pub fn fork(
        &self,
        from: SessionId,
        to: SessionId,
        until: Option<&str>,
    ) -> Result<OpenTranscript, SessionError> {
        self.fork_from(self, from, to, until)
    }

    /// Creates a session here as a copy of a session of another project.
    pub fn fork_from(
        &self,
        others: &Self,
        from: SessionId,
        to: SessionId,
        until: Option<&str>,
    ) -> Result<OpenTranscript, SessionError> {
        let path = others.path(from);
        if !is_transcript(&path) {
            return Err(SessionError::Unknown(from.to_string()));
        }
        let lines = read_shared(&path)?;
        load(&lines, until).ok_or_else(|| no_message(from, until))?;
        let store = self.store(to)?;
        for (number, line) in lines.iter().enumerate() {
            let line = match serde_json::from_str::<Value>(line) {
                Ok(Value::Object(mut object)) if object.contains_key("sessionId") => {
                    object.insert("sessionId".to_owned(), to.to_string().into());
                    Value::Object(object).to_string()
                }
                _ => line.clone(),
            };
            store.append(number as u64, &line)?;
        }
        let session = OpenTranscript::resume(to, Arc::new(store), until)?;
        Ok(OpenTranscript {
            origin: SessionOrigin::Forked,
            ..session
        })
    }

    /// Returns all sessions, most recently changed first.
    pub fn list(&self) -> io::Result<Vec<SessionListing>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found: Vec<SessionListing> = entries
            .filter_map(|entry| listed(&entry.ok()?.path()))
            .collect();
        found.sort_by_key(|one| Reverse((one.changed, one.id)));
        Ok(found)
    }

    /// Returns the paths of the transcripts in any order, without reading them.
    pub fn transcripts(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        Ok(paths.filter(|path| id_of(path).is_some()).collect())
    }

    /// Returns the most recently changed session.
    pub fn newest(&self) -> io::Result<Option<SessionListing>> {
        Ok(self.list()?.into_iter().next())
    }

    /// Finds a session by its id, an unambiguous prefix of the id, or its title.
    pub fn find(&self, name: &str) -> Result<SessionId, SessionError> {
        if let Ok(id) = name.parse().map(SessionId)
            && self.has(id)
        {
            return Ok(id);
        }
        let all = self.list().map_err(|source| TranscriptStoreError::Io {
            path: self.folder.clone(),
            source,
        })?;
        let begins = |one: &&SessionListing| {
            let is_one = name.len() >= MIN_PREFIX;
            is_one && one.id.to_string().starts_with(&name.to_ascii_lowercase())
        };
        let mut fitting: Vec<&SessionListing> = all
            .iter()
            .filter(|one| one.title.as_deref() == Some(name))
            .collect();
        if fitting.is_empty() {
            fitting = all.iter().filter(begins).collect();
        }
        match fitting.as_slice() {
            [] => Err(SessionError::Unknown(name.to_owned())),
            [one] => Ok(one.id),
            several => {
                let ids: Vec<String> = several.iter().map(|one| one.id.to_string()).collect();
                Err(SessionError::Ambiguous {
                    name: name.to_owned(),
                    count: ids.len(),
                    ids: ids.join(", "),
                })
            }
        }
    }

    /// Sets the title of a session. Fails if the session is in use.
    pub fn rename(&self, id: SessionId, title: &str) -> Result<(), SessionError> {
        let store = FileStore::open(self.path(id))?;
        let line = json!({"type": "custom-title", "customTitle": title, "sessionId": id});
        let lines = store.read(0)?.len() as u64;
        Ok(store.append(lines, &line.to_string())?)
    }

    /// Deletes a session with its transcript, stored results and undo data. Fails if the session is
    /// in use.
    pub fn delete(&self, id: SessionId) -> Result<(), SessionError> {
        let path = self.path(id);
        let store = FileStore::open(&path)?;
        let gone = |path: PathBuf, removed: io::Result<()>| match removed {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(TranscriptStoreError::Io { path, source })
            }
            _ => Ok(()),
        };
        let folder = self.folder.join(id.to_string());
        gone(folder.clone(), fs::remove_dir_all(&folder))?;
        gone(path.clone(), fs::remove_file(&path))?;
        drop(store);
        Ok(())
    }

    /// Archives a session: its files move to a separate folder, from which they can be restored by
    /// hand. Fails if the session is in use.
    pub fn archive(&self, id: SessionId) -> Result<(), SessionError> {
        let path = self.path(id);
        let store = FileStore::open(&path)?;
        let aside = self.archived();
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        let moved = private.create(&aside.folder).and_then(|()| {
            let folder = self.folder.join(id.to_string());
            if folder.exists() {
                fs::rename(&folder, aside.folder.join(id.to_string()))?;
            }
            // The modification time is the time of archiving, not that of the last message.
            let file = fs::File::options().append(true).open(&path)?;
            file.set_modified(SystemTime::now())?;
            fs::rename(&path, aside.path(id))
        });
        moved.map_err(|source| TranscriptStoreError::Io { path, source })?;
        drop(store);
        Ok(())
    }

    /// Returns the [archived](Self::archive) sessions.
    #[must_use]
    pub fn archived(&self) -> Self {
        Self::new(self.folder.join(SET_ASIDE))
    }

    /// Returns whether there is a session of this id.
    pub fn has(&self, id: SessionId) -> bool {
        is_transcript(&self.path(id))
    }

    /// Returns the path of a session's transcript.
    pub fn path(&self, id: SessionId) -> PathBuf {
        self.folder.join(format!("{id}.jsonl"))
    }

    fn store(&self, id: SessionId) -> Result<FileStore, SessionError> {
        FileStore::create(self.path(id)).map_err(|error| match error {
            TranscriptStoreError::Exists { .. } => SessionError::Taken(id),
            other => other.into(),
        })
    }
}

/// Returns the id in the name of a transcript, if it is one.
fn id_of(path: &Path) -> Option<SessionId> {
    let id = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    Some(SessionId(id.parse().ok()?))
}

/// Returns the list entry of a transcript, if it is one.
fn listed(path: &Path) -> Option<SessionListing> {
    let id = id_of(path)?;
    let found = path.symlink_metadata().ok()?;
    if !found.is_file() {
        return None;
    }
    let changed = found.modified().ok()?;
    let mut listed = SessionListing {
        id,
        title: None,
        first_prompt: None,
        changed,
    };
    // Lines with results are long and frequent; only relevant lines are parsed.
    let file = fs::File::open(path).ok()?;
    let mut lines = ShortLines::new(BufReader::with_capacity(1 << 16, file));
    while let Some(line) = lines.next().ok()? {
        let ShortLine::Cut(line) = line else { continue };
        let line = String::from_utf8_lossy(line);
        if line.contains("\"customTitle\"")
            && let Ok(line) = serde_json::from_str::<Value>(&line)
            && let Some(title) = line["customTitle"].as_str()
        {
            listed.title = Some(title.to_owned());
        }
        if listed.first_prompt.is_none()
            && line.contains("\"user\"")
            && let Ok(line) = serde_json::from_str::<Value>(&line)
        {
            listed.first_prompt = prompt_in(&line);
        }
    }
    Some(listed)
}

/// Returns the beginning of the prompt in this line, if it is one.
fn prompt_in(line: &Value) -> Option<String> {
    if line["type"] != "user" || line["isMeta"] == true || line["isSidechain"] == true {
        return None;
    }
    let text = match &line["message"]["content"] {
        Value::String(text) => text.as_str(),
        Value::Array(blocks) => blocks.iter().find_map(|block| block["text"].as_str())?,
        _ => return None,
    };
    Some(text.chars().take(200).collect())
}
