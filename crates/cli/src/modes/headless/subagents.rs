//! Who can be handed tasks, and who the main agent is.

use std::{fs, sync::Arc};

use anyhow::Context;
use haft::engine::{
    hooks::{self, Handler},
    permissions::{Bases, Scope},
};
use haft_agent::{
    RunLimits, SubagentLimits, SubagentPool,
    subagents::{Own, launchable},
};
use haft_extensions::{
    AgentDefinition, Agents, ExtensionOrigin, ExtensionPlaces, agents::AgentOptions,
};
use haft_protocol::DescribedAgent;
use serde_json::{Map, Value};

use super::{
    extensions::Extensions,
    flags::Headless,
    model::{Chosen, number, variable},
    names::Names,
    output::Output,
};
use crate::{settings::Permitted, show};

/// The kinds of subagents there are.
#[derive(Debug, Clone)]
pub(super) struct Kinds {
    places: ExtensionPlaces,
    options: AgentOptions,
    found: Agents,
    /// What the project brings may run something.
    trusted: bool,
}

/// So much of what an agent remembers is told to it, in lines.
const MEMORY_LINES: usize = 200;

impl Kinds {
    /// Those in the folders, those of the flag, and our own.
    pub(super) fn find(
        extensions: &Extensions,
        flags: &Headless,
        bare: bool,
        trusted: bool,
    ) -> anyhow::Result<Self> {
        let mut options = AgentOptions::of_environment(variable);
        // Nothing is looked for, and there is no tool to launch any with.
        options.without_built_ins |= bare;
        if let Some(text) = &flags.agents {
            options.given = serde_json::from_str(text)
                .context("--agents: expected an object of agents by their names, in JSON")?;
        }
        let mut kinds = Self {
            places: extensions.places.clone(),
            options,
            found: Agents::default(),
            trusted,
        };
        kinds.load();
        Ok(kinds)
    }

    fn load(&mut self) {
        let (found, warnings) = Agents::load(&self.places, &self.options);
        for warning in warnings {
            show::warn(&format!("haft: {}", show::clean(&warning.to_string())));
        }
        self.found = found;
    }

    /// The same with those that the program at the other end brings.
    pub(super) fn with(&self, more: &Map<String, Value>) -> Self {
        let mut kinds = self.clone();
        if !more.is_empty() {
            kinds.options.given.extend(more.clone());
            kinds.load();
        }
        kinds
    }

    pub(super) fn names(&self) -> Vec<String> {
        let kinds = self.found.list().iter();
        kinds.map(|kind| kind.name.clone()).collect()
    }

    /// As `initialize` is answered.
    pub(super) fn told(&self) -> Vec<DescribedAgent> {
        let kinds = self.found.list().iter();
        kinds
            .map(|kind| DescribedAgent {
                name: kind.name.clone(),
                description: kind.description.clone(),
                model: kind.model.clone(),
            })
            .collect()
    }

    /// The kind of the main agent, if it is of one.
    pub(super) fn main(
        &self,
        flags: &Headless,
        permitted: &Permitted,
    ) -> anyhow::Result<Option<AgentDefinition>> {
        let from_settings = || {
            let merged = permitted.settings.merged();
            merged["agent"].as_str().map(str::to_owned)
        };
        let Some(name) = flags.agent.clone().or_else(from_settings) else {
            return Ok(None);
        };
        let found = self.found.get(&name).cloned();
        found
            .with_context(|| {
                let names = self.names().join(", ");
                format!("no agent is called {name:?}; there are: {names}")
            })
            .map(Some)
    }

    /// What a kind brings: hooks, as far as they may run, and what it remembers.
    fn own(&self) -> impl Fn(&AgentDefinition) -> Own + Send + Sync + use<> {
        let (places, trusted) = (self.places.clone(), self.trusted);
        move |kind| Own {
            handlers: handlers(kind, &places, trusted),
            prompt: memory(kind, &places),
        }
    }

    /// All that the subagents of the session share.
    pub(super) fn crew(
        &self,
        flags: &Headless,
        main: Option<&AgentDefinition>,
        chosen: &Chosen,
        output: &Arc<Output>,
    ) -> anyhow::Result<SubagentPool> {
        let usual = SubagentLimits::default();
        let depth = number("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH")?.unwrap_or(usual.depth);
        let at_once = match number("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS")? {
            Some(most) => usize::try_from(most)?.max(1),
            None => usual.at_once,
        };
        Ok(SubagentPool::builder(self.found.list().iter().cloned())
            .limits(SubagentLimits { depth, at_once })
            .sink(Arc::clone(output) as _)
            .services(haft::tools::for_subagent)
            .model_names({
                let names = chosen.names.clone();
                move |name| model_name(&names, name)
            })
            .model(Arc::clone(&chosen.model))
            .model_name(variable("CLAUDE_CODE_SUBAGENT_MODEL"))
            .append_system_prompt(flags.prompts.append_subagent_system_prompt.clone())
            .own(self.own())
            .only(main.and_then(launchable))
            .build())
    }
}

/// The id of a model, out of what people call it; `None`: which one is meant is not configured, or it may not
/// be had.
fn model_name(names: &Names, name: &str) -> Option<String> {
    match names.unknown(name) {
        Some(_) => None,
        None => names.choose(name).ok(),
    }
}

/// The main agent is of this kind: the model is its own.
pub(super) fn take_over(main: &AgentDefinition, flags: &Headless, chosen: &mut Chosen) {
    let named = main
        .model
        .as_deref()
        .filter(|_| flags.model.model.is_none());
    if let Some(id) = named.and_then(|name| model_name(&chosen.names, name)) {
        chosen.settings.name = id;
    }
    if flags.model.effort.is_none() && main.effort.is_some() {
        chosen.settings.effort.clone_from(&main.effort);
    }
}

/// How many rounds the main agent has, where the flags do not say.
pub(super) fn limits_of(
    main: Option<&AgentDefinition>,
    flags: &Headless,
    mut limits: RunLimits,
) -> RunLimits {
    if let Some(most) = main.and_then(|main| main.max_turns)
        && flags.max_turns.is_none()
    {
        limits.max_turns = Some(most);
    }
    limits
}

/// Trust in the project says nothing about additional directories.
fn is_of_project(kind: &AgentDefinition, places: &ExtensionPlaces) -> bool {
    let file = kind.file.as_deref();
    file.is_some_and(|file| places.is_of_project(file))
}

/// The hooks of a kind. Those of a project run only where it is trusted.
fn handlers(kind: &AgentDefinition, places: &ExtensionPlaces, trusted: bool) -> Vec<Handler> {
    let scope = match kind.origin {
        ExtensionOrigin::Managed => Scope::Managed,
        ExtensionOrigin::Given => Scope::CommandLine,
        ExtensionOrigin::User => Scope::User,
        ExtensionOrigin::Project if trusted && is_of_project(kind, places) => Scope::Project,
        _ => return Vec::new(),
    };
    let Some(hooks) = &kind.hooks else {
        return Vec::new();
    };
    let bases = Bases {
        cwd: places.cwd.clone(),
        home: places.home.clone(),
        slash: places.cwd.clone(),
    };
    let value = Value::Object(hooks.clone());
    let (handlers, problems) = hooks::read(scope, kind.file.as_ref(), &value, &bases);
    for problem in problems {
        show::warn(&format!("haft: {}", show::clean(&problem.to_string())));
    }
    handlers
}

/// What a kind remembers, if it does.
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
