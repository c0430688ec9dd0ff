//! A session of the agent, from its configuration to its end.
//!
//! A front end opens an [`AgentSession`] with a configuration, sends messages through its
//! [`SessionInput`], and receives its [`SessionEvent`]s.

use std::sync::{Arc, Mutex, atomic::AtomicBool};

use haft_agent::{Agent, AgentHandle, Prompt, RunLimits};
use haft_contract::{BoxFuture, Content, DynTool, PermissionMode, ProgressSender};
use haft_engine::hooks::HookEventKind;
use serde_json::{Map, Value};

use crate::{
    OpenError, SessionActivity, SessionConfig, SessionEvent, SessionInput, SessionParts, StopKind,
    background::BackgroundWatcher,
    budget::UnpricedModelWarning,
    conversation,
    event::{EventEmitter, SessionEndGuard},
    extensions::SessionExtensions,
    input::SharedState,
    mcp, mentions,
    model::{self, SelectedModel},
    plugins,
    progress::ProgressForwarder,
    questions::EventQuestions,
    queue::{NextMessage, PromptQueue},
    resolved_settings::{self, ResolvedSettings},
    schedules::SessionSchedules,
    session_parts::QuestionTarget,
    setup::{SandboxProbe, SessionPlan},
    slash::{ResumeConversation, SlashCommands, StartConversation},
    stop_signal::StopSignal,
    structured_output::OutputSchema,
    subagents::AgentKinds,
    telemetry::SessionTelemetry,
    turn_loop::TurnLoop,
};

/// A session without a front end. [`open`](Self::open) reads the settings, chooses the model and
/// loads the extensions. [`run`](Self::run) waits for the first message, sets up everything else,
/// and answers messages until the input is closed.
pub struct AgentSession {
    pub(crate) config: SessionConfig,
    pub(crate) settings: ResolvedSettings,
    pub(crate) model: SelectedModel,
    pub(crate) output_schema: Option<OutputSchema>,
    pub(crate) extensions: SessionExtensions,
    pub(crate) events: Arc<EventEmitter>,
    pub(crate) question_target: QuestionTarget,
    pub(crate) link: Option<Arc<dyn crate::ServerLink>>,
    pub(crate) elicitations: Option<Arc<dyn crate::ElicitationHost>>,
    pub(crate) editor: Option<Arc<dyn haft_contract::EditorFiles>>,
    pub(crate) tools: Vec<Arc<dyn DynTool>>,
    pub(crate) progress: Option<ProgressSender>,
    pub(crate) progress_forwarder: Option<ProgressForwarder>,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) sandbox_probe: SandboxProbe,
}

/// The outcome of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionEnd {
    /// The kind of stop, if the front end stopped the session.
    pub stopped: Option<StopKind>,
    /// Whether the run for the last message failed.
    pub has_failed: bool,
    /// Whether calls were denied.
    pub has_denials: bool,
    /// Whether the session ended without a prompt: no message arrived, and no hook provided one.
    pub had_no_prompt: bool,
}

impl AgentSession {
    /// Reads everything that is needed before the first message. Does not run any program from the
    /// workspace. Must be called inside a tokio runtime.
    pub fn open(config: SessionConfig, parts: SessionParts) -> Result<Self, OpenError> {
        Ok(open(config, parts)?)
    }

    /// Returns the input of the session.
    pub fn input(&self) -> SessionInput {
        SessionInput(Arc::clone(&self.shared))
    }

    /// Returns whether the session can start without a message, because hooks may provide the first
    /// prompt, a deferred call may run, or only the setup hooks have to run.
    pub fn can_start_without_message(&self) -> bool {
        let has_no_hooks = self
            .settings
            .hooks
            .has_no_handlers(HookEventKind::SESSION_START);
        // A resumed session may run a deferred call without another message.
        let is_resumed = self.config.conversation.from.is_some();
        self.config.setup.init_only || !has_no_hooks || is_resumed
    }

    /// Runs the session until the input is closed and every message is answered, or until it is
    /// stopped.
    pub async fn run(self) -> Result<SessionEnd, OpenError> {
        let events = Arc::clone(&self.events);
        let _end_guard = SessionEndGuard(Arc::clone(&events));
        let shared = Arc::clone(&self.shared);
        let end = self.boxed_run().await;
        if let Some(telemetry) = events.telemetry() {
            telemetry.close(shared.stop.requested()).await;
        }
        Ok(end?)
    }

    /// Like [`run`](Self::run), but submits one message and closes the input.
    pub async fn answer(self, prompt: impl Into<Prompt>) -> Result<SessionEnd, OpenError> {
        let input = self.input();
        input.prompt(prompt);
        input.close();
        self.run().await
    }

    /// Boxes the future of the session, so that its code is compiled only in this crate and not in
    /// each crate that awaits it.
    fn boxed_run(self) -> BoxFuture<'static, anyhow::Result<SessionEnd>> {
        Box::pin(self.run_session())
    }

    /// Runs the lifecycle of the session, step by step.
    async fn run_session(mut self) -> anyhow::Result<SessionEnd> {
        let _servers = ServerShutdownGuard(Arc::clone(&self.shared));
        let Some(first_message) = self.first_message().await? else {
            return Ok(self.unanswered_end());
        };
        let resolution = self.model.resolve(&self.shared.control);
        let Some(resolved) = self.shared.stop.run_until_stopped(resolution).await else {
            return Ok(self.unanswered_end());
        };
        resolved?;
        self.wrap_model_for_telemetry();
        let mut plan = self.plan_session().await?;
        self.announce(&mut plan).await?;
        let setting_up = self.shared.queue.start_setup();
        let Some(tools) = self.connect(&plan, &setting_up).await? else {
            return Ok(self.unanswered_end());
        };
        let mut assembled = self.assemble(&mut plan, tools).await?;
        let home = self.config.environment.home();
        let servers = Arc::clone(&self.shared.servers);
        let expander = mentions::mention_expander(home, servers, Arc::clone(&self.events));
        assembled.agent.set_mention_expander(expander);
        let first_message = self
            .opening_message(first_message, &plan, &mut assembled.agent)
            .await;
        // A deferred call runs without another message.
        let is_silent = first_message.is_none() && !assembled.agent.has_deferred_call();
        if is_silent || (first_message.is_none() && self.config.setup.init_only) {
            assembled.agent.end_session("other", &*self.events).await;
            return Ok(SessionEnd {
                had_no_prompt: true,
                ..self.unanswered_end()
            });
        }
        let environment = assembled.environment.take();
        let first_message =
            first_message.map(|first_message| plan.with_context(first_message, environment));
        let background_tasks = assembled.agent.background_tasks().unwrap_or_default();
        let environment = &self.config.environment;
        let background = BackgroundWatcher::watch(background_tasks, &self.events, environment)?;
        if setting_up.is_cancelled() {
            self.shared.control.interrupt_next();
        }
        let mut turn_loop = TurnLoop {
            agent: &mut assembled.agent,
            shared: &self.shared,
            background,
            events: &self.events,
            output_schema: plan.shape.as_ref(),
            one_result: self.config.one_result,
            commands: SlashCommands {
                skills: assembled.skills,
                can_launch_subagents: assembled.launches,
                servers: Some(Arc::clone(&self.shared.servers)),
                folder: assembled.folder,
                start_conversation: Some(self.conversation_starter()),
                resume_conversation: Some(self.conversation_resumer()),
                input: Some(self.input()),
            },
            reports_idle: self.config.reports_idle,
        };
        let end = turn_loop.run(first_message).await;
        assembled.watches.end().await;
        plan.subagents.close().await;
        self.leave_worktree().await;
        self.shared.servers.close().await;
        let end = end?;
        self.finish(&plan, &mut assembled.agent).await;
        Ok(end)
    }

    /// Wraps the model so that telemetry records its replies, if telemetry is on.
    fn wrap_model_for_telemetry(&mut self) {
        if let Some(telemetry) = self.events.telemetry() {
            let (selected, config) = (&mut self.model, &self.config);
            let provider = selected.provider_name(&config.model, &config.environment);
            let model = Arc::clone(&selected.model);
            selected.model = telemetry.wrap_model(model, provider, selected.prices.clone());
        }
    }

    /// Returns the function that creates the conversation after `/clear`.
    fn conversation_starter(&self) -> Box<StartConversation> {
        let (config, events) = (self.config.clone(), Arc::clone(&self.events));
        Box::new(move || conversation::new_conversation(&config, &events))
    }

    /// Returns the function that opens another conversation for `/resume`.
    fn conversation_resumer(&self) -> Box<ResumeConversation> {
        let (config, events) = (self.config.clone(), Arc::clone(&self.events));
        Box::new(move |name| conversation::resume(&config, name, &events))
    }

    /// Waits for the first message. Returns `None` if the session ends without starting, and
    /// `Some(None)` if it starts without a message.
    async fn first_message(&self) -> anyhow::Result<Option<Option<NextMessage>>> {
        let SharedState {
            queue,
            stop,
            control,
            ..
        } = &*self.shared;
        let first = stop.run_until_stopped(async {
            loop {
                tokio::select! {
                    biased;
                    message = queue.next(control) => return message,
                    () = self.shared.wait_until_due() => {
                        if let Some(scheduled) = self.shared.take_due() {
                            return Ok(Some(scheduled));
                        }
                    }
                }
            }
        });
        let first = first.await.transpose()?.flatten();
        let may_start_alone = self.config.hooks_may_begin && self.can_start_without_message();
        let ends_now = first.is_none() && (!may_start_alone || stop.requested().is_some());
        Ok((!ends_now).then_some(first))
    }

    /// Runs the hooks for the start of the session and returns its first message. A prompt from hooks
    /// comes before the user's message.
    async fn opening_message(
        &self,
        first_message: Option<NextMessage>,
        plan: &SessionPlan,
        agent: &mut Agent,
    ) -> Option<NextMessage> {
        if let Some(title) = self.config.conversation.title.as_ref().or(plan.title()) {
            agent.transcript().set_title(title);
        }
        let setup = self.config.setup;
        let events = &*self.events;
        let opening = self.shared.stop.run_until_stopped(async {
            if setup.init || setup.init_only {
                agent.setup("init", events).await;
            }
            if setup.maintenance {
                agent.setup("maintenance", events).await;
            }
            match setup.init_only {
                true => SessionOpening::EndsNow,
                false => agent
                    .start_session(events)
                    .await
                    .map_or(SessionOpening::NoPrompt, SessionOpening::HookPrompt),
            }
        });
        // If the session is stopped here, the first run still starts. It ends immediately and reports
        // the stop.
        match opening.await.unwrap_or(SessionOpening::NoPrompt) {
            SessionOpening::EndsNow => None,
            SessionOpening::NoPrompt => first_message,
            SessionOpening::HookPrompt(prompt) => {
                if let Some(first_message) = first_message {
                    self.shared.queue.push_front(first_message);
                }
                Some(Prompt::from(prompt).into())
            }
        }
    }

    /// Removes the worktree that the session is in, unless it contains changes. Reports what remains.
    async fn leave_worktree(&self) {
        let worktrees = self.shared.access.service::<haft_contract::Worktrees>();
        if let Some(worktrees) = worktrees
            && let Some(notice) = worktrees.0.close().await
        {
            self.events.warn(notice);
        }
    }

    /// Runs the SessionEnd hooks, reports the remaining warnings, and deletes the conversation if it
    /// is not to be saved.
    async fn finish(&mut self, plan: &SessionPlan, agent: &mut Agent) {
        agent.end_session("other", &*self.events).await;
        let replays = self.model.replay.iter();
        for divergence in replays.flat_map(haft_models::Replay::divergences) {
            self.events.warn(divergence.to_string());
        }
        if self.config.conversation.forget {
            conversation::delete_unsaved(&self.config, plan.id, &self.events);
        }
    }

    /// Returns the outcome of a session that has answered no message.
    fn unanswered_end(&self) -> SessionEnd {
        SessionEnd {
            stopped: self.shared.stop.requested(),
            ..SessionEnd::default()
        }
    }

    /// Reports that the session is busy.
    pub(crate) fn emit_running(&self) {
        let running = SessionEvent::Activity(SessionActivity::Running);
        self.events.emit(&running);
    }
}

/// Shuts down the MCP servers and removes unused caches when the session ends, also after an error.
struct ServerShutdownGuard(Arc<SharedState>);

impl Drop for ServerShutdownGuard {
    fn drop(&mut self) {
        self.0.servers.close_now();
        #[cfg(feature = "shell")]
        if let Some(shell) = self.0.access.service::<haft_tools::ShellService>() {
            shell.remove_unused_caches();
        }
    }
}

/// The result of the hooks for the start of a session.
enum SessionOpening {
    /// Only the setup hooks had to run, so the session ends.
    EndsNow,
    /// The prompt that hooks provide. It comes before the user's message.
    HookPrompt(String),
    /// The hooks provide no prompt.
    NoPrompt,
}

fn open(mut config: SessionConfig, parts: SessionParts) -> anyhow::Result<AgentSession> {
    let sandbox_probe = SandboxProbe::start(&config);
    let events = Arc::new(EventEmitter::new(parts.events));
    let mut resolved = ResolvedSettings::load(&config).map_err(OpenError::into_inner)?;
    // The settings may set environment variables that determine the provider.
    config.environment = resolved.environment.clone();
    let environment = config.environment.clone();
    if let Some(telemetry) = SessionTelemetry::from_environment(&environment, &events) {
        events.set_telemetry(telemetry);
    }
    let selected = model::select_model(&config, &resolved.settings, parts.model)?;
    run_limits(&config)?;
    let output_schema = config.output_schema.as_deref();
    let output_schema = output_schema.map(OutputSchema::parse).transpose()?;
    let extensions = SessionExtensions::load(&config, &resolved);
    for warning in extensions.warnings() {
        events.warn(warning);
    }
    #[cfg(feature = "shell")]
    for worktree in haft_tools::worktree::orphaned_worktrees(&config.cwd) {
        events.warn(worktree.notice());
    }
    let (plugin_servers, plugin_main_agent) = apply_plugins(&mut resolved, &extensions, &events);
    let servers = Arc::new(mcp::collect_servers(&config, &resolved, &plugin_servers)?);
    let trusted = resolved.settings.trust.runs;
    let kinds = AgentKinds::find(&config, &extensions, trusted, &events);
    let user_folder = &resolved.settings.places.user;
    let clock = Arc::clone(&parts.clock);
    let schedules = SessionSchedules::open(&config, user_folder, parts.clock, &events);
    // Restore the schedules of the conversation now, because the first message may arrive much later.
    let session_folder = conversation::find_resumable(&mut config);
    if let (Some(schedules), Some(session_folder)) = (&schedules, session_folder) {
        schedules.restore_folder(&session_folder);
    }
    let shared = Arc::new(SharedState {
        schedules,
        clock,
        queue: PromptQueue::default(),
        control: AgentHandle::default(),
        stop: StopSignal::default(),
        servers,
        roots: Arc::default(),
        access: crate::session_access::SessionAccess::default(),
        questions: Arc::new(EventQuestions::new(Arc::clone(&events))),
        kinds: Mutex::new(kinds),
        extensions: extensions.details(),
        reload: extensions.reload(&config, &resolved, plugin_main_agent.as_deref()),
        initial_model: Mutex::new((selected.settings.name.clone(), selected.settings.window)),
        names: selected.names.clone(),
        budget: UnpricedModelWarning::new(&config, &selected, &events),
        bypass_allowed: check_bypass(&config, &resolved),
        environment,
        model_answers_shell: resolved.settings.merged()["respondToBashCommands"] != false,
        config: config.clone(),
        settings: resolved.clone(),
        doctor: parts.doctor,
        is_detached: AtomicBool::new(false),
    });
    Ok(AgentSession {
        config,
        settings: resolved,
        model: selected,
        output_schema,
        extensions,
        events,
        question_target: parts.question_target,
        link: parts.servers,
        elicitations: parts.elicitations,
        editor: parts.editor,
        tools: parts.tools,
        progress: parts.progress,
        progress_forwarder: None,
        shared,
        sandbox_probe,
    })
}

/// Applies the hooks and language servers of the plugins. Returns their MCP servers, and the agent
/// kind that they set for the main agent.
fn apply_plugins(
    settings: &mut ResolvedSettings,
    extensions: &SessionExtensions,
    events: &EventEmitter,
) -> (Map<String, Value>, Option<String>) {
    let additions = plugins::additions(&extensions.places, settings);
    for warning in additions.warnings {
        events.warn(warning);
    }
    settings.hooks = settings.hooks.clone().with_handlers(additions.handlers);
    settings.plugin_servers = additions.language_servers;
    (additions.servers, additions.agent)
}

/// Checks whether the permission mode may be switched to bypassPermissions later. The error is the
/// reason why not.
fn check_bypass(config: &SessionConfig, resolved: &ResolvedSettings) -> Result<(), String> {
    if resolved.mode == PermissionMode::BypassPermissions {
        return Ok(());
    }
    if !config.allow_bypass {
        return Err(match config.names_flags {
            true => {
                "bypassPermissions needs --dangerously-skip-permissions or \
                     --allow-dangerously-skip-permissions on the command line"
            }
            false => "bypassPermissions was not allowed when the session was set up (allow_bypass)",
        }
        .to_owned());
    }
    resolved_settings::may_bypass(&resolved.settings, &config.environment)
        .map_err(|error| error.to_string())
}

/// Returns the limits at which a run ends even if the model is not done.
pub(crate) fn run_limits(config: &SessionConfig) -> anyhow::Result<RunLimits> {
    let mut limits = RunLimits::default();
    limits.max_turns = match config.max_turns {
        Some(max) => Some(max),
        None => {
            let max = config.environment.number("CLAUDE_CODE_MAX_TURNS")?;
            max.filter(|max| *max > 0)
        }
    };
    if let Some(max) = config.max_budget_usd {
        anyhow::ensure!(
            max > 0.0 && max.is_finite(),
            "a budget of {max} USD: expected an amount above 0"
        );
        limits.max_budget_usd = Some(max);
    }
    Ok(limits)
}

impl SessionPlan {
    /// Inserts the environment and the main agent's initial prompt before the first message.
    fn with_context(&mut self, mut next: NextMessage, environment: Option<String>) -> NextMessage {
        let first = &mut next.prompt;
        let main_agent = self.main.take();
        if let Some(prompt) = main_agent.and_then(|main_agent| main_agent.initial_prompt) {
            first.content.insert(0, Content::text(prompt));
        }
        if let Some(environment) = environment {
            first.content.insert(0, Content::text(environment));
        }
        next
    }
}
