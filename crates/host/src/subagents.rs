//! The agent kinds, and the pool that all subagents of a session share.

use std::{fs, sync::Arc};

use anyhow::Context;
use haft_agent::{
    SubagentLimits, SubagentPool,
    subagents::{AgentKindExtras, launchable},
};
use haft_engine::{
    hook_conditions,
    hooks::HookHandler,
    permissions::{PatternBases, SettingsScope},
};
use haft_extensions::{
    AgentDefinition, Agents, ExtensionOrigin, ExtensionPlaces, agents::AgentOptions,
};
use serde_json::{Map, Value};

use crate::{
    SessionConfig, budget::UnpricedModelWarning, event::EventEmitter,
    extensions::SessionExtensions, mcp::AgentServers, model::SelectedModel,
    resolved_settings::known_tools,
};

/// The agent kinds of a session.
#[derive(Clone)]
pub(crate) struct AgentKinds {
    places: ExtensionPlaces,
    options: AgentOptions,
    found: Agents,
    /// Whether hooks of the project's agent kinds may run.
    trusted: bool,
    /// Receives warnings about invalid kinds.
    pub(crate) events: Arc<EventEmitter>,
}

/// An agent kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentDetails {
    /// Its name.
    pub name: String,
    /// The tasks it is suited for.
    pub description: String,
    /// The model it requests.
    pub model: Option<String>,
}

/// The maximum number of lines of an agent's memory that are sent to it.
const MEMORY_LINES: usize = 200;

impl AgentKinds {
    /// Finds the kinds in folders, in the configuration, and the built-in ones.
    pub(crate) fn find(
        config: &SessionConfig,
        extensions: &SessionExtensions,
        trusted: bool,
        events: &Arc<EventEmitter>,
    ) -> Self {
        let environment = &config.environment;
        let mut options = AgentOptions::from_environment(|name| environment.variable(name));
        // A bare session has no tool to launch subagents.
        options.without_built_ins |= config.bare;
        options.given.extend(config.agents.clone());
        let mut kinds = Self {
            places: extensions.places.clone(),
            options,
            found: Agents::default(),
            trusted,
            events: Arc::clone(events),
        };
        kinds.load();
        kinds
    }

    fn load(&mut self) {
        let (found, warnings) = Agents::load(&self.places, &self.options);
        for warning in warnings {
            self.events.warn(warning.to_string());
        }
        self.found = found;
    }

    /// Returns the kinds, reloaded with these folders.
    pub(crate) fn rescan(&self, places: &ExtensionPlaces) -> Self {
        let mut kinds = self.clone();
        kinds.places = places.clone();
        kinds.load();
        kinds
    }

    pub(crate) fn list(&self) -> impl Iterator<Item = AgentDefinition> {
        self.found.list().iter().cloned()
    }

    /// Returns the kinds, including additional ones from the client.
    pub(crate) fn with(&self, more: &Map<String, Value>) -> Self {
        let mut kinds = self.clone();
        if !more.is_empty() {
            kinds.options.given.extend(more.clone());
            kinds.load();
        }
        kinds
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let kinds = self.found.list().iter();
        kinds.map(|kind| kind.name.clone()).collect()
    }

    /// Returns the kinds with their descriptions.
    pub(crate) fn details(&self) -> Vec<AgentDetails> {
        let kinds = self.found.list().iter();
        kinds
            .map(|kind| AgentDetails {
                name: kind.name.clone(),
                description: kind.description.clone(),
                model: kind.model.clone(),
            })
            .collect()
    }

    /// Returns the kind with this name.
    pub(crate) fn find_kind(&self, name: Option<&str>) -> anyhow::Result<Option<AgentDefinition>> {
        let Some(name) = name else {
            return Ok(None);
        };
        let found = self.found.get(name).cloned();
        found
            .with_context(|| {
                let names = self.names().join(", ");
                format!("no agent is called {name:?}; there are: {names}")
            })
            .map(Some)
    }

    /// Returns the function that provides the specific parts of a kind: its hooks, if they may run,
    /// and its memory.
    fn own(&self) -> impl Fn(&AgentDefinition) -> AgentKindExtras + Send + Sync + use<> {
        let (places, trusted) = (self.places.clone(), self.trusted);
        let events = Arc::clone(&self.events);
        move |kind| AgentKindExtras {
            handlers: handlers(kind, &places, trusted, &events),
            prompt: memory(kind, &places),
        }
    }

    /// Builds the pool that all subagents of the session share.
    pub(crate) fn build_pool(
        &self,
        config: &SessionConfig,
        main: Option<&AgentDefinition>,
        chosen: &SelectedModel,
        budget: UnpricedModelWarning,
        servers: Option<AgentServers>,
    ) -> anyhow::Result<SubagentPool> {
        let usual = SubagentLimits::default();
        let environment = &config.environment;
        let depth = environment
            .number("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH")?
            .unwrap_or(usual.depth);
        let at_once = match environment.number("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS")? {
            Some(most) => usize::try_from(most)?.max(1),
            None => usual.at_once,
        };
        let pool = SubagentPool::builder(self.found.list().iter().cloned())
            .limits(SubagentLimits { depth, at_once })
            .sink(Arc::<EventEmitter>::clone(&self.events))
            .services(haft_tools::for_subagent)
            .model_names({
                let names = chosen.names.clone();
                move |name| {
                    let (names, budget) = (names.clone(), budget.clone());
                    Box::pin(async move {
                        let id = names.resolve(&name).await.ok()?;
                        budget.warn_if_unpriced(&id);
                        Some(id)
                    })
                }
            })
            .model(Arc::clone(&chosen.model))
            .model_name(environment.variable("CLAUDE_CODE_SUBAGENT_MODEL"))
            .append_system_prompt(config.prompts.append_subagent.clone())
            .own(self.own())
            .own_tools(move |kind| servers.as_ref().and_then(|servers| servers.tools(kind)))
            .only(main.and_then(|main| launchable(main, &known_tools())));
        let pool = match config.conversation.mirror {
            true => pool.mirror(crate::conversation::mirror(&self.events)),
            false => pool,
        };
        Ok(pool.build())
    }
}

/// Returns whether a kind belongs to the project. Trust in the project does not extend to
/// additional directories.
fn is_of_project(kind: &AgentDefinition, places: &ExtensionPlaces) -> bool {
    let file = kind.file.as_deref();
    file.is_some_and(|file| places.is_of_project(file))
}

/// Returns the hooks of a kind. Those of a project run only if it is trusted.
fn handlers(
    kind: &AgentDefinition,
    places: &ExtensionPlaces,
    trusted: bool,
    events: &EventEmitter,
) -> Vec<HookHandler> {
    let scope = match kind.origin {
        ExtensionOrigin::Managed => SettingsScope::Managed,
        ExtensionOrigin::Given => SettingsScope::CommandLine,
        ExtensionOrigin::User => SettingsScope::User,
        ExtensionOrigin::Project if trusted && is_of_project(kind, places) => {
            SettingsScope::Project
        }
        _ => return Vec::new(),
    };
    let Some(hooks) = &kind.hooks else {
        return Vec::new();
    };
    let bases = PatternBases {
        cwd: places.cwd.clone(),
        home: places.home.clone(),
        slash: places.cwd.clone(),
    };
    let value = Value::Object(hooks.clone());
    let (handlers, problems) = hook_conditions::read(scope, kind.file.as_ref(), &value, &bases);
    for problem in problems {
        events.warn(problem.to_string());
    }
    handlers
}

/// Returns the prompt about a kind's memory, if it has one.
fn memory(kind: &AgentDefinition, places: &ExtensionPlaces) -> Option<String> {
    let folder = kind.memory_folder(places)?;
    let file = folder.join("MEMORY.md");
    let kept = fs::read_to_string(&file).unwrap_or_default();
    let head: Vec<&str> = kept.lines().take(MEMORY_LINES).collect();
    let folder = folder.display();
    Some(match head.is_empty() {
        true => format!(
            "You can remember things from one task to the next: write them to files in {folder}, and what \
             you must see every time to MEMORY.md there. There is nothing yet."
        ),
        false => format!(
            "You can remember things from one task to the next: they are in {folder}. Keep MEMORY.md there \
             short and right. It says:\n\n{}",
            head.join("\n")
        ),
    })
}

#[cfg(all(test, feature = "fs"))]
mod tests {
    use std::path::PathBuf;

    use haft_contract::{AgentAccess, ToolAccess};

    use super::*;

    /// Their definitions are data, like those in folders, and name tools; the tools say what they do.
    #[test]
    fn kinds_that_only_look_have_no_tool_that_changes_files_or_launches() {
        let nowhere = PathBuf::from("/nonexistent");
        let places = ExtensionPlaces {
            cwd: nowhere.clone(),
            home: nowhere.clone(),
            user: nowhere.clone(),
            managed: nowhere,
            directories: Vec::new(),
            plugins: Vec::new(),
            sources: Default::default(),
        };
        let (agents, _) = Agents::load(&places, &AgentOptions::default());
        let tools = known_tools();
        for kind in ["Explore", "Plan"] {
            let without = &agents.get(kind).unwrap().disallowed_tools;
            for spec in &tools {
                let changes = spec.profile.access == ToolAccess::Paths
                    || spec.profile.agents == AgentAccess::Launching;
                assert!(
                    !changes || without.contains(&spec.name),
                    "{kind}: {}",
                    spec.name
                );
            }
            for name in without {
                assert!(
                    tools.iter().any(|spec| spec.name == *name),
                    "{kind}: {name}"
                );
            }
        }
    }
}
