//! What flags and settings files say together.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use haft::{
    PermissionMode,
    engine::{
        hooks::{Hooks, HttpLimits},
        permissions::{Bases, PermissionSettings, RuleStore, Rules, SandboxSettings, Scope},
        settings::{
            AutoMemory, Flags, LocalRules, Problem, Settings, SettingsPlaces, Trust, files,
        },
    },
};

use crate::{
    args::{Mode, SessionArgs},
    show,
};

/// What a session is permitted.
pub(crate) struct Permitted {
    pub(crate) settings: Settings,
    pub(crate) flags: Flags,
    pub(crate) rules: Rules,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) mode: PermissionMode,
    pub(crate) hooks: Hooks,
    pub(crate) http_hooks: HttpLimits,
    pub(crate) sandbox: SandboxSettings,
    /// Where plans are written.
    pub(crate) plans: PathBuf,
    /// How long an answer to a question of the model's is waited for.
    pub(crate) patience: Option<Duration>,
    /// The folder of notes that outlive a session.
    pub(crate) memory: Option<PathBuf>,
}

/// The directory to work in.
pub(crate) fn cwd(session: &SessionArgs) -> anyhow::Result<PathBuf> {
    match &session.cwd {
        Some(cwd) => std::path::absolute(cwd).context("the directory cannot be found"),
        None => env::current_dir().context("the current directory cannot be found"),
    }
}

/// Loads what counts.
pub(crate) fn load(session: &SessionArgs, cwd: &Path) -> anyhow::Result<Permitted> {
    let flags = Flags {
        settings: session.settings.as_deref().map(given).transpose()?,
        sources: session
            .setting_sources
            .as_deref()
            .map(sources)
            .transpose()?,
    };
    let places = SettingsPlaces::of_process(cwd);
    if let Some(given) = &flags.settings {
        // Whoever names a file means it: a session without its rules would be another one.
        files::of_flag(&places, given).map_err(|problem| anyhow::anyhow!("{problem}"))?;
    }
    let mut settings = Settings::load(places, &flags, Trust::default());
    settings.trust = Trust::of(&settings.places, &flags, &settings.running_things());
    let mut rules = settings.rules(&session.allowed_tools, &session.disallowed_tools);
    let tools: Vec<_> = haft::tools::all()
        .iter()
        .map(|tool| tool.spec().clone())
        .collect();
    settings.understand(&mut rules, &tools);
    let mut directories = Vec::new();
    for directory in &session.add_dir {
        directories.push(std::path::absolute(directory)?);
    }
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
    let sandbox = settings.sandbox();
    let sandbox = SandboxSettings {
        // It takes some milliseconds to find out, and only this asks for it.
        available: sandbox.enabled == Some(true) && can_confine(),
        env: Arc::new(env),
        ..sandbox
    };
    settings.note_steering();
    let plans = settings.plans_directory();
    let patience = settings.question_timeout();
    let memory = memory_folder(&settings.auto_memory(), cwd);
    let from_files = settings.default_mode();
    if session.permission_mode == Some(Mode::Auto) {
        settings.problems.push(Problem {
            place: "--permission-mode".to_owned(),
            what: "mode auto is not known here; default is used".to_owned(),
        });
    }
    let mode = if session.dangerously_skip_permissions {
        PermissionMode::BypassPermissions
    } else {
        match session.permission_mode {
            Some(mode) => mode.into(),
            None => from_files.unwrap_or_default(),
        }
    };
    if mode == PermissionMode::BypassPermissions {
        may_bypass(&settings)?;
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
    })
}

/// May anything at all run without asking? The error says why not.
pub(crate) fn may_bypass(settings: &Settings) -> anyhow::Result<()> {
    anyhow::ensure!(
        !settings.bypass_is_disabled(),
        "bypassPermissions is switched off by the settings (disableBypassPermissionsMode)"
    );
    anyhow::ensure!(
        !is_root() || env::var_os("IS_SANDBOX").is_some_and(|value| value == "1"),
        "bypassPermissions is refused for root; run as another user, or set IS_SANDBOX=1 where the \
         whole machine is a sandbox"
    );
    Ok(())
}

/// Where notes are kept that outlive a session, unless that is switched off.
fn memory_folder(memory: &AutoMemory, cwd: &Path) -> Option<PathBuf> {
    let is_off = env::var_os("CLAUDE_CODE_DISABLE_AUTO_MEMORY").is_some_and(|value| value == "1");
    if is_off || memory.off {
        return None;
    }
    let directory = memory.directory.clone();
    directory.or_else(|| haft::memory_folder(cwd))
}

fn hooks(settings: &mut Settings) -> Hooks {
    let bases = Bases {
        cwd: settings.places.cwd.clone(),
        home: settings.places.home.clone(),
        slash: settings.places.cwd.clone(),
    };
    let mut handlers = Vec::new();
    for (scope, file, value) in settings.hooks() {
        let (read, problems) = haft::engine::conditions::read(scope, file.as_ref(), &value, &bases);
        handlers.extend(read);
        settings.problems.extend(problems);
    }
    Hooks::new(handlers, &settings.places.cwd)
}

/// Can commands really be confined on this machine?
fn can_confine() -> bool {
    env::current_exe()
        .is_ok_and(|program| haft_sandbox::available(&program, &env::temp_dir()).is_some())
}

/// How well commands can be confined on this machine, by trying.
pub(crate) fn strongest() -> haft_sandbox::Mechanism {
    match env::current_exe() {
        Ok(program) => haft_sandbox::strongest(&program, &env::temp_dir()),
        Err(_) => haft_sandbox::Mechanism::None,
    }
}

/// Tells a person what was wrong with the settings, and what was left out.
pub(crate) fn report(settings: &Settings) {
    for problem in &settings.problems {
        show::warn(&format!("haft: {}", show::clean(&problem.to_string())));
    }
    if let Some(untrusted) = settings.untrusted() {
        show::warn(&format!("haft: {untrusted}"));
    }
}

/// A file is named from where the command is typed, wherever the session works.
fn given(settings: &str) -> anyhow::Result<String> {
    if settings.trim_start().starts_with('{') {
        return Ok(settings.to_owned());
    }
    let path = std::path::absolute(settings).context("--settings")?;
    path.into_os_string()
        .into_string()
        .map_err(|_| anyhow::anyhow!("--settings: the path is not UTF-8"))
}

fn sources(list: &str) -> anyhow::Result<Vec<Scope>> {
    let names = list
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    names
        .map(|name| match name {
            "user" => Ok(Scope::User),
            "project" => Ok(Scope::Project),
            "local" => Ok(Scope::Local),
            other => anyhow::bail!("--setting-sources {other}: expected user, project or local"),
        })
        .collect()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Writes rules that a person agreed to into the local settings file.
pub(crate) struct Keeper(pub(crate) LocalRules);

impl RuleStore for Keeper {
    fn keep(&self, rules: &[String]) {
        let file = show::clean(&self.0.file().display().to_string());
        match self.0.add(rules) {
            Ok(()) => show::warn(&format!("  kept in {file}")),
            Err(problem) => show::warn(&format!(
                "haft: {file}: the rule could not be written ({problem}); it counts for this session"
            )),
        }
    }
}
