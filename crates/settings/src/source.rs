//! The sources of rules, and the base directories of their paths.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The author of a rule. It never decides between rules; but only rules that users wrote for
/// themselves can permit access to protected files and paths outside the working directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SettingsScope {
    /// The administrator of the machine.
    Managed,
    /// The command line.
    CommandLine,
    /// The user in this project; the file is in the project.
    Local,
    /// The project.
    Project,
    /// The user.
    User,
    /// An answer in this session.
    Session,
    /// An active skill, until the next user prompt. Regardless of its author, it can permit only what
    /// a project's rule could permit.
    Turn,
}

impl SettingsScope {
    /// Returns whether rules of this scope come from the user or the administrator: not from a file
    /// of the workspace, and not from a skill.
    pub fn is_users(self) -> bool {
        !matches!(self, Self::Local | Self::Project | Self::Turn)
    }

    /// Returns its name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed settings",
            Self::CommandLine => "command line",
            Self::Local => "local settings",
            Self::Project => "project settings",
            Self::User => "user settings",
            Self::Session => "this session",
            Self::Turn => "the active skill",
        }
    }
}

/// The source of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSource {
    /// The author of the rule.
    pub scope: SettingsScope,
    /// The file.
    pub file: Option<Arc<Path>>,
    /// The line, from 1.
    pub line: Option<usize>,
}

impl RuleSource {
    /// Creates a source without a file.
    pub fn from_scope(scope: SettingsScope) -> Self {
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

/// The base directories of the path patterns of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternBases {
    /// For `./p` and `p`: the directory where the session started.
    pub cwd: PathBuf,
    /// For `~/p`.
    pub home: PathBuf,
    /// For `/p`; depends on the source.
    pub slash: PathBuf,
}
