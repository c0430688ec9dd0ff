//! The language servers of a session.

use std::{
    collections::HashMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use haft_journal::DecodedText;

use super::{
    diagnostics_tracker::DiagnosticsState,
    server::{LanguageServer, ServerKey},
    setup::LanguageServerSetup,
    table::{self, LanguageServerEntry},
};
use crate::shell::ShellService;

/// The maximum number of running servers; if there are more, the least recently used one is
/// stopped.
const MAX_SERVERS: usize = 6;
/// The time to wait for a server to exit.
const GOODBYE: Duration = Duration::from_secs(5);
/// The maximum size of a file that servers receive, in bytes.
pub(crate) const MAX_BYTES: u64 = 2 << 20;

/// The language servers of a session, shared by its subagents. They are stopped when it is dropped.
pub struct LanguageServers {
    pub(crate) setup: LanguageServerSetup,
    shell: Arc<ShellService>,
    entries: Vec<LanguageServerEntry>,
    /// The start of the session; earlier changes are ignored.
    pub(super) began: SystemTime,
    servers: Mutex<Vec<Arc<LanguageServer>>>,
    programs: Mutex<HashMap<String, FoundProgram>>,
    pub(super) follow: tokio::sync::Mutex<DiagnosticsState>,
}

/// A cached search result for a program, with the modification times of the folders.
struct FoundProgram {
    stamps: Vec<Option<SystemTime>>,
    program: Option<(PathBuf, Vec<String>)>,
}

/// Returns the installed servers with the paths of their programs, for display.
pub fn installed_servers(setup: &LanguageServerSetup) -> Vec<(String, PathBuf)> {
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

/// The reason why a file has no server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoServerReason {
    Off,
    /// No server is known for this extension.
    Unknown(String),
    Untrusted,
    NotInstalled {
        name: String,
        install: String,
    },
}

impl fmt::Display for NoServerReason {
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
    /// Creates the service; no server is started yet.
    pub fn new(setup: LanguageServerSetup, shell: Arc<ShellService>) -> Self {
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

    fn running(&self) -> MutexGuard<'_, Vec<Arc<LanguageServer>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all servers that were started.
    pub(crate) fn started(&self) -> Vec<Arc<LanguageServer>> {
        self.running().clone()
    }

    pub(crate) fn entry_of(&self, path: &Path) -> Option<&LanguageServerEntry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.language(path).is_some())
    }

    /// Returns the name and root of the server for a file, started or not.
    pub(super) fn key_of(&self, path: &Path) -> Option<ServerKey> {
        let entry = self.entry_of(path)?;
        Some((entry.name.clone(), self.root_of(entry, path)))
    }

    fn root_of(&self, entry: &LanguageServerEntry, path: &Path) -> PathBuf {
        entry.root(path, &self.setup.workspace, &self.setup.top)
    }

    /// Returns a server that was started, without marking it as used.
    pub(super) fn known(&self, key: &ServerKey) -> Option<Arc<LanguageServer>> {
        let running = self.running();
        let found = running.iter().find(|server| server.has_key(key));
        found.map(Arc::clone)
    }

    /// Returns the server for a file; starts it if needed.
    pub(crate) fn server(&self, path: &Path) -> Result<Arc<LanguageServer>, NoServerReason> {
        if self.setup.is_off() {
            return Err(NoServerReason::Off);
        }
        // Checked first: servers of the project's settings are not in the table until the project
        // is trusted.
        if !self.setup.trusted {
            return Err(NoServerReason::Untrusted);
        }
        let extension = path.extension().unwrap_or_default();
        let unknown = || NoServerReason::Unknown(extension.to_string_lossy().into_owned());
        let entry = self.entry_of(path).ok_or_else(unknown)?;
        let key = (entry.name.clone(), self.root_of(entry, path));
        let mut running = self.running();
        if let Some(server) = running.iter().find(|server| server.has_key(&key)) {
            server.touch();
            return Ok(Arc::clone(server));
        }
        let program = self
            .program(entry)
            .ok_or_else(|| NoServerReason::NotInstalled {
                name: entry.name.clone(),
                install: entry.install.clone(),
            })?;
        while running.len() >= MAX_SERVERS {
            let least = (0..running.len()).min_by_key(|at| running[*at].last_used());
            running.remove(least.unwrap_or(0)).stop();
        }
        let shell = Arc::clone(&self.shell);
        let server = LanguageServer::start(entry.clone(), key.1, program, &self.setup, shell);
        running.push(Arc::clone(&server));
        Ok(server)
    }

    /// Finds a server's program; the result is cached until one of the folders changes.
    pub(super) fn program(&self, entry: &LanguageServerEntry) -> Option<(PathBuf, Vec<String>)> {
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

    /// Stops all servers and waits until they have exited.
    pub async fn close(&self) {
        let servers: Vec<_> = self.running().drain(..).collect();
        for server in &servers {
            server.stop();
        }
        // All are stopped first, because each may need seconds to exit.
        for server in servers {
            let _ = tokio::time::timeout(GOODBYE, server.wait_until_ended()).await; // the rest ends with this process
        }
    }
}

/// Returns the text of a file as a server gets it; `None` if it is not text or too long.
pub(crate) fn text_of(path: &Path) -> io::Result<Option<String>> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Ok(None);
    }
    Ok(DecodedText::decode(&fs::read(path)?).map(|decoded| decoded.text))
}
