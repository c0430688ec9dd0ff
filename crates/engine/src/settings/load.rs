//! What the files say together.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use haft_contract::PermissionMode;
use serde_json::{Map, Value};

use super::{
    Flags, Layer, Places, Problem, Trust,
    files::{self, local_root},
};
use crate::permissions::{Bases, List, Rules, Scope, Source, rules::split_list};

/// Settings, loaded.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where they were looked for.
    pub places: Places,
    /// The files, the highest rank first.
    pub layers: Vec<Layer>,
    /// What was wrong with them.
    pub problems: Vec<Problem>,
    /// What was left out because the workspace is not trusted, in words.
    pub left_out: Vec<String>,
    /// What of the workspace counts.
    pub trust: Trust,
}

/// Keys that no file of the workspace may set, whatever is trusted: they move where secrets go, or
/// what is loaded into every child.
const FORBIDDEN_ENV: [&str; 6] = [
    "ANTHROPIC_",
    "OPENAI_",
    "AWS_",
    "LD_",
    "DYLD_",
    "CLAUDE_CODE_",
];

impl Settings {
    /// Loads every file that counts.
    pub fn load(places: Places, flags: &Flags, trust: Trust) -> Self {
        let (layers, problems) = files::load(&places, flags);
        Self {
            places,
            layers,
            problems,
            left_out: Vec::new(),
            trust,
        }
    }

    /// The rules of all files, and of the flags.
    pub fn rules(&mut self, allowed: &[String], denied: &[String]) -> Rules {
        let mut rules = Rules::default();
        let flags = Bases {
            cwd: self.places.cwd.clone(),
            home: self.places.home.clone(),
            slash: self.places.cwd.clone(),
        };
        for (list, texts) in [(List::Allow, allowed), (List::Deny, denied)] {
            for text in texts.iter().flat_map(|texts| split_list(texts)) {
                let added = rules.add(list, &text, Source::of(Scope::CommandLine), &flags);
                if let Ok(Some(problem)) | Err(problem) = added {
                    self.problems.push(Problem {
                        place: "command line".to_owned(),
                        what: format!("rule {:?}: {}", problem.rule, problem.problem),
                    });
                }
            }
        }
        let mut waiting = 0;
        for layer in &self.layers {
            for list in [List::Deny, List::Ask, List::Allow] {
                let pointer = format!("/permissions/{}", list.name());
                let Some(value) = layer.document.value.pointer(&pointer) else {
                    continue;
                };
                let Some(entries) = value.as_array() else {
                    self.problems
                        .push(layer.problem(&pointer, "a list of rules is expected"));
                    continue;
                };
                if list == List::Allow && layer.from_workspace && !self.trust.allows {
                    waiting += entries.len();
                    continue;
                }
                for (at, entry) in entries.iter().enumerate() {
                    let here = format!("{pointer}/{at}");
                    let Some(text) = entry.as_str() else {
                        self.problems
                            .push(layer.problem(&here, "a rule is a text; it is left out"));
                        continue;
                    };
                    let source = Source {
                        scope: layer.scope,
                        file: layer.file.clone(),
                        line: layer.document.line(&here),
                    };
                    let bases = Bases {
                        slash: layer.slash.clone(),
                        ..flags.clone()
                    };
                    match rules.add(list, text, source, &bases) {
                        Ok(None) => {}
                        Ok(Some(problem)) => self.problems.push(layer.problem(
                            &here,
                            &format!("rule {:?}: {}", problem.rule, problem.problem),
                        )),
                        Err(problem) => self.problems.push(layer.problem(
                            &here,
                            &format!("rule {:?} is left out: {}", problem.rule, problem.problem),
                        )),
                    }
                }
            }
        }
        if waiting > 0 {
            self.left_out.push(format!("{waiting} allow rules"));
        }
        if self.flag_of(Scope::Managed, "allowManagedPermissionRulesOnly") {
            rules.retain(|rule| rule.source.scope == Scope::Managed);
        }
        rules
    }

    /// Further working directories.
    pub fn directories(&mut self) -> Vec<PathBuf> {
        let mut directories = Vec::new();
        let mut waiting = 0;
        for layer in &self.layers {
            let pointer = "/permissions/additionalDirectories";
            let Some(Value::Array(entries)) = layer.document.value.pointer(pointer) else {
                continue;
            };
            if layer.from_workspace && !self.trust.allows {
                waiting += entries.len();
                continue;
            }
            for entry in entries.iter().filter_map(Value::as_str) {
                let path = match entry.strip_prefix("~/") {
                    Some(rest) => self.places.home.join(rest),
                    None => self.places.cwd.join(entry),
                };
                if !directories.contains(&path) {
                    directories.push(path);
                }
            }
        }
        if waiting > 0 {
            self.left_out
                .push(format!("{waiting} additional directories"));
        }
        directories
    }

    /// The mode the files ask for.
    pub fn default_mode(&mut self) -> Option<PermissionMode> {
        let mut found = None;
        for layer in &self.layers {
            let pointer = "/permissions/defaultMode";
            let Some(value) = layer.document.value.pointer(pointer) else {
                continue;
            };
            let name = value.as_str().unwrap_or_default();
            if name == "auto" {
                self.problems
                    .push(layer.problem(pointer, "mode auto is not known here; default is used"));
                continue;
            }
            let Ok(mode) = serde_json::from_value::<PermissionMode>(value.clone()) else {
                self.problems
                    .push(layer.problem(pointer, "no such permission mode; it is left out"));
                continue;
            };
            let workspace = matches!(layer.scope, Scope::Project | Scope::Local);
            match mode {
                PermissionMode::BypassPermissions if workspace => {
                    self.problems.push(layer.problem(
                        pointer,
                        "bypassPermissions is only taken from the user's own settings or flags",
                    ));
                    continue;
                }
                PermissionMode::AcceptEdits if layer.from_workspace && !self.trust.allows => {
                    self.left_out.push("permission mode acceptEdits".to_owned());
                    continue;
                }
                _ => {}
            }
            found.get_or_insert(mode);
        }
        found
    }

    /// Does any file forbid bypassPermissions?
    pub fn bypass_is_disabled(&self) -> bool {
        self.layers.iter().any(|layer| {
            let pointer = "/permissions/disableBypassPermissionsMode";
            layer.document.value.pointer(pointer) == Some(&Value::String("disable".to_owned()))
        })
    }

    /// Variables for the session and its children. A file of the workspace sets none that moves
    /// where secrets go.
    pub fn env(&mut self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        let mut waiting = 0;
        for layer in &self.layers {
            let Some(Value::Object(entries)) = layer.document.value.get("env") else {
                continue;
            };
            let workspace = matches!(layer.scope, Scope::Project | Scope::Local);
            if workspace && !self.trust.runs {
                waiting += entries.len();
                continue;
            }
            for (name, value) in entries {
                let pointer = format!("/env/{name}");
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(_) | Value::Bool(_) => value.to_string(),
                    _ => {
                        self.problems
                            .push(layer.problem(&pointer, "a text is expected; it is left out"));
                        continue;
                    }
                };
                if workspace && is_forbidden(name) {
                    self.problems.push(layer.problem(
                        &pointer,
                        "a file of the workspace may not set this variable; it is left out",
                    ));
                    continue;
                }
                env.entry(name.clone()).or_insert(text);
            }
        }
        if waiting > 0 {
            self.left_out
                .push(format!("{waiting} environment variables"));
        }
        env
    }

    /// The hooks of every file that may run them, with whose they are.
    pub fn hooks(&mut self) -> Vec<(Scope, Option<PathBuf>, Value)> {
        let managed_only = self.flag_of(Scope::Managed, "allowManagedHooksOnly");
        let disabled = self.merged().get("disableAllHooks") == Some(&Value::Bool(true));
        let managed_too = self.flag_of(Scope::Managed, "disableAllHooks");
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
            if matches!(layer.scope, Scope::Project | Scope::Local) && !self.trust.runs {
                waiting = true;
                continue;
            }
            let file = layer.file.as_deref().map(Path::to_path_buf);
            hooks.push((layer.scope, file, value.clone()));
        }
        if waiting {
            self.left_out.push("hooks".to_owned());
        }
        hooks
    }

    /// Everything that would run code for the workspace, for a person to look at: what it is called,
    /// and what it says.
    pub fn running_things(&self) -> BTreeMap<String, Value> {
        let workspace = self
            .layers
            .iter()
            .filter(|layer| matches!(layer.scope, Scope::Project | Scope::Local));
        let mut things = BTreeMap::new();
        for layer in workspace {
            for key in ["hooks", "env", "apiKeyHelper", "statusLine", "mcpServers"] {
                if let Some(value) = layer.document.value.get(key) {
                    things.insert(format!("{} {key}", layer.scope.name()), value.clone());
                }
            }
        }
        things
    }

    /// All files as one value: of scalars the highest rank wins, objects are merged, lists joined.
    pub fn merged(&self) -> Value {
        let mut merged = Value::Object(Map::new());
        for layer in &self.layers {
            merge(&mut merged, &layer.document.value);
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
        local_root(&self.places).join(".claude/settings.local.json")
    }

    fn flag_of(&self, scope: Scope, key: &str) -> bool {
        self.layers.iter().any(|layer| {
            layer.scope == scope && layer.document.value.get(key) == Some(&Value::Bool(true))
        })
    }
}

impl Layer {
    fn problem(&self, pointer: &str, what: &str) -> Problem {
        let file = match &self.file {
            Some(file) => file.display().to_string(),
            None => "--settings".to_owned(),
        };
        Problem {
            place: match self.document.line(pointer) {
                Some(line) => format!("{file}:{line}"),
                None => file,
            },
            what: what.to_owned(),
        }
    }
}

fn is_forbidden(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    FORBIDDEN_ENV.iter().any(|prefix| upper.starts_with(prefix))
        || upper.ends_with("_PROXY")
        || [
            "PATH",
            "BASH_ENV",
            "ENV",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "HOME",
        ]
        .contains(&upper.as_str())
}

/// Adds what a lower rank says.
fn merge(high: &mut Value, low: &Value) {
    match (high, low) {
        (Value::Object(high), Value::Object(low)) => {
            for (key, value) in low {
                match high.get_mut(key) {
                    // Whole values, by the convention.
                    Some(_) if ["fallbackModel", "availableModels"].contains(&key.as_str()) => {}
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
