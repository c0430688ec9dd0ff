//! What the files say together.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use haft_contract::PermissionMode;
use serde_json::{Map, Value};

use super::{
    Flags, Problem, SettingsFile, SettingsPlaces, Trust,
    agent_things::agent_things,
    env,
    files::{self, LOCAL, local_root},
    known, resolve, sandbox,
    source::{RuleSource, Scope},
    trust,
};

/// Settings, loaded.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where they were looked for.
    pub places: SettingsPlaces,
    /// The files, the highest rank first.
    pub layers: Vec<SettingsFile>,
    /// What was wrong with them.
    pub problems: Vec<Problem>,
    /// A file is there that could not be read, so that not everything is known.
    pub broken: bool,
    /// What was left out because the workspace is not trusted, in words.
    pub left_out: Vec<String>,
    /// Allow rules among that, with where they stand.
    pub waiting_rules: Vec<(String, RuleSource)>,
    /// What of the workspace counts.
    pub trust: Trust,
}

/// What settings say of servers that get events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpLimits {
    /// Addresses that may get them, with `*` for anything; `None`: all.
    pub urls: Option<Vec<String>>,
    /// Variables that may stand in headers, if the handler lists them too; `None`: all it lists.
    pub env: Option<Vec<String>>,
}

/// What runs code, or keeps the user's own from running.
const RUNNING: [&str; 6] = [
    "apiKeyHelper",
    "disableAllHooks",
    "env",
    "hooks",
    "mcpServers",
    "statusLine",
];

impl Settings {
    /// Loads every file that counts.
    pub fn load(places: SettingsPlaces, flags: &Flags, trust: Trust) -> Self {
        let found = files::load(&places, flags);
        let mut problems = found.problems;
        problems.extend(found.layers.iter().filter_map(known::unknown));
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

    /// Further working directories.
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
        self.leave_out(waiting, "additional directory");
        directories
    }

    /// The mode the files ask for.
    pub fn default_mode(&mut self) -> Option<PermissionMode> {
        use PermissionMode as Mode;
        let pointer = "/permissions/defaultMode";
        let mut found = None;
        // What a workspace asks for that is not trusted, where no one above it has said anything.
        let mut untrusted = None;
        for layer in &self.layers {
            let Some(value) = layer.document.value.pointer(pointer) else {
                continue;
            };
            let mut complain = |what: &str| self.problems.push(layer.problem(pointer, what));
            if value == "auto" {
                complain("mode auto is not known here; default is used");
                continue;
            }
            let Ok(mode) = serde_json::from_value::<Mode>(value.clone()) else {
                complain("no such permission mode; it is left out");
                continue;
            };
            let (workspace, trusted) = (layer.is_in_workspace(), self.trust.allows);
            if mode == Mode::BypassPermissions && workspace {
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
            // Where everything is asked about, or nothing is done that would ask, no other mode is
            // stricter in all it does.
            Some(Mode::Plan | Mode::DontAsk) => found,
            _ => untrusted.or(found),
        }
    }

    /// Does any file forbid bypassPermissions?
    pub fn bypass_is_disabled(&self) -> bool {
        self.layers.iter().any(|layer| {
            let pointer = "/permissions/disableBypassPermissionsMode";
            layer.document.value.pointer(pointer) == Some(&Value::String("disable".to_owned()))
        })
    }

    /// Variables for the session and its children; an empty one takes away what is inherited. A file
    /// of the workspace sets none that moves where secrets go.
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
                if layer.is_in_workspace() && env::steers(name) {
                    self.problems.push(layer.problem(
                        &pointer,
                        "a file of the workspace may not set this variable; it is left out",
                    ));
                    continue;
                }
                env.entry(name.clone()).or_insert(text);
            }
        }
        self.leave_out(waiting, "environment variable");
        env
    }

    /// Are all hooks switched off but those of the administrator's?
    pub fn hooks_are_off(&self) -> bool {
        let managed_only = self.flag_of(Scope::Managed, "allowManagedHooksOnly");
        let counts = self.layers.iter().filter(|layer| self.may_run(layer));
        let mut switches = counts.filter_map(|layer| layer.document.value.get("disableAllHooks"));
        managed_only || switches.next().is_some_and(|switch| *switch == true)
    }

    /// The hooks of every file that may run them, with whose they are.
    pub fn hooks(&mut self) -> Vec<(Scope, Option<PathBuf>, Value)> {
        let managed_only = self.flag_of(Scope::Managed, "allowManagedHooksOnly");
        let managed_too = self.flag_of(Scope::Managed, "disableAllHooks");
        let waits = |layer: &SettingsFile| !self.may_run(layer);
        // The user's hooks may be guards: what is not trusted does not send them away.
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
            let managed = layer.scope == Scope::Managed;
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

    /// Which servers hooks may tell, and which variables they may send. What only loosens waits for
    /// trust; that there is a list counts at once.
    pub fn http_hooks(&self) -> HttpLimits {
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
        HttpLimits {
            urls: list("allowedHttpHookUrls"),
            env: list("httpHookAllowedEnvVars"),
        }
    }

    /// May what a file says run code? To name a scope on the command line is enough for what the project
    /// brings, which can be known; what is in a local file of unknown origin cannot.
    pub fn may_run(&self, layer: &SettingsFile) -> bool {
        let planted = layer.scope == Scope::Local && layer.from_workspace;
        !layer.is_in_workspace() || (self.trust.runs && (!planted || self.trust.allows))
    }

    /// Everything that would run code for the workspace, for a person to look at: what it is called,
    /// and what it says.
    pub fn running_things(&self) -> BTreeMap<String, Value> {
        let workspace = self.layers.iter().filter(|layer| layer.is_in_workspace());
        let directory = trust::directory(&self.places);
        let mut things = BTreeMap::new();
        for layer in workspace {
            let file = layer.file.as_deref().unwrap_or(Path::new(""));
            let real = resolve::real(file);
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
        things.extend(server_things(&self.places));
        things.extend(agent_things(&self.places));
        things
    }

    /// Everything that would loosen what the workspace may do, for a person to look at.
    pub fn loosening_things(&self) -> Vec<String> {
        let workspace = self.layers.iter().filter(|layer| layer.is_in_workspace());
        workspace
            .flat_map(|layer| self.loosening_of(layer))
            .collect()
    }

    /// The same of one file.
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
            let steering = self.steering(layer).unwrap_or_default();
            things.extend(steering.into_iter().map(str::to_owned));
        }
        things
    }

    /// What of a file that waits for trust would steer the session past what the user says: which
    /// model answers to a name, which may be used, and what skills may run.
    fn steering(&self, layer: &SettingsFile) -> Option<Vec<&'static str>> {
        if !layer.from_workspace || self.trust.allows {
            return None;
        }
        let value = &layer.document.value;
        let others = self.layers.iter().filter(|other| !other.from_workspace);
        let mut steering = Vec::new();
        if value.get("modelOverrides").is_some() {
            steering.push("modelOverrides");
        }
        // By itself such a list narrows; beside one of the user's it would widen that.
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

    /// Names what of that is left out, for a person.
    pub fn note_steering(&mut self) {
        let all = self.layers.iter().filter_map(|layer| self.steering(layer));
        let named: Vec<String> = all.flatten().map(str::to_owned).collect();
        join(&mut self.left_out, named);
    }

    /// All files as one value, without what would steer past the user and waits for trust: of scalars the highest rank wins, objects are merged, lists joined.
    pub fn merged(&self) -> Value {
        let mut merged = Value::Object(Map::new());
        for layer in &self.layers {
            match self.steering(layer) {
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
        // The administrator's list stands alone.
        let managed = self
            .layers
            .iter()
            .filter(|layer| layer.scope == Scope::Managed);
        let models = managed.filter_map(|layer| layer.document.value.get("availableModels"));
        if let Some(models) = models.take(1).next() {
            merged["availableModels"] = models.clone();
        }
        merged
    }

    /// One line for a person about what was left out, if anything was.
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

    /// The file that rules a person agreed to are written to.
    pub fn local_file(&self) -> PathBuf {
        local_root(&self.places).join(LOCAL)
    }

    /// Names this many things as left out, for a person.
    pub fn leave_out(&mut self, count: usize, what: &str) {
        match (count, what.strip_suffix('y')) {
            (0, _) => {}
            (1, _) => self.left_out.push(format!("1 {what}")),
            (count, Some(stem)) => self.left_out.push(format!("{count} {stem}ies")),
            (count, None) => self.left_out.push(format!("{count} {what}s")),
        }
    }

    /// Has someone of this rank switched it on?
    pub fn flag_of(&self, scope: Scope, key: &str) -> bool {
        self.layers.iter().any(|layer| {
            layer.scope == scope && layer.document.value.get(key) == Some(&Value::Bool(true))
        })
    }
}

/// Adds what is not there yet.
pub fn join<T: PartialEq>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for one in more {
        if !list.contains(&one) {
            list.push(one);
        }
    }
}

/// Adds what a lower rank says.
fn merge(high: &mut Value, low: &Value) {
    match (high, low) {
        (Value::Object(high), Value::Object(low)) => {
            for (key, value) in low {
                match high.get_mut(key) {
                    // A whole value, by the convention.
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

/// The language servers that are to be started, without what only switches some off.
fn language_servers(lsp: &Value) -> Option<Value> {
    let servers = lsp.as_object()?.iter();
    let servers = servers.filter(|(_, entry)| entry.is_object() && entry["disabled"] != true);
    let servers: Map<String, Value> = servers
        .map(|(name, entry)| (name.clone(), entry.clone()))
        .collect();
    (!servers.is_empty()).then_some(Value::Object(servers))
}

/// The MCP servers that a project names, each by itself, so that a change names the one that changed.
fn server_things(places: &SettingsPlaces) -> BTreeMap<String, Value> {
    let own = places.cwd.join(".mcp.json");
    let root = files::repository_root(&places.cwd).map(|root| root.join(".mcp.json"));
    let file = [Some(own), root]
        .into_iter()
        .flatten()
        .find(|file| file.is_file());
    let Some(text) = file.and_then(|file| std::fs::read_to_string(file).ok()) else {
        return BTreeMap::new();
    };
    // What cannot be read names no server.
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    let servers = value["mcpServers"].as_object().into_iter().flatten();
    let things = servers.map(|(name, entry)| (format!(".mcp.json server {name}"), entry.clone()));
    things.collect()
}
