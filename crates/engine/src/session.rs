//! The session context, which later calls inherit from earlier ones.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{
    AuthorizedPaths, Confinement, ContextPatch, HiddenFilter, HostPolicy, PermissionMode,
    PermissionSnapshot, RuleList,
};

use crate::{
    permissions::{
        CallFacts, HostsByPolicy, PathContext, PatternBases, Policy, RuleSet, RuleSource,
        SandboxSettings, SettingsScope, StorePlaces, control_names,
        rules::{Rule, RuleClass},
        stores,
    },
    settings::real_path,
};

/// The context of a session. Only the scheduler changes it, with [`ContextPatch`]es in call order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionContext {
    /// The absolute directory that relative paths start from.
    pub cwd: Arc<Path>,
    /// The permission mode.
    pub mode: PermissionMode,
    /// The mode to restore when plan mode ends.
    pub before_plan: Option<PermissionMode>,
    /// The absolute path of the plan file in plan mode.
    pub plan_file: Option<Arc<Path>>,
    /// The directory the session started in, then the additional ones; absolute.
    pub directories: Arc<[PathBuf]>,
    /// Deferred tools that are offered with their full definitions, in the order of their
    /// activation.
    pub activated: Vec<String>,
    /// The permission rules in force.
    pub rules: Arc<RuleSet>,
    /// The home directory, if known.
    pub home: Option<PathBuf>,
    /// The sandbox settings for commands.
    pub sandbox: Arc<SandboxSettings>,
    /// The worktree that calls work in.
    pub worktree: Option<ActiveWorktree>,
    /// The model that is used until the next user message, if it differs.
    pub turn_model: Option<String>,
    /// The effort that is used until the next user message, if it differs.
    pub turn_effort: Option<String>,
}

/// A worktree: a copy of a checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveWorktree {
    /// The checkout.
    pub main: PathBuf,
    /// The copy.
    pub path: PathBuf,
    /// Whether the copy was added as a working directory, because it was not inside one.
    added: bool,
}

impl SessionContext {
    /// Creates the context of a session that works in `cwd`, which must be absolute.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        let cwd = cwd.into();
        Self {
            cwd: Arc::from(cwd.as_path()),
            mode: PermissionMode::Default,
            before_plan: None,
            plan_file: None,
            directories: Arc::from([cwd]),
            activated: Vec::new(),
            rules: Arc::default(),
            home: None,
            sandbox: Arc::default(),
            worktree: None,
            turn_model: None,
            turn_effort: None,
        }
    }

    /// Sets the permission rules.
    #[must_use]
    pub fn with_rules(mut self, rules: RuleSet) -> Self {
        self.rules = Arc::new(rules);
        self
    }

    /// Sets the sandbox settings.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: SandboxSettings) -> Self {
        self.sandbox = Arc::new(sandbox);
        self
    }

    /// Sets the home directory.
    #[must_use]
    pub fn with_home(mut self, home: Option<PathBuf>) -> Self {
        self.home = home;
        self
    }

    /// Returns the directories that the paths of calls are resolved against.
    pub fn path_context(&self) -> PathContext {
        PathContext {
            cwd: self.cwd.to_path_buf(),
            home: self.home.clone(),
            wrappers: self.rules.wrappers().to_vec(),
        }
    }

    /// Returns the base directories for the patterns of rules that are created in this session.
    pub fn bases(&self) -> PatternBases {
        let start = self.directories.first().cloned().unwrap_or_default();
        PatternBases {
            home: self.home.clone().unwrap_or_else(|| start.clone()),
            slash: start.clone(),
            cwd: start,
        }
    }

    /// Adds a working directory.
    #[must_use]
    pub fn with_directory(mut self, path: PathBuf) -> Self {
        self.apply(&ContextPatch::AddDirectory { path });
        self
    }

    /// Sets the permission mode.
    #[must_use]
    pub fn with_mode(mut self, mode: PermissionMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the path of the plan file.
    #[must_use]
    pub fn with_plan_file(mut self, path: Option<PathBuf>) -> Self {
        self.plan_file = path.map(Arc::from);
        self
    }

    /// Returns the permission policy. `readable` must be a real path.
    pub fn policy(&self, readable: &Path) -> Policy {
        self.policy_without_plan(readable)
            .with_plan(self.real_plan())
    }

    /// Like [`policy`](Self::policy), but without the plan file, for calls that do not touch it.
    pub(crate) fn policy_without_plan(&self, readable: &Path) -> Policy {
        Policy {
            mode: self.mode,
            roots: self
                .directories
                .iter()
                .map(|dir| real_path::real_directory(dir))
                .collect(),
            readable: vec![readable.to_path_buf()],
            plan: None,
            home: self.home.as_deref().map(real_path::real_directory),
            rules: Arc::clone(&self.rules),
            sandbox: Arc::clone(&self.sandbox),
            private_tmp: None,
        }
    }

    /// Returns whether a call might touch the plan file. Used to skip the many file system accesses
    /// that resolving its real path takes, since almost no call touches it.
    pub(crate) fn may_be_plan(&self, facts: &CallFacts) -> bool {
        let Some(plan) = self.plan_file.as_deref() else {
            return false;
        };
        let mut touched = facts.reads.iter().chain(&facts.writes);
        facts.has_command() || touched.any(|one| one.real.file_name() == plan.file_name())
    }

    /// Returns the real path of the plan file.
    pub(crate) fn real_plan(&self) -> Option<PathBuf> {
        self.plan_file.as_deref().and_then(resolve_unless_link)
    }

    /// Returns the permission snapshot for a call.
    pub fn permissions(&self) -> PermissionSnapshot {
        PermissionSnapshot {
            mode: self.mode,
            directories: Arc::clone(&self.directories),
            granted: Arc::default(),
            // No path has been authorized yet, so none may be opened.
            authorized: AuthorizedPaths::none(),
            key_stores: self.stores(),
            hidden: self.rules.hidden_by_classes(&[RuleClass::Reads]),
            locked: self
                .rules
                .hidden_by_classes(&[RuleClass::Reads, RuleClass::Edits]),
            control: match self.mode {
                PermissionMode::BypassPermissions => HiddenFilter::default(),
                _ => control_names(&self.directories, self.home.as_deref()),
            },
            // Set when a call that starts a command is admitted.
            confinement: Confinement::default(),
            hosts: self.hosts(),
            plan_file: self.plan_file.clone(),
        }
    }

    /// Returns the host policy. It evaluates the rules lazily.
    fn hosts(&self) -> HostPolicy {
        HostPolicy::from_evaluator(HostsByPolicy {
            rules: Arc::clone(&self.rules),
            sandbox: Arc::clone(&self.sandbox),
            tool: None,
        })
    }

    /// Returns the key stores: paths that calls must leave out when they search for files.
    fn stores(&self) -> Arc<[PathBuf]> {
        if self.mode == PermissionMode::BypassPermissions {
            return Arc::from([]);
        }
        stores(StorePlaces {
            home: self.home.as_deref(),
            own_secrets: &self.sandbox.own_secrets,
        })
    }

    fn set_mode(&mut self, mode: PermissionMode) {
        self.before_plan = match (self.mode, mode) {
            (PermissionMode::Plan, PermissionMode::Plan) => self.before_plan,
            (before, PermissionMode::Plan) => Some(before),
            _ => None,
        };
        self.mode = mode;
    }

    pub(crate) fn set_directories(&mut self, directories: Vec<PathBuf>) {
        let Some(first) = directories.first() else {
            return;
        };
        let stays = directories.iter().any(|one| self.cwd.starts_with(one));
        if !stays {
            self.cwd = Arc::from(first.as_path());
        }
        self.directories = directories.into();
    }

    pub(crate) fn apply(&mut self, patch: &ContextPatch) {
        match patch {
            ContextPatch::SetCwd { path } => self.cwd = Arc::from(path.as_path()),
            ContextPatch::SetMode { mode } => self.set_mode(*mode),
            ContextPatch::LeavePlan if self.mode == PermissionMode::Plan => {
                self.set_mode(self.before_plan.unwrap_or_default());
            }
            ContextPatch::LeavePlan => {}
            ContextPatch::AddDirectory { path } => {
                if !self.directories.contains(path) {
                    self.directories = self
                        .directories
                        .iter()
                        .cloned()
                        .chain([path.clone()])
                        .collect();
                }
            }
            ContextPatch::EnterWorktree { main, path } => self.enter_worktree(main, path),
            ContextPatch::LeaveWorktree { cwd } => {
                if let Some(left) = self.worktree.take().filter(|left| left.added) {
                    let others = self.directories.iter().filter(|one| **one != left.path);
                    self.directories = others.cloned().collect();
                }
                self.cwd = Arc::from(cwd.as_path());
            }
            ContextPatch::AddRule { list, rule } => {
                self.add_rule(*list, rule, SettingsScope::Session)
            }
            ContextPatch::AddRuleForTurn { list, rule } => {
                self.add_rule(*list, rule, SettingsScope::Turn)
            }
            ContextPatch::AskForTurn { model, effort } => {
                self.turn_model = model.clone().or(self.turn_model.take());
                self.turn_effort = effort.clone().or(self.turn_effort.take());
            }
            ContextPatch::EndRulesOfTurn => {
                (self.turn_model, self.turn_effort) = (None, None);
                let of_turn = |rule: &Rule| rule.source.scope == SettingsScope::Turn;
                if self.rules.iter().any(of_turn) {
                    Arc::make_mut(&mut self.rules).retain(|rule| !of_turn(rule));
                }
            }
            ContextPatch::ActivateTools { names } => {
                for name in names {
                    if !self.activated.contains(name) {
                        self.activated.push(name.clone());
                    }
                }
            }
            // A patch of a newer contract version: ignore it rather than apply it partly.
            _ => tracing::warn!(?patch, "unknown patch left out"),
        }
    }

    fn enter_worktree(&mut self, main: &Path, path: &Path) {
        let inside = self.directories.iter().any(|one| path.starts_with(one));
        if !inside {
            self.apply(&ContextPatch::AddDirectory {
                path: path.to_path_buf(),
            });
        }
        self.cwd = Arc::from(path);
        self.worktree = Some(ActiveWorktree {
            main: main.to_path_buf(),
            path: path.to_path_buf(),
            added: !inside,
        });
        self.extend_rules_to_worktree();
    }

    /// Moves the context into a worktree, for an agent that works only there: directories of the
    /// checkout become those of the worktree.
    #[must_use]
    pub fn for_worktree_agent(mut self, main: &Path, path: &Path) -> Self {
        let moved = |directory: &PathBuf| match directory.strip_prefix(main) {
            Ok(below) => path.join(below),
            // A directory that contains the checkout would give access to more than the worktree.
            Err(_) if main.starts_with(directory) => path.to_path_buf(),
            Err(_) => directory.clone(),
        };
        let below = self.cwd.strip_prefix(main).unwrap_or(Path::new(""));
        let cwd = path.join(below);
        // A directory that git does not track, such as an empty one, is missing in the worktree.
        let cwd = if cwd.is_dir() {
            cwd
        } else {
            path.to_path_buf()
        };
        let mut directories: Vec<PathBuf> = Vec::new();
        for directory in self.directories.iter().map(moved) {
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
        self.cwd = Arc::from(cwd);
        self.directories = directories.into();
        self.worktree = Some(ActiveWorktree {
            main: main.to_path_buf(),
            path: path.to_path_buf(),
            added: false,
        });
        self.extend_rules_to_worktree();
        self
    }

    /// Extends rules for files of the checkout to the corresponding files of the worktree.
    pub(crate) fn extend_rules_to_worktree(&mut self) {
        let Some(ActiveWorktree { main, path, .. }) = &self.worktree else {
            return;
        };
        Arc::make_mut(&mut self.rules).extend_to_worktree(main, path);
        Arc::make_mut(&mut self.sandbox).extend_to_worktree(main, path);
    }

    fn add_rule(&mut self, list: RuleList, rule: &str, scope: SettingsScope) {
        let bases = self.bases();
        let rules = Arc::make_mut(&mut self.rules);
        if let Err(problem) = rules.add(list, rule, RuleSource::from_scope(scope), &bases) {
            tracing::warn!(%problem, "rule left out");
        }
        self.extend_rules_to_worktree();
    }
}

/// Returns the real path of a file unless the file itself is a symlink, which could redirect
/// writes.
fn resolve_unless_link(path: &Path) -> Option<PathBuf> {
    Some(real_path::resolve_links(path.parent()?).join(path.file_name()?))
}
