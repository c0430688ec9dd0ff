//! Agent kinds: those defined by users, projects and plugins, and the built-in ones.

mod built_in;
mod definition;

use std::path::Path;

use serde_json::{Map, Value};

use crate::{
    ExtensionOrigin, ExtensionPlaces, ExtensionWarning,
    bounded_read::{self, MAX_LENGTH},
    front_matter::{self, FrontMatterFields},
};

pub use definition::AgentDefinition;

/// Options for agents that do not come from files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentOptions {
    /// Definitions in JSON, by name (`--agents`, or from the program that runs the session).
    pub given: Map<String, Value>,
    /// Omits the built-in kinds.
    pub without_built_ins: bool,
    /// Omits `Explore` and `Plan`.
    pub without_explore_and_plan: bool,
}

impl AgentOptions {
    /// Reads the options from environment variables.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| {
            variable(name).is_some_and(|value| !["", "0", "false"].contains(&value.as_str()))
        };
        Self {
            given: Map::new(),
            without_built_ins: is_set("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS"),
            without_explore_and_plan: is_set("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS"),
        }
    }
}

/// The available agent kinds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Agents {
    /// Sorted by name.
    found: Vec<AgentDefinition>,
}

impl Agents {
    /// Finds all agent kinds; if several have the same name, the one with the highest priority is
    /// used.
    pub fn load(places: &ExtensionPlaces, options: &AgentOptions) -> (Self, Vec<ExtensionWarning>) {
        let mut reader = AgentReader {
            found: Vec::new(),
            warnings: Vec::new(),
        };
        // By descending priority: a definition that exists already stays.
        reader.read_folder(
            &places.managed.join(".claude/agents"),
            ExtensionOrigin::Managed,
            None,
        );
        for (name, value) in &options.given {
            reader.read_given(name, value);
        }
        for folder in places.project_folders() {
            reader.read_folder(&folder.join("agents"), ExtensionOrigin::Project, None);
        }
        if places.sources.user {
            reader.read_folder(&places.user.join("agents"), ExtensionOrigin::User, None);
        }
        for plugin in &places.plugins {
            let folder = plugin.root.join("agents");
            reader.read_folder(&folder, ExtensionOrigin::Plugin, Some(&plugin.name));
        }
        for agent in built_in::all() {
            let is_left_out = options.without_built_ins
                || options.without_explore_and_plan
                    && built_in::EXPLORE_AND_PLAN.contains(&agent.name.as_str());
            if !is_left_out {
                reader.add(agent);
            }
        }
        reader.found.sort_by(|a, b| a.name.cmp(&b.name));
        let agents = Self {
            found: reader.found,
        };
        (agents, reader.warnings)
    }

    /// Returns the agent kind with this name.
    pub fn get(&self, name: &str) -> Option<&AgentDefinition> {
        self.found.iter().find(|agent| agent.name == name)
    }

    /// Returns all agent kinds, sorted by name.
    pub fn list(&self) -> &[AgentDefinition] {
        &self.found
    }
}

struct AgentReader {
    found: Vec<AgentDefinition>,
    warnings: Vec<ExtensionWarning>,
}

impl AgentReader {
    fn add(&mut self, agent: AgentDefinition) {
        if !self.found.iter().any(|known| known.name == agent.name) {
            self.found.push(agent);
        }
    }

    fn read_folder(&mut self, folder: &Path, origin: ExtensionOrigin, plugin: Option<&str>) {
        for file in bounded_read::markdown_below(folder, &mut self.warnings) {
            let prefix = plugin.map(|plugin| {
                let below = file.strip_prefix(folder).ok().and_then(Path::parent);
                let below = below.into_iter().flat_map(Path::iter);
                let mut prefix = format!("{plugin}:");
                for part in below {
                    prefix += &format!("{}:", part.to_string_lossy());
                }
                prefix
            });
            self.read_file(&file, origin, prefix.as_deref().unwrap_or_default());
        }
    }

    fn read_file(&mut self, file: &Path, origin: ExtensionOrigin, prefix: &str) {
        let text = match bounded_read::read(file, MAX_LENGTH) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(error) => {
                self.warnings
                    .push(ExtensionWarning::new(file, error.to_string()));
                return;
            }
        };
        let parsed = front_matter::parse(&text.text);
        if let Some(fault) = &parsed.error {
            let what = format!("{}: the agent is left out", fault.message);
            self.warnings
                .push(ExtensionWarning::new(file, what).with_line(fault.line));
            return;
        }
        // A Markdown file without `name` is documentation, not an agent.
        let Some(name) = parsed.head.text("name") else {
            return;
        };
        parsed.warn_of_duplicate_key(file, &mut self.warnings);
        let prompt = parsed.body.trim().to_owned();
        let read =
            AgentDefinition::read(name, &parsed.head, prompt, origin, Some(file.to_path_buf()));
        match read {
            Ok(mut agent) => {
                agent.name = format!("{prefix}{}", agent.name);
                self.add(agent);
            }
            Err(what) => self.warnings.push(ExtensionWarning::new(file, what)),
        }
    }

    fn read_given(&mut self, name: &str, value: &Value) {
        let read = match value {
            Value::Object(map) => {
                let head = FrontMatterFields::from(map.clone());
                match head.text("prompt") {
                    Some(prompt) => AgentDefinition::read(
                        name.to_owned(),
                        &head,
                        prompt,
                        ExtensionOrigin::Given,
                        None,
                    ),
                    None => Err(format!(
                        "the agent {name:?} has no `prompt`: it is left out"
                    )),
                }
            }
            _ => Err(format!(
                "the agent {name:?} is not an object: it is left out"
            )),
        };
        match read {
            Ok(agent) => self.add(agent),
            Err(what) => self.warnings.push(ExtensionWarning {
                file: None,
                line: None,
                message: what,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
