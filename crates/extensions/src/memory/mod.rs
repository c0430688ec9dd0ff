//! Memory files: what people want every model to know here.
//!
//! From broad to specific: the administrator's, the user's, then of every directory from the root of the
//! file system down to the working directory, and what was remembered in earlier sessions. What lies below
//! the working directory, and rules for certain files, come when a file there is read.
//!
//! They are text for the model and nothing more, so they need no trust. But a project must not reach
//! through them for what is not its own: what it imports from outside is left out, unless that was agreed
//! to, and so is what may not be read.

mod files;
mod rules;
mod tell;

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

use self::{files::MemoryReader, rules::Rule};
use crate::{ExtensionPlaces, Warning, patterns::Patterns};

pub use tell::tell;

/// Whose a memory file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The machine's administrator.
    Managed,
    /// The user, everywhere.
    User,
    /// The project.
    Project,
    /// The user, in this project.
    Local,
    /// Kept by models themselves in earlier sessions.
    Kept,
}

impl Owner {
    /// Its name for hooks.
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "Managed",
            Self::User => "User",
            Self::Project => "Project",
            Self::Local => "Local",
            Self::Kept => "AutoMem",
        }
    }
}

/// Why a memory file was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryReason {
    /// The session began, or was summarized.
    Start,
    /// A file below its directory was read.
    Nested(PathBuf),
    /// A file was read that its patterns fit.
    Pattern(PathBuf),
    /// Another memory file imports it.
    Import(PathBuf),
}

/// A memory file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    /// Where it is; `None` for what the administrator wrote into the settings.
    pub path: Option<PathBuf>,
    /// Whose it is.
    pub owner: Owner,
    /// Why it was read.
    pub reason: MemoryReason,
    /// What it says, comments left out.
    pub text: String,
    /// The patterns of a rule.
    pub patterns: Vec<String>,
}

/// How `AGENTS.md` is treated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentsMd {
    /// It is read before `CLAUDE.md`, which has the last word.
    #[default]
    Always,
    /// It is read where there is no `CLAUDE.md`.
    Fallback,
    /// It is not read.
    Never,
}

/// What is said of memory files elsewhere.
#[derive(Clone, Default)]
pub struct MemoryOptions {
    /// Absolute paths that fit one of these are left out, except the administrator's.
    pub excludes: Vec<String>,
    /// How `AGENTS.md` is treated.
    pub agents_md: AgentsMd,
    /// What the administrator wrote into the settings.
    pub managed_text: Option<String>,
    /// The file that models keep themselves.
    pub kept: Option<PathBuf>,
    /// Imports of the project's files from outside of it were agreed to.
    pub outside_imports: bool,
    /// Of these files, by their real paths, it was.
    pub approved_imports: BTreeSet<PathBuf>,
    /// Additional directories have memory files too.
    pub directories_too: bool,
    /// Files that may not be read.
    pub denied: Option<Arc<IsDenied>>,
}

/// Says of an absolute path whether it may not be read.
pub type IsDenied = dyn Fn(&Path) -> bool + Send + Sync;

impl fmt::Debug for MemoryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("excludes", &self.excludes)
            .field("agents_md", &self.agents_md)
            .finish_non_exhaustive()
    }
}

impl MemoryOptions {
    /// As merged settings and variables say.
    pub fn of(settings: &Value, variable: impl Fn(&str) -> Option<String>) -> Self {
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
            directories_too: is_on("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"),
            ..Self::default()
        }
    }
}

/// The memory files of a session. More are found as files are read.
#[derive(Debug)]
pub struct Memory {
    places: ExtensionPlaces,
    options: MemoryOptions,
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    /// Files that were read, links followed.
    seen: HashSet<PathBuf>,
    /// Texts that were sent: a copy says nothing new.
    texts: HashSet<u64>,
    /// Directories below the working directory that were looked into.
    entered: HashSet<PathBuf>,
    /// Rules that wait for a file they are for.
    waiting: Vec<Rule>,
    /// How much was read, in bytes.
    total: usize,
    /// How many files were opened.
    opened: usize,
    has_warned: bool,
    /// What project files import from outside and no one has agreed to; real paths.
    left_out: BTreeSet<PathBuf>,
}

impl Memory {
    /// Nothing is read yet.
    pub fn new(places: ExtensionPlaces, options: MemoryOptions) -> Self {
        Self {
            places,
            options,
            state: Mutex::default(),
        }
    }

    /// The same for another conversation, of which nothing is read yet.
    pub fn another(&self) -> Self {
        Self::new(self.places.clone(), self.options.clone())
    }

    /// Those that are there from the start, read anew: also after the conversation was summarized, when
    /// all others come again with the next file they are for.
    pub fn start(&self) -> (Vec<MemoryFile>, Vec<Warning>) {
        let mut state = self.state();
        *state = MemoryState::default();
        let mut reader = MemoryReader::new(&self.places, &self.options, &mut state);
        reader.start();
        reader.finish()
    }

    /// Files outside of the project that its memory files import from the start, and that no one has agreed to:
    /// real paths, with those that they would import in turn.
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

    /// A file was read or changed: memory files that come to light by it.
    pub fn touched(&self, file: &Path) -> (Vec<MemoryFile>, Vec<Warning>) {
        let mut state = self.state();
        let mut roots = vec![&self.places.cwd];
        if self.options.directories_too {
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
            reader.directory(&directory, &MemoryReason::Nested(file.to_path_buf()));
        }
        reader.awaken(file);
        reader.finish()
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Absolute paths that are left out.
fn excluded(options: &MemoryOptions) -> Patterns {
    Patterns::new(&options.excludes, Path::new("/"))
}

#[cfg(test)]
mod tests;
