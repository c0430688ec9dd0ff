//! What the configuration and settings files say together.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use haft_contract::{PermissionMode, RuleList, RulePlace, RuleScope, ToolSpec};
use haft_engine::{
    hooks::{Hooks, HttpLimits},
    permissions::{Bases, PermissionSettings, Policy, RuleStore, Rules, SandboxSettings},
    settings::{AutoMemory, Flags, LocalRules, Problem, Settings, Trust, files},
};

use crate::{Environment, OpenError, SessionConfig, SessionEvent, event::Events, retention};

/// What a session is permitted.
#[derive(Clone)]
pub struct Permitted {
    /// What the files say.
    pub settings: Settings,
    /// What was given beside them.
    pub flags: Flags,
    /// The rules of all of them.
    pub rules: Rules,
    /// Directories beside the one it works in.
    pub directories: Vec<PathBuf>,
    /// How much runs without asking.
    pub mode: PermissionMode,
    /// Hooks of the user's.
    pub hooks: Hooks,
    /// Where hooks may send something.
    pub http_hooks: HttpLimits,
    /// How commands are confined.
    pub sandbox: SandboxSettings,
    /// Where plans are written.
    pub plans: PathBuf,
    /// How long an answer to a question of the model's is waited for.
    pub patience: Option<Duration>,
    /// The folder of notes that outlive a session.
    pub memory: Option<PathBuf>,
    /// What searches keep between calls.
    #[cfg(feature = "search")]
    pub search_index: haft_tools::IndexSettings,
    /// How long sessions are kept; `None`: for good.
    pub(crate) retention: Option<Duration>,
    /// The variables the session goes by: what the settings say of them comes first.
    pub environment: Environment,
    /// Language servers that plugins bring, once these are read.
    pub(crate) plugin_servers: serde_json::Map<String, serde_json::Value>,
}

impl Permitted {
    /// Loads what counts for a session of this configuration.
    pub fn load(config: &SessionConfig) -> Result<Self, OpenError> {
        Ok(load(config)?)
    }

    /// The policy that calls are decided by when such a session begins.
    pub fn policy(&self) -> Policy {
        let places = &self.settings.places;
        let mut roots = vec![places.cwd.clone()];
        roots.extend(self.directories.iter().cloned());
        Policy {
            rules: self.rules.clone().into(),
            sandbox: self.sandbox.clone().into(),
            ..Policy::of_directories(self.mode, &roots).with_home(Some(&places.home))
        }
    }

    /// What is wrong with the settings, and what was left out.
    pub fn warnings(&self) -> Vec<String> {
        settings_warnings(&self.settings)
    }
}

/// The tools that rules may speak of: all of ours, whether the session has them or not.
pub(crate) fn known_tools() -> Vec<ToolSpec> {
    let tools = haft_tools::all();
    tools.iter().map(|tool| tool.spec().clone()).collect()
}

/// Loads what counts.
fn load(config: &SessionConfig) -> anyhow::Result<Permitted> {
    let (cwd, environment) = (&config.cwd, &config.environment);
    anyhow::ensure!(
        cwd.is_absolute(),
        "{}: the directory of a session must be an absolute path",
        cwd.display()
    );
    let flags = config.settings.clone();
    let places = environment.settings_places(cwd);
    if let Some(given) = &flags.settings {
        // Anyone who names a file means it: a session without its rules would be another one.
        files::of_flag(&places, given).map_err(|problem| anyhow::anyhow!("{problem}"))?;
    }
    let mut settings = Settings::load(places, &flags, Trust::default());
    settings.trust = Trust::of(&settings.places, &flags, &settings.running_things());
    let mut rules = settings.rules(&config.allow, &config.deny);
    settings.understand(&mut rules, &known_tools());
    let mut directories = config.directories.clone();
    for directory in settings.directories() {
        // One that is not there today is no reason to do nothing at all.
        if directory.is_dir() {
            directories.push(directory);
        } else {
            settings.problems.push(Problem {
                place: "additionalDirectories".to_owned(),
                what: format!("{} is no directory; it is left out", directory.display()),
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
        // It takes some milliseconds to find out, and only this asks for it.
        available: sandbox.enabled == Some(true) && can_confine(config),
        env,
        ..sandbox
    };
    settings.note_steering();
    let plans = settings.plans_directory();
    let patience = settings.question_timeout();
    let memory = memory_folder(&settings.auto_memory(), environment, cwd);
    #[cfg(feature = "search")]
    let search_index = search_index(&settings, environment);
    let retention = retention::period(&mut settings);
    let from_files = settings.default_mode();
    settings.problems.extend(config.problems.iter().cloned());
    let mode = config.permission_mode.or(from_files).unwrap_or_default();
    if mode == PermissionMode::BypassPermissions {
        may_bypass(&settings, environment)?;
    }
    Ok(Permitted {
        settings,
        flags,
        rules,
        directories,
        mode,
        hooks,
        http_hooks,
        sandbox,
        plans,
        patience,
        memory,
        #[cfg(feature = "search")]
        search_index,
        retention,
        environment: environment.clone(),
        plugin_servers: serde_json::Map::new(),
    })
}

/// May anything at all run without asking? The error says why not.
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

/// Where notes are kept that outlive a session, unless that is switched off.
fn memory_folder(memory: &AutoMemory, environment: &Environment, cwd: &Path) -> Option<PathBuf> {
    let is_off = environment.is_on("CLAUDE_CODE_DISABLE_AUTO_MEMORY");
    if is_off || memory.off {
        return None;
    }
    let directory = memory.directory.clone();
    directory.or_else(|| environment.memory_folder(cwd))
}

/// Anyone may switch it off: only speed depends on it.
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
    let bases = Bases {
        cwd: settings.places.cwd.clone(),
        home: settings.places.home.clone(),
        slash: settings.places.cwd.clone(),
    };
    let mut handlers = Vec::new();
    for (scope, file, value) in settings.hooks() {
        let (read, problems) = haft_engine::conditions::read(scope, file.as_ref(), &value, &bases);
        handlers.extend(read);
        settings.problems.extend(problems);
    }
    Hooks::new(handlers, &settings.places.cwd)
}

/// Can commands really be confined on this machine?
fn can_confine(config: &SessionConfig) -> bool {
    #[cfg(feature = "shell")]
    if let Some(program) = &config.program {
        let among = config.environment.temporary_folder();
        return haft_tools::sandbox::is_available(program, &among);
    }
    let _ = config; // a build without commands confines none
    false
}

/// What was wrong with the settings, and what was left out.
pub fn settings_warnings(settings: &Settings) -> Vec<String> {
    let problems = settings.problems.iter().map(ToString::to_string);
    problems
        .chain(settings.untrusted().map(|untrusted| untrusted.to_string()))
        .collect()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Writes rules that a person agreed to into the settings file they want.
pub(crate) struct LocalRuleStore {
    pub(crate) rules: LocalRules,
    pub(crate) events: Arc<Events>,
}

impl RuleStore for LocalRuleStore {
    fn keep(&self, rules: &[String], scope: RuleScope) {
        let Some(file) = self.rules.file_of(scope) else {
            return;
        };
        let kept = self.rules.add_to(scope, RuleList::Allow, rules);
        self.events.emit(&SessionEvent::RulesKept {
            file,
            problem: kept.err(),
        });
    }

    fn places(&self) -> Vec<RulePlace> {
        self.rules.rule_places()
    }
}
