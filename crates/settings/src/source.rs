//! Where a rule comes from, and where its paths start.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Who wrote a rule. Between rules this never decides; only what a person wrote for themselves
/// reaches protected files and paths outside the working directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The administrator of the machine.
    Managed,
    /// The command line.
    CommandLine,
    /// This person in this project; the file lies in the project.
    Local,
    /// The project.
    Project,
    /// This person.
    User,
    /// An answer given in this session.
    Session,
    /// A skill at work, until the person speaks again. No matter who wrote it, it reaches nothing that a
    /// project's rule would not.
    Turn,
}

impl Scope {
    /// It is not from a file of the workspace.
    pub fn is_users(self) -> bool {
        !matches!(self, Self::Local | Self::Project | Self::Turn)
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed settings",
            Self::CommandLine => "command line",
            Self::Local => "local settings",
            Self::Project => "project settings",
            Self::User => "user settings",
            Self::Session => "this session",
            Self::Turn => "the skill at work",
        }
    }
}

/// Where a rule comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSource {
    /// Who wrote it.
    pub scope: Scope,
    /// In which file.
    pub file: Option<Arc<Path>>,
    /// On which line, from 1.
    pub line: Option<usize>,
}

impl RuleSource {
    /// One without a file.
    pub fn of(scope: Scope) -> Self {
        Self {
            scope,
            file: None,
            line: None,
        }
    }
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}", file.display()),
            (Some(file), None) => write!(f, "{}", file.display()),
            (None, _) => f.write_str(self.scope.name()),
        }
    }
}

/// Where the path patterns of a source start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bases {
    /// `./p` and `p`: the directory the session started in.
    pub cwd: PathBuf,
    /// `~/p`.
    pub home: PathBuf,
    /// `/p`: depends on the source.
    pub slash: PathBuf,
}
