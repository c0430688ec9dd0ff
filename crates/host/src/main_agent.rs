//! The kind of the main agent, as named by the configuration, the settings or a plugin. It can
//! change in a running session.

use std::sync::{Mutex, PoisonError};

use haft_agent::{
    ModelSettings, NoticeLevel, RunLimits,
    prompt::SystemPrompt,
    subagents::{MainAgentChange, MainAgentModel, check_main_agent},
};
use haft_extensions::{AgentDefinition, styles::OutputStyle};

use crate::{
    SessionConfig, SessionInput, mcp::AgentServers, model_names::ModelNames,
    resolved_settings::ResolvedSettings, subagents::AgentKinds,
};

/// Returns the name of the main agent's kind: from the configuration, otherwise the settings,
/// otherwise a plugin.
pub(crate) fn name(
    config: &SessionConfig,
    permitted: &ResolvedSettings,
    of_plugins: Option<&str>,
) -> Option<String> {
    let of_settings = || {
        let merged = permitted.settings.merged();
        merged["agent"].as_str().map(str::to_owned)
    };
    let named = config.agent.clone().or_else(of_settings);
    named.or_else(|| of_plugins.map(str::to_owned))
}

/// Returns the model settings for an agent of this kind. If its model is not available, the
/// session's is used.
pub(crate) async fn model_settings(
    kind: Option<&AgentDefinition>,
    config: &SessionConfig,
    names: &ModelNames,
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

/// Returns the limits for an agent of this kind. The configuration overrides the kind.
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

/// The parts of the system prompt besides the prompt of a kind.
pub(crate) struct PromptParts {
    pub(crate) plain: SystemPrompt,
    pub(crate) style: Option<OutputStyle>,
}

impl PromptParts {
    /// Returns the system prompt of an agent of this kind, with the active output style.
    pub(crate) fn system_prompt_for(&self, kind: Option<&AgentDefinition>) -> SystemPrompt {
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

/// The main agent of a running session, and the parts needed to change its kind.
pub(crate) struct MainAgent {
    pub(crate) kind: Mutex<Option<AgentDefinition>>,
    pub(crate) prompt: PromptParts,
    /// The limits of an agent without a kind.
    pub(crate) limits: RunLimits,
    pub(crate) settings: ModelSettings,
    pub(crate) servers: AgentServers,
}

impl SessionInput {
    /// Sets the main agent's kind to the one with this name, from the next request on. The error is
    /// the reason why it stays unchanged.
    pub(crate) async fn update_main_agent(
        &self,
        name: Option<String>,
        kinds: &AgentKinds,
    ) -> Result<(), String> {
        let state = &self.0;
        let kind = kinds.find_kind(name.as_deref());
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
            main.servers.add_main_agent_servers(kind);
        }
        let (config, names) = (&state.config, &state.names);
        let was = model_settings(before.as_ref(), config, names, &main.settings).await;
        let is = model_settings(kind.as_ref(), config, names, &main.settings).await;
        // If both kinds use the same model, a model that the user has chosen since stays.
        let model = (was != is).then(|| MainAgentModel {
            window: names.window_of(&is.name),
            name: is.name.clone(),
            plan_name: is.plan_name.clone(),
            effort: is.effort.clone(),
        });
        if let Some(model) = &model {
            state.budget.warn_if_unpriced(&model.name);
            state.set_initial_model(&is);
        }
        kinds.events.notice(
            NoticeLevel::Info,
            match &kind {
                Some(kind) => format!("the main agent is {} from now on", kind.name),
                None => "the main agent no longer has an agent kind".to_owned(),
            },
        );
        state.control.set_main_agent(MainAgentChange {
            system: main.prompt.system_prompt_for(kind.as_ref()),
            max_turns: limits(kind.as_ref(), config, main.limits.clone()).max_turns,
            model,
            kind: kind.clone(),
        });
        *main.kind.lock().unwrap_or_else(PoisonError::into_inner) = kind;
        Ok(())
    }
}
