//! Setting an agent up.

use std::sync::{Arc, Mutex};

use haft_contract::{ContextPatch, PendingInput, PermissionMode, SessionId, SessionState};
use haft_engine::{Scheduler, SessionContext, pool::ToolOffer};
use haft_models::{
    Conversation, Model, ModelRequest, Prefix, Prices, SystemBlock, Thinking, ToolDefinition,
};

use crate::{
    Control, Session, SubagentPool, UsageLedger,
    compaction::{Room, text_tokens},
    cost::SharedUsage,
    prompt::{Knowledge, PromptEnvironment, SystemPrompt},
    subagents::{Host, Spawner},
    transcript::{Files, SessionOrigin, SoFar, Transcript},
};

/// How a model is asked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelSettings {
    /// The model, as its provider names it.
    pub name: String,
    /// At most so many tokens in a reply.
    pub max_tokens: u32,
    /// Whether and how it thinks first.
    pub thinking: Thinking,
    /// How much work it puts in.
    pub effort: Option<String>,
    /// How many tokens it can read.
    pub window: u64,
}

impl ModelSettings {
    /// With everything else left at its default.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            max_tokens: 32_000,
            thinking: Thinking::Off,
            effort: None,
            window: 200_000,
        }
    }
}

/// When a run ends though the model would go on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunLimits {
    /// After so many rounds of tools.
    pub max_turns: Option<u32>,
    /// After so much money, all runs of this agent together.
    pub max_budget_usd: Option<f64>,
    /// So many rounds in a row got nowhere: the model is told…
    pub warn_after_repeats: u32,
    /// …and after so many the run ends.
    pub stop_after_repeats: u32,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_turns: None,
            max_budget_usd: None,
            warn_after_repeats: 3,
            stop_after_repeats: 6,
        }
    }
}

/// A model with tools, in one session.
pub struct Agent {
    pub(crate) scheduler: Scheduler,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) settings: ModelSettings,
    pub(crate) limits: RunLimits,
    pub(crate) prices: Prices,
    pub(crate) control: Control,
    pub(crate) conversation: Conversation,
    pub(crate) transcript: Arc<Transcript>,
    pub(crate) session: SessionId,
    pub(crate) origin: SessionOrigin,
    pub(crate) purse: SharedUsage,
    /// Launches subagents for its calls.
    pub(crate) level: Option<Arc<Spawner>>,
    /// Those of the session, if this is the main agent.
    pub(crate) crew: Option<SubagentPool>,
    pub(crate) room: Room,
    pub(crate) memory: bool,
    /// What people laid in folders.
    pub(crate) knowledge: Knowledge,
    /// What the next run is permitted.
    pub(crate) permitted: Vec<ContextPatch>,
    /// It was told, or will be when the conversation is summed up.
    pub(crate) has_recalled: bool,
    /// Some run has begun.
    pub(crate) has_begun: bool,
    /// What hooks want known before the first words.
    pub(crate) opening: Vec<String>,
    /// The model knows that plan mode is on.
    pub(crate) knows_plan: bool,
    /// Hooks want nothing to begin: why.
    pub(crate) held_up: Option<String>,
    /// A run was dropped in the middle: what is in memory lags behind the transcript.
    pub(crate) is_behind: bool,
    /// The context before anything of an earlier run was taken over.
    pub(crate) start: SessionContext,
    offer: Offer,
}

/// What every request begins with.
struct Offer {
    system: Vec<SystemBlock>,
    tools: ToolOffer,
    prefix: Arc<Prefix>,
}

/// Sets an agent up.
pub struct AgentBuilder {
    scheduler: Scheduler,
    model: Arc<dyn Model>,
    settings: ModelSettings,
    limits: RunLimits,
    prices: Prices,
    session: Option<Session>,
    system: Option<SystemPrompt>,
    control: Control,
    version: String,
    memory: bool,
    knowledge: Option<Knowledge>,
    purse: SharedUsage,
    level: Option<Arc<Spawner>>,
    crew: Option<SubagentPool>,
    start: Option<SessionContext>,
}

impl Agent {
    /// Sets one up that asks this model and runs calls here.
    pub fn builder(
        scheduler: Scheduler,
        model: Arc<dyn Model>,
        settings: ModelSettings,
    ) -> AgentBuilder {
        AgentBuilder {
            scheduler,
            model,
            settings,
            limits: RunLimits::default(),
            prices: Prices::default(),
            session: None,
            system: None,
            control: Control::default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            memory: true,
            knowledge: None,
            purse: SharedUsage::default(),
            level: None,
            crew: None,
            start: None,
        }
    }

    /// The handle by which it is interrupted, steered and changed while it runs.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// The session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// What was said so far.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Where the session is written down.
    pub fn transcript(&self) -> &Arc<Transcript> {
        &self.transcript
    }

    /// Which files the session has read and changed.
    pub fn files(&self) -> Files {
        self.transcript.files()
    }

    /// What was spent so far, by its subagents too.
    pub fn ledger(&self) -> UsageLedger {
        self.purse.ledger()
    }

    /// The session's context as it is now.
    pub fn context(&self) -> SessionContext {
        self.scheduler.context()
    }

    /// How the model is asked.
    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// Tokens in the conversation, about, and how many the model can read.
    pub fn context_usage(&self) -> (u64, u64) {
        (self.room.tokens(), self.settings.window)
    }

    /// What every request begins with, about, in tokens: the system prompt, and each tool by its name.
    pub fn prefix_sizes(&self) -> (u64, Vec<(String, u64)>) {
        let system = self.offer.system.iter();
        let system = system.map(|block| text_tokens(block.text.len())).sum();
        let tools = self.offer.tools.iter().map(|tool| {
            let tool = tool.spec();
            let bytes = tool.name.len() + tool.description.len();
            let schema = tool.input_schema.to_string().len();
            (tool.name.clone(), text_tokens(bytes + schema))
        });
        (system, tools.collect())
    }

    /// Takes over what was asked for through the handle.
    pub(crate) fn take_changes(&mut self) {
        let changes = self.control.take_changes();
        for (model, usage) in &changes.spent {
            self.purse.add(model, usage, &self.prices);
        }
        if let Some(model) = changes.model {
            self.scheduler.set_model(model.as_str());
            self.settings.name = model;
        }
        if let Some(thinking) = changes.thinking {
            self.settings.thinking = thinking;
        }
        if let Some(mode) = changes.mode {
            self.set_mode(mode);
        }
        if let Some(level) = &self.level {
            level.inherit(&self.settings);
        }
    }

    fn set_mode(&mut self, mode: PermissionMode) {
        self.scheduler.apply(&ContextPatch::SetMode { mode });
    }

    /// What is sent now.
    pub(crate) fn request(&mut self) -> ModelRequest {
        let prefix = self.prefix();
        let name = self.settings.name.clone();
        let mut request = ModelRequest::new(name, prefix, self.conversation.history());
        request.max_tokens = self.settings.max_tokens;
        request.thinking = self.settings.thinking;
        request.effort.clone_from(&self.settings.effort);
        request
    }

    /// Tools that were activated or came since go to the end, so that what the provider has cached stays so.
    fn prefix(&mut self) -> Arc<Prefix> {
        let tools = self.scheduler.offer();
        if tools != self.offer.tools {
            self.offer.prefix = prefix(&self.offer.system, &tools);
            self.offer.tools = tools;
        }
        Arc::clone(&self.offer.prefix)
    }
}

fn prefix(system: &[SystemBlock], tools: &ToolOffer) -> Arc<Prefix> {
    let tools = tools.iter().map(|tool| ToolDefinition::from(tool.spec()));
    Arc::new(Prefix::new(system.to_vec(), tools.collect()))
}

impl AgentBuilder {
    /// Where a run ends though the model would go on.
    #[must_use]
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.limits = limits;
        self
    }

    /// What tokens cost.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// The session. Default: a new one, of the engine's id, that is gone with the process.
    #[must_use]
    pub fn session(mut self, session: Session) -> Self {
        self.session = Some(session);
        self
    }

    /// The system prompt. Default: our own words, and where the session runs.
    #[must_use]
    pub fn system_prompt(mut self, system: SystemPrompt) -> Self {
        self.system = Some(system);
        self
    }

    /// A handle that exists already.
    #[must_use]
    pub fn control(mut self, control: Control) -> Self {
        self.control = control;
        self
    }

    /// The version that transcripts name.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// What people laid in folders for the model to know. Default: the memory files of the project.
    #[must_use]
    pub fn knowledge(mut self, knowledge: Knowledge) -> Self {
        self.knowledge = Some(knowledge);
        self
    }

    /// The model is not told what memory files want it to know.
    #[must_use]
    pub fn without_memory(mut self) -> Self {
        self.memory = false;
        self
    }

    /// The subagents that its calls may launch. The engine must have [`SubagentPool::service`] among its services.
    #[must_use]
    pub fn crew(mut self, crew: SubagentPool) -> Self {
        self.level = Some(Arc::clone(&crew.main));
        self.crew = Some(crew);
        self
    }

    /// What it spends goes into this.
    pub(crate) fn purse(mut self, purse: SharedUsage) -> Self {
        self.purse = purse;
        self
    }

    /// Launches subagents for its calls.
    pub(crate) fn level(mut self, level: Arc<Spawner>) -> Self {
        self.level = Some(level);
        self
    }

    /// The context before anything of an earlier run of the session was taken over, such as its
    /// [`terms`](crate::transcript::Loaded::terms). Default: as it is.
    #[must_use]
    pub fn start(mut self, context: SessionContext) -> Self {
        self.start = Some(context);
        self
    }

    /// The agent.
    pub fn build(self) -> Agent {
        let context = self.scheduler.context();
        let start = self.start.unwrap_or_else(|| context.clone());
        let session = self
            .session
            .unwrap_or_else(|| Session::in_memory(self.scheduler.engine().session()));
        let system = self
            .system
            .unwrap_or_else(|| SystemPrompt::new(PromptEnvironment::look(&context)));
        let system = system.blocks();
        let tools = self.scheduler.offer();
        let prefix = prefix(&system, &tools);
        let engine = self.scheduler.engine();
        let knowledge = self
            .knowledge
            .unwrap_or_else(|| Knowledge::of_project(&context.cwd));
        if let Some(level) = &self.level {
            level.bind(Host {
                engine: Arc::downgrade(engine),
                context: self.scheduler.view(),
                model: Arc::clone(&self.model),
                settings: Mutex::new(self.settings.clone()),
                prices: self.prices.clone(),
                purse: self.purse.clone(),
                limits: self.limits.clone(),
                version: self.version.clone(),
                memory: self.memory,
                knowledge: knowledge.of_subagent(knowledge.lists),
            });
        }
        let resumed = self
            .crew
            .as_ref()
            .filter(|_| session.origin != SessionOrigin::New);
        let cut_off = resumed.and_then(|crew| crew.cut_off(engine.folder()));
        let loaded = session.loaded;
        let services = self.scheduler.engine().services();
        let remembered = services.get::<SessionState>().ok();
        if let Some(remembered) = &remembered {
            remembered.restore(loaded.kept);
        }
        if let Ok(attention) = services.get::<PendingInput>() {
            self.control.gets(attention);
        }
        let agent_id = engine.agent().id.clone();
        let transcript = Arc::new(Transcript::new(
            session.store,
            session.id,
            self.version,
            agent_id,
            SoFar {
                lines: loaded.lines,
                last: loaded.last,
                files: loaded.files,
                terms: loaded.terms,
            },
            remembered,
        ));
        let room = Room::of(&loaded.conversation);
        let agent = Agent {
            scheduler: self.scheduler,
            model: self.model,
            settings: self.settings,
            limits: self.limits,
            prices: self.prices,
            control: self.control,
            conversation: loaded.conversation,
            transcript,
            session: session.id,
            origin: session.origin,
            purse: self.purse,
            level: self.level,
            crew: self.crew,
            room,
            memory: self.memory,
            knowledge,
            permitted: Vec::new(),
            has_recalled: false,
            has_begun: false,
            opening: cut_off.into_iter().collect(),
            knows_plan: false,
            held_up: None,
            is_behind: false,
            start,
            offer: Offer {
                system,
                tools,
                prefix,
            },
        };
        agent.note_place();
        for result in &loaded.made_up {
            agent.transcript.answer(result, None);
        }
        agent
    }
}
