//! A main agent of a certain agent kind, whose definition sets its tools, its prompt and its mode.

use std::sync::Arc;

use haft_contract::{AgentAccess, ContextPatch, ToolSpec};
use haft_engine::{Engine, PoolView, Scheduler, permissions::rules::split_rule};
use haft_extensions::AgentDefinition;

use super::{mode, tools};
use crate::{Agent, prompt::SystemPrompt};

/// A change of the main agent's kind during a session.
#[derive(Debug, Clone)]
pub struct MainAgentChange {
    /// The agent kind; `None` for the default main agent.
    pub kind: Option<AgentDefinition>,
    /// The new system prompt.
    pub system: SystemPrompt,
    /// The maximum number of turns with tool calls in a run.
    pub max_turns: Option<u32>,
    /// The new model; `None` leaves the session's model unchanged.
    pub model: Option<MainAgentModel>,
}

/// The model of a main agent of a certain kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MainAgentModel {
    /// The model, under its provider's name.
    pub name: String,
    /// The model to use in plan mode, if it differs.
    pub plan_name: Option<String>,
    /// The context window in tokens.
    pub window: u64,
    /// The effort level.
    pub effort: Option<String>,
}

/// Checks that the main agent of this session can be of this kind.
pub fn check_main_agent(engine: &Engine, kind: &AgentDefinition) -> Result<(), String> {
    tools::are_available(&tools::for_main_agent(&engine.every_tool(), kind), kind)
}

/// Changes the kind of the agent whose calls this scheduler runs. The permission mode becomes
/// stricter if the kind requires it, and never more permissive.
pub fn set_main_agent(scheduler: &mut Scheduler, kind: Option<&AgentDefinition>) {
    let view = kind
        .cloned()
        .map(|kind| -> PoolView { Arc::new(move |pool| tools::for_main_agent(pool, &kind)) });
    scheduler.set_kind(kind.map(|kind| kind.name.clone()), view);
    let wanted = kind.and_then(|kind| kind.permission_mode.as_deref());
    let mode = scheduler.context().mode;
    let stricter = mode::stricter_mode(mode, wanted).mode;
    if stricter != mode {
        scheduler.apply(&ContextPatch::SetMode { mode: stricter });
    }
}

impl Agent {
    pub(crate) fn change_main_agent(&mut self, change: &MainAgentChange) {
        let kind = change.kind.as_ref();
        set_main_agent(&mut self.scheduler, kind);
        self.client.set_main_agent(&change.system, &self.scheduler);
        if let Some(model) = &change.model {
            self.client.set_model(model);
            self.scheduler.set_model(model.name.as_str());
        }
        self.limits.max_turns = change.max_turns;
        if let Some(spawner) = &self.spawner {
            let every = self.scheduler.engine().every_tool();
            let specs: Vec<ToolSpec> = every.iter().map(|tool| tool.spec().clone()).collect();
            spawner.set_allowed_kinds(kind.and_then(|kind| launchable(kind, &specs)));
        }
    }
}

/// Returns the kinds that a main agent of this kind may launch, according to `Agent(a, b)` in its
/// list of tools; `None` for all. `tools` are the tools that the list may refer to.
pub fn launchable(kind: &AgentDefinition, tools: &[ToolSpec]) -> Option<Vec<String>> {
    let launches = |name: &str| {
        tools.iter().any(|spec| {
            spec.profile.agents == AgentAccess::Launching
                && spec.profile.is_called(&spec.name, name)
        })
    };
    let mut found = None;
    for entry in kind.tools.iter().flatten() {
        if let Ok((name, Some(listed))) = split_rule(entry.trim())
            && launches(name)
        {
            let names = listed.split(',').map(|name| name.trim().to_owned());
            found.get_or_insert_with(Vec::new).extend(names);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use haft_extensions::{Agents, EnabledSources, ExtensionPlaces, agents::AgentOptions};

    use haft_contract::ToolProfile;
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_in_brackets_limit_what_is_launched() {
        let nowhere = std::path::PathBuf::from("/nonexistent");
        let places = ExtensionPlaces {
            cwd: nowhere.clone(),
            home: nowhere.clone(),
            user: nowhere.clone(),
            managed: nowhere,
            directories: Vec::new(),
            plugins: Vec::new(),
            sources: EnabledSources::default(),
        };
        let (agents, _) = Agents::load(&places, &AgentOptions::default());
        let mut kind = agents.get("general-purpose").unwrap().clone();
        let spec = |name: &str, alias: &'static str, agents| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({}),
            profile: ToolProfile {
                aliases: vec![alias.into()],
                agents,
                ..ToolProfile::default()
            },
        };
        let tools = [
            spec("Agent", "Task", AgentAccess::Launching),
            spec("Bash", "Shell", AgentAccess::Every),
        ];
        let cases = [
            (None, None),
            (Some(vec!["Bash(git *)", "Agent(*)", "Agents(x)"]), None),
            (Some(vec!["Read", "Agent"]), None),
            (
                Some(vec!["Read", "Agent(Explore, Plan)", "Task(x)"]),
                Some(vec!["Explore", "Plan", "x"]),
            ),
        ];
        for (listed, expected) in cases {
            let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
            kind.tools = listed.map(owned);
            assert_eq!(
                launchable(&kind, &tools),
                expected.map(owned),
                "{:?}",
                kind.tools
            );
        }
    }
}
