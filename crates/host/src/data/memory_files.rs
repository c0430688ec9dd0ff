//! The memory files, to which `#text` adds lines.

use std::path::PathBuf;

use haft_contract::SessionId;

use crate::SessionInput;

/// The scope of a memory file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryScope {
    /// All users of the project.
    Project,
    /// The user, in this project.
    Local,
    /// The user, in all projects.
    User,
}

impl MemoryScope {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Local => "local",
            Self::User => "user",
        }
    }
}

/// A memory file, which may not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPlace {
    /// Its scope.
    pub scope: MemoryScope,
    /// Its path.
    pub path: PathBuf,
    /// Whether the file exists.
    pub exists: bool,
}

impl SessionInput {
    /// Returns the memory files of all scopes: for the project, for the user in the project, and
    /// for the user everywhere.
    pub fn memory_files(&self) -> Vec<MemoryPlace> {
        let places = &self.0.settings.settings.places;
        let beside = places.cwd.join(".claude/CLAUDE.md");
        let mut project = places.cwd.join("CLAUDE.md");
        if !project.exists() && beside.exists() {
            project = beside;
        }
        let all = [
            (MemoryScope::Project, project),
            (MemoryScope::Local, places.cwd.join("CLAUDE.local.md")),
            (MemoryScope::User, places.user.join("CLAUDE.md")),
        ];
        let all = all.map(|(scope, path)| MemoryPlace {
            scope,
            exists: path.exists(),
            path,
        });
        all.into()
    }

    /// Appends a line to a memory file, as a change that can be undone. Returns the path of the
    /// file. Blocks on disk I/O: do not call it on an async task that others wait for.
    pub fn append_memory(&self, text: &str, scope: MemoryScope) -> Result<PathBuf, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the text to remember is empty".to_owned());
        }
        let mut places = self.memory_files().into_iter();
        let place = places.find(|place| place.scope == scope);
        let path = place.map(|place| place.path).unwrap_or_default();
        let line = match text.starts_with(['-', '*', '#']) {
            true => text.to_owned(),
            false => format!("- {text}"),
        };
        self.append(&path, &line)
    }

    #[cfg(feature = "fs")]
    fn append(&self, path: &std::path::Path, line: &str) -> Result<PathBuf, String> {
        let environment = &self.0.environment;
        let folder = environment.session_folder(&self.0.config.cwd, SessionId::new());
        let services = self.0.access.services();
        haft_tools::append_line(services, &folder.join("undo"), path, line, "remember")
    }

    #[cfg(not(feature = "fs"))]
    fn append(&self, _: &std::path::Path, _: &str) -> Result<PathBuf, String> {
        let _ = SessionId::new();
        Err("this build changes no files".to_owned())
    }
}
