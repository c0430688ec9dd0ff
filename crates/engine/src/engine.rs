//! The engine, which combines the pool, the layers, the hooks and the result store of a session.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock, atomic::AtomicBool},
    time::Duration,
};

use haft_contract::{
    BoxFuture, CallContext, DynTool, HookEvent, HookService, HookVerdict, ProgressSender, Services,
    SessionId, ToolUse,
};
use serde_json::{Map, Value};

use crate::{
    CallListener, DefinitionError, GrantClock, Pool, ResultStore, Scheduler, SessionContext,
    TimedGrants, ToolFilters, ToolRegistry,
    hooks::{
        AgentIdentity, HandlerOutput, HookCommonFields, HookEventKind, HookHandler, HookInvocation,
        Hooks, merge_outputs,
    },
    layers::{Layer, LayerSettings, LayerStack},
    permissions::{CallFacts, Policy, RuleStore},
    pipeline,
    pool::{PoolView, live::LivePool},
    results::ResultBudget,
    settings::SettingsWatch,
};

/// The default timeout of a call whose tool sets none. It is longer than any useful call, so that
/// it only ends calls that hang, for example on a dead file system.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// The default number of calls that run concurrently.
pub const DEFAULT_CONCURRENCY: usize = 10;

/// The state that all calls of a session share. Calls do not change it.
pub struct Engine {
    conversation: Arc<RwLock<ConversationLocation>>,
    pub(crate) pool: LivePool,
    pub(crate) services: Services,
    pub(crate) layers: Arc<LayerStack>,
    pub(crate) results: Arc<ResultStore>,
    pub(crate) progress: Option<ProgressSender>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) concurrency: usize,
    pub(crate) rule_store: Option<Arc<dyn RuleStore>>,
    pub(crate) watch: Option<SettingsWatch>,
    pub(crate) grants: Arc<TimedGrants>,
    pub(crate) hooks: Hooks,
    /// Receives measurements of calls.
    pub(crate) listener: Option<Arc<dyn CallListener>>,
    /// Whether hooks can defer calls. The caller that runs the session must end it after a deferral.
    pub(crate) defers: bool,
    /// Whether denial messages may name command-line flags.
    names_flags: bool,
    /// Whether cards of results are drawn, for a front end that shows them.
    pub(crate) draws_cards: bool,
    /// Whether a result of the session has explained undo.
    pub(crate) undo_was_explained: Arc<AtomicBool>,
    /// Whether a user of the session has answered a question otherwise than with its choice to run
    /// commands without network.
    pub(crate) offline_was_declined: Arc<AtomicBool>,
    agent: Arc<RwLock<AgentIdentity>>,
    folder: PathBuf,
}

/// The current conversation: its id, and the folder next to its transcript. Shared by all agents of
/// a session.
#[derive(Debug, Clone)]
struct ConversationLocation {
    id: SessionId,
    folder: PathBuf,
}

impl Engine {
    /// Returns a builder.
    pub fn builder(registry: ToolRegistry, session_folder: impl Into<PathBuf>) -> EngineBuilder {
        EngineBuilder {
            registry,
            filters: ToolFilters::default(),
            session: SessionId::new(),
            session_folder: session_folder.into(),
            services: Services::none(),
            settings: LayerSettings {
                timeout: Some(DEFAULT_TIMEOUT),
                ..LayerSettings::default()
            },
            more_layers: Vec::new(),
            budget: ResultBudget::default(),
            progress: None,
            model: None,
            concurrency: DEFAULT_CONCURRENCY,
            rule_store: None,
            watch: None,
            grants: Arc::default(),
            hooks: Hooks::default(),
            listener: None,
            defers: false,
            names_flags: false,
            draws_cards: true,
            agent: AgentIdentity::default(),
        }
    }

    /// Returns the fields that hooks receive with every event.
    pub(crate) fn hook_common_fields(&self) -> HookCommonFields {
        common(&self.conversation, self.agent())
    }

    /// Returns the session's hooks, for adding handlers and following background hooks.
    pub fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Notifies the hooks that the session waits for the next user message (`Notification`,
    /// `idle_prompt`).
    pub async fn notify_waiting_for_user(&self, message: &str, cwd: &Path) {
        self.notify("idle_prompt", "Waiting for you", message, cwd)
            .await;
    }

    /// Notifies the hooks of a message for the user (`Notification`), with its kind.
    pub async fn notify(&self, kind: &str, title: &str, message: &str, cwd: &Path) {
        let notice = pipeline::hooks::HookNotice {
            kind,
            title,
            message,
        };
        pipeline::hooks::notify(self, &notice, cwd).await;
    }

    /// Returns a hint in the terms in which the session was configured: a command-line flag, or a
    /// description.
    pub(crate) fn remedy<'a>(&self, flag: &'a str, words: &'a str) -> &'a str {
        match self.names_flags {
            true => flag,
            false => words,
        }
    }

    /// Returns the session id, which is the id of the current conversation.
    pub fn session(&self) -> SessionId {
        let place = self.conversation.read();
        place.unwrap_or_else(PoisonError::into_inner).id
    }

    /// Returns the folder next to the transcript of the current conversation. It contains the
    /// transcripts of subagents.
    pub fn conversation_folder(&self) -> PathBuf {
        place(&self.conversation).folder
    }

    /// Switches to another conversation with the same files, tools and permissions.
    pub fn start_conversation(&self, id: SessionId) {
        let folder = self.folder.with_file_name(id.to_string());
        let mut place = self
            .conversation
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *place = ConversationLocation { id, folder };
    }

    /// Runs the hooks of an event that does not belong to a call. `matched` is the text that
    /// matchers are compared with. The permission mode is passed if the event includes it.
    pub async fn fire(
        &self,
        event: HookEventKind,
        matched: &str,
        fields: Map<String, Value>,
        context: &SessionContext,
    ) -> Vec<HandlerOutput> {
        if self.hooks.has_no_handlers(event) {
            return Vec::new();
        }
        let occasion = HookInvocation {
            event,
            names: &[matched],
            fields,
            call: None,
            cwd: &context.cwd,
        };
        let common = HookCommonFields {
            permission_mode: event.includes_mode().then(|| context.mode.name()),
            ..self.hook_common_fields()
        };
        self.hooks.fire(&occasion, &common).await
    }

    /// Returns the permissions of the session that end after a time or with the task.
    pub fn grants(&self) -> &TimedGrants {
        &self.grants
    }

    /// Returns the services that its calls may use.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Returns the current tools. A turn uses the tools it started with until it ends.
    pub fn pool(&self) -> Arc<Pool> {
        self.pool.get()
    }

    /// Adds tools from the next turn on, after the existing ones. Returns the tools that were left
    /// out, with the reasons. Running subagents do not get them.
    pub async fn add_tools(&self, tools: Vec<Arc<dyn DynTool>>) -> Vec<DefinitionError> {
        self.layers
            .register_tools(tools.iter().map(|tool| tool.spec()));
        self.pool.add(tools).await
    }

    /// Replaces the tools of a server from the next turn on, because the server has connected,
    /// changed its list, reconnected or (with an empty list) disconnected. Definitions that the
    /// model has already received stay unchanged. A call of a removed tool gets an error result
    /// that says so.
    pub async fn replace_server_tools(
        &self,
        server: &str,
        tools: Vec<Arc<dyn DynTool>>,
    ) -> Vec<DefinitionError> {
        self.layers
            .register_tools(tools.iter().map(|tool| tool.spec()));
        self.pool.replace_server(server, tools).await
    }

    /// Returns the permission policy of the session.
    pub fn policy(&self, context: &SessionContext) -> Policy {
        context.policy(self.results.real_folder())
    }

    /// Like [`policy`](Self::policy), but without the plan file, for calls that do not touch it.
    pub(crate) fn policy_without_plan(&self, context: &SessionContext) -> Policy {
        context.policy_without_plan(self.results.real_folder())
    }

    /// Returns the facts that the permission decision on a call is based on. The call is matched
    /// with its tool like a call that is about to run, but nothing runs and the user is not asked.
    /// The error describes what is wrong with the call.
    pub async fn facts(
        &self,
        tool_use: ToolUse,
        context: &SessionContext,
    ) -> Result<CallFacts, String> {
        pipeline::facts(self, tool_use, context).await
    }

    /// Returns the folder with the session's data on disk. It is created when it is first needed.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns whether the user has configured hooks that can change the results of calls.
    pub fn may_change_results(&self) -> bool {
        !self.hooks.has_no_handlers(HookEventKind::POST_TOOL_USE)
    }

    /// Returns the model that makes the calls, if known.
    pub fn model(&self) -> Option<&Arc<str>> {
        self.model.as_ref()
    }

    /// Returns the identity of the agent, as hooks receive it.
    pub fn agent(&self) -> AgentIdentity {
        identity(&self.agent)
    }

    /// Returns all tools of the session, including those that an agent of this kind does not have.
    pub fn every_tool(&self) -> Arc<Pool> {
        self.pool.all()
    }

    /// Sets the agent kind, and restricts the tools to those of the view.
    pub(crate) fn set_kind(&self, kind: Option<String>, view: Option<PoolView>) {
        let agent = self.agent.write();
        agent.unwrap_or_else(PoisonError::into_inner).kind = kind;
        self.pool.set_view(view, &self.services);
    }

    /// Creates the engine of a subagent. It shares the session's rules, hooks, layers and stored
    /// results, but has the tools, services and identity in `part`.
    pub fn for_subagent(&self, part: SubagentEngineParts) -> Arc<Self> {
        let hooks = self.hooks.clone().with_handlers(part.handlers);
        let conversation = Arc::clone(&self.conversation);
        let agent = Arc::new(RwLock::new(part.agent));
        let fire = by_tools(hooks.clone(), Arc::clone(&agent), Arc::clone(&conversation));
        let pool = part.pool.with_fitted_finder(&part.services);
        let pool = LivePool::new(pool, self.pool.filters().clone());
        Arc::new(Self {
            conversation,
            services: part.services.with(Arc::new(fire)).with(pool.deferred()),
            pool,
            layers: Arc::clone(&self.layers),
            results: Arc::clone(&self.results),
            // A listener that does not distinguish subagents would treat their progress as the main
            // agent's.
            progress: self
                .progress
                .clone()
                .filter(ProgressSender::includes_subagents),
            model: Some(part.model),
            concurrency: self.concurrency,
            rule_store: self.rule_store.clone(),
            watch: self.watch.clone(),
            grants: Arc::clone(&self.grants),
            hooks,
            listener: self.listener.clone(),
            // A subagent cannot end the whole session.
            defers: false,
            names_flags: self.names_flags,
            draws_cards: self.draws_cards,
            undo_was_explained: Arc::clone(&self.undo_was_explained),
            offline_was_declined: Arc::clone(&self.offline_was_declined),
            agent,
            folder: self.folder.clone(),
        })
    }

    /// Creates the scheduler that runs the session's calls.
    pub fn scheduler(self: Arc<Self>, context: SessionContext) -> Scheduler {
        Scheduler::new(self, context)
    }
}

/// The parts of an engine that are specific to a subagent.
#[derive(Debug)]
pub struct SubagentEngineParts {
    /// The subagent's tools, selected with [`Pool::filtered`].
    pub pool: Pool,
    /// The services that its calls may use.
    pub services: Services,
    /// The model that makes the calls.
    pub model: Arc<str>,
    /// The subagent's identity.
    pub agent: AgentIdentity,
    /// Hook handlers that apply only to the subagent.
    pub handlers: Vec<HookHandler>,
}

/// Configures an engine.
pub struct EngineBuilder {
    registry: ToolRegistry,
    filters: ToolFilters,
    session: SessionId,
    session_folder: PathBuf,
    services: Services,
    settings: LayerSettings,
    more_layers: Vec<Arc<dyn Layer>>,
    budget: ResultBudget,
    progress: Option<ProgressSender>,
    model: Option<Arc<str>>,
    concurrency: usize,
    rule_store: Option<Arc<dyn RuleStore>>,
    watch: Option<SettingsWatch>,
    grants: Arc<TimedGrants>,
    hooks: Hooks,
    listener: Option<Arc<dyn CallListener>>,
    defers: bool,
    names_flags: bool,
    draws_cards: bool,
    agent: AgentIdentity,
}

impl EngineBuilder {
    /// Adds a tool.
    pub fn tool(mut self, tool: impl haft_contract::Tool) -> Result<Self, DefinitionError> {
        self.registry.add(tool)?;
        Ok(self)
    }

    /// Sets the filters for the offered tools.
    #[must_use]
    pub fn filters(mut self, filters: ToolFilters) -> Self {
        self.filters = filters;
        self
    }

    /// Sets the session id, if it is already known.
    #[must_use]
    pub fn session(mut self, session: SessionId) -> Self {
        self.session = session;
        self
    }

    /// Sets the services that calls may use.
    #[must_use]
    pub fn services(mut self, services: Services) -> Self {
        self.services = services;
        self
    }

    /// Sets how the layers treat each tool.
    #[must_use]
    pub fn layer_settings(mut self, settings: LayerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Adds a layer inside the standard ones, closest to the tool.
    #[must_use]
    pub fn layer(mut self, layer: Arc<dyn Layer>) -> Self {
        self.more_layers.push(layer);
        self
    }

    /// Sets the budget for long results.
    #[must_use]
    pub fn budget(mut self, budget: ResultBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the receiver of progress updates.
    #[must_use]
    pub fn progress(mut self, progress: ProgressSender) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Sets the model that makes the calls.
    #[must_use]
    pub fn model(mut self, model: impl Into<Arc<str>>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the number of calls that run concurrently; at least one.
    #[must_use]
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = most.max(1);
        self
    }

    /// Sets the store for rules that the user saves beyond the session.
    #[must_use]
    pub fn rule_store(mut self, keeper: Arc<dyn RuleStore>) -> Self {
        self.rule_store = Some(keeper);
        self
    }

    /// Sets the watch on settings files that may tighten the rules while the session runs.
    #[must_use]
    pub fn settings_watch(mut self, watch: SettingsWatch) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Sets the clock of permissions that end after a time. Default: that of the machine.
    #[must_use]
    pub fn clock(mut self, clock: GrantClock) -> Self {
        self.grants = Arc::new(TimedGrants::new(clock));
        self
    }

    /// Sets the user's hooks.
    #[must_use]
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Allows hooks to defer a call: it gets a result without having run, and the result is marked
    /// ([`Metadata::deferred`](crate::Metadata::deferred)). Without this, the user is asked
    /// instead.
    #[must_use]
    pub fn allow_deferral(mut self) -> Self {
        self.defers = true;
        self
    }

    /// Sets the receiver of measurements of calls, including those of subagents.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn CallListener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Sets the identity of the agent, as hooks receive it.
    #[must_use]
    pub fn agent(mut self, agent: AgentIdentity) -> Self {
        self.agent = agent;
        self
    }

    /// Sets whether denial messages may name command-line flags, for sessions that were configured
    /// with them.
    #[must_use]
    pub fn names_flags(mut self, names_flags: bool) -> Self {
        self.names_flags = names_flags;
        self
    }

    /// Disables the cards of results, for sessions whose results no user sees: each card has only
    /// its title.
    #[must_use]
    pub fn without_cards(mut self) -> Self {
        self.draws_cards = false;
        self
    }

    /// Builds the engine. Also returns the names in its filters that match no tool.
    ///
    /// Boxed, so that its code is compiled once, here, and not in each crate that awaits it.
    pub fn build(self) -> BoxFuture<'static, (Arc<Engine>, Vec<String>)> {
        Box::pin(self.build_engine())
    }

    async fn build_engine(self) -> (Arc<Engine>, Vec<String>) {
        let (pool, unknown) = self.registry.pool(&self.filters).await;
        let pool = pool.with_fitted_finder(&self.services);
        let layers = Arc::new(LayerStack::new(self.settings, self.more_layers));
        layers.register_tools(pool.iter().map(|tool| tool.spec()));
        let results = ResultStore::new(self.session_folder.join("tool-results"), self.budget);
        let results = Arc::new(results);
        let env_file = self.session_folder.join("hook-env.sh");
        let hooks = self.hooks.with_text_store(results.clone(), env_file);
        let conversation = Arc::new(RwLock::new(ConversationLocation {
            id: self.session,
            folder: self.session_folder.clone(),
        }));
        let agent = Arc::new(RwLock::new(self.agent));
        let fire = by_tools(hooks.clone(), Arc::clone(&agent), Arc::clone(&conversation));
        let pool = LivePool::new(pool, self.filters);
        let engine = Engine {
            conversation,
            services: self.services.with(Arc::new(fire)).with(pool.deferred()),
            pool,
            layers,
            results,
            progress: self.progress,
            model: self.model,
            concurrency: self.concurrency,
            rule_store: self.rule_store,
            watch: self.watch,
            grants: self.grants,
            hooks,
            listener: self.listener,
            defers: self.defers,
            names_flags: self.names_flags,
            draws_cards: self.draws_cards,
            undo_was_explained: Arc::default(),
            offline_was_declined: Arc::default(),
            agent,
            folder: self.session_folder,
        };
        (Arc::new(engine), unknown)
    }
}

fn place(conversation: &RwLock<ConversationLocation>) -> ConversationLocation {
    let place = conversation.read().unwrap_or_else(PoisonError::into_inner);
    place.clone()
}

fn identity(agent: &RwLock<AgentIdentity>) -> AgentIdentity {
    let agent = agent.read().unwrap_or_else(PoisonError::into_inner);
    agent.clone()
}

fn common(conversation: &RwLock<ConversationLocation>, agent: AgentIdentity) -> HookCommonFields {
    let place = place(conversation);
    HookCommonFields {
        agent,
        ..HookCommonFields::for_session(place.id, &place.folder)
    }
}

/// Creates the service through which tools fire hook events.
fn by_tools(
    hooks: Hooks,
    agent: Arc<RwLock<AgentIdentity>>,
    conversation: Arc<RwLock<ConversationLocation>>,
) -> HookService {
    HookService::from_fn(move |fired: HookEvent, cx: &CallContext| {
        let event =
            HookEventKind::from_name(&fired.name).filter(|event| !hooks.has_no_handlers(*event));
        let Some(event) = event else {
            return Box::pin(async { HookVerdict::default() }) as BoxFuture<'static, _>;
        };
        let hooks = hooks.clone();
        let common = HookCommonFields {
            permission_mode: event.includes_mode().then(|| cx.permissions.mode.name()),
            ..common(&conversation, identity(&agent))
        };
        let cwd = Arc::clone(&cx.cwd);
        Box::pin(async move {
            let occasion = HookInvocation {
                event,
                names: &[&fired.matched],
                fields: fired.fields,
                call: None,
                cwd: &cwd,
            };
            merge_outputs(hooks.fire(&occasion, &common).await)
        })
    })
}
