//! Builds the session configuration from the flags of `haft -p`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use haft::SessionId;
use haft_host::{
    ConversationChoice, EarlierConversation, ModelChoice, ModelProvider, PromptTexts,
    SessionConfig, SetupHooks, ThinkingChoice,
};

use super::flags::{
    HeadlessFlags, InputFormat, ModelFlags, OutputFormat, PromptFlags, ProviderKind, SessionFlags,
    ThinkingFlag,
};
use crate::{VERSION, args::SessionArgs, session};

pub(crate) fn session_config(
    session: &SessionArgs,
    flags: &HeadlessFlags,
) -> anyhow::Result<SessionConfig> {
    let mut config = session::config(session)?;
    config.model = model(&flags.model)?;
    config.prompts = prompts(&flags.prompts)?;
    config.conversation = conversation(&flags.session)?;
    config.allow_bypass = flags.allow_dangerously_skip_permissions;
    config.max_turns = flags.max_turns.map(Into::into);
    config.max_budget_usd = flags.max_budget_usd;
    config.output_schema.clone_from(&flags.json_schema);
    if let Some(text) = &flags.agents {
        config.agents = serde_json::from_str(text)
            .context("--agents: expected a JSON object of agents by name")?;
    }
    config.agent.clone_from(&flags.agent);
    config.plugins = absolute_all(&flags.plugin_dir)?;
    config.without_slash_commands = flags.disable_slash_commands;
    config.mcp_servers.clone_from(&flags.mcp_config);
    config.strict_mcp = flags.strict_mcp_config;
    config.permission_tool = flags
        .permission_prompt_tool
        .clone()
        .filter(|tool| tool != "stdio");
    config.setup = SetupHooks {
        init: flags.init,
        init_only: flags.init_only,
        maintenance: flags.maintenance,
    };
    config.hooks_may_begin = flags.input_format == InputFormat::Text;
    config.reports_idle = flags.input_format == InputFormat::StreamJson;
    config.one_result = flags.output_format != OutputFormat::StreamJson;
    config.version = VERSION.to_owned();
    Ok(config)
}

pub(crate) fn model(flags: &ModelFlags) -> anyhow::Result<ModelChoice> {
    let prices = match &flags.prices {
        None => None,
        Some(given) => {
            let text = if given.trim_start().starts_with('{') {
                given.clone()
            } else {
                fs::read_to_string(given).with_context(|| format!("--prices {given}"))?
            };
            Some(serde_json::from_str(&text).context("--prices")?)
        }
    };
    Ok(ModelChoice {
        name: flags.model.clone(),
        fallbacks: flags.fallback_model.clone(),
        base_url: flags.base_url.clone(),
        provider: flags.provider.map(|provider| match provider {
            ProviderKind::Anthropic => ModelProvider::Anthropic,
            ProviderKind::Openai => ModelProvider::OpenAi,
        }),
        prices,
        thinking: flags.thinking.map(|thinking| match thinking {
            ThinkingFlag::Adaptive => ThinkingChoice::Adaptive,
            ThinkingFlag::Disabled => ThinkingChoice::Disabled,
        }),
        max_thinking_tokens: flags.max_thinking_tokens,
        effort: flags.effort.clone(),
        betas: flags.betas.clone(),
        record: absolute(flags.record.as_deref())?,
        replay: absolute(flags.replay.as_deref())?,
        script: absolute(flags.script.as_deref())?,
    })
}

pub(crate) fn prompts(flags: &PromptFlags) -> anyhow::Result<PromptTexts> {
    Ok(PromptTexts {
        system: text(
            flags.system_prompt.as_ref(),
            flags.system_prompt_file.as_deref(),
        )?,
        append: text(
            flags.append_system_prompt.as_ref(),
            flags.append_system_prompt_file.as_deref(),
        )?,
        append_subagent: flags.append_subagent_system_prompt.clone(),
        environment_in_message: flags.exclude_dynamic_system_prompt_sections,
    })
}

fn text(given: Option<&String>, file: Option<&Path>) -> anyhow::Result<Option<String>> {
    match (given, file) {
        (Some(text), _) => Ok(Some(text.clone())),
        (None, Some(path)) => fs::read_to_string(path)
            .with_context(|| path.display().to_string())
            .map(Some),
        (None, None) => Ok(None),
    }
}

fn conversation(flags: &SessionFlags) -> anyhow::Result<ConversationChoice> {
    let id = match &flags.session_id {
        None => None,
        Some(text) => {
            let id = text.parse().ok();
            Some(SessionId(id.with_context(|| {
                format!("--session-id {text}: expected a UUID")
            })?))
        }
    };
    let from = match (&flags.resume, flags.go_on) {
        (Some(name), _) if name.is_empty() => {
            anyhow::bail!("--resume: no session was named; `haft sessions list` shows them")
        }
        (Some(name), _) => Some(EarlierConversation::Named(name.clone())),
        (None, true) => Some(EarlierConversation::Newest),
        (None, false) => None,
    };
    Ok(ConversationChoice {
        from,
        fork: flags.fork_session,
        until: flags.resume_session_at.clone(),
        drops_turn: flags.resume_drops_turn.clone(),
        id,
        forget: flags.no_session_persistence,
        mirror: flags.session_mirror,
        title: flags.name.clone(),
    })
}

fn absolute(path: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    Ok(path.map(std::path::absolute).transpose()?)
}

pub(crate) fn absolute_all(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let paths = paths.iter().map(std::path::absolute);
    Ok(paths.collect::<Result<_, _>>()?)
}
