//! `/agents`, `/skills`, `/hooks`: lists extensions and hooks.

use haft_engine::{hooks::HookEventKind, settings::SettingsScope};
use serde_json::{Map, Value};

use super::{BuiltInCommand, CommandAction, CommandAnswer, short, table};
use crate::SessionInput;

pub(super) static AGENTS: BuiltInCommand = BuiltInCommand {
    name: "agents",
    hint: "[name]",
    description: "List the kinds of subagents",
    acts: CommandAction::Anytime(|input, name| Box::pin(async move { agents(input, name.trim()) })),
};

pub(super) static SKILLS: BuiltInCommand = BuiltInCommand {
    name: "skills",
    hint: "[name]",
    description: "List your and the project's skills and commands",
    acts: CommandAction::Anytime(|input, name| Box::pin(async move { skills(input, name.trim()) })),
};

pub(super) static HOOKS: BuiltInCommand = BuiltInCommand {
    name: "hooks",
    hint: "",
    description: "List the hooks, with their files and whether they are trusted",
    acts: CommandAction::Anytime(|input, _| Box::pin(async move { Ok(hooks(input)) })),
};

fn agents(input: &SessionInput, name: &str) -> CommandAnswer {
    let all = input.agents(&Map::new());
    if name.is_empty() {
        let rows = all.into_iter().map(|agent| {
            let model = agent.model.unwrap_or_default();
            vec![agent.name, model, short(&agent.description, 80)]
        });
        return Ok(table(&rows.collect::<Vec<_>>()));
    }
    let found = all.into_iter().find(|agent| agent.name == name);
    let agent = found.ok_or_else(|| format!("no kind of subagent is called {name:?}"))?;
    let model = agent.model.map(|model| format!(" ({model})"));
    Ok(format!(
        "{}{}\n{}",
        agent.name,
        model.unwrap_or_default(),
        agent.description
    ))
}

fn skills(input: &SessionInput, name: &str) -> CommandAnswer {
    let all = input.0.reload.own_skills();
    if name.is_empty() {
        if all.is_empty() {
            return Ok("No skills or commands were found.".to_owned());
        }
        let rows = all.into_iter().map(|(name, description, file)| {
            vec![name, short(&description, 60), file.display().to_string()]
        });
        return Ok(table(&rows.collect::<Vec<_>>()));
    }
    let found = all.into_iter().find(|(known, ..)| known == name);
    let (name, description, file) =
        found.ok_or_else(|| format!("no skill or command is called {name:?}"))?;
    Ok(format!("{name}\n{description}\n{}", file.display()))
}

fn hooks(input: &SessionInput) -> String {
    let settings = &input.0.settings.settings;
    let mut rows = Vec::new();
    for layer in &settings.layers {
        let Some(events) = layer.document.value["hooks"].as_object() else {
            continue;
        };
        let place = layer.file.as_ref().map_or_else(
            || layer.scope.name().to_owned(),
            |file| file.display().to_string(),
        );
        let planted = layer.scope == SettingsScope::Local && layer.from_workspace;
        let is_trusted = !layer.is_in_workspace()
            || (settings.trust.runs && (!planted || settings.trust.allows));
        for (event, groups) in events {
            for group in groups.as_array().into_iter().flatten() {
                let matcher = group["matcher"].as_str().unwrap_or_default();
                for hook in group["hooks"].as_array().into_iter().flatten() {
                    let state = match (is_trusted, HookEventKind::from_name(event)) {
                        (_, None) => "unknown event",
                        (true, Some(_)) => "runs",
                        (false, Some(_)) => "waits for trust",
                    };
                    rows.push(vec![
                        event.clone(),
                        matcher.to_owned(),
                        action(hook),
                        place.clone(),
                        state.to_owned(),
                    ]);
                }
            }
        }
    }
    if settings.hooks_are_off() {
        return "Hooks are switched off by the settings (disableAllHooks).".to_owned();
    }
    match rows.is_empty() {
        true => "No hooks are configured.".to_owned(),
        false => table(&rows),
    }
}

fn action(hook: &Value) -> String {
    let keys = ["command", "url", "prompt", "tool"];
    let said = keys.iter().find_map(|key| hook[*key].as_str());
    short(said.unwrap_or_default(), 60)
}
