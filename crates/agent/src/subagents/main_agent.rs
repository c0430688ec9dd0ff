//! A session whose main agent is of a kind.

use std::sync::Arc;

use haft_contract::{AgentAccess, ToolSpec};
use haft_engine::{EnginePart, Scheduler, hooks::Identity, permissions::rules::split_rule};
use haft_extensions::AgentDefinition;

use super::{mode, tools};

/// The same session with the tools of this kind, and a permission mode that is no looser; hooks receive the
/// kind. The error is for people.
pub fn as_main_agent(scheduler: &Scheduler, kind: &AgentDefinition) -> Result<Scheduler, String> {
    let engine = scheduler.engine();
    let mut context = scheduler.context();
    context.mode = mode::both(context.mode, kind.permission_mode.as_deref()).mode;
    let model = engine.model().map_or_else(|| Arc::from(""), Arc::clone);
    let engine = engine.for_subagent(EnginePart {
        pool: tools::of_main(&engine.pool(), kind)?,
        services: engine.services().clone(),
        model,
        agent: Identity {
            id: None,
            kind: Some(kind.name.clone()),
        },
        handlers: Vec::new(),
    });
    Ok(engine.scheduler(context))
}

/// The kinds that a main agent of this kind may launch, as `Agent(a, b)` among its tools says; `None`: all.
/// `tools`: those that may be meant.
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
    use haft_extensions::{Agents, ExtensionPlaces, Sources, agents::AgentOptions};

    use haft_contract::Profile;
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
            sources: Sources::default(),
        };
        let (agents, _) = Agents::load(&places, &AgentOptions::default());
        let mut kind = agents.get("general-purpose").unwrap().clone();
        let spec = |name: &str, alias: &'static str, agents| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({}),
            profile: Profile {
                aliases: vec![alias.into()],
                agents,
                ..Profile::default()
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
