//! The permission policy of a session.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{HomeControl, PermissionMode};

use super::{
    PrivateTmp, SandboxSettings, TouchedPath,
    credentials::StorePlaces,
    home_control::{HomeRules, home_control},
    protected_files::is_protected,
    rules::{List, RuleContent, RuleSet},
};
use haft_settings::real_path;

/// The permission policy of a session.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The permission mode: what runs without asking.
    pub mode: PermissionMode,
    /// The working directories, as real paths. Reads and writes inside need no extra permission.
    /// The session started in the first.
    pub roots: Vec<PathBuf>,
    /// Further directories that may be read without asking, as real paths: haft's stored results.
    pub readable: Vec<PathBuf>,
    /// The plan, as a real path: the only file that may be written in plan mode.
    pub plan: Option<PathBuf>,
    /// The home directory, as a real path.
    pub home: Option<PathBuf>,
    /// The rules in force.
    pub rules: Arc<RuleSet>,
    /// The confinement of commands.
    pub sandbox: Arc<SandboxSettings>,
    /// The session's own `/tmp`, if its commands have one.
    pub private_tmp: Option<Arc<PrivateTmp>>,
}

impl Policy {
    /// Creates a policy without rules.
    pub fn new(mode: PermissionMode, roots: Vec<PathBuf>) -> Self {
        Self {
            mode,
            roots,
            readable: Vec::new(),
            plan: None,
            home: None,
            rules: Arc::default(),
            sandbox: Arc::default(),
            private_tmp: None,
        }
    }

    /// Creates a policy without rules for these directories. Resolves links.
    pub fn for_directories(mode: PermissionMode, directories: &[PathBuf]) -> Self {
        let real = directories.iter().map(|dir| real_path::real_directory(dir));
        Self::new(mode, real.collect())
    }

    /// Sets the home directory. Resolves links.
    #[must_use]
    pub fn with_home(mut self, home: Option<&Path>) -> Self {
        self.home = home.map(real_path::real_directory);
        self
    }

    /// Returns whether a real path is inside the working directories, or a file of the session's own
    /// `/tmp`.
    pub fn is_inside(&self, path: &Path) -> bool {
        let mut roots = self.roots.iter();
        roots.any(|root| real_path::is_below(path, root)) || self.is_private(path)
    }

    /// Returns the homes that this session works in.
    pub(super) fn home_control(&self) -> HomeControl {
        home_control(&self.roots, self.home.as_deref())
    }

    /// Returns whether a path decides which programs run, by its name or by its place in a home.
    pub(super) fn is_control(&self, path: &Path) -> bool {
        is_protected(path) || self.home_control().is_control(path)
    }

    /// Returns the places of the stores of this session.
    pub(super) fn store_places(&self) -> StorePlaces<'_> {
        StorePlaces {
            home: self.home.as_deref(),
            own_secrets: &self.sandbox.own_secrets,
        }
    }

    /// Sets the plan, a real path, and allows reads of it.
    #[must_use]
    pub fn with_plan(mut self, plan: Option<PathBuf>) -> Self {
        self.readable.extend(plan.clone());
        self.plan = plan;
        self
    }

    /// Returns whether the path is the plan, and the session is in plan mode.
    pub fn is_plan(&self, touched: &TouchedPath) -> bool {
        self.mode == PermissionMode::Plan && self.plan.as_ref() == Some(&touched.real)
    }

    /// Returns whether a path may be read without asking.
    pub fn may_read(&self, path: &Path) -> bool {
        self.is_inside(path)
            || self
                .readable
                .iter()
                .any(|root| real_path::is_below(path, root))
    }

    /// Returns whether a deny rule for commands or paths is in force. Then lines that cannot be
    /// analyzed must not run without asking.
    pub(super) fn has_denials(&self) -> bool {
        self.rules.in_list(List::Deny).any(|rule| {
            matches!(
                rule.content,
                RuleContent::Command { .. } | RuleContent::Path(_)
            )
        })
    }
}
