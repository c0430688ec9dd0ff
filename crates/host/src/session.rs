//! A whole session: opened from a configuration, driven by its input, followed by its events.

use std::sync::{Arc, Mutex, atomic::AtomicBool};

use haft_agent::{Agent, Control, Prompt, RunLimits};
use haft_contract::{BoxFuture, Content, DynTool, PermissionMode, Progress};
use haft_engine::hooks::HookMoment;
use serde_json::{Map, Value};

use crate::{
    OpenError, SessionActivity, SessionConfig, SessionEvent, SessionInput, SessionParts, StopKind,
    background::Background,
    budget::Budget,
    conversation,
    event::{Events, TellsEnd},
    extensions::Extensions,
    input::SharedState,
    mcp, mentions,
    model::{self, Chosen},
    parts::Asked,
    plugins,
    progress::PassesProgress,
    questions::EventQuestions,
    queue::{NextMessage, Queue},
    schedules::ScheduleBook,
    settings::{self, Permitted},
    setup::{Doubts, Plan},
    slash::{Commands, OpensSession, Successor},
    stop::Stop,
    structured_output::Shape,
    subagents::Kinds,
    telemetry::SessionTelemetry,
    turns::Turns,
};

/// A session without a face. [`open`](Self::open) reads settings, chooses the model and finds what people
/// put in folders; [`run`](Self::run) waits for the first message, sets up everything else for it and
/// answers message after message until the input is closed.
pub struct AgentSession {
    pub(crate) config: SessionConfig,
    pub(crate) permitted: Permitted,
    pub(crate) chosen: Chosen,
    pub(crate) shape: Option<Shape>,
    pub(crate) extensions: Extensions,
    pub(crate) events: Arc<Events>,
    pub(crate) asked: Asked,
    pub(crate) link: Option<Arc<dyn crate::ServerLink>>,
    pub(crate) elicitations: Option<Arc<dyn crate::ElicitationHost>>,
    pub(crate) editor: Option<Arc<dyn haft_contract::EditorFiles>>,
    pub(crate) tools: Vec<Arc<dyn DynTool>>,
    pub(crate) progress: Option<Progress>,
    pub(crate) passes_progress: Option<PassesProgress>,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) doubts: Doubts,
}

/// How a session came to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionEnd {
    /// It was ended from outside: how.
    pub stopped: Option<StopKind>,
    /// The last message was not answered as it should be.
    pub has_failed: bool,
    /// Calls were refused.
    pub has_denials: bool,
    /// No message came, and no hook had one.
    pub was_silent: bool,
}

impl AgentSession {
    /// Reads what there is to know before the first message. Nothing of the workspace runs yet. Needs a
    /// tokio runtime.
    pub fn open(config: SessionConfig, parts: SessionParts) -> Result<Self, OpenError> {
        Ok(open(config, parts)?)
    }

    /// The way into it.
    pub fn input(&self) -> SessionInput {
        SessionInput(Arc::clone(&self.shared))
    }

    /// Can it begin without a message? Hooks may bring the first words, or all that is wanted is that they
    /// make the project ready.
    pub fn begins_alone(&self) -> bool {
        let silent = self.permitted.hooks.is_silent(HookMoment::SESSION_START);
        // A call that a hook has put off is made without another word.
        let resumes = self.config.conversation.from.is_some();
        self.config.setup.init_only || !silent || resumes
    }

    /// Until the input is closed and everything is answered, or something ends it.
    pub async fn run(self) -> Result<SessionEnd, OpenError> {
        let events = Arc::clone(&self.events);
        let _over = TellsEnd(Arc::clone(&events));
        let shared = Arc::clone(&self.shared);
        let end = self.boxed_life().await;
        if let Some(telemetry) = events.telemetry() {
            telemetry.close(shared.stop.requested()).await;
        }
        Ok(end?)
    }

    /// The same for one message, and the end.
    pub async fn answer(self, prompt: impl Into<Prompt>) -> Result<SessionEnd, OpenError> {
        let input = self.input();
        input.prompt(prompt);
        input.close();
        self.run().await
    }

    /// Boxed, so that its code is made once, here, and not in each crate that awaits it.
    fn boxed_life(self) -> BoxFuture<'static, anyhow::Result<SessionEnd>> {
        Box::pin(self.live())
    }

    /// The life of a session, step by step.
    async fn live(mut self) -> anyhow::Result<SessionEnd> {
        let _servers = EndsServers(Arc::clone(&self.shared));
        let Some(first) = self.first_message().await? else {
            return Ok(self.stopped());
        };
        let resolving = self.chosen.resolve(&self.shared.control);
        let Some(resolved) = self.shared.stop.until(resolving).await else {
            return Ok(self.stopped());
        };
        resolved?;
        self.measure_model();
        let mut plan = self.plan().await?;
        self.announce(&mut plan).await?;
        let setting_up = self.shared.queue.set_up_begins();
        let Some(tools) = self.connect(&plan, &setting_up).await? else {
            return Ok(self.stopped());
        };
        let mut ready = self.assemble(&mut plan, tools).await?;
        let home = self.config.environment.home();
        let servers = Arc::clone(&self.shared.servers);
        let attach = mentions::attaches(home, servers, Arc::clone(&self.events));
        ready.agent.attach_with(attach);
        let first = self.first_words(first, &plan, &mut ready.agent).await;
        // A call that was put off is made without another word.
        let is_silent = first.is_none() && !ready.agent.has_deferred_call();
        if is_silent || (first.is_none() && self.config.setup.init_only) {
            ready.agent.end("other", &*self.events).await;
            return Ok(SessionEnd {
                was_silent: true,
                ..self.stopped()
            });
        }
        let environment = ready.environment.take();
        let first = first.map(|first| plan.with_context(first, environment));
        let tasks = ready.agent.notices().unwrap_or_default();
        let environment = &self.config.environment;
        let background = Background::follow(tasks, &self.events, environment)?;
        if setting_up.is_cancelled() {
            self.shared.control.interrupt_next();
        }
        let mut turns = Turns {
            agent: &mut ready.agent,
            shared: &self.shared,
            background,
            events: &self.events,
            shape: plan.shape.as_ref(),
            one_result: self.config.one_result,
            commands: Commands {
                book: ready.skills,
                launches: ready.launches,
                servers: Some(Arc::clone(&self.shared.servers)),
                folder: ready.folder,
                successor: Some(self.successor()),
                opens: Some(self.opens()),
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

    /// Has the model's replies recorded, where anything is.
    fn measure_model(&mut self) {
        if let Some(telemetry) = self.events.telemetry() {
            let (chosen, config) = (&mut self.chosen, &self.config);
            let provider = chosen.provider_name(&config.model, &config.environment);
            let model = Arc::clone(&chosen.model);
            chosen.model = telemetry.around(model, provider, chosen.prices.clone());
        }
    }

    /// Makes conversations that begin where another is cleared.
    fn successor(&self) -> Box<Successor> {
        let (config, events) = (self.config.clone(), Arc::clone(&self.events));
        Box::new(move || conversation::successor(&config, &events))
    }

    /// Opens conversations that are gone on with in the place of another.
    fn opens(&self) -> Box<OpensSession> {
        let (config, events) = (self.config.clone(), Arc::clone(&self.events));
        Box::new(move |name| conversation::take_up(&config, name, &events))
    }

    /// The first message. The outer `None`: there is nothing to begin with.
    async fn first_message(&self) -> anyhow::Result<Option<Option<NextMessage>>> {
        let SharedState {
            queue,
            stop,
            control,
            ..
        } = &*self.shared;
        let first = stop.until(async {
            loop {
                tokio::select! {
                    biased;
                    message = queue.next(control) => return message,
                    () = self.shared.is_due() => {
                        if let Some(due) = self.shared.take_due() {
                            return Ok(Some(due));
                        }
                    }
                }
            }
        });
        let first = first.await.transpose()?.flatten();
        let alone = self.config.hooks_may_begin && self.begins_alone();
        let is_over = first.is_none() && (!alone || stop.requested().is_some());
        Ok((!is_over).then_some(first))
    }

    /// What is said first: hooks come before everyone else.
    async fn first_words(
        &self,
        first: Option<NextMessage>,
        plan: &Plan,
        agent: &mut Agent,
    ) -> Option<NextMessage> {
        if let Some(title) = self.config.conversation.title.as_ref().or(plan.title()) {
            agent.transcript().set_title(title);
        }
        let setup = self.config.setup;
        let events = &*self.events;
        let begun = self.shared.stop.until(async {
            if setup.init || setup.init_only {
                agent.setup("init", events).await;
            }
            if setup.maintenance {
                agent.setup("maintenance", events).await;
            }
            match setup.init_only {
                true => FirstWords::Over,
                false => agent
                    .begin(events)
                    .await
                    .map_or(FirstWords::Silent, FirstWords::OfHooks),
            }
        });
        // Anyone who ends it now ends a run, and learns of it.
        match begun.await.unwrap_or(FirstWords::Silent) {
            FirstWords::Over => None,
            FirstWords::Silent => first,
            FirstWords::OfHooks(words) => {
                if let Some(given) = first {
                    self.shared.queue.push_back_in_front(given);
                }
                Some(Prompt::from(words).into())
            }
        }
    }

    /// A worktree that the session is in goes with it, unless there is work in it.
    async fn leave_worktree(&self) {
        let worktrees = self.shared.access.service::<haft_contract::Worktrees>();
        if let Some(worktrees) = worktrees
            && let Some(left) = worktrees.0.close().await
        {
            self.events.warn(left);
        }
    }

    /// Ends hooks, and reports what is worth knowing at the end.
    async fn finish(&mut self, plan: &Plan, agent: &mut Agent) {
        agent.end("other", &*self.events).await;
        let replay = self.chosen.replay.iter();
        for divergence in replay.flat_map(haft_models::Replay::divergences) {
            self.events.warn(divergence.to_string());
        }
        if self.config.conversation.forget {
            conversation::forget(&self.config, plan.id, &self.events);
        }
    }

    fn stopped(&self) -> SessionEnd {
        SessionEnd {
            stopped: self.shared.stop.requested(),
            ..SessionEnd::default()
        }
    }

    pub(crate) fn runs(&self) {
        let running = SessionEvent::Activity(SessionActivity::Running);
        self.events.emit(&running);
    }
}

/// However a session ends, its servers end with it, and caches that were made for nothing are removed.
struct EndsServers(Arc<SharedState>);

impl Drop for EndsServers {
    fn drop(&mut self) {
        self.0.servers.abandon();
        #[cfg(feature = "shell")]
        if let Some(shell) = self.0.access.service::<haft_tools::Shell>() {
            shell.remove_unused_caches();
        }
    }
}

/// How a session begins.
enum FirstWords {
    /// It ends here.
    Over,
    /// Hooks want this said first.
    OfHooks(String),
    Silent,
}

fn open(mut config: SessionConfig, parts: SessionParts) -> anyhow::Result<AgentSession> {
    let doubts = Doubts::of(&config);
    let events = Arc::new(Events::new(parts.events));
    let mut permitted = Permitted::load(&config).map_err(OpenError::into_inner)?;
    // Before anyone is asked: the settings may say where.
    config.environment = permitted.environment.clone();
    let environment = config.environment.clone();
    if let Some(telemetry) = SessionTelemetry::of(&environment, &events) {
        events.recorded_by(telemetry);
    }
    let chosen = model::choose(&config, &permitted.settings, parts.model)?;
    limits(&config)?;
    let shape = config.output_schema.as_deref();
    let shape = shape.map(Shape::read).transpose()?;
    let extensions = Extensions::load(&config, &permitted);
    for warning in extensions.warnings() {
        events.warn(warning);
    }
    #[cfg(feature = "shell")]
    for left in haft_tools::worktree::left_behind(&config.cwd) {
        events.warn(left.notice());
    }
    let (of_plugins, main_of_plugins) = take_plugins(&mut permitted, &extensions, &events);
    let servers = Arc::new(mcp::gather(&config, &permitted, &of_plugins)?);
    let trusted = permitted.settings.trust.runs;
    let kinds = Kinds::find(&config, &extensions, trusted, &events);
    let user_folder = &permitted.settings.places.user;
    let clock = Arc::clone(&parts.clock);
    let schedules = ScheduleBook::open(&config, user_folder, parts.clock, &events);
    // What it had scheduled comes back at once, not with the first message: that may be long in coming.
    let earlier = conversation::settle(&mut config);
    if let (Some(schedules), Some(folder)) = (&schedules, earlier) {
        schedules.take_up(&folder);
    }
    let shared = Arc::new(SharedState {
        schedules,
        clock,
        queue: Queue::default(),
        control: Control::default(),
        stop: Stop::default(),
        servers,
        roots: Arc::default(),
        access: crate::access::SessionAccess::default(),
        questions: Arc::new(EventQuestions::new(Arc::clone(&events))),
        kinds: Mutex::new(kinds),
        extensions: extensions.described(),
        reload: extensions.reload(&config, &permitted, main_of_plugins.as_deref()),
        current: Mutex::new((chosen.settings.name.clone(), chosen.settings.window)),
        names: chosen.names.clone(),
        budget: Budget::of(&config, &chosen, &events),
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
        permitted,
        chosen,
        shape,
        extensions,
        events,
        asked: parts.asked,
        link: parts.servers,
        elicitations: parts.elicitations,
        editor: parts.editor,
        tools: parts.tools,
        progress: parts.progress,
        passes_progress: None,
        shared,
        doubts,
    })
}

/// Takes over what plugins bring beside skills; their servers, and the kind that they make the main agent.
fn take_plugins(
    permitted: &mut Permitted,
    extensions: &Extensions,
    events: &Events,
) -> (Map<String, Value>, Option<String>) {
    let brought = plugins::additions(&extensions.places, permitted);
    for warning in brought.warnings {
        events.warn(warning);
    }
    permitted.hooks = permitted.hooks.clone().with_handlers(brought.handlers);
    permitted.plugin_servers = brought.language_servers;
    (brought.servers, brought.agent)
}

/// May a later message switch to bypassPermissions? The error says why not.
fn bypass(config: &SessionConfig, permitted: &Permitted) -> Result<(), String> {
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
    settings::may_bypass(&permitted.settings, &config.environment)
        .map_err(|error| error.to_string())
}

/// When a run ends though the model would go on.
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

impl Plan {
    /// The first message, with what belongs before it.
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
