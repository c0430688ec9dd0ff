//! Assembles the tools of a session from its configuration.

use std::{path::Path, sync::Arc};

use anyhow::Context;
use haft_contract::{
    Approver, BoxFuture, DynTool, EditorFiles, OnWeakSandbox, PendingServers, ProgressSender,
    Schedules, SessionId, SettingsAccess, Subagents, UserNotifier, WebSocketConnector,
};
use haft_engine::{
    CallListener, ToolFilters,
    hooks::{HookEventSink, HookHandler, HookModelProvider},
    pool::{DeferralMode, ToolSelection},
    settings::{LocalRules, SettingsFiles, SettingsWatch},
};
use haft_mcp::client::Servers;
use haft_models::{Http, HttpOptions, WebSockets};
use haft_tools::SkillService;

use crate::{
    Haft, HaftBuilder, OpenError, SessionClock, SessionConfig, SessionParts,
    budget::UnpricedModelWarning,
    event::EventEmitter,
    extensions::SessionExtensions,
    mcp::HookServers,
    model,
    notifications::EventNotifier,
    questions::{self, EventQuestions},
    resolved_settings::{self, LocalRuleStore, ResolvedSettings},
    schedules::SessionSchedules,
    structured_output::AnswerTool,
    subagents::AgentKinds,
};

/// The parts that a session with a model adds to a session of tools.
#[derive(Default)]
pub(crate) struct AgentAdditions {
    /// The session id. Default: a new one.
    pub(crate) id: Option<SessionId>,
    /// Additional hook handlers.
    pub(crate) handlers: Vec<HookHandler>,
    /// The model that makes the calls.
    pub(crate) model: Option<String>,
    /// The size of the model's context window in tokens.
    pub(crate) window: Option<u64>,
    /// The model that hooks may ask.
    pub(crate) hook_model: Option<Arc<dyn HookModelProvider>>,
    /// The servers whose tools hooks may call.
    pub(crate) servers: Option<Arc<Servers>>,
    /// The receiver of hook events.
    pub(crate) hook_events: Option<Arc<dyn HookEventSink>>,
    /// Whether hooks may defer calls.
    pub(crate) defers: bool,
    /// The embedder's tools.
    pub(crate) embedder_tools: Vec<Arc<dyn DynTool>>,
    /// Tools of MCP servers.
    pub(crate) server_tools: Vec<Arc<dyn DynTool>>,
    /// The tool for an answer with an output schema.
    pub(crate) answer: Option<AnswerTool>,
    /// The receiver of progress updates.
    pub(crate) progress: Option<ProgressSender>,
    /// The service that launches subagents.
    pub(crate) subagents: Option<Arc<Subagents>>,
    /// The service for schedules.
    pub(crate) schedules: Option<Arc<Schedules>>,
    /// The skills.
    pub(crate) skills: Option<Arc<SkillService>>,
    /// The servers that are still connecting.
    pub(crate) pending_servers: Option<Arc<dyn PendingServers>>,
    /// The notifier through which the model notifies the user.
    pub(crate) notifier: Option<Arc<dyn UserNotifier>>,
    /// The editor whose files the session sees.
    pub(crate) editor: Option<Arc<dyn EditorFiles>>,
    /// The receiver of measurements of calls.
    pub(crate) listener: Option<Arc<dyn CallListener>>,
    /// The small model that reads pages, and the search backend.
    #[cfg(feature = "web")]
    pub(crate) web: crate::web::WebParts,
    /// Receives a warning if commands are confined less than they should be. Default: a warning
    /// event.
    pub(crate) on_weak_sandbox: Option<OnWeakSandbox>,
    /// The clock of the session. Default: that of the machine.
    pub(crate) clock: Option<Arc<dyn SessionClock>>,
}

/// Opens a session of tools with this configuration, without a model, for callers that make the
/// calls themselves.
pub async fn open_tools(config: &SessionConfig, parts: SessionParts) -> Result<Haft, OpenError> {
    #[cfg_attr(
        not(feature = "code"),
        expect(unused_mut, reason = "plugins provide servers")
    )]
    let mut permitted = ResolvedSettings::load(config)?;
    let config = &SessionConfig {
        environment: permitted.environment.clone(),
        ..config.clone()
    };
    #[cfg(feature = "code")]
    crate::language_servers::take_plugins(config, &mut permitted);
    let events = Arc::new(EventEmitter::new(parts.events));
    let questions = Arc::new(EventQuestions::new(Arc::clone(&events)));
    let approver = questions::approver(&parts.question_target, &questions, permitted.patience);
    let telemetry = parts.telemetry.as_ref();
    let telemetry = telemetry.and_then(|all| all.for_session(&config.environment, &events));
    if let Some(telemetry) = &telemetry {
        events.set_telemetry(Arc::clone(telemetry));
    }
    let additions = AgentAdditions {
        embedder_tools: parts.tools,
        progress: parts.progress,
        hook_events: telemetry.as_ref().map(|_| Arc::clone(&events) as _),
        listener: telemetry.as_ref().map(|one| one.listener()),
        clock: Some(parts.clock),
        ..AgentAdditions::default()
    };
    let haft = build(config, permitted, approver, &events, additions).await?;
    if let Some(telemetry) = telemetry {
        telemetry.set_session(haft.engine().session());
    }
    Ok(haft)
}

/// Like [`open_tools`], but for an MCP client, and with the skills that its users may call.
pub(crate) async fn open_served_tools(
    config: &SessionConfig,
    parts: SessionParts,
) -> Result<(Haft, Option<SkillService>), OpenError> {
    let permitted = ResolvedSettings::load(config)?;
    let own = SessionConfig {
        environment: permitted.environment.clone(),
        ..config.clone()
    };
    let extensions = SessionExtensions::load(&own, &permitted);
    let book = extensions.skill_service(SessionId::new(), None);
    // The session has no model whose use of skills could be counted.
    let book = book.map(|book| SkillService {
        records_reads: false,
        ..book
    });
    Ok((open_tools(config, parts).await?, book))
}

/// Like [`open_tools`], but with the tools that only an agent has, to show them to the user.
pub async fn open_agent_tools(
    config: &SessionConfig,
    parts: SessionParts,
) -> Result<Haft, OpenError> {
    let permitted = ResolvedSettings::load(config)?;
    let config = &SessionConfig {
        environment: permitted.environment.clone(),
        ..config.clone()
    };
    let events = Arc::new(EventEmitter::new(parts.events));
    let extensions = SessionExtensions::load(config, &permitted);
    let trusted = permitted.settings.trust.runs;
    let kinds = AgentKinds::find(config, &extensions, trusted, &events);
    let chosen = model::select_model(config, &permitted.settings, None)?;
    let subagents =
        kinds.build_pool(config, None, &chosen, UnpricedModelWarning::default(), None)?;
    let user_folder = &permitted.settings.places.user;
    let schedules = SessionSchedules::open(config, user_folder, parts.clock, &events);
    let id = SessionId::new();
    let additions = AgentAdditions {
        id: Some(id),
        embedder_tools: parts.tools,
        subagents: Some(subagents.service()),
        schedules: schedules.map(|schedules| schedules.service()),
        skills: extensions.skill_service(id, None).map(Arc::new),
        notifier: Some(EventNotifier::from_settings(
            &permitted.settings.merged(),
            &events,
        )),
        ..AgentAdditions::default()
    };
    let questions = Arc::new(EventQuestions::new(Arc::clone(&events)));
    let approver = questions::approver(&parts.question_target, &questions, permitted.patience);
    Ok(build(config, permitted, approver, &events, additions).await?)
}

/// Returns whether requests go through a proxy, which resolves and checks hosts itself.
#[cfg(feature = "shell")]
fn goes_through_proxy(environment: &crate::Environment) -> bool {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    let small = names.map(str::to_ascii_lowercase);
    let mut names = names.into_iter().chain(small.iter().map(String::as_str));
    names.any(|name| {
        environment
            .variable(name)
            .is_some_and(|value| !value.is_empty())
    })
}

/// Like [`open_tools`], but with settings that are already loaded.
///
/// Boxed, so that its code is compiled once, here, and not in each crate that awaits it.
pub(crate) fn build<'a>(
    config: &'a SessionConfig,
    permitted: ResolvedSettings,
    approver: Arc<dyn Approver>,
    events: &'a Arc<EventEmitter>,
    additions: AgentAdditions,
) -> BoxFuture<'a, anyhow::Result<Haft>> {
    Box::pin(build_tools(config, permitted, approver, events, additions))
}

async fn build_tools(
    config: &SessionConfig,
    permitted: ResolvedSettings,
    approver: Arc<dyn Approver>,
    events: &Arc<EventEmitter>,
    additions: AgentAdditions,
) -> anyhow::Result<Haft> {
    for warning in permitted.warnings() {
        events.warn(warning);
    }
    // If the sandbox is required, building the session fails instead.
    let sandbox = &permitted.sandbox;
    if let Some(missing) = sandbox.missing().filter(|_| !sandbox.required) {
        events.warn(format!(
            "{missing}: commands are asked about as if it were not set"
        ));
    }
    let rules = LocalRules {
        places: permitted.settings.places.clone(),
    };
    let files = SettingsFiles {
        places: permitted.settings.places.clone(),
        flags: permitted.flags.clone(),
        tools: resolved_settings::known_tools(),
        check: haft_engine::check_settings,
    };
    #[cfg(feature = "shell")]
    let untrusted = permitted.settings.places.untrusted();
    #[cfg(feature = "web")]
    let searcher = crate::web::setting(&permitted.settings);
    #[cfg(feature = "browser")]
    let browser = crate::browser_program(&permitted.settings, &config.environment, &config.cwd);
    let environment = &config.environment;
    #[cfg(feature = "browser")]
    let (secrets, problems) = crate::browser::browser_secrets(&permitted.settings, environment);
    #[cfg(feature = "browser")]
    for problem in problems {
        events.warn(problem);
    }
    #[cfg(feature = "code")]
    let code = crate::language_servers::setup(config, &permitted);
    #[cfg(feature = "code")]
    for problem in code.problems() {
        events.warn(problem);
    }
    let http = HttpOptions::from_variables(|name| environment.variable(name));
    let mut hooks = permitted
        .hooks
        .with_handlers(additions.handlers)
        .with_http(Arc::new(Http::new(http)), permitted.http_hooks);
    #[cfg(feature = "shell")]
    if !goes_through_proxy(environment) {
        let hosts = haft_tools::HookAddresses(haft_tools::sandbox::SystemResolver);
        hooks = hooks.with_hosts(Arc::new(hosts));
    }
    if let Some(judge) = additions.hook_model {
        hooks = hooks.with_model(judge);
    }
    if let Some(servers) = additions.servers {
        hooks = hooks.with_servers(Arc::new(HookServers(servers)));
    }
    if let Some(ear) = additions.hook_events {
        hooks = hooks.with_event_sink(ear);
    }
    let mut offered = filters(config, additions.window)?;
    // The user does not select this tool, but the model cannot answer without it.
    if let (Some(answer), ToolSelection::Only(names)) = (&additions.answer, &mut offered.tools) {
        names.push(answer.name().to_owned());
    }
    let mut builder = Haft::builder(&config.cwd)
        .environment(environment.clone())
        .plans(permitted.plans)
        .service(Arc::new(Arc::new(files) as Arc<dyn SettingsAccess>))
        .permission_mode(permitted.mode)
        .rules(permitted.rules)
        .hooks(hooks)
        .defers(additions.defers)
        .names_flags(config.names_flags)
        .sandbox(permitted.sandbox)
        .home(&permitted.settings.places.home)
        .keeper(Arc::new(LocalRuleStore {
            rules,
            events: Arc::clone(events),
        }))
        .watch(SettingsWatch::new(
            permitted.settings.places,
            permitted.flags,
        ))
        .filters(offered)
        .approver(approver);
    #[cfg(feature = "web")]
    {
        let with_web =
            crate::web::with_web(builder, environment, searcher.as_deref(), additions.web);
        builder = with_web.map_err(anyhow::Error::msg)?;
    }
    #[cfg(feature = "browser")]
    if let Some(program) = browser {
        builder = builder.service(Arc::new(program));
        if let Some(secrets) = secrets {
            builder = builder.service(Arc::new(secrets));
        }
    }
    if let Some(progress) = additions.progress {
        builder = builder.progress(progress);
    }
    for directory in &permitted.directories {
        builder = builder.directory(directory);
    }
    if let Some(most) = concurrency(config)? {
        builder = builder.concurrency(most);
    }
    #[cfg(feature = "memory")]
    if let Some(folder) = permitted.memory {
        builder = builder.service(Arc::new(haft_tools::MemoryFolder::new(folder)));
    }
    #[cfg(feature = "code")]
    if !code.is_off() {
        builder = builder.service(Arc::new(code));
    }
    #[cfg(feature = "shell")]
    {
        builder = builder.service(Arc::new(permitted.undo));
        builder = builder.service(Arc::new(untrusted));
    }
    #[cfg(feature = "search")]
    {
        if let Some(shared) = &config.search {
            builder = builder.service(shared.get_or_make(permitted.search_index.clone()));
        }
        builder = builder.service(Arc::new(permitted.search_index));
    }
    for tool in additions.embedder_tools {
        builder = builder.dyn_tool(tool);
    }
    if let Some(AnswerTool { tool, answer }) = additions.answer {
        builder = builder.dyn_tool(tool).service(answer);
    }
    for tool in additions.server_tools {
        builder = builder.external_tool(tool);
    }
    if let Some(id) = additions.id {
        builder = builder.session(id);
    }
    if let Some(model) = additions.model {
        builder = builder.model(model);
    }
    if let Some(folder) = &config.state_folder {
        builder = builder.session_folder(folder);
    }
    let sockets: Arc<dyn WebSocketConnector> = Arc::new(WebSockets);
    builder = builder.service(Arc::new(sockets));
    if let Some(subagents) = additions.subagents {
        builder = builder.service(subagents);
        #[cfg(feature = "shell")]
        {
            let worktrees = Arc::new(haft_tools::worktree::WorktreeService::default());
            let maker = haft_contract::Worktrees(Arc::clone(&worktrees) as _);
            builder = builder.service(worktrees).service(Arc::new(maker));
        }
    }
    if let Some(schedules) = additions.schedules {
        builder = builder.service(schedules);
    }
    if let Some(skills) = additions.skills {
        builder = builder.service(skills);
    }
    if config.for_programs {
        builder = builder
            .service(Arc::new(haft_tools::AlwaysFullResults))
            .without_cards();
    }
    if let Some(listener) = additions.listener {
        builder = builder.listener(listener);
    }
    if let Some(clock) = additions.clock {
        builder = builder.clock(clock);
    }
    if let Some(notifier) = additions.notifier {
        builder = builder.service(Arc::new(notifier));
    }
    if let Some(editor) = additions.editor {
        builder = builder.service(Arc::new(editor));
    }
    if let Some(pending) = additions.pending_servers {
        builder = builder.service(Arc::new(pending));
    }
    let warns = Arc::clone(events);
    let on_weak_sandbox: OnWeakSandbox = match additions.on_weak_sandbox {
        Some(learns) => learns,
        None => Arc::new(move |warning: &str| warns.warn(warning)),
    };
    if let Some(program) = &config.program {
        builder = add_program_services(builder, program, on_weak_sandbox);
    }
    let haft = builder.build().await?;
    for name in haft.unknown_tools() {
        events.warn(format!("no tool is called {name:?}; it is left out"));
    }
    for problem in haft.unusable_tools() {
        events.warn(format!("left out: {problem}"));
    }
    Ok(haft)
}

/// Adds the services with which the program confines commands and reads PDFs.
fn add_program_services(
    builder: HaftBuilder,
    program: &Path,
    on_weak_sandbox: OnWeakSandbox,
) -> HaftBuilder {
    #[cfg(feature = "pdf")]
    let builder = builder.service(Arc::new(haft_tools::PdfReader::new(program.into())));
    #[cfg(feature = "shell")]
    let builder = {
        let program = haft_tools::ShellProgram::new(program.into())
            .with_users_shell()
            .on_weak_sandbox(on_weak_sandbox.clone());
        builder.service(Arc::new(program))
    };
    let _ = (program, on_weak_sandbox); // unused in a build without both features
    builder
}

/// The usual share of the model's window for the definitions of tools, in percent.
const USUAL_SHARE: u64 = 10;
/// The minimum token budget for definitions: a model with a small window needs its tools too.
const MIN_BUDGET: usize = 8_000;
/// The assumed window of an unknown model.
const USUAL_WINDOW: u64 = 200_000;

fn filters(config: &SessionConfig, window: Option<u64>) -> anyhow::Result<ToolFilters> {
    let share = |percent: u64| -> usize {
        let window = window.unwrap_or(USUAL_WINDOW);
        usize::try_from(window.saturating_mul(percent) / 100).unwrap_or(usize::MAX)
    };
    let said = config.environment.variable("ENABLE_TOOL_SEARCH");
    let deferral = match said.as_deref() {
        _ if config.for_programs => DeferralMode::Off,
        None | Some("" | "true" | "1") => DeferralMode::On,
        Some("false" | "0") => DeferralMode::Off,
        Some("auto") => DeferralMode::At(share(USUAL_SHARE)),
        Some(other) => {
            let percent = other.strip_prefix("auto:");
            let percent = percent.and_then(|percent| percent.parse().ok());
            let percent = percent.filter(|percent| *percent <= 100);
            DeferralMode::At(share(percent.with_context(|| {
                format!("ENABLE_TOOL_SEARCH={other}: expected true, false, auto or auto:PERCENT")
            })?))
        }
    };
    let usual = share(USUAL_SHARE).max(MIN_BUDGET);
    let budget = config.tool_budget.unwrap_or(usual);
    Ok(ToolFilters {
        tools: config
            .tools
            .as_deref()
            .map_or(ToolSelection::All, ToolSelection::parse),
        simple: config.bare,
        deferral,
        budget: Some(budget),
        ..ToolFilters::default()
    })
}

/// Returns the concurrency from the configuration, our own variable, or the variable of the common
/// convention, in this order.
fn concurrency(config: &SessionConfig) -> anyhow::Result<Option<usize>> {
    if config.concurrency.is_some() {
        return Ok(config.concurrency);
    }
    for name in [
        "HAFT_MAX_TOOL_CONCURRENCY",
        "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY",
    ] {
        if let Some(value) = config.environment.variable(name) {
            let most: usize = value
                .parse()
                .ok()
                .filter(|most| *most > 0)
                .with_context(|| format!("{name}={value}: expected a number above 0"))?;
            return Ok(Some(most));
        }
    }
    Ok(None)
}
