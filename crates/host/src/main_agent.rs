//! Who the main agent is: of the kind that the configuration, the settings or a plugin names, or of none. A session
//! that goes on can change it.

use std::sync::{Mutex, PoisonError};

use haft_agent::{
    ModelSettings, NoticeLevel, RunLimits,
    prompt::SystemPrompt,
    subagents::{MainAgentChange, MainAgentModel, check_main_agent},
};
use haft_extensions::{AgentDefinition, styles::OutputStyle};

use crate::{
    SessionConfig, SessionInput, mcp::AgentServers, names::Names, settings::Permitted,
    subagents::Kinds,
};

/// The name of its kind: the configuration's word first, then the settings', then that of plugins.
pub(crate) fn name(
    config: &SessionConfig,
    permitted: &Permitted,
    of_plugins: Option<&str>,
) -> Option<String> {
    let of_settings = || {
        let merged = permitted.settings.merged();
        merged["agent"].as_str().map(str::to_owned)
    };
    let named = config.agent.clone().or_else(of_settings);
    named.or_else(|| of_plugins.map(str::to_owned))
}

/// How the model is asked for an agent of this kind. A model that cannot be had gives way to the session's.
pub(crate) async fn model_settings(
    kind: Option<&AgentDefinition>,
    config: &SessionConfig,
    names: &Names,
    of_session: &ModelSettings,
) -> ModelSettings {
    let mut settings = of_session.clone();
    let Some(kind) = kind else {
        return settings;
    };
    let named = kind
        .model
        .as_deref()
        .filter(|_| config.model.name.is_none());
    if let Some(name) = named.filter(|name| *name != "inherit")
        && let Ok(id) = names.resolve(name).await
    {
        settings.plan_name = names.planner(name).await;
        settings.name = id;
    }
    if config.model.effort.is_none() && kind.effort.is_some() {
        settings.effort.clone_from(&kind.effort);
    }
    settings
}

/// How many rounds an agent of this kind has, where the configuration does not say.
pub(crate) fn limits(
    kind: Option<&AgentDefinition>,
    config: &SessionConfig,
    mut limits: RunLimits,
) -> RunLimits {
    if let Some(most) = kind.and_then(|kind| kind.max_turns)
        && config.max_turns.is_none()
    {
        limits.max_turns = Some(most);
    }
    limits
}

/// What the system prompt is made of beside the words of a kind.
pub(crate) struct PromptParts {
    pub(crate) plain: SystemPrompt,
    pub(crate) style: Option<OutputStyle>,
}

impl PromptParts {
    /// The system prompt of an agent of this kind, with the output style that was chosen.
    pub(crate) fn of(&self, kind: Option<&AgentDefinition>) -> SystemPrompt {
        let mut system = self.plain.clone();
        system.base = system.base.or_else(|| Some(kind?.prompt.clone()));
        let Some(style) = &self.style else {
            return system;
        };
        if !style.keep_coding_instructions && system.base.is_none() {
            system.base = Some(String::new());
        }
        let parts = [Some(style.text.clone()), system.append.take()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        system.append = Some(parts.join("\n\n"));
        system
    }
}

/// The main agent of a session that has begun, and what another in its place is made of.
pub(crate) struct MainAgent {
    pub(crate) kind: Mutex<Option<AgentDefinition>>,
    pub(crate) prompt: PromptParts,
    /// Those of an agent of no kind.
    pub(crate) limits: RunLimits,
    pub(crate) settings: ModelSettings,
    pub(crate) servers: AgentServers,
}

impl SessionInput {
    /// Makes the main agent what the settings and plugins now say it is, from the next request on. The error
    /// says why it stays what it was.
    pub(crate) async fn follow_main_agent(
        &self,
        name: Option<String>,
        kinds: &Kinds,
    ) -> Result<(), String> {
        let state = &self.0;
        let kind = kinds.named(name.as_deref());
        let kind = kind.map_err(|error| format!("{error}; the main agent stays what it was"))?;
        let (Some(main), Some((engine, _))) = (state.reload.main.get(), state.access.engine())
        else {
            return Ok(());
        };
        let before = main
            .kind
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if before == kind {
            return Ok(());
        }
        if let Some(kind) = &kind {
            check_main_agent(&engine, kind)?;
            main.servers.join(kind);
        }
        let (config, names) = (&state.config, &state.names);
        let was = model_settings(before.as_ref(), config, names, &main.settings).await;
        let is = model_settings(kind.as_ref(), config, names, &main.settings).await;
        // A model that a person has chosen meanwhile stays, where the kinds do not differ in theirs.
        let model = (was != is).then(|| MainAgentModel {
            window: names.window_of(&is.name),
            name: is.name.clone(),
            plan_name: is.plan_name.clone(),
            effort: is.effort.clone(),
        });
        if let Some(model) = &model {
            state.budget.covers(&model.name);
            state.starts_with(&is);
        }
        kinds.events.notice(
            NoticeLevel::Info,
            match &kind {
                Some(kind) => format!("the main agent is {} from now on", kind.name),
                None => "the main agent is of no kind any more".to_owned(),
            },
        );
        state.control.set_main_agent(MainAgentChange {
            system: main.prompt.of(kind.as_ref()),
            max_turns: limits(kind.as_ref(), config, main.limits.clone()).max_turns,
            model,
            kind: kind.clone(),
        });
        *main.kind.lock().unwrap_or_else(PoisonError::into_inner) = kind;
        Ok(())
    }
}
