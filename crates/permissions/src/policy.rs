//! What a session permits.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{HomeControl, PermissionMode};

use super::{
    SandboxSettings, TouchedPath,
    credentials::StorePlaces,
    home_control::{HomeRules, home_control},
    protected_files::is_protected,
    rules::{List, RuleContent, Rules},
};
use haft_settings::real_path;

/// What a session permits.
#[derive(Debug, Clone)]
pub struct Policy {
    /// How much runs without asking.
    pub mode: PermissionMode,
    /// The working directories, as real paths: reads and writes inside are the session's business.
    /// The first is the one the session started in.
    pub roots: Vec<PathBuf>,
    /// Further directories that may be read freely, as real paths: our own stored results.
    pub readable: Vec<PathBuf>,
    /// The plan: the one file that may be written in plan mode, as a real path.
    pub plan: Option<PathBuf>,
    /// The home directory, as a real path.
    pub home: Option<PathBuf>,
    /// The rules in force.
    pub rules: Arc<Rules>,
    /// How commands are confined.
    pub sandbox: Arc<SandboxSettings>,
}

impl Policy {
    /// A policy without rules.
    pub fn new(mode: PermissionMode, roots: Vec<PathBuf>) -> Self {
        Self {
            mode,
            roots,
            readable: Vec::new(),
            plan: None,
            home: None,
            rules: Arc::default(),
            sandbox: Arc::default(),
        }
    }

    /// A policy without rules for these directories, whose links are followed.
    pub fn of_directories(mode: PermissionMode, directories: &[PathBuf]) -> Self {
        let real = directories.iter().map(|dir| real_path::real_directory(dir));
        Self::new(mode, real.collect())
    }

    /// The same with a home directory, whose links are followed.
    #[must_use]
    pub fn with_home(mut self, home: Option<&Path>) -> Self {
        self.home = home.map(real_path::real_directory);
        self
    }

    /// Is it inside the working directories? By whole components of a real path.
    pub fn is_inside(&self, path: &Path) -> bool {
        self.roots
            .iter()
            .any(|root| real_path::is_below(path, root))
    }

    /// The homes in which this session works.
    pub(super) fn home_control(&self) -> HomeControl {
        home_control(&self.roots, self.home.as_deref())
    }

    /// Returns whether a path decides which programs run, by its name or by its place in a home.
    pub(super) fn is_control(&self, path: &Path) -> bool {
        is_protected(path) || self.home_control().is_control(path)
    }

    /// The places of the stores of this session.
    pub(super) fn store_places(&self) -> StorePlaces<'_> {
        StorePlaces {
            home: self.home.as_deref(),
            own_secrets: &self.sandbox.own_secrets,
        }
    }

    /// The same with this plan, a real path: it may be read.
    #[must_use]
    pub fn with_plan(mut self, plan: Option<PathBuf>) -> Self {
        self.readable.extend(plan.clone());
        self.plan = plan;
        self
    }

    /// Is it the plan, while there is one to be made?
    pub fn is_plan(&self, touched: &TouchedPath) -> bool {
        self.mode == PermissionMode::Plan && self.plan.as_ref() == Some(&touched.real)
    }

    /// May it be read without a word?
    pub fn may_read(&self, path: &Path) -> bool {
        self.is_inside(path)
            || self
                .readable
                .iter()
                .any(|root| real_path::is_below(path, root))
    }

    /// A deny rule for commands or paths is in force, so that what cannot be read must not pass.
    pub(super) fn has_denials(&self) -> bool {
        self.rules.in_list(List::Deny).any(|rule| {
            matches!(
                rule.content,
                RuleContent::Command { .. } | RuleContent::Path(_)
            )
        })
    }
}
