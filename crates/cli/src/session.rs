//! Opens sessions according to the command line.

use std::{env, path::PathBuf};

use anyhow::Context;
use haft::{Haft, ProgressSender, engine::permissions::SettingsScope};
use haft_host::{
    QuestionHandler, SessionConfig, SessionEvent, SessionParts, ToolTelemetry, open_agent_tools,
    open_tools,
};

use crate::{args::SessionArgs, show, terminal_approver::TerminalApprover};

/// Returns the working directory of the session.
pub(crate) fn cwd(session: &SessionArgs) -> anyhow::Result<PathBuf> {
    match &session.cwd {
        Some(cwd) => std::path::absolute(cwd).context("the directory cannot be found"),
        None => env::current_dir().context("the current directory cannot be found"),
    }
}

/// Returns the session configuration for the flags. Paths in flags are relative to the current
/// directory, not to the session's working directory.
pub(crate) fn config(session: &SessionArgs) -> anyhow::Result<SessionConfig> {
    let mut config = SessionConfig::new(cwd(session)?);
    config.program = env::current_exe().ok();
    config.names_flags = true;
    config.settings.settings = session.settings.as_deref().map(given).transpose()?;
    let sources = session.setting_sources.as_deref();
    config.settings.sources = sources.map(scopes).transpose()?;
    config.permission_mode = session.permission_mode.map(Into::into);
    if session.dangerously_skip_permissions {
        config.permission_mode = Some(haft::PermissionMode::BypassPermissions);
    }
    config.allow.clone_from(&session.allowed_tools);
    config.deny.clone_from(&session.disallowed_tools);
    for directory in &session.add_dir {
        config.directories.push(std::path::absolute(directory)?);
    }
    config.tools.clone_from(&session.tools);
    config.tool_budget = session.tool_budget;
    config.bare = session.bare;
    config.concurrency = session.max_concurrency.map(Into::into);
    Ok(config)
}

/// Opens the tools of the session. Questions go to the user at the terminal, if any.
pub(crate) async fn tools(
    session: &SessionArgs,
    telemetry: Option<&ToolTelemetry>,
) -> anyhow::Result<Haft> {
    let mut parts = SessionParts::new(warn);
    if let Some(telemetry) = telemetry {
        parts = parts.telemetry(telemetry.clone());
    }
    if let Some(terminal) = TerminalApprover::from_stdio() {
        parts = parts.questions(terminal);
    }
    Ok(open_tools(&config(session)?, parts).await?)
}

/// Like [`tools`], but with the given handlers for questions and progress.
pub(crate) async fn asking(
    session: &SessionArgs,
    questions: impl QuestionHandler + 'static,
    progress: ProgressSender,
    telemetry: &ToolTelemetry,
) -> anyhow::Result<Haft> {
    let parts = SessionParts::new(warn)
        .telemetry(telemetry.clone())
        .questions(questions)
        .progress(progress);
    Ok(open_tools(&config(session)?, parts).await?)
}

/// Like [`tools`], but includes the tools that only agents have.
pub(crate) async fn agent_tools(session: &SessionArgs) -> anyhow::Result<Haft> {
    // The warnings were already reported when the other tools were opened.
    let parts = SessionParts::new(|_: &SessionEvent| {});
    Ok(open_agent_tools(&config(session)?, parts).await?)
}

/// Prints the session events that the user must know about.
pub(crate) fn warn(event: &SessionEvent) {
    match event {
        SessionEvent::Warning(text) => show::warn(&format!("haft: {}", show::clean(text))),
        SessionEvent::RulesKept { file, problem } => {
            let file = show::clean(&file.display().to_string());
            match problem {
                None => show::warn(&format!("  saved in {file}")),
                Some(problem) => show::warn(&format!(
                    "haft: {file}: the rule could not be saved ({problem}); it applies to this session only"
                )),
            }
        }
        _ => {}
    }
}

/// Prints warnings about the settings.
pub(crate) fn report(warnings: Vec<String>) {
    for warning in warnings {
        warn(&SessionEvent::Warning(warning));
    }
}

fn given(settings: &str) -> anyhow::Result<String> {
    if settings.trim_start().starts_with('{') {
        return Ok(settings.to_owned());
    }
    let path = std::path::absolute(settings).context("--settings")?;
    path.into_os_string()
        .into_string()
        .map_err(|_| anyhow::anyhow!("--settings: the path is not UTF-8"))
}

fn scopes(list: &str) -> anyhow::Result<Vec<SettingsScope>> {
    let names = list
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    names
        .map(|name| match name {
            "user" => Ok(SettingsScope::User),
            "project" => Ok(SettingsScope::Project),
            "local" => Ok(SettingsScope::Local),
            other => anyhow::bail!("--setting-sources {other}: expected user, project or local"),
        })
        .collect()
}
