//! The servers of a session.

use std::{
    collections::HashMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use haft_journal::DecodedText;

use super::{
    follow::FollowState,
    server::{Server, ServerKey},
    setup::CodeSetup,
    table::{self, ServerEntry},
};
use crate::shell::Shell;

/// At most this many servers run; the least used one ends.
const MOST_SERVERS: usize = 6;
/// How long the end of a server is waited for.
const GOODBYE: Duration = Duration::from_secs(5);
/// A longer file is given to no server.
pub(crate) const MOST_BYTES: u64 = 2 << 20;

/// The language servers of a session, shared by its subagents. They end with it.
pub struct LanguageServers {
    pub(crate) setup: CodeSetup,
    shell: Arc<Shell>,
    entries: Vec<ServerEntry>,
    /// Changes before that are none of this session's.
    pub(super) began: SystemTime,
    servers: Mutex<Vec<Arc<Server>>>,
    programs: Mutex<HashMap<String, FoundProgram>>,
    pub(super) follow: tokio::sync::Mutex<FollowState>,
}

/// Where a program was found, and how the folders were then.
struct FoundProgram {
    stamps: Vec<Option<SystemTime>>,
    program: Option<(PathBuf, Vec<String>)>,
}

/// Each server whose program is there, with its place, for people who look at what there is.
pub fn installed_servers(setup: &CodeSetup) -> Vec<(String, PathBuf)> {
    if setup.is_off() {
        return Vec::new();
    }
    let folders = table::folders(setup.path.as_deref(), &setup.workspace);
    let (entries, _) = table::entries(&setup.settings, &setup.plugins);
    let found = entries
        .into_iter()
        .filter_map(|entry| Some((entry.find(&folders, &setup.workspace)?.0, entry.name)));
    found.map(|(path, name)| (name, path)).collect()
}

/// Why a file has no server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoServer {
    Off,
    /// No one knows files of this extension.
    Unknown(String),
    Untrusted,
    NotInstalled {
        name: String,
        install: String,
    },
}

impl fmt::Display for NoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("Language servers are switched off (`lsp: false`)."),
            Self::Unknown(extension) if extension.is_empty() => {
                f.write_str("No language server for files without an extension.")
            }
            Self::Unknown(extension) => write!(f, "No language server for .{extension}."),
            Self::Untrusted => f.write_str(
                "The workspace is not trusted, so no language server runs; haft permissions trust.",
            ),
            Self::NotInstalled { name, install } => {
                write!(f, "{name} is not installed: {install}.")
            }
        }
    }
}

impl fmt::Debug for LanguageServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LanguageServers")
            .field("setup", &self.setup)
            .finish_non_exhaustive()
    }
}

impl Drop for LanguageServers {
    fn drop(&mut self) {
        for server in self.running().drain(..) {
            server.stop();
        }
    }
}

impl LanguageServers {
    /// None is started yet.
    pub fn new(setup: CodeSetup, shell: Arc<Shell>) -> Self {
        let (entries, _) = table::entries(&setup.settings, &setup.plugins);
        Self {
            began: SystemTime::now(),
            setup,
            shell,
            entries,
            servers: Mutex::default(),
            programs: Mutex::default(),
            follow: tokio::sync::Mutex::default(),
        }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Arc<Server>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All servers that were started.
    pub(crate) fn started(&self) -> Vec<Arc<Server>> {
        self.running().clone()
    }

    pub(crate) fn entry_of(&self, path: &Path) -> Option<&ServerEntry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.language(path).is_some())
    }

    /// Which server a file has, started or not.
    pub(super) fn key_of(&self, path: &Path) -> Option<ServerKey> {
        let entry = self.entry_of(path)?;
        Some((entry.name.clone(), self.root_of(entry, path)))
    }

    fn root_of(&self, entry: &ServerEntry, path: &Path) -> PathBuf {
        entry.root(path, &self.setup.workspace, &self.setup.top)
    }

    /// A server that was started, which this does not keep running.
    pub(super) fn known(&self, key: &ServerKey) -> Option<Arc<Server>> {
        let running = self.running();
        let found = running.iter().find(|server| server.is(key));
        found.map(Arc::clone)
    }

    /// The server of a file, started if need be.
    pub(crate) fn server(&self, path: &Path) -> Result<Arc<Server>, NoServer> {
        if self.setup.is_off() {
            return Err(NoServer::Off);
        }
        // First: servers that the project names are not in the table before it is trusted.
        if !self.setup.trusted {
            return Err(NoServer::Untrusted);
        }
        let extension = path.extension().unwrap_or_default();
        let unknown = || NoServer::Unknown(extension.to_string_lossy().into_owned());
        let entry = self.entry_of(path).ok_or_else(unknown)?;
        let key = (entry.name.clone(), self.root_of(entry, path));
        let mut running = self.running();
        if let Some(server) = running.iter().find(|server| server.is(&key)) {
            server.touch();
            return Ok(Arc::clone(server));
        }
        let program = self.program(entry).ok_or_else(|| NoServer::NotInstalled {
            name: entry.name.clone(),
            install: entry.install.clone(),
        })?;
        while running.len() >= MOST_SERVERS {
            let least = (0..running.len()).min_by_key(|at| running[*at].last_used());
            running.remove(least.unwrap_or(0)).stop();
        }
        let shell = Arc::clone(&self.shell);
        let server = Server::start(entry.clone(), key.1, program, &self.setup, shell);
        running.push(Arc::clone(&server));
        Ok(server)
    }

    /// Looked for again only when one of the folders changed.
    pub(super) fn program(&self, entry: &ServerEntry) -> Option<(PathBuf, Vec<String>)> {
        let folders = table::folders(self.setup.path.as_deref(), &self.setup.workspace);
        let stamp = |folder: &PathBuf| fs::metadata(folder).ok()?.modified().ok();
        let stamps: Vec<_> = folders.iter().map(stamp).collect();
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = programs.get(&entry.name)
            && found.stamps == stamps
        {
            return found.program.clone();
        }
        let program = entry.find(&folders, &self.setup.workspace);
        let found = FoundProgram {
            stamps,
            program: program.clone(),
        };
        programs.insert(entry.name.clone(), found);
        program
    }

    /// Ends all servers, and waits until they are gone.
    pub async fn close(&self) {
        let servers: Vec<_> = self.running().drain(..).collect();
        for server in &servers {
            server.stop();
        }
        // All at once: each may take a while to say goodbye.
        for server in servers {
            let _ = tokio::time::timeout(GOODBYE, server.gone()).await; // what is left ends with us
        }
    }
}

/// The text of a file as a server gets it; `None` for what is no text, or too long.
pub(crate) fn text_of(path: &Path) -> io::Result<Option<String>> {
    if fs::metadata(path)?.len() > MOST_BYTES {
        return Ok(None);
    }
    Ok(DecodedText::of(&fs::read(path)?).map(|decoded| decoded.text))
}
