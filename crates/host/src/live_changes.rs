//! Queries and changes of a running session by the program that drives it.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::UNIX_EPOCH,
};

use haft_agent::SubagentPool;
use haft_contract::{PermissionMode, RuleList, SettingsAccess, ToolUse};
use haft_engine::{
    hooks::Hooks,
    permissions::{DecisionBehavior, decide},
};
use haft_extensions::{ExtensionPlaces, ExtensionWarning, Skills, styles};
use haft_mcp::client::Servers;
use haft_models::ThinkingMode;
use serde_json::{Map, Value, json};

use crate::{
    AgentDetails, CommandDetails, PluginDetails, SessionConfig, SessionInput, extensions,
    main_agent::{self, MainAgent},
    mcp, plugins,
    resolved_settings::ResolvedSettings,
    session_access::NOT_BEGUN,
    subagents::AgentKinds,
};

/// The maximum number of bytes of a file that are returned.
const MAX_FILE: u64 = 10 << 20;

/// The settings that take effect in a running session.
const APPLIED: &str = "model, effortLevel, alwaysThinkingEnabled, permissions.defaultMode, permissions.allow, permissions.ask, \
                       permissions.deny and permissions.additionalDirectories";

/// The contents of a file, for a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContents {
    /// Its real path.
    pub path: PathBuf,
    /// Its bytes, or the first ones if it is too long.
    pub bytes: Vec<u8>,
    /// Whether the file has more bytes.
    pub is_truncated: bool,
}

/// The result of reloading the extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReloadedExtensions {
    /// The skills and commands that the user can call.
    pub commands: Vec<CommandDetails>,
    /// The output styles.
    pub styles: Vec<String>,
    /// The plugins.
    pub plugins: Vec<PluginDetails>,
    /// The agent kinds, if they were reloaded.
    pub agents: Option<Vec<AgentDetails>>,
    /// The problems of the extensions.
    pub problems: Vec<String>,
}

/// The state that reloading updates.
pub(crate) struct ExtensionReload {
    pub(crate) config: SessionConfig,
    /// The name of the main agent's kind, as determined last.
    pub(crate) main_name: Mutex<Option<String>>,
    /// Set once the session has its main agent.
    pub(crate) main: OnceLock<MainAgent>,
    pub(crate) skills: Option<Arc<Skills>>,
    pub(crate) hooks: Hooks,
    /// The folders, as determined last.
    pub(crate) places: Mutex<ExtensionPlaces>,
    /// Set once the session has its subagents.
    pub(crate) subagents: OnceLock<(AgentKinds, SubagentPool)>,
}

impl ExtensionReload {
    /// Stores the subagents when the session starts.
    pub(crate) fn attach_session(&self, kinds: &AgentKinds, pool: &SubagentPool) {
        let _ = self.subagents.set((kinds.clone(), pool.clone()));
    }

    /// Returns the commands from folders.
    pub(crate) fn own_commands(&self) -> Vec<CommandDetails> {
        let skills = self.skills.as_deref();
        skills.map(extensions::own_commands).unwrap_or_default()
    }

    /// Returns whether the user can call a command with this name.
    pub(crate) fn has_command(&self, name: &str) -> bool {
        let skills = self.skills.as_ref();
        skills.is_some_and(|skills| skills.get(name).is_some_and(|one| one.user_invocable))
    }

    /// Returns the name, description and file of all skills and commands.
    pub(crate) fn own_skills(&self) -> Vec<(String, String, PathBuf)> {
        let all = self.skills.iter().flat_map(|skills| skills.all());
        let all = all.map(|one| (one.name.clone(), one.description.clone(), one.file.clone()));
        all.collect()
    }

    fn places(&self) -> MutexGuard<'_, ExtensionPlaces> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rescan(&self) -> ReloadedExtensions {
        if self.config.bare {
            return ReloadedExtensions::default();
        }
        let warnings = self.skills.as_ref().map(|skills| skills.reload());
        self.found(warnings.unwrap_or_default())
    }

    fn found(&self, mut warnings: Vec<ExtensionWarning>) -> ReloadedExtensions {
        let places = self.places().clone();
        let (found, more) = styles::load(&places);
        warnings.extend(more);
        let plugins = places.plugins.iter().map(PluginDetails::from_plugin);
        ReloadedExtensions {
            commands: extensions::commands(self.skills.as_deref()),
            styles: extensions::style_names(&found),
            plugins: plugins.collect(),
            agents: None,
            problems: warnings.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the name of the main agent's kind.
    pub(crate) fn main_name(&self) -> MutexGuard<'_, Option<String>> {
        self.main_name
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Reloads the plugins and all of their parts. Also returns the new agent kinds.
    async fn plugins_again(
        &self,
        kinds: &AgentKinds,
        servers: &Servers,
    ) -> Result<(ReloadedExtensions, AgentKinds), String> {
        if self.config.bare {
            return Ok((ReloadedExtensions::default(), kinds.clone()));
        }
        let permitted = ResolvedSettings::load(&self.config).map_err(|error| error.to_string())?;
        let mut warnings = Vec::new();
        let places = extensions::places(&self.config, &permitted, &mut warnings);
        *self.places() = places.clone();
        if let Some(skills) = &self.skills {
            warnings.extend(skills.reload_with(places.plugins.clone()));
        }
        let brought = plugins::additions(&places, &permitted);
        *self.main_name() = main_agent::name(&self.config, &permitted, brought.agent.as_deref());
        self.hooks.set_plugin_handlers(brought.handlers);
        mcp::replace_plugins(servers, &self.config, &permitted, &brought.servers).await;
        let (of_session, pool) = match self.subagents.get() {
            Some((kinds, pool)) => (kinds, Some(pool)),
            None => (kinds, None),
        };
        let kinds = of_session.rescan(&places);
        if let Some(pool) = pool {
            pool.set_kinds(kinds.list());
        }
        let mut found = self.found(warnings);
        found.problems.extend(brought.warnings);
        found.agents = Some(kinds.details());
        Ok((found, kinds))
    }
}

impl SessionInput {
    /// Reloads skills, commands and output styles, including those of plugins.
    pub fn reload_extensions(&self) -> ReloadedExtensions {
        self.0.reload.rescan()
    }

    /// Reloads the plugins, including those that the settings have enabled since: their skills,
    /// commands, output styles, agents, hooks and MCP servers. The active output style does not
    /// change. From the next request on, the main agent has the kind that settings and plugins now
    /// name.
    pub async fn reload_plugins(&self) -> Result<ReloadedExtensions, String> {
        let state = &self.0;
        let kinds = state.kinds().clone();
        let again = state.reload.plugins_again(&kinds, &state.servers);
        let (mut found, kinds) = again.await?;
        let name = state.reload.main_name().clone();
        let followed = self.update_main_agent(name, &kinds).await;
        found.problems.extend(followed.err());
        *state.kinds() = kinds;
        Ok(found)
    }

    /// Applies settings as if they were given with the configuration. If one of them cannot be
    /// changed in a running session, the error names it and no setting is changed. Returns the
    /// settings without effect.
    pub async fn apply_settings(
        &self,
        settings: &Map<String, Value>,
    ) -> Result<Vec<String>, String> {
        let mut unused = Vec::new();
        let mut changes: Vec<LiveChange> = Vec::new();
        for (key, value) in settings {
            match key.as_str() {
                "model" => changes.push(LiveChange::Model(text_or_null(key, value)?)),
                "effortLevel" => changes.push(LiveChange::Effort(text_or_null(key, value)?)),
                "alwaysThinkingEnabled" => changes.push(LiveChange::Thinking(match value {
                    Value::Bool(true) => ThinkingMode::Adaptive,
                    Value::Bool(false) | Value::Null => ThinkingMode::Off,
                    other => return Err(format!("{key}: expected true or false, not {other}")),
                })),
                "permissions" => permissions(value, &mut changes)?,
                key if APPEARANCE_SETTINGS.contains(&key) => unused.push(key.to_owned()),
                key => {
                    return Err(format!(
                        "the setting {key} cannot be changed in a running session; these can: {APPLIED}"
                    ));
                }
            }
        }
        // Changes that may be refused come first, so that no other change is applied if one is
        // refused.
        changes.sort_by_key(|change| !matches!(change, LiveChange::Mode(_) | LiveChange::Model(_)));
        for change in changes {
            match change {
                LiveChange::Model(name) => self.set_model(name.as_deref()).await?,
                LiveChange::Effort(effort) => self.0.control.set_effort(effort),
                LiveChange::Thinking(thinking) => self.0.control.set_thinking(thinking),
                LiveChange::Mode(mode) => self.set_permission_mode(mode)?,
                LiveChange::Rule(list, rule) => self.0.control.add_rule(list, rule),
                LiveChange::Directory(path) => self.0.control.add_directory(path),
            }
        }
        Ok(unused)
    }

    /// Writes a setting into one of the user's files: `localSettings` accepts `outputStyle`, and
    /// `userSettings` accepts `effortLevel`. It applies from the next session on.
    pub fn update_settings(
        &self,
        source: &str,
        settings: &Map<String, Value>,
    ) -> Result<(), String> {
        let allowed = match source {
            "localSettings" => "outputStyle",
            "userSettings" => "effortLevel",
            other => {
                return Err(format!(
                    "{other:?} is not a settings file; use localSettings or userSettings"
                ));
            }
        };
        if let Some(other) = settings.keys().find(|key| *key != allowed) {
            return Err(format!("{source} takes {allowed} only, not {other}"));
        }
        let Some(value) = settings.get(allowed) else {
            return Err(format!("{source}: {allowed} is missing"));
        };
        let access = self.0.access.service::<Arc<dyn SettingsAccess>>();
        let access = access.ok_or("the session has not begun, or cannot change settings")?;
        let written = match source {
            "userSettings" => access.write_user(allowed, value),
            _ => access.write(allowed, value),
        };
        written.map(drop)
    }

    /// Marks a file as read, unless it has changed since this time (milliseconds since 1970).
    /// Returns whether it was marked.
    pub fn seed_read(&self, path: &Path, modified: f64) -> Result<bool, String> {
        let path = self.0.access.absolute(path).ok_or(NOT_BEGUN)?;
        let is = fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let since = is
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let millis = since.map_or(0.0, |since| since.as_secs_f64() * 1000.0);
        // Clients use milliseconds, and some of them only whole ones.
        if millis.floor() > modified.floor() + 1.0 {
            return Ok(false);
        }
        self.0.access.mark_read(&path)?;
        Ok(true)
    }

    /// Returns the contents of a file that the session may read without asking.
    pub async fn read_file(&self, path: &Path, most: Option<u64>) -> Result<FileContents, String> {
        let (engine, context) = self.0.access.engine().ok_or(NOT_BEGUN)?;
        let path = context.cwd.join(path);
        let call = ToolUse {
            id: String::new(),
            name: "Read".to_owned(),
            input: json!({"file_path": path}),
        };
        let facts = engine.facts(call, &context).await?;
        let decision = decide(&engine.policy(&context), &facts);
        if decision.behavior != DecisionBehavior::Allow {
            return Err(format!(
                "{} may not be read without asking: {}",
                path.display(),
                decision.reason
            ));
        }
        let most = most.unwrap_or(MAX_FILE).min(MAX_FILE);
        let read = tokio::task::spawn_blocking(move || contents(&path, most)).await;
        read.map_err(|error| error.to_string())?
    }
}

/// Settings that concern the appearance or apply from the next session on. They are accepted but
/// have no effect now.
const APPEARANCE_SETTINGS: [&str; 9] = [
    "attribution",
    "editorMode",
    "includeCoAuthoredBy",
    "includeGitInstructions",
    "language",
    "outputStyle",
    "spinnerTipsEnabled",
    "theme",
    "tui",
];

enum LiveChange {
    Model(Option<String>),
    Effort(Option<String>),
    Thinking(ThinkingMode),
    Mode(PermissionMode),
    Rule(RuleList, String),
    Directory(PathBuf),
}

fn text_or_null(key: &str, value: &Value) -> Result<Option<String>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        other => Err(format!("{key}: expected a text or null, not {other}")),
    }
}

fn permissions(value: &Value, changes: &mut Vec<LiveChange>) -> Result<(), String> {
    let Some(map) = value.as_object() else {
        return Err("permissions: expected an object".to_owned());
    };
    for (key, value) in map {
        let texts = || -> Result<Vec<String>, String> {
            let list = value.as_array().into_iter().flatten();
            let texts = list.map(|one| one.as_str().map(str::to_owned));
            let texts: Option<Vec<String>> = texts.collect();
            texts
                .filter(|_| value.is_array())
                .ok_or_else(|| format!("permissions.{key}: expected a list of texts"))
        };
        let rules = |list: RuleList| -> Result<Vec<LiveChange>, String> {
            let rules = texts()?.into_iter();
            Ok(rules.map(|rule| LiveChange::Rule(list, rule)).collect())
        };
        match key.as_str() {
            "allow" => changes.extend(rules(RuleList::Allow)?),
            "ask" => changes.extend(rules(RuleList::Ask)?),
            "deny" => changes.extend(rules(RuleList::Deny)?),
            "defaultMode" => {
                let mode = serde_json::from_value(value.clone());
                let mode = mode.map_err(|_| format!("no permission mode is called {value}"))?;
                changes.push(LiveChange::Mode(mode));
            }
            "additionalDirectories" => {
                for text in texts()? {
                    let path = PathBuf::from(text);
                    if !path.is_absolute() || !path.is_dir() {
                        return Err(format!("{} is not a directory", path.display()));
                    }
                    changes.push(LiveChange::Directory(path));
                }
            }
            other => {
                return Err(format!(
                    "permissions.{other} cannot be changed in a running session; these can: {APPLIED}"
                ));
            }
        }
    }
    Ok(())
}

fn contents(path: &Path, most: u64) -> Result<FileContents, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let real = fs::canonicalize(path).map_err(failed)?;
    let file = File::open(&real).map_err(failed)?;
    let is = file.metadata().map_err(failed)?;
    if !is.is_file() {
        return Err(format!("{} is not a regular file", real.display()));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    Ok(FileContents {
        is_truncated: is.len() > bytes.len() as u64,
        path: real,
        bytes,
    })
}
