//! What a session says of its language servers.

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

/// What a session says of its language servers. A service; without it there are none.
#[derive(Clone)]
pub struct CodeSetup {
    /// The folder that the session works in.
    pub workspace: PathBuf,
    /// The folder up to which project files are looked for: the repository, or the workspace where there is none.
    pub top: PathBuf,
    /// The person trusts it: servers run code of the project.
    pub trusted: bool,
    /// `lsp` of the settings.
    pub settings: Value,
    /// Servers that plugins bring, by name.
    pub plugins: Value,
    /// Where servers keep what they may write.
    pub cache: PathBuf,
    /// How a program that no call starts is confined. Looks at files.
    pub confinement: Arc<dyn Fn() -> Confinement + Send + Sync>,
    /// Where programs are looked for.
    pub path: Option<std::ffi::OsString>,
    /// How long a server may take to answer.
    pub answer_within: Duration,
}

/// What a server and all it started may take, in MB.
const MEMORY_MB: u64 = 2048;

impl fmt::Debug for CodeSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeSetup")
            .field("workspace", &self.workspace)
            .field("trusted", &self.trusted)
            .finish_non_exhaustive()
    }
}

/// Which problems are reported after edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reported {
    /// New errors and warnings.
    New,
    /// New errors.
    Errors,
    Nothing,
}

impl CodeSetup {
    /// `lsp: false` means that there are none.
    pub fn is_off(&self) -> bool {
        self.settings == Value::Bool(false)
    }

    /// What is wrong with the servers that settings and plugins name, in words.
    pub fn problems(&self) -> Vec<String> {
        if self.is_off() {
            return Vec::new();
        }
        table::entries(&self.settings, &self.plugins).1
    }

    /// What a server and all it started may take, in MB.
    pub(crate) fn memory_mb(&self) -> u64 {
        let set = self.settings.get("memoryMb").and_then(Value::as_u64);
        set.unwrap_or(MEMORY_MB)
    }

    /// May servers run where nothing confines them?
    pub(crate) fn allows_unsandboxed(&self) -> bool {
        self.settings.get("allowUnsandboxed") == Some(&Value::Bool(true))
    }

    pub(crate) fn reported(&self) -> Reported {
        match self.settings.get("diagnostics").and_then(Value::as_str) {
            Some("off") => Reported::Nothing,
            Some("errors") => Reported::Errors,
            _ => Reported::New,
        }
    }

    /// The folder of one server and root.
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
