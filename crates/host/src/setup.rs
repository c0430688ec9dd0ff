//! The steps from the first message of a session to an agent that can answer it.

use std::{
    mem,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use haft_agent::{
    Agent, ModelSettings, NoticeLevel, OpenTranscript, RunLimits, SubagentPool,
    prompt::{PromptEnvironment, SystemPrompt},
    subagents::{check_main_agent, set_main_agent},
};
use haft_contract::{CancellationToken, DynTool, OnWeakSandbox, SessionId, Subagents};
use haft_engine::{SessionContext, hooks::HookEventKind, permissions::PatternBases};
use haft_extensions::AgentDefinition;
use haft_mcp::client::{ServerEntry, ServerScope, ToolVersions, is_waited_for, resource_tools};
use haft_models::Model;
use haft_tools::SkillService;
use tokio::task::JoinHandle;

use crate::{
    AgentSession, ExtensionNames, Haft, SessionConfig, SessionEvent, SessionFacts,
    assemble::{self, AgentAdditions},
    conversation,
    event::HookEventForwarder,
    file_watch::{self, FileWatchGuard},
    hook_model::SessionHookModel,
    main_agent::{self, MainAgent, PromptParts},
    mcp::{self, AgentServers, SessionHost, SessionPendingServers},
    notifications::EventNotifier,
    progress, prompt_settings, questions,
    queue::StartOptions,
    retention, session, skill_effects,
    structured_output::OutputSchema,
};

/// The plan of a session's start: everything that can be decided before anything is started.
pub(crate) struct SessionPlan {
    /// The options that were set before the first message.
    pub(crate) options: StartOptions,
    pub(crate) shape: Option<OutputSchema>,
    /// The kind of the main agent, if it has one.
    pub(crate) main: Option<AgentDefinition>,
    pub(crate) limits: RunLimits,
    pub(crate) subagents: SubagentPool,
    /// The names of the agent kinds.
    pub(crate) agents: Vec<String>,
    pub(crate) id: SessionId,
    /// The settings and limits of an agent without a kind, and the connector for the servers of an
    /// agent kind. Taken when the agent is created.
    plain: Option<(ModelSettings, RunLimits, AgentServers)>,
    /// The conversation. Taken when the agent is created.
    conversation: Option<OpenTranscript>,
    /// The model that hooks ask, without the output schema.
    judges: Arc<dyn Model>,
    sandbox_warning: Option<String>,
}

/// The tools of MCP servers, and a record of the tools that were included.
type ServerTools = (Vec<Arc<dyn DynTool>>, ToolVersions);

/// An agent that is ready for its first message.
pub(crate) struct ReadyAgent {
    /// The watch on files that hooks request.
    pub(crate) watches: FileWatchGuard,
    pub(crate) agent: Agent,
    pub(crate) skills: Option<Arc<SkillService>>,
    /// Whether subagents can be launched.
    pub(crate) launches: bool,
    /// The folder for results of servers.
    pub(crate) folder: PathBuf,
    /// The description of the environment, if it is sent with the first message.
    pub(crate) environment: Option<String>,
}

impl SessionPlan {
    pub(crate) fn title(&self) -> Option<&String> {
        self.options.title.as_ref()
    }
}

impl AgentSession {
    /// Decides on the models, limits, agent kinds and the conversation.
    pub(crate) async fn plan_session(&mut self) -> anyhow::Result<SessionPlan> {
        let config = &self.config;
        let mut initial = self.shared.queue.take_start_options();
        let judges = Arc::clone(&self.model.model);
        let shape = self
            .output_schema
            .take()
            .or_else(|| initial.output_schema.take());
        let kinds = self.shared.kinds().with(&initial.options.agents);
        let main = kinds.find_kind(self.shared.reload.main_name().as_deref())?;
        let plain_settings = self.model.settings.clone();
        let names = &self.model.names;
        let settings =
            main_agent::model_settings(main.as_ref(), config, names, &plain_settings).await;
        self.model.settings = settings;
        let plain_limits = session::run_limits(config)?;
        let limits = main_agent::limits(main.as_ref(), config, plain_limits.clone());
        self.shared.set_initial_model(&self.model.settings);
        let asked = [&self.model.settings.name].into_iter();
        let asked = asked.chain(&self.model.settings.plan_name);
        for name in asked.chain(&self.model.fallbacks) {
            self.shared.budget.warn_if_unpriced(name);
        }
        let budget = self.shared.budget.clone();
        let places = &self.extensions.places;
        let (servers, permitted) = (&self.shared.servers, &self.settings);
        let servers = AgentServers::new(servers, config, permitted, places, &self.events);
        if let Some(main) = &main {
            servers.add_main_agent_servers(main);
        }
        let own = Some(servers.clone());
        let subagents = kinds.build_pool(config, main.as_ref(), &self.model, budget, own)?;
        self.shared.reload.attach_session(&kinds, &subagents);
        if let Some(shape) = &shape {
            self.model.model = shape.wrap_model(Arc::clone(&self.model.model));
        }
        let choice = &config.conversation;
        let mut conversation = conversation::choose(choice, &config.environment, &config.cwd)?;
        if choice.mirror {
            conversation = conversation::mirrored(conversation, config, &self.events)?;
        }
        for repair in conversation.repairs() {
            self.events.warn(repair.to_string());
        }
        Ok(SessionPlan {
            options: initial.options,
            shape,
            main,
            limits,
            subagents,
            agents: kinds.names(),
            id: conversation.id(),
            plain: Some((plain_settings, plain_limits, servers)),
            conversation: Some(conversation),
            judges,
            sandbox_warning: None,
        })
    }

    /// Reports the session's id and properties.
    pub(crate) async fn announce(&mut self, plan: &mut SessionPlan) -> anyhow::Result<()> {
        plan.sandbox_warning = mem::take(&mut self.sandbox_probe).finish().await?;
        if let Some(warning) = &plan.sandbox_warning {
            self.events.warn(warning);
        }
        self.events
            .emit(&SessionEvent::Ready(Box::new(SessionFacts {
                id: plan.id,
                key_source: self.model.key_source,
                window: self.model.settings.window,
                max_tokens: self.model.settings.max_tokens,
                untrusted: self.settings.settings.untrusted(),
                sandbox_warning: plan.sandbox_warning.clone(),
                permission_mode_warning: self.settings.auto_warning.clone(),
                names: ExtensionNames {
                    agents: plan.agents.clone(),
                    ..self.extensions.names()
                },
            })));
        let (config, retention) = (&self.config, self.settings.retention);
        retention::remove_old(retention, &config.environment, &config.cwd);
        self.emit_running();
        Ok(())
    }

    /// Connects the MCP servers and returns their tools. `None`: the session was stopped in the
    /// meantime.
    pub(crate) async fn connect(
        &self,
        plan: &SessionPlan,
        setting_up: &CancellationToken,
    ) -> anyhow::Result<Option<ServerTools>> {
        let config = &self.config;
        let servers = &self.shared.servers;
        let folder = match &config.state_folder {
            Some(folder) => folder.clone(),
            None => config.environment.session_folder(&config.cwd, plan.id),
        };
        for left_out in servers.left_out() {
            self.events.warn(left_out);
        }
        let results = folder.join("tool-results");
        let approver = questions::approver(
            &self.question_target,
            &self.shared.questions,
            self.settings.patience,
        );
        let warns = Arc::clone(&self.events);
        let warn: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(move |text| warns.warn(text));
        let decides = mcp::PinDecider::User(Arc::clone(&approver), warn);
        let options = mcp::options(config, &self.settings, &results, decides)?;
        let (waits, limit) = self.first_wait(options.connect)?;
        for directory in [&config.cwd].into_iter().chain(&self.settings.directories) {
            self.shared.add_root(directory);
        }
        let mut given = plan.options.hooks.iter();
        let has_hooks = given.any(|handler| handler.event == HookEventKind::ELICITATION);
        let host = SessionHost {
            events: Arc::clone(&self.events),
            approver,
            program: self.elicitations.clone(),
            hooks: mcp::ElicitationHooks::new(&self.shared, &self.events, has_hooks),
            roots: Arc::clone(&self.shared.roots),
        };
        servers.start(options, Arc::new(host), self.link.clone());
        let connecting = servers.wait(waits, limit, setting_up);
        if self
            .shared
            .stop
            .run_until_stopped(connecting)
            .await
            .is_none()
        {
            return Ok(None);
        }
        let (mut tools, seen) = servers.tools();
        if servers.have_resources() {
            tools.extend(resource_tools(servers, results));
        }
        // The tool that answers permission requests is not offered to the model.
        if let Some(permits) = &config.permission_tool {
            tools.retain(|tool| tool.spec().name != *permits);
        }
        self.events.emit(&SessionEvent::Servers(servers.list()));
        // The session does not start without this tool: no other approver may replace it.
        if let Some(permits) = &config.permission_tool {
            let found = servers.find(permits);
            found.map_err(|why| {
                anyhow::anyhow!("the tool that answers permission questions: {why}")
            })?;
        }
        Ok(Some((tools, seen)))
    }

    /// Returns which servers the first turn waits for, and how long: servers that the user named
    /// for this run, and servers whose tools are always sent.
    fn first_wait(
        &self,
        connect: Duration,
    ) -> anyhow::Result<(impl Fn(&ServerEntry) -> bool, Duration)> {
        let environment = &self.config.environment;
        let all = environment
            .variable("MCP_CONNECTION_NONBLOCKING")
            .is_some_and(|value| value == "0");
        let given = environment
            .number("MCP_CONNECT_TIMEOUT_MS")?
            .filter(|given| *given > 0);
        let patience = Duration::from_millis(given.unwrap_or(5_000).into());
        let servers = self.shared.servers.all();
        let is_named = servers
            .iter()
            .any(|server| server.entry().scope == ServerScope::Given);
        // Each server has its own timeout; this one only limits the additional time.
        let limit = if is_named { connect * 2 } else { patience };
        let limit = limit.min(self.config.longest_server_wait.unwrap_or(limit));
        let waits = move |entry: &ServerEntry| {
            all || entry.scope == ServerScope::Given || is_waited_for(entry)
        };
        Ok((waits, limit))
    }

    /// Adds tools that servers offer later, from the next turn on.
    fn follow_servers(&self, haft: &Haft, mut seen: ToolVersions) {
        let (shared, engine) = (Arc::downgrade(&self.shared), Arc::downgrade(haft.engine()));
        let permits = self.config.permission_tool.clone();
        let events = Arc::clone(&self.events);
        let folder = haft.engine().folder().join("tool-results");
        let mut reads_resources = self.shared.servers.have_resources();
        haft_contract::spawn_boxed(async move {
            while let Some(shared) = shared.upgrade() {
                let changes = shared.servers.tool_changes(&mut seen).await;
                let (Some(changes), Some(engine)) = (changes, engine.upgrade()) else {
                    return;
                };
                for mut change in changes {
                    change
                        .tools
                        .retain(|tool| Some(&tool.spec().name) != permits.as_ref());
                    let problems = engine
                        .replace_server_tools(&change.server, change.tools)
                        .await;
                    for problem in problems {
                        events.warn(format!("left out: {problem}"));
                    }
                }
                if !reads_resources && shared.servers.have_resources() {
                    reads_resources = true;
                    let tools = resource_tools(&shared.servers, folder.clone());
                    engine.add_tools(tools).await;
                }
                events.emit(&SessionEvent::Servers(shared.servers.list()));
            }
        });
    }

    /// Combines the model, tools, rules, hooks and extensions into an agent.
    pub(crate) async fn assemble(
        &mut self,
        plan: &mut SessionPlan,
        (servers, seen): ServerTools,
    ) -> anyhow::Result<ReadyAgent> {
        let settings = self.model.settings.clone();
        let skills = self
            .extensions
            .skill_service(plan.id, settings.effort.clone());
        let effects = skill_effects::session_skill_effects(self);
        let skills = skills.map(|book| Arc::new(SkillService { effects, ..book }));
        let cwd = self.config.cwd.clone();
        let bases = PatternBases {
            home: self.settings.settings.places.home.clone(),
            slash: cwd.clone(),
            cwd,
        };
        let judge = self.judge(plan);
        let (progress, passes) = progress::forward_progress(&self.events, self.progress.take());
        self.progress_forwarder = Some(passes);
        self.extensions
            .open_folders(&mut self.settings.rules, &bases);
        #[cfg(feature = "web")]
        let web = self.web(plan);
        let additions = AgentAdditions {
            #[cfg(feature = "web")]
            web,
            id: Some(plan.id),
            handlers: mem::take(&mut plan.options.hooks),
            model: Some(settings.name.clone()),
            window: Some(settings.window),
            hook_model: Some(Arc::new(judge)),
            servers: Some(Arc::clone(&self.shared.servers)),
            hook_events: Some(Arc::new(HookEventForwarder {
                events: Arc::clone(&self.events),
                shared: Arc::downgrade(&self.shared),
            })),
            defers: true,
            embedder_tools: mem::take(&mut self.tools),
            server_tools: servers,
            answer: plan.shape.as_ref().and_then(|shape| shape.tool.clone()),
            progress: Some(progress),
            subagents: Some(plan.subagents.service()),
            schedules: self
                .shared
                .schedules
                .as_ref()
                .map(|schedules| schedules.service()),
            skills: skills.clone(),
            pending_servers: SessionPendingServers::servers(&self.shared),
            notifier: Some(EventNotifier::from_settings(
                &self.settings.settings.merged(),
                &self.events,
            )),
            editor: self.editor.clone(),
            listener: self.events.telemetry().map(|one| one.listener()),
            on_weak_sandbox: Some(self.on_weak_sandbox(plan)),
            clock: Some(Arc::clone(&self.shared.clock)),
        };
        let patience = self.settings.patience;
        let approver = questions::approver(&self.question_target, &self.shared.questions, patience);
        let config = &self.config;
        let permitted = self.settings.clone();
        let mut haft =
            assemble::build(config, permitted, approver, &self.events, additions).await?;
        self.shared.access.attach(&haft);
        if let Some(main) = &plan.main {
            check_main_agent(haft.engine(), main).map_err(anyhow::Error::msg)?;
            set_main_agent(&mut haft.scheduler, Some(main));
        }
        if let Some(schedules) = &self.shared.schedules
            && !config.conversation.forget
        {
            schedules.attach_folder(haft.engine().folder());
        }
        self.follow_servers(&haft, seen);
        let launches = haft.services().get::<Subagents>().is_ok();
        let has_skill_tool = haft
            .pool()
            .with_role(haft_contract::ToolRole::LoadsSkills)
            .is_some();
        let folder = haft.engine().folder().join("tool-results");
        let engine = Arc::clone(haft.engine());
        let mut scheduler = haft.into_scheduler();
        let watches = file_watch::watch(&engine, scheduler.view(), &self.events);
        let start = scheduler.context();
        let conversation = plan.conversation.take();
        let conversation = conversation.unwrap_or_else(|| OpenTranscript::in_memory(plan.id));
        for patch in conversation::restored_patches(&conversation, config) {
            scheduler.apply(&patch);
        }
        let mut plain = self.system_prompt(plan, &scheduler.context());
        let moved = config.prompts.environment_in_message || plan.options.environment_in_message;
        let environment = match moved {
            true => plain.environment.take(),
            false => None,
        };
        let style = self.extensions.style.clone();
        let prompt = PromptParts { plain, style };
        let system = prompt.system_prompt_for(plan.main.as_ref());
        if let Some((settings, limits, servers)) = plan.plain.take() {
            let _ = self.shared.reload.main.set(MainAgent {
                kind: Mutex::new(plan.main.clone()),
                prompt,
                limits,
                settings,
                servers,
            });
        }
        let mut builder = Agent::builder(scheduler, Arc::clone(&self.model.model), settings)
            .limits(plan.limits.clone())
            .prices(self.model.prices.clone())
            .session(conversation)
            .start_context(start)
            .system_prompt(system)
            .control(self.shared.control.clone())
            .subagents(plan.subagents.clone());
        if !config.version.is_empty() {
            builder = builder.version(config.version.as_str());
        }
        builder = match self.extensions.knowledge(has_skill_tool) {
            Some(knowledge) => builder.instruction_sources(knowledge),
            None => builder.without_memory(),
        };
        Ok(ReadyAgent {
            watches,
            folder,
            agent: builder.build(),
            skills,
            launches,
            environment: environment.map(|environment| environment.to_string()),
        })
    }

    /// Returns the model that answers questions of hooks.
    fn judge(&self, plan: &SessionPlan) -> SessionHookModel {
        SessionHookModel {
            model: Arc::clone(&plan.judges),
            settings: self.model.settings.clone(),
            control: self.shared.control.clone(),
            session: plan.id,
            environment: self.config.environment.clone(),
            names: self.model.names.clone(),
            rules: self.settings.rules.clone(),
            directories: self.settings.directories.clone(),
        }
    }

    /// Returns the small model that reads pages, and the provider's search if it has one.
    #[cfg(feature = "web")]
    fn web(&self, plan: &SessionPlan) -> crate::web::WebParts {
        use crate::web::{PageSummarizer, ProviderSearch, WebParts, small_model_name};
        let small = small_model_name(&self.config.environment);
        let (names, control) = (&self.model.names, &self.shared.control);
        let searches = self.model.searches.as_ref();
        WebParts {
            provider: searches.map(|(client, is_known)| ProviderSearch {
                client: client.clone(),
                model: small
                    .clone()
                    .unwrap_or_else(|| self.model.settings.name.clone()),
                names: names.clone(),
                control: control.clone(),
                is_known: *is_known,
            }),
            small: small.map(|name| {
                Arc::new(PageSummarizer {
                    model: Arc::clone(&plan.judges),
                    settings: self.model.settings.clone(),
                    name,
                    names: names.clone(),
                    control: control.clone(),
                }) as Arc<dyn haft_contract::SmallModel>
            }),
        }
    }

    /// Returns the callback that reports weak confinement of commands, unless it was already
    /// reported at the start.
    fn on_weak_sandbox(&self, plan: &SessionPlan) -> OnWeakSandbox {
        let (events, is_known) = (Arc::clone(&self.events), plan.sandbox_warning.is_some());
        Arc::new(move |warning: &str| {
            if !is_known {
                events.warn(warning);
                events.notice(NoticeLevel::Warning, warning);
            }
        })
    }

    /// Returns the system prompt, without the prompt of the main agent's kind.
    fn system_prompt(&self, plan: &SessionPlan, context: &SessionContext) -> SystemPrompt {
        let (given, options) = (&self.config.prompts, &plan.options);
        let base = given.system.clone();
        let base = base.or_else(|| options.system_prompt.clone());
        let append = given.append.clone();
        let append = append.or_else(|| options.append_system_prompt.clone());
        // A custom system prompt must contain everything itself.
        let environment = base.is_none().then(|| PromptEnvironment::detect(context));
        let said = prompt_settings::paragraph(&self.settings.settings);
        let said = said.filter(|_| base.is_none());
        let append = match (said, append) {
            (Some(said), Some(append)) => Some(format!("{said}\n\n{append}")),
            (said, append) => said.or(append),
        };
        SystemPrompt {
            base,
            append,
            environment,
        }
    }
}

/// Probes the sandbox in the background while the session starts. Runs only on machines where
/// confinement may not work; elsewhere the first command reports a failure.
#[derive(Default)]
pub(crate) struct SandboxProbe(Option<JoinHandle<Option<String>>>);

impl SandboxProbe {
    pub(crate) fn start(config: &SessionConfig) -> Self {
        #[cfg(feature = "shell")]
        if let Some(program) = config.program.clone()
            && haft_tools::sandbox::is_doubtful()
        {
            let among = config.environment.temporary_folder();
            return Self(Some(tokio::task::spawn_blocking(move || {
                haft_tools::sandbox::strongest(Some(&program), &among).warning()
            })));
        }
        let _ = config; // a build without commands needs no probe
        Self(None)
    }

    /// Waits for the probe, and returns its warning if any.
    async fn finish(self) -> anyhow::Result<Option<String>> {
        match self.0 {
            Some(doubts) => Ok(doubts.await?),
            None => Ok(None),
        }
    }
}
