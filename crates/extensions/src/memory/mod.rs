//! Memory files: instructions that users and projects have for the model.
//!
//! From general to specific: those of the administrator, of the user, of every directory from the
//! root of the file system down to the working directory, and auto memory from earlier sessions.
//! Files below the working directory, and rules for certain files, are loaded when a file there is
//! read.
//!
//! Memory files are only text for the model, so they need no trust. But a project must not use them
//! to read files outside it: imports from outside the project are omitted unless the user has
//! approved them. Files that must not be read are always omitted.

mod files;
mod format;
mod rules;

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

use self::{files::MemoryReader, rules::ConditionalRule};
use crate::{ExtensionPlaces, ExtensionWarning, patterns::PathPatterns};

pub use format::format_for_model;

/// The owner of a memory file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryOwner {
    /// The machine's administrator.
    Managed,
    /// The user, everywhere.
    User,
    /// The project.
    Project,
    /// The user, in this project.
    Local,
    /// Auto memory, which models wrote in earlier sessions.
    Auto,
}

impl MemoryOwner {
    /// Returns its name for hooks.
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "Managed",
            Self::User => "User",
            Self::Project => "Project",
            Self::Local => "Local",
            Self::Auto => "AutoMem",
        }
    }
}

/// The reason why a memory file was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryReason {
    /// The session started, or the conversation was compacted.
    Start,
    /// A file below its directory was read.
    Nested(PathBuf),
    /// A file that matches its patterns was read.
    Pattern(PathBuf),
    /// Another memory file imports it.
    Import(PathBuf),
}

/// A memory file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    /// The path; `None` for text in the administrator's settings.
    pub path: Option<PathBuf>,
    /// Its owner.
    pub owner: MemoryOwner,
    /// The reason why it was read.
    pub reason: MemoryReason,
    /// Its text, without comments.
    pub text: String,
    /// The patterns of a rule.
    pub patterns: Vec<String>,
}

/// The use of `AGENTS.md`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentsMd {
    /// It is read before `CLAUDE.md`, which has priority.
    #[default]
    Always,
    /// It is read if `CLAUDE.md` does not exist.
    Fallback,
    /// It is not read.
    Never,
}

/// Options for memory files that come from settings and the environment.
#[derive(Clone, Default)]
pub struct MemoryOptions {
    /// Patterns of absolute paths that are omitted, except files of the administrator.
    pub excludes: Vec<String>,
    /// The use of `AGENTS.md`.
    pub agents_md: AgentsMd,
    /// Text in the administrator's settings.
    pub managed_text: Option<String>,
    /// The file of auto memory.
    pub auto_memory: Option<PathBuf>,
    /// Whether imports from outside the project are approved.
    pub outside_imports: bool,
    /// Real paths of approved imports.
    pub approved_imports: BTreeSet<PathBuf>,
    /// Whether additional directories have memory files, too.
    pub include_directories: bool,
    /// The check for files that must not be read.
    pub denied: Option<Arc<IsDenied>>,
}

/// Returns whether an absolute path may not be read.
pub type IsDenied = dyn Fn(&Path) -> bool + Send + Sync;

impl fmt::Debug for MemoryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryOptions")
            .field("excludes", &self.excludes)
            .field("agents_md", &self.agents_md)
            .finish_non_exhaustive()
    }
}

impl MemoryOptions {
    /// Reads the options from merged settings and environment variables.
    pub fn from_settings(settings: &Value, variable: impl Fn(&str) -> Option<String>) -> Self {
        let excludes = settings["claudeMdExcludes"].as_array();
        let excludes = excludes.into_iter().flatten().filter_map(Value::as_str);
        let is_on = |name: &str| variable(name).is_some_and(|value| value == "1");
        Self {
            excludes: excludes.map(str::to_owned).collect(),
            agents_md: match settings["compat"]["agentsMd"].as_str() {
                Some("fallback") => AgentsMd::Fallback,
                Some("never") => AgentsMd::Never,
                _ => AgentsMd::Always,
            },
            include_directories: is_on("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"),
            ..Self::default()
        }
    }
}

/// The memory files of a session. More are found when files are read.
#[derive(Debug)]
pub struct Memory {
    places: ExtensionPlaces,
    options: MemoryOptions,
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    /// Files that were read, with links resolved.
    seen: HashSet<PathBuf>,
    /// Hashes of texts that were sent: a copy is not sent again.
    texts: HashSet<u64>,
    /// Directories below the working directory that were searched.
    entered: HashSet<PathBuf>,
    /// Rules that wait for a matching file.
    waiting: Vec<ConditionalRule>,
    /// The total size of what was read, in bytes.
    total: usize,
    /// The number of opened files.
    opened: usize,
    has_warned: bool,
    /// Real paths of imports from outside the project that were not approved.
    left_out: BTreeSet<PathBuf>,
}

impl Memory {
    /// Creates an instance that has not read anything yet.
    pub fn new(places: ExtensionPlaces, options: MemoryOptions) -> Self {
        Self {
            places,
            options,
            state: Mutex::default(),
        }
    }

    /// Returns an instance for another conversation, which has not read anything yet.
    pub fn for_new_conversation(&self) -> Self {
        Self::new(self.places.clone(), self.options.clone())
    }

    /// Reads the initial memory files from scratch. Also called after compaction; then the other
    /// files are loaded again when a matching file is read.
    pub fn start(&self) -> (Vec<MemoryFile>, Vec<ExtensionWarning>) {
        let mut state = self.state();
        *state = MemoryState::default();
        let mut reader = MemoryReader::new(&self.places, &self.options, &mut state);
        reader.start();
        reader.into_parts()
    }

    /// Returns the files outside the project that its initial memory files import without approval:
    /// real paths, including their own imports.
    pub fn left_out_imports(&self) -> BTreeSet<PathBuf> {
        let mut options = self.options.clone();
        loop {
            let again = Self::new(self.places.clone(), options.clone());
            again.start();
            let found = std::mem::take(&mut again.state().left_out);
            let before = options.approved_imports.len();
            options.approved_imports.extend(found);
            if options.approved_imports.len() == before {
                let known = &self.options.approved_imports;
                return options
                    .approved_imports
                    .difference(known)
                    .cloned()
                    .collect();
            }
        }
    }

    /// Returns the memory files that apply because this file was read or changed.
    pub fn on_file_touched(&self, file: &Path) -> (Vec<MemoryFile>, Vec<ExtensionWarning>) {
        let mut state = self.state();
        let mut roots = vec![&self.places.cwd];
        if self.options.include_directories {
            roots.extend(&self.places.directories);
        }
        let below = roots
            .into_iter()
            .find_map(|root| Some((root, file.strip_prefix(root).ok()?)));
        let mut directories = Vec::new();
        if let Some((root, below)) = below {
            let mut directory = root.clone();
            for part in below.parent().into_iter().flat_map(Path::iter) {
                directory.push(part);
                if state.entered.insert(directory.clone()) {
                    directories.push(directory.clone());
                }
            }
        }
        let mut reader = MemoryReader::new(&self.places, &self.options, &mut state);
        for directory in directories {
            reader.read_directory(&directory, &MemoryReason::Nested(file.to_path_buf()));
        }
        reader.load_matching_rules(file);
        reader.into_parts()
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the patterns of omitted absolute paths.
fn excluded(options: &MemoryOptions) -> PathPatterns {
    PathPatterns::new(&options.excludes, Path::new("/"))
}

#[cfg(test)]
mod tests;
