//! The parts of the engine, joined.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use haft_contract::{
    BoxFuture, CallContext, DynTool, HookEvent, HookFire, HookVerdict, Progress, Services,
    SessionId, ToolUse,
};
use serde_json::{Map, Value};

use crate::{
    CallListener, DefinitionError, Filters, Pool, Registry, ResultStore, Scheduler, SessionContext,
    hooks::{Common, Handler, Heard, HookMoment, Hooks, Identity, Occasion, together},
    layers::{Layer, LayerSettings, Layers},
    permissions::{Facts, Policy, RuleStore},
    pipeline,
    pool::{PoolView, live::LivePool},
    results::Budget,
    settings::Watch,
};

/// How long a call may run where its tool does not say: longer than anything useful, so that only
/// a dead file system is cut off.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// How many calls run at once, unless told otherwise.
pub const DEFAULT_CONCURRENCY: usize = 10;

/// Everything that calls of one session share and none of them changes.
pub struct Engine {
    conversation: Arc<RwLock<ConversationPlace>>,
    pub(crate) pool: LivePool,
    pub(crate) services: Services,
    pub(crate) layers: Arc<Layers>,
    pub(crate) results: Arc<ResultStore>,
    pub(crate) progress: Option<Progress>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) concurrency: usize,
    pub(crate) keeper: Option<Arc<dyn RuleStore>>,
    pub(crate) watch: Option<Watch>,
    pub(crate) hooks: Hooks,
    /// Who measures calls.
    pub(crate) listener: Option<Arc<dyn CallListener>>,
    /// Calls can be put off: the one who runs the session ends it there.
    pub(crate) defers: bool,
    /// Refusals name flags of the command line.
    names_flags: bool,
    /// Someone may look at the cards of results.
    pub(crate) draws: bool,
    agent: Arc<RwLock<Identity>>,
    folder: PathBuf,
}

/// Which conversation goes on, and the folder beside its transcript. Shared by all agents of a session.
#[derive(Debug, Clone)]
struct ConversationPlace {
    id: SessionId,
    folder: PathBuf,
}

impl Engine {
    /// Sets one up.
    pub fn builder(registry: Registry, session_folder: impl Into<PathBuf>) -> EngineBuilder {
        EngineBuilder {
            registry,
            filters: Filters::default(),
            session: SessionId::new(),
            session_folder: session_folder.into(),
            services: Services::none(),
            settings: LayerSettings {
                timeout: Some(DEFAULT_TIMEOUT),
                ..LayerSettings::default()
            },
            more_layers: Vec::new(),
            budget: Budget::default(),
            progress: None,
            model: None,
            concurrency: DEFAULT_CONCURRENCY,
            keeper: None,
            watch: None,
            hooks: Hooks::default(),
            listener: None,
            defers: false,
            names_flags: false,
            draws: true,
            agent: Identity::default(),
        }
    }

    /// What hooks receive with every event.
    pub(crate) fn common(&self) -> Common {
        common(&self.conversation, self.agent())
    }

    /// The session's hooks: handlers can be added, and what runs beside it can be followed.
    pub fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Tells the hooks that the session waits for what a person says next (`Notification`, `idle_prompt`).
    pub async fn waits_for_person(&self, message: &str, cwd: &Path) {
        self.notify("idle_prompt", "Waiting for you", message, cwd)
            .await;
    }

    /// Tells the hooks what a person is to know (`Notification`), by its kind.
    pub async fn notify(&self, kind: &str, title: &str, message: &str, cwd: &Path) {
        let notice = pipeline::hooks::HookNotice {
            kind,
            title,
            message,
        };
        pipeline::hooks::notify(self, &notice, cwd).await;
    }

    /// What would help, in the terms in which the session was set up: a flag of the command line, or words.
    pub(crate) fn remedy<'a>(&self, flag: &'a str, words: &'a str) -> &'a str {
        match self.names_flags {
            true => flag,
            false => words,
        }
    }

    /// The session: the id of the conversation that goes on.
    pub fn session(&self) -> SessionId {
        let place = self.conversation.read();
        place.unwrap_or_else(PoisonError::into_inner).id
    }

    /// The folder beside the transcript of the conversation that goes on; transcripts of subagents are in it.
    pub fn conversation_folder(&self) -> PathBuf {
        place(&self.conversation).folder
    }

    /// Another conversation goes on from now on, with the same files, tools and permissions.
    pub fn begin_conversation(&self, id: SessionId) {
        let folder = self.folder.with_file_name(id.to_string());
        let mut place = self
            .conversation
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *place = ConversationPlace { id, folder };
    }

    /// Runs the hooks of an event that is about no call. `matched` is what matchers look at; the
    /// permission mode is passed where the event has it.
    pub async fn fire(
        &self,
        event: HookMoment,
        matched: &str,
        fields: Map<String, Value>,
        context: &SessionContext,
    ) -> Vec<Heard> {
        if self.hooks.is_silent(event) {
            return Vec::new();
        }
        let occasion = Occasion {
            event,
            names: &[matched],
            fields,
            call: None,
            cwd: &context.cwd,
        };
        let common = Common {
            permission_mode: event.tells_mode().then(|| context.mode.name()),
            ..self.common()
        };
        self.hooks.fire(&occasion, &common).await
    }

    /// What its calls may reach.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// The tools as they are now. A turn keeps those it began with.
    pub fn pool(&self) -> Arc<Pool> {
        self.pool.get()
    }

    /// Offers further tools from the next turn on, behind those that are there. The answer names those that
    /// were left out, and why. Subagents that run already do not get them.
    pub async fn add_tools(&self, tools: Vec<Arc<dyn DynTool>>) -> Vec<DefinitionError> {
        self.layers.expect(tools.iter().map(|tool| tool.spec()));
        self.pool.add(tools).await
    }

    /// From the next turn on the server of this name has these tools and no others: it has come, has changed
    /// its list, is there again, or (with none) has gone. What the model was sent stays so; a call of a tool
    /// that is gone is answered by saying that.
    pub async fn replace_server_tools(
        &self,
        server: &str,
        tools: Vec<Arc<dyn DynTool>>,
    ) -> Vec<DefinitionError> {
        self.layers.expect(tools.iter().map(|tool| tool.spec()));
        self.pool.replace_server(server, tools).await
    }

    /// What the session permits.
    pub fn policy(&self, context: &SessionContext) -> Policy {
        context.policy(self.results.real_folder())
    }

    /// The same without the plan, for calls that are not about it.
    pub(crate) fn policy_but_plan(&self, context: &SessionContext) -> Policy {
        context.policy_but_plan(self.results.real_folder())
    }

    /// What is known of a call before it is decided on, gathered as for a call that is about to run: it is
    /// fitted to its tool, and nothing runs and no one is asked. The error says what is wrong with it.
    pub async fn facts(
        &self,
        tool_use: ToolUse,
        context: &SessionContext,
    ) -> Result<Facts, String> {
        pipeline::facts(self, tool_use, context).await
    }

    /// What the session keeps on disk is in here; the folder is made when first needed.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Do hooks of the user's have a say in what calls give back?
    pub fn may_change_results(&self) -> bool {
        !self.hooks.is_silent(HookMoment::POST_TOOL_USE)
    }

    /// The model whose calls these are, where known.
    pub fn model(&self) -> Option<&Arc<str>> {
        self.model.as_ref()
    }

    /// Who acts, as hooks receive it.
    pub fn agent(&self) -> Identity {
        identity(&self.agent)
    }

    /// Every tool of the session, those too that an agent of this kind does not have.
    pub fn every_tool(&self) -> Arc<Pool> {
        self.pool.all()
    }

    /// The agent is of this kind from now on, and has what the view leaves of the tools.
    pub(crate) fn set_kind(&self, kind: Option<String>, view: Option<PoolView>) {
        let agent = self.agent.write();
        agent.unwrap_or_else(PoisonError::into_inner).kind = kind;
        self.pool.set_view(view, &self.services);
    }

    /// The same session for a subagent: the same rules' enforcement, hooks, layers and kept results, with
    /// the tools, services and identity it is given.
    pub fn for_subagent(&self, part: EnginePart) -> Arc<Self> {
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
            // News of a subagent's calls would be taken for news of the main agent's, where calls are not told
            // apart.
            progress: self.progress.clone().filter(Progress::tells_calls_apart),
            model: Some(part.model),
            concurrency: self.concurrency,
            keeper: self.keeper.clone(),
            watch: self.watch.clone(),
            hooks,
            listener: self.listener.clone(),
            // A part cannot end the whole.
            defers: false,
            names_flags: self.names_flags,
            draws: self.draws,
            agent,
            folder: self.folder.clone(),
        })
    }

    /// A session's calls run here.
    pub fn scheduler(self: Arc<Self>, context: SessionContext) -> Scheduler {
        Scheduler::new(self, context)
    }
}

/// What a subagent has of its own.
#[derive(Debug)]
pub struct EnginePart {
    /// Its tools: [`Pool::narrowed`].
    pub pool: Pool,
    /// What its calls may reach.
    pub services: Services,
    /// The model whose calls they are.
    pub model: Arc<str>,
    /// Who it is.
    pub agent: Identity,
    /// Hooks that hold for it alone.
    pub handlers: Vec<Handler>,
}

/// Sets an engine up.
pub struct EngineBuilder {
    registry: Registry,
    filters: Filters,
    session: SessionId,
    session_folder: PathBuf,
    services: Services,
    settings: LayerSettings,
    more_layers: Vec<Arc<dyn Layer>>,
    budget: Budget,
    progress: Option<Progress>,
    model: Option<Arc<str>>,
    concurrency: usize,
    keeper: Option<Arc<dyn RuleStore>>,
    watch: Option<Watch>,
    hooks: Hooks,
    listener: Option<Arc<dyn CallListener>>,
    defers: bool,
    names_flags: bool,
    draws: bool,
    agent: Identity,
}

impl EngineBuilder {
    /// Adds a tool.
    pub fn tool(mut self, tool: impl haft_contract::Tool) -> Result<Self, DefinitionError> {
        self.registry.add(tool)?;
        Ok(self)
    }

    /// Which tools are offered.
    #[must_use]
    pub fn filters(mut self, filters: Filters) -> Self {
        self.filters = filters;
        self
    }

    /// The session's id, where it is known already.
    #[must_use]
    pub fn session(mut self, session: SessionId) -> Self {
        self.session = session;
        self
    }

    /// What calls may reach.
    #[must_use]
    pub fn services(mut self, services: Services) -> Self {
        self.services = services;
        self
    }

    /// How the layers treat each tool.
    #[must_use]
    pub fn layer_settings(mut self, settings: LayerSettings) -> Self {
        self.settings = settings;
        self
    }

    /// One more layer, inside the standard ones: nearest to the tool.
    #[must_use]
    pub fn layer(mut self, layer: Arc<dyn Layer>) -> Self {
        self.more_layers.push(layer);
        self
    }

    /// How much of long results is kept.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Who observes running calls.
    #[must_use]
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self
    }

    /// The model whose calls these are.
    #[must_use]
    pub fn model(mut self, model: impl Into<Arc<str>>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// How many calls run at once; at least one.
    #[must_use]
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = most.max(1);
        self
    }

    /// Where rules are kept that a person agreed to, beyond the session.
    #[must_use]
    pub fn keeper(mut self, keeper: Arc<dyn RuleStore>) -> Self {
        self.keeper = Some(keeper);
        self
    }

    /// Settings files that may tighten the rules while the session runs.
    #[must_use]
    pub fn watch(mut self, watch: Watch) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Programs of the user's that have a say.
    #[must_use]
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Hooks can put a call off: it is answered without having run, and says so
    /// ([`Metadata::deferred`](crate::Metadata::deferred)). Otherwise a person is asked then.
    #[must_use]
    pub fn defers(mut self) -> Self {
        self.defers = true;
        self
    }

    /// Who measures calls, those of subagents too.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn CallListener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Who acts, as hooks receive it.
    #[must_use]
    pub fn agent(mut self, agent: Identity) -> Self {
        self.agent = agent;
        self
    }

    /// Refusals name flags of a command line, where that is how the session was set up.
    #[must_use]
    pub fn names_flags(mut self, names_flags: bool) -> Self {
        self.names_flags = names_flags;
        self
    }

    /// No person sees what calls give back, so that no card of a result is drawn: each has its title alone.
    #[must_use]
    pub fn without_cards(mut self) -> Self {
        self.draws = false;
        self
    }

    /// The engine, and the names its filters asked for that no tool has.
    ///
    /// Boxed, so that its code is made once, here, and not in each crate that awaits it.
    pub fn build(self) -> BoxFuture<'static, (Arc<Engine>, Vec<String>)> {
        Box::pin(self.build_engine())
    }

    async fn build_engine(self) -> (Arc<Engine>, Vec<String>) {
        let (pool, unknown) = self.registry.pool(&self.filters).await;
        let pool = pool.with_fitted_finder(&self.services);
        let layers = Arc::new(Layers::new(self.settings, self.more_layers));
        layers.expect(pool.iter().map(|tool| tool.spec()));
        let results = ResultStore::new(self.session_folder.join("tool-results"), self.budget);
        let results = Arc::new(results);
        let env_file = self.session_folder.join("hook-env.sh");
        let hooks = self.hooks.kept_in(results.clone(), env_file);
        let conversation = Arc::new(RwLock::new(ConversationPlace {
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
            keeper: self.keeper,
            watch: self.watch,
            hooks,
            listener: self.listener,
            defers: self.defers,
            names_flags: self.names_flags,
            draws: self.draws,
            agent,
            folder: self.session_folder,
        };
        (Arc::new(engine), unknown)
    }
}

fn place(conversation: &RwLock<ConversationPlace>) -> ConversationPlace {
    let place = conversation.read().unwrap_or_else(PoisonError::into_inner);
    place.clone()
}

fn identity(agent: &RwLock<Identity>) -> Identity {
    let agent = agent.read().unwrap_or_else(PoisonError::into_inner);
    agent.clone()
}

fn common(conversation: &RwLock<ConversationPlace>, agent: Identity) -> Common {
    let place = place(conversation);
    Common {
        agent,
        ..Common::of(place.id, &place.folder)
    }
}

/// Events that tools bring about.
fn by_tools(
    hooks: Hooks,
    agent: Arc<RwLock<Identity>>,
    conversation: Arc<RwLock<ConversationPlace>>,
) -> HookFire {
    HookFire::by(move |fired: HookEvent, cx: &CallContext| {
        let event = HookMoment::named(&fired.name).filter(|event| !hooks.is_silent(*event));
        let Some(event) = event else {
            return Box::pin(async { HookVerdict::default() }) as BoxFuture<'static, _>;
        };
        let hooks = hooks.clone();
        let common = Common {
            permission_mode: event.tells_mode().then(|| cx.permissions.mode.name()),
            ..common(&conversation, identity(&agent))
        };
        let cwd = Arc::clone(&cx.cwd);
        Box::pin(async move {
            let occasion = Occasion {
                event,
                names: &[&fired.matched],
                fields: fired.fields,
                call: None,
                cwd: &cwd,
            };
            together(hooks.fire(&occasion, &common).await)
        })
    })
}
