//! The settings of a session for language servers.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use haft_contract::Confinement;
use serde_json::Value;

use super::table;

/// The settings of a session for language servers. A service; without it, no servers run.
#[derive(Clone)]
pub struct LanguageServerSetup {
    /// The working directory of the session.
    pub workspace: PathBuf,
    /// The topmost folder that is searched for project files: the root of the repository, or the
    /// workspace if it is not in a repository.
    pub top: PathBuf,
    /// Whether the user trusts the workspace: servers run code of the project.
    pub trusted: bool,
    /// The `lsp` object of the settings.
    pub settings: Value,
    /// Servers of plugins, by name.
    pub plugins: Value,
    /// The folder for the files that servers write.
    pub cache: PathBuf,
    /// Computes the confinement of processes that no call starts. Accesses files.
    pub confinement: Arc<dyn Fn() -> Confinement + Send + Sync>,
    /// The `PATH` for finding programs.
    pub path: Option<std::ffi::OsString>,
    /// The timeout of requests to servers.
    pub answer_within: Duration,
}

/// The default memory limit of a server with its child processes, in MB.
const MEMORY_MB: u64 = 2048;

impl fmt::Debug for LanguageServerSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LanguageServerSetup")
            .field("workspace", &self.workspace)
            .field("trusted", &self.trusted)
            .finish_non_exhaustive()
    }
}

/// The problems that are reported after edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiagnosticsFilter {
    /// New errors and warnings.
    New,
    /// New errors.
    Errors,
    Nothing,
}

impl LanguageServerSetup {
    /// Returns whether `lsp` is `false`, which disables all servers.
    pub fn is_off(&self) -> bool {
        self.settings == Value::Bool(false)
    }

    /// Returns messages about errors in the server entries of settings and plugins.
    pub fn problems(&self) -> Vec<String> {
        if self.is_off() {
            return Vec::new();
        }
        table::entries(&self.settings, &self.plugins).1
    }

    /// Returns the memory limit of a server with its child processes, in MB.
    pub(crate) fn memory_mb(&self) -> u64 {
        let set = self.settings.get("memoryMb").and_then(Value::as_u64);
        set.unwrap_or(MEMORY_MB)
    }

    /// Returns whether servers may run without a sandbox.
    pub(crate) fn allows_unsandboxed(&self) -> bool {
        self.settings.get("allowUnsandboxed") == Some(&Value::Bool(true))
    }

    pub(crate) fn reported(&self) -> DiagnosticsFilter {
        match self.settings.get("diagnostics").and_then(Value::as_str) {
            Some("off") => DiagnosticsFilter::Nothing,
            Some("errors") => DiagnosticsFilter::Errors,
            _ => DiagnosticsFilter::New,
        }
    }

    /// Returns the cache folder for a server and a root.
    pub(crate) fn cache_of(&self, server: &str, root: &Path) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        root.hash(&mut hasher);
        let name: String = server
            .chars()
            .map(|one| {
                if one.is_ascii_alphanumeric() || one == '-' {
                    one
                } else {
                    '_'
                }
            })
            .collect();
        self.cache.join(format!("{name}-{:016x}", hasher.finish()))
    }
}
