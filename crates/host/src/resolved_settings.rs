//! The settings in force, from the configuration and the settings files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use haft_contract::{PermissionMode, RuleDestination, RuleList, RuleScope, ToolSpec};
use haft_engine::{
    hooks::{Hooks, HttpHookLimits},
    permissions::{PatternBases, PermissionSettings, Policy, RuleSet, RuleStore, SandboxSettings},
    settings::{
        AutoMemory, LocalRules, Settings, SettingsFlags, SettingsProblem, TrustState, files,
    },
};

#[cfg(feature = "shell")]
use crate::undo_settings;
use crate::{
    Environment, OpenError, SessionConfig, SessionEvent, auto_mode, event::EventEmitter, retention,
};

/// The resolved settings of a session.
#[derive(Clone)]
pub struct ResolvedSettings {
    /// The settings files.
    pub settings: Settings,
    /// The additional settings.
    pub flags: SettingsFlags,
    /// All permission rules.
    pub rules: RuleSet,
    /// The additional working directories.
    pub directories: Vec<PathBuf>,
    /// The permission mode.
    pub mode: PermissionMode,
    /// The reason why the mode is not `auto`, although it was requested.
    pub auto_warning: Option<String>,
    /// The user's hooks.
    pub hooks: Hooks,
    /// The hosts to which hooks may send requests.
    pub http_hooks: HttpHookLimits,
    /// The sandbox settings for commands.
    pub sandbox: SandboxSettings,
    /// The directory of plan files.
    pub plans: PathBuf,
    /// The timeout for answers to the model's questions.
    pub patience: Option<Duration>,
    /// The folder of notes that outlive a session.
    pub memory: Option<PathBuf>,
    /// The settings of the search index.
    #[cfg(feature = "search")]
    pub search_index: haft_tools::IndexSettings,
    /// The limits of what is stored so that commands can be undone.
    #[cfg(feature = "shell")]
    pub(crate) undo: haft_tools::WitnessLimits,
    /// The retention period of sessions; `None`: unlimited.
    pub(crate) retention: Option<Duration>,
    /// The environment variables, including those in the settings.
    pub environment: Environment,
    /// The language servers of plugins, once these are read.
    pub(crate) plugin_servers: serde_json::Map<String, serde_json::Value>,
}

impl ResolvedSettings {
    /// Loads the settings for a session with this configuration.
    pub fn load(config: &SessionConfig) -> Result<Self, OpenError> {
        Ok(load(config)?)
    }

    /// Returns the policy that decides on calls when the session starts.
    pub fn policy(&self) -> Policy {
        let places = &self.settings.places;
        let mut roots = vec![places.cwd.clone()];
        roots.extend(self.directories.iter().cloned());
        Policy {
            rules: self.rules.clone().into(),
            sandbox: self.sandbox.clone().into(),
            ..Policy::for_directories(self.mode, &roots).with_home(Some(&places.home))
        }
    }

    /// Returns the problems of the settings, and what was ignored.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = settings_warnings(&self.settings);
        warnings.extend(self.auto_warning.clone());
        if self.mode == PermissionMode::Auto {
            let unused = self.settings.auto_keys_without_effect().join(", ");
            if !unused.is_empty() {
                warnings.push(format!(
                    "{unused}: without effect, because no model decides on calls here"
                ));
            }
        }
        warnings
    }
}

/// Returns the tools that rules may name: all built-in ones, whether the session has them or not.
pub(crate) fn known_tools() -> Vec<ToolSpec> {
    let tools = haft_tools::all();
    tools.iter().map(|tool| tool.spec().clone()).collect()
}

/// Loads the settings.
fn load(config: &SessionConfig) -> anyhow::Result<ResolvedSettings> {
    let (cwd, environment) = (&config.cwd, &config.environment);
    anyhow::ensure!(
        cwd.is_absolute(),
        "{}: the directory of a session must be an absolute path",
        cwd.display()
    );
    let flags = config.settings.clone();
    let places = environment.settings_places(cwd);
    if let Some(given) = &flags.settings {
        // An error instead of a warning, because a session without the given settings could permit
        // more.
        files::read_flag(&places, given).map_err(|problem| anyhow::anyhow!("{problem}"))?;
    }
    let mut settings = Settings::load(places, &flags, TrustState::default());
    settings.apply_trust(&flags);
    let mut rules = settings.rules(&config.allow, &config.deny);
    settings.check_rules(&mut rules, &known_tools());
    let mut directories = config.directories.clone();
    for directory in settings.directories() {
        // A missing directory does not prevent the session.
        if directory.is_dir() {
            directories.push(directory);
        } else {
            settings.problems.push(SettingsProblem {
                place: "additionalDirectories".to_owned(),
                text: format!("{} is not a directory; it is ignored", directory.display()),
            });
        }
    }
    let hooks = hooks(&mut settings);
    let http_hooks = settings.http_hooks();
    let env = settings.env();
    let hooks = hooks.with_env(env.clone());
    let env = Arc::new(env);
    let environment = &environment.with_settings(&env);
    let sandbox = settings.sandbox();
    let sandbox = SandboxSettings {
        // Only computed if needed, because it takes some milliseconds.
        available: sandbox.enabled == Some(true) && can_confine(config),
        env,
        ..sandbox
    };
    settings.warn_untrusted_overrides();
    let plans = settings.plans_directory();
    let patience = settings.question_timeout();
    let memory = memory_folder(&settings.auto_memory(), environment, cwd);
    #[cfg(feature = "search")]
    let search_index = search_index(&settings, environment);
    #[cfg(feature = "shell")]
    let undo = undo_settings::limits(&mut settings);
    #[cfg(feature = "shell")]
    let sandbox = SandboxSettings {
        max_undo_bytes: Some(undo.file_bytes),
        ..sandbox
    };
    let retention = retention::period(&mut settings);
    let from_files = settings.default_mode();
    settings.problems.extend(config.problems.iter().cloned());
    let mut mode = config.permission_mode.or(from_files).unwrap_or_default();
    let mut auto_warning = None;
    if mode == PermissionMode::Auto
        && let Some(problem) = auto_mode::auto_mode_problem(config, &settings, &sandbox)
    {
        mode = PermissionMode::Default;
        auto_warning = Some(auto_mode::auto_mode_fallback(&problem));
    }
    if mode == PermissionMode::BypassPermissions {
        may_bypass(&settings, environment)?;
    }
    Ok(ResolvedSettings {
        settings,
        flags,
        rules,
        directories,
        mode,
        auto_warning,
        hooks,
        http_hooks,
        sandbox,
        plans,
        patience,
        memory,
        #[cfg(feature = "search")]
        search_index,
        #[cfg(feature = "shell")]
        undo,
        retention,
        environment: environment.clone(),
        plugin_servers: serde_json::Map::new(),
    })
}

/// Checks whether bypassPermissions is allowed. The error is the reason if not.
pub(crate) fn may_bypass(settings: &Settings, environment: &Environment) -> anyhow::Result<()> {
    anyhow::ensure!(
        !settings.bypass_is_disabled(),
        "bypassPermissions is switched off by the settings (disableBypassPermissionsMode)"
    );
    anyhow::ensure!(
        !is_root() || environment.is_on("IS_SANDBOX"),
        "bypassPermissions is refused for root; run as another user, or set IS_SANDBOX=1 where the \
         whole machine is a sandbox"
    );
    Ok(())
}

/// Returns the folder of notes that outlive a session, unless it is disabled.
fn memory_folder(memory: &AutoMemory, environment: &Environment, cwd: &Path) -> Option<PathBuf> {
    let is_off = environment.is_on("CLAUDE_CODE_DISABLE_AUTO_MEMORY");
    if is_off || memory.off {
        return None;
    }
    let directory = memory.directory.clone();
    directory.or_else(|| environment.memory_folder(cwd))
}

/// Returns the settings of the search index. Any settings file may disable the index, because only
/// speed depends on it.
#[cfg(feature = "search")]
fn search_index(settings: &Settings, environment: &Environment) -> haft_tools::IndexSettings {
    let mut layers = settings.layers.iter();
    let is_off = layers.any(|layer| layer.document.value["searchIndex"] == false);
    let index = haft_tools::IndexSettings {
        enabled: !is_off,
        cache_folder: environment
            .cache_folder()
            .map(|folder| folder.join("search")),
        ..haft_tools::IndexSettings::default()
    };
    index.with_variables(|name| environment.variable(name))
}

fn hooks(settings: &mut Settings) -> Hooks {
    let bases = PatternBases {
        cwd: settings.places.cwd.clone(),
        home: settings.places.home.clone(),
        slash: settings.places.cwd.clone(),
    };
    let mut handlers = Vec::new();
    for (scope, file, value) in settings.hooks() {
        let (read, problems) =
            haft_engine::hook_conditions::read(scope, file.as_ref(), &value, &bases);
        handlers.extend(read);
        settings.problems.extend(problems);
    }
    Hooks::new(handlers, &settings.places.cwd)
}

/// Returns whether commands can be confined on this machine.
fn can_confine(config: &SessionConfig) -> bool {
    #[cfg(feature = "shell")]
    if let Some(program) = &config.program {
        let among = config.environment.temporary_folder();
        return haft_tools::sandbox::is_available(program, &among);
    }
    let _ = config; // a build without commands confines none
    false
}

/// Returns the problems of the settings, and what was ignored.
pub fn settings_warnings(settings: &Settings) -> Vec<String> {
    let problems = settings.problems.iter().map(ToString::to_string);
    problems
        .chain(settings.untrusted().map(|untrusted| untrusted.to_string()))
        .collect()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Saves rules that the user approved in the settings file of the chosen scope.
pub(crate) struct LocalRuleStore {
    pub(crate) rules: LocalRules,
    pub(crate) events: Arc<EventEmitter>,
}

impl RuleStore for LocalRuleStore {
    fn save(&self, rules: &[String], scope: RuleScope) {
        let Some(file) = self.rules.file_of(scope) else {
            return;
        };
        let kept = self.rules.add_to(scope, RuleList::Allow, rules);
        self.events.emit(&SessionEvent::RulesKept {
            file,
            problem: kept.err(),
        });
    }

    fn destinations(&self) -> Vec<RuleDestination> {
        self.rules.rule_places()
    }
}
