//! A whole session: opened from a configuration, driven by its input, and reported by its events.

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
/// finds the extensions. [`run`](Self::run) waits for the first message, sets up everything else,
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

/// The end of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionEnd {
    /// The kind of stop, if it was stopped from outside.
    pub stopped: Option<StopKind>,
    /// The last message was not answered successfully.
    pub has_failed: bool,
    /// Calls were denied.
    pub has_denials: bool,
    /// No message arrived, and no hook provided one.
    pub was_silent: bool,
}

impl AgentSession {
    /// Reads everything that is needed before the first message. Nothing from the workspace runs
    /// yet. Needs a tokio runtime.
    pub fn open(config: SessionConfig, parts: SessionParts) -> Result<Self, OpenError> {
        Ok(open(config, parts)?)
    }

    /// Returns the input of the session.
    pub fn input(&self) -> SessionInput {
        SessionInput(Arc::clone(&self.shared))
    }

    /// Returns whether the session can start without a message: hooks may provide the first prompt,
    /// or the session only has to run the setup hooks.
    pub fn can_start_without_message(&self) -> bool {
        let silent = self
            .settings
            .hooks
            .has_no_handlers(HookEventKind::SESSION_START);
        // A resumed session may run a deferred call without another message.
        let resumes = self.config.conversation.from.is_some();
        self.config.setup.init_only || !silent || resumes
    }

    /// Runs the session until the input is closed and every message is answered, or until it is
    /// stopped.
    pub async fn run(self) -> Result<SessionEnd, OpenError> {
        let events = Arc::clone(&self.events);
        let _over = SessionEndGuard(Arc::clone(&events));
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

    /// Boxed, so that its code is compiled once, here, and not in each crate that awaits it.
    fn boxed_run(self) -> BoxFuture<'static, anyhow::Result<SessionEnd>> {
        Box::pin(self.run_session())
    }

    /// Runs the lifecycle of the session, step by step.
    async fn run_session(mut self) -> anyhow::Result<SessionEnd> {
        let _servers = ServerShutdownGuard(Arc::clone(&self.shared));
        let Some(first) = self.first_message().await? else {
            return Ok(self.end_state());
        };
        let resolving = self.model.resolve(&self.shared.control);
        let Some(resolved) = self.shared.stop.run_until_stopped(resolving).await else {
            return Ok(self.end_state());
        };
        resolved?;
        self.measure_model();
        let mut plan = self.plan_session().await?;
        self.announce(&mut plan).await?;
        let setting_up = self.shared.queue.start_setup();
        let Some(tools) = self.connect(&plan, &setting_up).await? else {
            return Ok(self.end_state());
        };
        let mut ready = self.assemble(&mut plan, tools).await?;
        let home = self.config.environment.home();
        let servers = Arc::clone(&self.shared.servers);
        let attach = mentions::mention_expander(home, servers, Arc::clone(&self.events));
        ready.agent.attach_with(attach);
        let first = self.opening_message(first, &plan, &mut ready.agent).await;
        // A deferred call runs without another message.
        let is_silent = first.is_none() && !ready.agent.has_deferred_call();
        if is_silent || (first.is_none() && self.config.setup.init_only) {
            ready.agent.end_session("other", &*self.events).await;
            return Ok(SessionEnd {
                was_silent: true,
                ..self.end_state()
            });
        }
        let environment = ready.environment.take();
        let first = first.map(|first| plan.with_context(first, environment));
        let tasks = ready.agent.background_tasks().unwrap_or_default();
        let environment = &self.config.environment;
        let background = BackgroundWatcher::watch(tasks, &self.events, environment)?;
        if setting_up.is_cancelled() {
            self.shared.control.interrupt_next();
        }
        let mut turns = TurnLoop {
            agent: &mut ready.agent,
            shared: &self.shared,
            background,
            events: &self.events,
            shape: plan.shape.as_ref(),
            one_result: self.config.one_result,
            commands: SlashCommands {
                book: ready.skills,
                launches: ready.launches,
                servers: Some(Arc::clone(&self.shared.servers)),
                folder: ready.folder,
                successor: Some(self.conversation_starter()),
                opens: Some(self.conversation_resumer()),
                input: Some(self.input()),
            },
            reports_idle: self.config.reports_idle,
        };
        let end = turns.run(first).await;
        ready.watches.end().await;
        plan.subagents.close().await;
        self.leave_worktree().await;
        self.shared.servers.close().await;
        let end = end?;
        self.finish(&plan, &mut ready.agent).await;
        Ok(end)
    }

    /// Wraps the model so that telemetry records its replies, if telemetry is on.
    fn measure_model(&mut self) {
        if let Some(telemetry) = self.events.telemetry() {
            let (chosen, config) = (&mut self.model, &self.config);
            let provider = chosen.provider_name(&config.model, &config.environment);
            let model = Arc::clone(&chosen.model);
            chosen.model = telemetry.wrap_model(model, provider, chosen.prices.clone());
        }
    }

    /// Returns the function that starts a new conversation when the current one is cleared.
    fn conversation_starter(&self) -> Box<StartConversation> {
        let (config, events) = (self.config.clone(), Arc::clone(&self.events));
        Box::new(move || conversation::successor(&config, &events))
    }

    /// Returns the function that resumes another conversation instead of the current one.
    fn conversation_resumer(&self) -> Box<ResumeConversation> {
        let (config, events) = (self.config.clone(), Arc::clone(&self.events));
        Box::new(move |name| conversation::resume(&config, name, &events))
    }

    /// Waits for the first message. The outer `None` means that the session ends without starting.
    /// The inner `None` means that it starts without a message.
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
                        if let Some(due) = self.shared.take_due() {
                            return Ok(Some(due));
                        }
                    }
                }
            }
        });
        let first = first.await.transpose()?.flatten();
        let alone = self.config.hooks_may_begin && self.can_start_without_message();
        let is_over = first.is_none() && (!alone || stop.requested().is_some());
        Ok((!is_over).then_some(first))
    }

    /// Returns the first message of the session. A prompt by hooks comes before the user's message.
    async fn opening_message(
        &self,
        first: Option<NextMessage>,
        plan: &SessionPlan,
        agent: &mut Agent,
    ) -> Option<NextMessage> {
        if let Some(title) = self.config.conversation.title.as_ref().or(plan.title()) {
            agent.transcript().set_title(title);
        }
        let setup = self.config.setup;
        let events = &*self.events;
        let begun = self.shared.stop.run_until_stopped(async {
            if setup.init || setup.init_only {
                agent.setup("init", events).await;
            }
            if setup.maintenance {
                agent.setup("maintenance", events).await;
            }
            match setup.init_only {
                true => SessionOpening::Over,
                false => agent
                    .start_session(events)
                    .await
                    .map_or(SessionOpening::NoPrompt, SessionOpening::HookPrompt),
            }
        });
        // If the session was stopped here, the first run still starts, ends immediately and reports
        // the stop.
        match begun.await.unwrap_or(SessionOpening::NoPrompt) {
            SessionOpening::Over => None,
            SessionOpening::NoPrompt => first,
            SessionOpening::HookPrompt(words) => {
                if let Some(given) = first {
                    self.shared.queue.push_front(given);
                }
                Some(Prompt::from(words).into())
            }
        }
    }

    /// Removes the worktree that the session is in, unless it contains work, and reports what is
    /// left.
    async fn leave_worktree(&self) {
        let worktrees = self.shared.access.service::<haft_contract::Worktrees>();
        if let Some(worktrees) = worktrees
            && let Some(left) = worktrees.0.close().await
        {
            self.events.warn(left);
        }
    }

    /// Runs the SessionEnd hooks, and reports the remaining warnings.
    async fn finish(&mut self, plan: &SessionPlan, agent: &mut Agent) {
        agent.end_session("other", &*self.events).await;
        let replay = self.model.replay.iter();
        for divergence in replay.flat_map(haft_models::Replay::divergences) {
            self.events.warn(divergence.to_string());
        }
        if self.config.conversation.forget {
            conversation::delete_unsaved(&self.config, plan.id, &self.events);
        }
    }

    fn end_state(&self) -> SessionEnd {
        SessionEnd {
            stopped: self.shared.stop.requested(),
            ..SessionEnd::default()
        }
    }

    pub(crate) fn emit_running(&self) {
        let running = SessionEvent::Activity(SessionActivity::Running);
        self.events.emit(&running);
    }
}

/// Shuts down the MCP servers and removes unused caches, however the session ends.
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

/// The opening of a session.
enum SessionOpening {
    /// The session ends here.
    Over,
    /// A prompt by hooks comes first.
    HookPrompt(String),
    NoPrompt,
}

fn open(mut config: SessionConfig, parts: SessionParts) -> anyhow::Result<AgentSession> {
    let doubts = SandboxProbe::start(&config);
    let events = Arc::new(EventEmitter::new(parts.events));
    let mut permitted = ResolvedSettings::load(&config).map_err(OpenError::into_inner)?;
    // Set this first: the settings may set variables that determine the provider.
    config.environment = permitted.environment.clone();
    let environment = config.environment.clone();
    if let Some(telemetry) = SessionTelemetry::from_environment(&environment, &events) {
        events.recorded_by(telemetry);
    }
    let chosen = model::select_model(&config, &permitted.settings, parts.model)?;
    limits(&config)?;
    let shape = config.output_schema.as_deref();
    let shape = shape.map(OutputSchema::parse).transpose()?;
    let extensions = SessionExtensions::load(&config, &permitted);
    for warning in extensions.warnings() {
        events.warn(warning);
    }
    #[cfg(feature = "shell")]
    for left in haft_tools::worktree::orphaned_worktrees(&config.cwd) {
        events.warn(left.notice());
    }
    let (of_plugins, main_of_plugins) = take_plugins(&mut permitted, &extensions, &events);
    let servers = Arc::new(mcp::collect_servers(&config, &permitted, &of_plugins)?);
    let trusted = permitted.settings.trust.runs;
    let kinds = AgentKinds::find(&config, &extensions, trusted, &events);
    let user_folder = &permitted.settings.places.user;
    let clock = Arc::clone(&parts.clock);
    let schedules = SessionSchedules::open(&config, user_folder, parts.clock, &events);
    // Restore the schedules of the conversation now, because the first message may come much later.
    let earlier = conversation::find_resumable(&mut config);
    if let (Some(schedules), Some(folder)) = (&schedules, earlier) {
        schedules.restore_folder(&folder);
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
        reload: extensions.reload(&config, &permitted, main_of_plugins.as_deref()),
        current: Mutex::new((chosen.settings.name.clone(), chosen.settings.window)),
        names: chosen.names.clone(),
        budget: UnpricedModelWarning::of(&config, &chosen, &events),
        bypass: bypass(&config, &permitted),
        environment,
        answers_shell: permitted.settings.merged()["respondToBashCommands"] != false,
        config: config.clone(),
        permitted: permitted.clone(),
        doctor: parts.doctor,
        is_abandoned: AtomicBool::new(false),
    });
    Ok(AgentSession {
        config,
        settings: permitted,
        model: chosen,
        output_schema: shape,
        extensions,
        events,
        question_target: parts.asked,
        link: parts.servers,
        elicitations: parts.elicitations,
        editor: parts.editor,
        tools: parts.tools,
        progress: parts.progress,
        progress_forwarder: None,
        shared,
        sandbox_probe: doubts,
    })
}

/// Applies the plugins' hooks and language servers. Returns their MCP servers, and the agent kind
/// that they set for the main agent.
fn take_plugins(
    permitted: &mut ResolvedSettings,
    extensions: &SessionExtensions,
    events: &EventEmitter,
) -> (Map<String, Value>, Option<String>) {
    let brought = plugins::additions(&extensions.places, permitted);
    for warning in brought.warnings {
        events.warn(warning);
    }
    permitted.hooks = permitted.hooks.clone().with_handlers(brought.handlers);
    permitted.plugin_servers = brought.language_servers;
    (brought.servers, brought.agent)
}

/// Checks whether the mode may be switched to bypassPermissions later. The error is the reason if
/// not.
fn bypass(config: &SessionConfig, permitted: &ResolvedSettings) -> Result<(), String> {
    if permitted.mode == PermissionMode::BypassPermissions {
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
    resolved_settings::may_bypass(&permitted.settings, &config.environment)
        .map_err(|error| error.to_string())
}

/// Returns the limits at which a run ends even if the model would continue.
pub(crate) fn limits(config: &SessionConfig) -> anyhow::Result<RunLimits> {
    let mut limits = RunLimits::default();
    limits.max_turns = match config.max_turns {
        Some(most) => Some(most),
        None => {
            let most = config.environment.number("CLAUDE_CODE_MAX_TURNS")?;
            most.filter(|most| *most > 0)
        }
    };
    if let Some(most) = config.max_budget_usd {
        anyhow::ensure!(
            most > 0.0 && most.is_finite(),
            "a budget of {most} USD: expected an amount above 0"
        );
        limits.max_budget_usd = Some(most);
    }
    Ok(limits)
}

impl SessionPlan {
    /// Inserts the main agent's initial prompt and the environment before the first message.
    fn with_context(&mut self, mut next: NextMessage, environment: Option<String>) -> NextMessage {
        let first = &mut next.prompt;
        let main = self.main.take();
        if let Some(words) = main.and_then(|main| main.initial_prompt) {
            first.content.insert(0, Content::text(words));
        }
        if let Some(environment) = environment {
            first.content.insert(0, Content::text(environment));
        }
        next
    }
}
