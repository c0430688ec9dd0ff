//! The merged settings of all files.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use haft_contract::PermissionMode;
use serde_json::{Map, Value};

use super::{
    SettingsFile, SettingsFlags, SettingsPlaces, SettingsProblem, TrustState,
    agent_trust_items::agent_trust_items,
    env,
    files::{self, LOCAL, local_root},
    real_path, sandbox,
    source::{RuleSource, SettingsScope},
    trust, unknown_keys,
};

/// The loaded settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folders that were searched.
    pub places: SettingsPlaces,
    /// The files, by descending rank.
    pub layers: Vec<SettingsFile>,
    /// Problems in the files.
    pub problems: Vec<SettingsProblem>,
    /// Whether a file exists that could not be read, so that some settings are unknown.
    pub broken: bool,
    /// Descriptions of settings that are ignored because the workspace is not trusted.
    pub left_out: Vec<String>,
    /// Allow rules among them, with their sources.
    pub waiting_rules: Vec<(String, RuleSource)>,
    /// The trust in the workspace.
    pub trust: TrustState,
}

/// The settings for HTTP hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpHookLimits {
    /// URL patterns of servers that may receive events, with `*` for any text; `None` allows all.
    pub urls: Option<Vec<String>>,
    /// Variables that headers may contain, if the handler lists them, too; `None` allows all that
    /// it lists.
    pub env: Option<Vec<String>>,
}

/// Settings that run code, or prevent the user's own code from running.
const RUNNING: [&str; 6] = [
    "apiKeyHelper",
    "disableAllHooks",
    "env",
    "hooks",
    "mcpServers",
    "statusLine",
];

impl Settings {
    /// Loads all files that apply.
    pub fn load(places: SettingsPlaces, flags: &SettingsFlags, trust: TrustState) -> Self {
        let found = files::load(&places, flags);
        let mut problems = found.problems;
        problems.extend(found.layers.iter().filter_map(unknown_keys::unknown));
        Self {
            places,
            layers: found.layers,
            problems,
            broken: found.broken,
            left_out: Vec::new(),
            waiting_rules: Vec::new(),
            trust,
        }
    }

    /// Returns the additional working directories.
    pub fn directories(&mut self) -> Vec<PathBuf> {
        let mut directories = Vec::new();
        let mut waiting = 0;
        for layer in &self.layers {
            let pointer = "/permissions/additionalDirectories";
            let Some(value) = layer.document.value.pointer(pointer) else {
                continue;
            };
            let Some(entries) = value.as_array() else {
                self.problems
                    .push(layer.problem(pointer, "a list of directories is expected"));
                continue;
            };
            if layer.from_workspace && !self.trust.allows {
                waiting += entries.len();
                continue;
            }
            for entry in entries.iter().filter_map(Value::as_str) {
                let path = match entry.strip_prefix("~/") {
                    Some(rest) => self.places.home.join(rest),
                    None if entry == "~" => self.places.home.clone(),
                    None => self.places.cwd.join(entry),
                };
                if !directories.contains(&path) {
                    directories.push(path);
                }
            }
        }
        self.report_skipped(waiting, "additional directory");
        directories
    }

    /// Returns the permission mode that the files set.
    pub fn default_mode(&mut self) -> Option<PermissionMode> {
        use PermissionMode as Mode;
        let pointer = "/permissions/defaultMode";
        let mut found = None;
        // The mode of an untrusted workspace, if no file of a higher rank sets one.
        let mut untrusted = None;
        for layer in &self.layers {
            let Some(value) = layer.document.value.pointer(pointer) else {
                continue;
            };
            let mut complain = |what: &str| self.problems.push(layer.problem(pointer, what));
            let Ok(mode) = serde_json::from_value::<Mode>(value.clone()) else {
                complain("no such permission mode; it is left out");
                continue;
            };
            let (workspace, trusted) = (layer.is_in_workspace(), self.trust.allows);
            if mode == Mode::Auto && workspace {
                complain("auto is only taken from the user's own settings or flags");
            } else if mode == Mode::BypassPermissions && workspace {
                complain("bypassPermissions is only taken from the user's own settings or flags");
            } else if mode == Mode::AcceptEdits && workspace && !trusted {
                self.left_out.push("permission mode acceptEdits".to_owned());
            } else if layer.from_workspace && !trusted {
                untrusted = untrusted.or(found.is_none().then_some(mode));
            } else {
                found = found.or(Some(mode));
            }
        }
        match found {
            // No other mode is stricter than these two in every respect.
            Some(Mode::Plan | Mode::DontAsk) => found,
            _ => untrusted.or(found),
        }
    }

    /// Returns whether any file disables bypassPermissions.
    pub fn bypass_is_disabled(&self) -> bool {
        self.layers.iter().any(|layer| {
            let pointer = "/permissions/disableBypassPermissionsMode";
            layer.document.value.pointer(pointer) == Some(&Value::String("disable".to_owned()))
        })
    }

    /// Returns environment variables for the session and its child processes; an empty value
    /// removes an inherited variable. Files of the workspace cannot set variables that control
    /// where secrets are sent.
    pub fn env(&mut self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        let mut waiting = 0;
        for layer in &self.layers {
            let Some(Value::Object(entries)) = layer.document.value.get("env") else {
                continue;
            };
            if !self.may_run(layer) {
                waiting += entries.len();
                continue;
            }
            for (name, value) in entries {
                let pointer = format!("/env/{}", name.replace('~', "~0").replace('/', "~1"));
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(_) | Value::Bool(_) => value.to_string(),
                    _ => {
                        self.problems
                            .push(layer.problem(&pointer, "a text is expected; it is left out"));
                        continue;
                    }
                };
                if layer.is_in_workspace() && env::is_security_sensitive(name) {
                    self.problems.push(layer.problem(
                        &pointer,
                        "a file of the workspace may not set this variable; it is left out",
                    ));
                    continue;
                }
                env.entry(name.clone()).or_insert(text);
            }
        }
        self.report_skipped(waiting, "environment variable");
        env
    }

    /// Returns whether all hooks except those of the administrator are disabled.
    pub fn hooks_are_off(&self) -> bool {
        let managed_only = self.flag_of(SettingsScope::Managed, "allowManagedHooksOnly");
        let counts = self.layers.iter().filter(|layer| self.may_run(layer));
        let mut switches = counts.filter_map(|layer| layer.document.value.get("disableAllHooks"));
        managed_only || switches.next().is_some_and(|switch| *switch == true)
    }

    /// Returns the hooks of all files that may run them, with scope and file.
    pub fn hooks(&mut self) -> Vec<(SettingsScope, Option<PathBuf>, Value)> {
        let managed_only = self.flag_of(SettingsScope::Managed, "allowManagedHooksOnly");
        let managed_too = self.flag_of(SettingsScope::Managed, "disableAllHooks");
        let waits = |layer: &SettingsFile| !self.may_run(layer);
        // The user's hooks may be guards, so an untrusted file cannot disable them.
        let (later, now): (Vec<_>, Vec<_>) = self
            .layers
            .iter()
            .filter_map(|layer| Some((layer, layer.document.value.get("disableAllHooks")?)))
            .partition(|(layer, _)| waits(layer));
        let disabled = now.first().is_some_and(|(_, switch)| **switch == true);
        let switch_waits = later.iter().any(|(_, switch)| **switch == true);
        let mut hooks = Vec::new();
        let mut waiting = false;
        for layer in &self.layers {
            let Some(value) = layer.document.value.get("hooks") else {
                continue;
            };
            let managed = layer.scope == SettingsScope::Managed;
            if (disabled && (!managed || managed_too)) || (managed_only && !managed) {
                continue;
            }
            if waits(layer) {
                waiting |= value.as_object().is_none_or(|events| !events.is_empty());
                continue;
            }
            let file = layer.file.as_deref().map(Path::to_path_buf);
            hooks.push((layer.scope, file, value.clone()));
        }
        if waiting {
            self.left_out.push("hooks".to_owned());
        }
        if switch_waits {
            self.left_out.push("disableAllHooks".to_owned());
        }
        hooks
    }

    /// Returns the limits for HTTP hooks. The existence of a list has an effect immediately; its
    /// entries only loosen the limit, so they need trust.
    pub fn http_hooks(&self) -> HttpHookLimits {
        let list = |key: &str| {
            let mut all: Option<Vec<String>> = None;
            for layer in &self.layers {
                let Some(Value::Array(entries)) = layer.document.value.get(key) else {
                    continue;
                };
                let all = all.get_or_insert_default();
                if !self.may_run(layer) {
                    continue;
                }
                let entries = entries.iter().filter_map(Value::as_str);
                all.extend(entries.map(str::to_owned));
            }
            all
        };
        HttpHookLimits {
            urls: list("allowedHttpHookUrls"),
            env: list("httpHookAllowedEnvVars"),
        }
    }

    /// Returns whether the settings of a file may run code. Naming a scope on the command line is
    /// sufficient for the project's files, whose content the user can know, but not for a local
    /// file of unknown origin.
    pub fn may_run(&self, layer: &SettingsFile) -> bool {
        let planted = layer.scope == SettingsScope::Local && layer.from_workspace;
        !layer.is_in_workspace() || (self.trust.runs && (!planted || self.trust.allows))
    }

    /// Determines the trust in the workspace. Removes the settings in a directory that a command created
    /// and that the user has not trusted.
    pub fn apply_trust(&mut self, flags: &SettingsFlags) {
        self.trust = TrustState::evaluate(&self.places, flags, &self.executable_items());
        if self.trust.runs {
            return;
        }
        let untrusted = self.places.untrusted();
        let is_left_out = |layer: &SettingsFile| {
            let file = layer.file.as_deref();
            layer.is_in_workspace() && file.is_some_and(|file| untrusted.include(file))
        };
        let left_out = self.layers.extract_if(.., |layer| is_left_out(layer));
        let files = left_out.filter_map(|layer| Some(layer.file?.display().to_string()));
        self.left_out.extend(files);
    }

    /// Returns everything in the workspace that would run code, by name, for the user to review.
    pub fn executable_items(&self) -> BTreeMap<String, Value> {
        let workspace = self.layers.iter().filter(|layer| layer.is_in_workspace());
        let directory = trust::directory(&self.places);
        let mut things = BTreeMap::new();
        for layer in workspace {
            let file = layer.file.as_deref().unwrap_or(Path::new(""));
            let real = real_path::resolve_links(file);
            let name = real.strip_prefix(&directory).unwrap_or(file).display();
            for key in RUNNING {
                if let Some(value) = layer.document.value.get(key) {
                    things.insert(format!("{name} {key}"), value.clone());
                }
            }
            if let Some(servers) = language_servers(&layer.document.value["lsp"]) {
                things.insert(format!("{name} lsp"), servers);
            }
        }
        things.extend(server_trust_items(&self.places));
        things.extend(agent_trust_items(&self.places));
        things
    }

    /// Returns everything in the workspace that would loosen permissions, for the user to review.
    pub fn loosening_items(&self) -> Vec<String> {
        let workspace = self.layers.iter().filter(|layer| layer.is_in_workspace());
        workspace
            .flat_map(|layer| self.loosening_of(layer))
            .collect()
    }

    /// Like [`Self::loosening_items`], but for one file.
    pub(super) fn loosening_of(&self, layer: &SettingsFile) -> Vec<String> {
        let mut things = Vec::new();
        let permissions = &layer.document.value["permissions"];
        if layer.from_workspace {
            for (name, key) in [
                ("allow rule", "allow"),
                ("additional directory", "additionalDirectories"),
            ] {
                let entries = permissions[key].as_array().into_iter().flatten();
                let entries = entries.filter_map(Value::as_str);
                let waiting =
                    entries.filter(|entry| key != "allow" || !layer.agreed.contains(entry.trim()));
                things.extend(waiting.map(|entry| format!("{name} {entry}")));
            }
        }
        if permissions["defaultMode"] == "acceptEdits" {
            things.push("permission mode acceptEdits".to_owned());
        }
        if layer.from_workspace {
            things.extend(sandbox::loosening(layer));
            let steering = self.untrusted_overrides(layer).unwrap_or_default();
            things.extend(steering.into_iter().map(str::to_owned));
        }
        things
    }

    /// Returns the settings of an untrusted file that would override the user's choices: the models
    /// that names refer to, the models that may be used, and what skills may run.
    fn untrusted_overrides(&self, layer: &SettingsFile) -> Option<Vec<&'static str>> {
        if !layer.from_workspace || self.trust.allows {
            return None;
        }
        let value = &layer.document.value;
        let others = self.layers.iter().filter(|other| !other.from_workspace);
        let mut steering = Vec::new();
        if value.get("modelOverrides").is_some() {
            steering.push("modelOverrides");
        }
        // Such a list alone is a restriction, but merged with the user's list it would widen it.
        let lists_models =
            |layer: &SettingsFile| layer.document.value.get("availableModels").is_some();
        if lists_models(layer) && others.clone().any(lists_models) {
            steering.push("availableModels");
        }
        for key in ["disableSkillShellExecution", "disableBundledSkills"] {
            if value.get(key).is_some_and(|value| *value != true) {
                steering.push(key);
            }
        }
        let overrides = value.get("skillOverrides").and_then(Value::as_object);
        let switches_on = |map: &Map<String, Value>| map.values().any(|value| *value != "off");
        if overrides.is_some_and(switches_on) {
            steering.push("skillOverrides");
        }
        Some(steering)
    }

    /// Adds these overrides to the list of ignored settings.
    pub fn warn_untrusted_overrides(&mut self) {
        let all = self
            .layers
            .iter()
            .filter_map(|layer| self.untrusted_overrides(layer));
        let named: Vec<String> = all.flatten().map(str::to_owned).collect();
        extend_unique(&mut self.left_out, named);
    }

    /// Merges all files into one value, without the overrides of untrusted files: of scalars the
    /// highest rank wins, objects are merged, lists are joined.
    pub fn merged(&self) -> Value {
        let mut merged = Value::Object(Map::new());
        for layer in &self.layers {
            match self.untrusted_overrides(layer) {
                None => merge(&mut merged, &layer.document.value),
                Some(steering) => {
                    let mut value = layer.document.value.clone();
                    for key in steering {
                        value.as_object_mut().and_then(|map| map.remove(key));
                    }
                    merge(&mut merged, &value);
                }
            }
        }
        // The administrator's list is not merged with others.
        let managed = self
            .layers
            .iter()
            .filter(|layer| layer.scope == SettingsScope::Managed);
        let models = managed.filter_map(|layer| layer.document.value.get("availableModels"));
        if let Some(models) = models.take(1).next() {
            merged["availableModels"] = models.clone();
        }
        merged
    }

    /// Returns a one-line message for the user about ignored settings, if any.
    pub fn untrusted(&self) -> Option<String> {
        if self.left_out.is_empty() {
            return None;
        }
        Some(format!(
            "this workspace has not been trusted, so these of its settings are left out: {}; look \
             at them and trust it with `haft permissions trust`",
            self.left_out.join(", ")
        ))
    }

    /// Returns the file that receives the rules that the user approves.
    pub fn local_file(&self) -> PathBuf {
        local_root(&self.places).join(LOCAL)
    }

    /// Adds a count of ignored settings to the message for the user.
    pub fn report_skipped(&mut self, count: usize, what: &str) {
        match (count, what.strip_suffix('y')) {
            (0, _) => {}
            (1, _) => self.left_out.push(format!("1 {what}")),
            (count, Some(stem)) => self.left_out.push(format!("{count} {stem}ies")),
            (count, None) => self.left_out.push(format!("{count} {what}s")),
        }
    }

    /// Returns whether a file of this scope sets the flag.
    pub fn flag_of(&self, scope: SettingsScope, key: &str) -> bool {
        self.layers.iter().any(|layer| {
            layer.scope == scope && layer.document.value.get(key) == Some(&Value::Bool(true))
        })
    }
}

/// Adds elements that the list does not contain yet.
pub fn extend_unique<T: PartialEq>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for one in more {
        if !list.contains(&one) {
            list.push(one);
        }
    }
}

/// Merges the value of a lower rank.
fn merge(high: &mut Value, low: &Value) {
    match (high, low) {
        (Value::Object(high), Value::Object(low)) => {
            for (key, value) in low {
                match high.get_mut(key) {
                    // By convention this value is not merged.
                    Some(_) if key == "fallbackModel" => {}
                    Some(known) => merge(known, value),
                    None => {
                        high.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(high), Value::Array(low)) => {
            for value in low {
                if !high.contains(value) {
                    high.push(value.clone());
                }
            }
        }
        _ => {}
    }
}

/// Returns the language servers that would be started, without entries that only disable one.
fn language_servers(lsp: &Value) -> Option<Value> {
    let servers = lsp.as_object()?.iter();
    let servers = servers.filter(|(_, entry)| entry.is_object() && entry["disabled"] != true);
    let servers: Map<String, Value> = servers
        .map(|(name, entry)| (name.clone(), entry.clone()))
        .collect();
    (!servers.is_empty()).then_some(Value::Object(servers))
}

/// Returns the MCP servers of a project, each separately, so that a change is reported with the
/// name of the server.
fn server_trust_items(places: &SettingsPlaces) -> BTreeMap<String, Value> {
    let own = places.cwd.join(".mcp.json");
    let root = files::repository_root(&places.cwd).map(|root| root.join(".mcp.json"));
    let file = [Some(own), root]
        .into_iter()
        .flatten()
        .find(|file| file.is_file());
    let Some(text) = file.and_then(|file| std::fs::read_to_string(file).ok()) else {
        return BTreeMap::new();
    };
    // Invalid JSON defines no servers.
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    let servers = value["mcpServers"].as_object().into_iter().flatten();
    let things = servers.map(|(name, entry)| (format!(".mcp.json server {name}"), entry.clone()));
    things.collect()
}
