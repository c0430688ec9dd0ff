//! The builder of a session of tools.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_contract::{
    Approver, BoxFuture, DynTool, PermissionMode, ProgressSender, Services, SessionId, Tool, erase,
};
use haft_engine::{
    CallListener, DefinitionError, Engine, SessionContext, ToolFilters, ToolRegistry,
    hooks::Hooks,
    layers::{Layer, LayerSettings},
    permissions::{RuleSet, RuleStore, SandboxSettings},
    settings::SettingsWatch,
};

use crate::{Environment, Haft, SessionClock};

/// The reason why a session could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A tool has an invalid definition.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// A working directory is missing or not a directory.
    #[error("{path} cannot be a working directory: {source}", path = path.display())]
    Directory {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Settings require commands to be confined, but the sandbox is not available.
    #[error("{missing}, and sandbox.failIfUnavailable says not to start then")]
    Unconfined {
        /// The missing part.
        missing: &'static str,
    },
}

/// Configures a session of tools: [`Haft::builder`].
#[must_use]
pub struct HaftBuilder {
    cwd: PathBuf,
    directories: Vec<PathBuf>,
    mode: PermissionMode,
    built_ins: bool,
    tools: Vec<Arc<dyn DynTool>>,
    external: Vec<Arc<dyn DynTool>>,
    filters: ToolFilters,
    services: Services,
    layers: Vec<Arc<dyn Layer>>,
    listener: Option<Arc<dyn CallListener>>,
    layer_settings: Option<LayerSettings>,
    concurrency: Option<usize>,
    session: SessionId,
    environment: Environment,
    folder: Option<PathBuf>,
    progress: Option<ProgressSender>,
    names_flags: bool,
    model: Option<String>,
    rules: RuleSet,
    home: Option<PathBuf>,
    keeper: Option<Arc<dyn RuleStore>>,
    watch: Option<SettingsWatch>,
    clock: Option<Arc<dyn SessionClock>>,
    hooks: Hooks,
    defers: bool,
    without_cards: bool,
    sandbox: SandboxSettings,
    plans: Option<PathBuf>,
}

impl HaftBuilder {
    pub(crate) fn new(cwd: PathBuf) -> Self {
        Self {
            cwd,
            directories: Vec::new(),
            mode: PermissionMode::Default,
            built_ins: true,
            tools: Vec::new(),
            external: Vec::new(),
            filters: ToolFilters::default(),
            services: Services::none(),
            layers: Vec::new(),
            listener: None,
            layer_settings: None,
            concurrency: None,
            session: SessionId::new(),
            folder: None,
            progress: None,
            names_flags: false,
            model: None,
            rules: RuleSet::default(),
            environment: Environment::from_process(),
            home: None,
            keeper: None,
            watch: None,
            clock: None,
            hooks: Hooks::default(),
            defers: false,
            without_cards: false,
            sandbox: SandboxSettings::default(),
            plans: None,
        }
    }

    /// Adds a working directory.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// Sets the permission mode. Default: only reads inside the working directories run without
    /// asking.
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the permission rules. A rule that denies a whole tool also removes it from the offered
    /// tools.
    pub fn rules(mut self, rules: RuleSet) -> Self {
        self.rules = rules;
        self
    }

    /// Sets the variables that determine the home directory and the folders of sessions. Default:
    /// those of the process.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets the home directory, for rules and command lines. Default: `$HOME`.
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Sets the store for rules that the user saves beyond the session.
    pub fn keeper(mut self, keeper: Arc<dyn RuleStore>) -> Self {
        self.keeper = Some(keeper);
        self
    }

    /// Sets the watch on settings files that may tighten the rules while the session runs.
    pub fn watch(mut self, watch: SettingsWatch) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Sets the clock of permissions that end after a time. Default: that of the machine.
    pub fn clock(mut self, clock: Arc<dyn SessionClock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the user's hooks.
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Sets whether hooks may defer calls: a deferred call gets a result without having run, and the
    /// result is marked as deferred.
    pub fn defers(mut self, defers: bool) -> Self {
        self.defers = defers;
        self
    }

    /// Sets the confinement of commands. Default: files as the decision on the command requires, no
    /// network, and no command runs without asking because it is confined.
    pub fn sandbox(mut self, sandbox: SandboxSettings) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Sets the directory of plan files, one per session: the only file that may be written in plan
    /// mode. Default: no directory, and a plan is an argument of the call.
    pub fn plans(mut self, directory: impl Into<PathBuf>) -> Self {
        self.plans = Some(directory.into());
        self
    }

    /// Adds your own tool.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.dyn_tool(erase(tool))
    }

    /// Adds your own tool that is already erased.
    pub fn dyn_tool(mut self, tool: Arc<dyn DynTool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a tool from elsewhere, such as an MCP server. It comes after the other tools, and is
    /// left out if its name clashes with one of them or its definition is invalid
    /// ([`Haft::unusable_tools`]).
    pub fn external_tool(mut self, tool: Arc<dyn DynTool>) -> Self {
        self.external.push(tool);
        self
    }

    /// Offers only the tools added here, without the built-in ones.
    pub fn without_built_ins(mut self) -> Self {
        self.built_ins = false;
        self
    }

    /// Disables the cards of results, for sessions whose results no user sees.
    pub fn without_cards(mut self) -> Self {
        self.without_cards = true;
        self
    }

    /// Sets the filters for the offered tools.
    pub fn filters(mut self, filters: ToolFilters) -> Self {
        self.filters = filters;
        self
    }

    /// Sets the approver, which asks the user. Default: no user can be asked, and calls that need
    /// approval are denied.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.services = self.services.with_approver(approver);
        self
    }

    /// Adds a service for your own tools, found by its type.
    pub fn service<T: Send + Sync + 'static>(mut self, service: Arc<T>) -> Self {
        self.services = self.services.with(service);
        self
    }

    /// Adds a layer around the execution of every call.
    pub fn layer(mut self, layer: Arc<dyn Layer>) -> Self {
        self.layers.push(layer);
        self
    }

    /// Sets timeouts, caching and rate limits, for all tools or by name.
    pub fn layer_settings(mut self, settings: LayerSettings) -> Self {
        self.layer_settings = Some(settings);
        self
    }

    /// Sets the number of calls that run concurrently.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = Some(most);
        self
    }

    /// Sets the session id. Default: a new one.
    pub fn session(mut self, session: SessionId) -> Self {
        self.session = session;
        self
    }

    /// Sets the folder for the session's data on disk. Default: [`Environment::session_folder`].
    pub fn session_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets whether denial messages may name flags of the `haft` command line, for sessions that
    /// were configured with them.
    pub fn names_flags(mut self, names_flags: bool) -> Self {
        self.names_flags = names_flags;
        self
    }

    /// Sets the receiver of progress updates.
    pub fn progress(mut self, progress: ProgressSender) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Sets the receiver of measurements of calls, including those of subagents.
    pub fn listener(mut self, listener: Arc<dyn CallListener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Sets the model that makes the calls, for tools that depend on it.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Builds the session.
    ///
    /// Boxed, so that its code is compiled once, here, and not in each crate that awaits it.
    pub fn build(self) -> BoxFuture<'static, Result<Haft, BuildError>> {
        Box::pin(self.build_session())
    }

    async fn build_session(self) -> Result<Haft, BuildError> {
        let cwd = directory(&self.cwd)?;
        if let Some(missing) = self.sandbox.missing().filter(|_| self.sandbox.required) {
            return Err(BuildError::Unconfined { missing });
        }
        let filters = ToolFilters {
            rules: Arc::new(self.rules.clone()),
            ..self.filters
        };
        let mut context = SessionContext::new(&cwd)
            .with_mode(self.mode)
            .with_rules(self.rules)
            .with_home(self.home.or_else(|| self.environment.home()))
            .with_sandbox(self.sandbox)
            .with_plan_file(plan_file(self.plans, self.session)?);
        for path in &self.directories {
            context = context.with_directory(directory(path)?);
        }

        let mut registry = ToolRegistry::new();
        let built_ins = if self.built_ins {
            haft_tools::usable(&self.services)
        } else {
            Vec::new()
        };
        for tool in built_ins {
            registry.add_erased(tool)?;
        }
        let folder = match self.folder {
            Some(folder) => folder,
            None => {
                if let Some(project) = self.environment.project_folder(&cwd) {
                    haft_tools::settle_crashed(&project);
                }
                self.environment.session_folder(&cwd, self.session)
            }
        };
        let services = haft_tools::with_services(self.services, &folder, &cwd);
        for tool in haft_tools::fitted(self.tools, &services) {
            registry.add_erased(tool)?;
        }
        let mut unusable_tools = Vec::new();
        for tool in self.external {
            unusable_tools.extend(registry.add_external(tool).err());
        }
        let mut builder = Engine::builder(registry, folder)
            .filters(filters)
            .session(self.session)
            .hooks(self.hooks)
            .services(services);
        if self.defers {
            builder = builder.allow_deferral();
        }
        if self.without_cards {
            builder = builder.without_cards();
        }
        for layer in self.layers {
            builder = builder.layer(layer);
        }
        if let Some(settings) = self.layer_settings {
            builder = builder.layer_settings(settings);
        }
        if let Some(listener) = self.listener {
            builder = builder.listener(listener);
        }
        if let Some(most) = self.concurrency {
            builder = builder.concurrency(most);
        }
        builder = builder.names_flags(self.names_flags);
        if let Some(progress) = self.progress {
            builder = builder.progress(progress);
        }
        if let Some(model) = self.model {
            builder = builder.model(model);
        }
        if let Some(keeper) = self.keeper {
            builder = builder.rule_store(keeper);
        }
        if let Some(watch) = self.watch {
            builder = builder.settings_watch(watch);
        }
        if let Some(clock) = self.clock {
            builder = builder.clock(Arc::new(move || clock.now()));
        }
        let (engine, unknown_tools) = builder.build().await;
        let scheduler = engine.scheduler(context);
        Ok(Haft {
            next: scheduler.cancel_token().child_token(),
            scheduler,
            unknown_tools,
            unusable_tools,
        })
    }
}

/// Returns the path of the session's plan file, in a directory that may not exist yet.
fn plan_file(plans: Option<PathBuf>, session: SessionId) -> Result<Option<PathBuf>, BuildError> {
    let Some(plans) = plans else {
        return Ok(None);
    };
    let absolute = std::path::absolute(&plans).map_err(|source| BuildError::Directory {
        path: plans,
        source,
    })?;
    Ok(Some(absolute.join(format!("{session}.md"))))
}

/// Returns an existing directory as an absolute path. Symlinks stay, because users know the
/// directory by this path.
fn directory(path: &Path) -> Result<PathBuf, BuildError> {
    let failed = |source| BuildError::Directory {
        path: path.to_path_buf(),
        source,
    };
    let absolute = std::path::absolute(path).map_err(failed)?;
    if std::fs::metadata(&absolute).map_err(failed)?.is_dir() {
        Ok(absolute)
    } else {
        Err(failed(io::Error::from(io::ErrorKind::NotADirectory)))
    }
}
