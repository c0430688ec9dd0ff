//! Setting up an agent.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use haft_contract::{BoxFuture, ContextPatch, NestedCalls, PendingInput, SessionId, SessionState};
use haft_engine::{Scheduler, SessionContext};
use haft_models::{Conversation, Model, Prices, Thinking};

use crate::{
    Control, Prompt, Session, SubagentPool, UsageLedger,
    client::ModelClient,
    compaction::Compaction,
    cost::SharedUsage,
    dialogue::Dialogue,
    hooks::{HookRunner, RunContext},
    instructions::Instructions,
    plan_mode::PlanReminder,
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
    /// Another one in plan mode.
    pub plan_name: Option<String>,
    /// At most this many tokens in a reply.
    pub max_tokens: u32,
    /// Whether and how it thinks first.
    pub thinking: Thinking,
    /// How much work it puts in.
    pub effort: Option<String>,
    /// How many tokens it can read.
    pub window: u64,
    /// Whether and when its conversation is summarized unasked.
    pub auto_compact: AutoCompact,
}

/// Whether and when a conversation is summarized unasked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AutoCompact {
    /// It is not: one that no longer fits is refused by the provider.
    pub is_off: bool,
    /// As if the model could read only this many tokens.
    pub window: Option<u64>,
}

impl AutoCompact {
    /// How many tokens a conversation with a model may have that can read this many.
    pub fn window_of(self, window: u64) -> u64 {
        self.window.map_or(window, |most| most.min(window))
    }
}

impl ModelSettings {
    /// With everything else left at its default.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            plan_name: None,
            max_tokens: 32_000,
            thinking: Thinking::Off,
            effort: None,
            window: 200_000,
            auto_compact: AutoCompact::default(),
        }
    }

    /// At most this many tokens in a reply.
    #[must_use]
    pub fn max_tokens(mut self, most: u32) -> Self {
        self.max_tokens = most;
        self
    }

    /// Whether and how it thinks first.
    #[must_use]
    pub fn thinking(mut self, thinking: Thinking) -> Self {
        self.thinking = thinking;
        self
    }

    /// How much work it puts in.
    #[must_use]
    pub fn effort(mut self, effort: impl Into<String>) -> Self {
        self.effort = Some(effort.into());
        self
    }

    /// How many tokens it can read.
    #[must_use]
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = tokens;
        self
    }
}

/// When a run ends though the model would go on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunLimits {
    /// After this many rounds of tools.
    pub max_turns: Option<u32>,
    /// After this much money, all runs of this agent together.
    pub max_budget_usd: Option<f64>,
    /// After this many rounds in a row that got nowhere the model gets a reminder…
    pub warn_after_repeats: u32,
    /// …and after this many the run ends.
    pub stop_after_repeats: u32,
}

impl RunLimits {
    /// After this many rounds of tools.
    #[must_use]
    pub fn max_turns(mut self, most: u32) -> Self {
        self.max_turns = Some(most);
        self
    }

    /// After this much money, all runs of the agent together.
    #[must_use]
    pub fn max_budget_usd(mut self, most: f64) -> Self {
        self.max_budget_usd = Some(most);
        self
    }

    /// When a model that repeats itself gets a reminder, and when its run ends.
    #[must_use]
    pub fn repeats(mut self, warn_after: u32, stop_after: u32) -> Self {
        (self.warn_after_repeats, self.stop_after_repeats) = (warn_after, stop_after);
        self
    }
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

/// A model with tools, in one session: the loop over these parts.
pub struct Agent {
    /// Runs its calls, and knows the session's context.
    pub(crate) scheduler: Scheduler,
    /// Whom it asks.
    pub(crate) client: ModelClient,
    /// What was said.
    pub(crate) dialogue: Dialogue,
    /// What else it reads.
    pub(crate) instructions: Instructions,
    pub(crate) plan: PlanReminder,
    pub(crate) hooks: HookRunner,
    pub(crate) control: Control,
    pub(crate) limits: RunLimits,
    /// Launches subagents for its calls.
    pub(crate) spawner: Option<Arc<Spawner>>,
    /// Those of the session, if this is the main agent.
    pub(crate) subagents: Option<SubagentPool>,
    pub(crate) session: SessionProgress,
    /// What is done with a message that comes during a run.
    pub(crate) attach: Option<Box<Attach>>,
}

/// Adds to a message what it names: read by these calls, in this directory.
pub type Attach =
    dyn Fn(Prompt, NestedCalls, Arc<Path>) -> BoxFuture<'static, Prompt> + Send + Sync;

/// Which session it is, and how far it has come.
pub(crate) struct SessionProgress {
    pub(crate) id: SessionId,
    pub(crate) origin: SessionOrigin,
    /// The context before anything of an earlier run was taken over.
    pub(crate) start: SessionContext,
    /// Some run has begun.
    pub(crate) has_begun: bool,
    /// Hooks block the beginning: why.
    pub(crate) held_up: Option<String>,
    /// A run was dropped in the middle: what is in memory lags behind the transcript.
    pub(crate) is_behind: bool,
    /// What the next run is permitted.
    pub(crate) permitted: Vec<ContextPatch>,
    /// Working directories that hooks do not know of yet.
    pub(crate) added: Vec<PathBuf>,
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
    /// Sets up one that asks this model and runs calls here.
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

    /// Messages that come during a run are given to this before the model reads them.
    pub fn attach_with(&mut self, attach: Box<Attach>) {
        self.attach = Some(attach);
    }

    /// The session.
    pub fn session(&self) -> SessionId {
        self.session.id
    }

    /// What was said so far.
    pub fn conversation(&self) -> &Conversation {
        &self.dialogue.conversation
    }

    /// Where the session is recorded.
    pub fn transcript(&self) -> &Arc<Transcript> {
        &self.dialogue.transcript
    }

    /// Which files the session has read and changed.
    pub fn files(&self) -> Files {
        self.dialogue.transcript.files()
    }

    /// What was spent so far, by its subagents too.
    pub fn ledger(&self) -> UsageLedger {
        self.client.ledger()
    }

    /// The same, as it goes on.
    pub fn spending(&self) -> SharedUsage {
        self.client.usage()
    }

    /// The session's context as it is now.
    pub fn context(&self) -> SessionContext {
        self.scheduler.context()
    }

    /// How the model is asked.
    pub fn settings(&self) -> &ModelSettings {
        &self.client.settings
    }

    /// Tokens in the conversation, about, and how many the model can read.
    pub fn context_usage(&self) -> (u64, u64) {
        (self.dialogue.window.tokens(), self.client.settings.window)
    }

    /// What every request begins with, about, in tokens: the system prompt, and each tool by its name.
    pub fn prefix_sizes(&self) -> (u64, Vec<(String, u64)>) {
        self.client.prefix_sizes()
    }

    /// Takes over what was asked for through the handle.
    pub(crate) fn take_changes(&mut self) {
        let changes = self.control.take_changes();
        if let Some(change) = &changes.main_agent {
            self.change_main_agent(change);
        }
        self.client.change(&changes);
        if let Some(model) = changes.model {
            self.scheduler.set_model(model.as_str());
        }
        if let Some(mode) = changes.mode {
            self.scheduler.apply(&ContextPatch::SetMode { mode });
        }
        for (list, rule) in changes.rules {
            self.scheduler.apply(&ContextPatch::AddRule { list, rule });
        }
        for path in changes.directories {
            self.session.added.push(path.clone());
            self.scheduler.apply(&ContextPatch::AddDirectory { path });
        }
        if let Some(spawner) = &self.spawner {
            spawner.inherit(&self.client.settings);
        }
    }

    /// What makes room in the model's window.
    pub(crate) fn compaction<'a>(&'a mut self, to: RunContext<'a>) -> Compaction<'a> {
        Compaction {
            scheduler: &self.scheduler,
            client: &mut self.client,
            dialogue: &mut self.dialogue,
            instructions: &mut self.instructions,
            plan: &mut self.plan,
            hooks: &self.hooks,
            to,
        }
    }
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

    /// What people put in folders for the model to know. Default: the memory files of the project.
    #[must_use]
    pub fn knowledge(mut self, knowledge: Knowledge) -> Self {
        self.knowledge = Some(knowledge);
        self
    }

    /// The model does not get the memory files.
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

    /// What it spends is counted here.
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
        let cut_off = resumed.and_then(|crew| crew.cut_off(&engine.conversation_folder()));
        let loaded = session.loaded;
        let services = self.scheduler.engine().services();
        let remembered = services.get::<SessionState>().ok();
        if let Some(remembered) = &remembered {
            remembered.restore(loaded.kept);
        }
        if let Ok(attention) = services.get::<PendingInput>() {
            self.control.gets(attention);
        }
        let agent_id = engine.agent().id;
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
        let hooks = HookRunner::new(&self.scheduler, &transcript);
        let client = ModelClient::new(
            self.model,
            self.settings,
            (self.prices, self.purse),
            system.blocks(),
            &self.scheduler,
        );
        let agent = Agent {
            scheduler: self.scheduler,
            client,
            dialogue: Dialogue::new(loaded.conversation, transcript),
            instructions: Instructions::new(knowledge, self.memory, cut_off.into_iter().collect()),
            plan: PlanReminder::default(),
            hooks,
            control: self.control,
            limits: self.limits,
            spawner: self.level,
            subagents: self.crew,
            session: SessionProgress {
                id: session.id,
                origin: session.origin,
                start,
                has_begun: false,
                held_up: None,
                is_behind: false,
                permitted: Vec::new(),
                added: Vec::new(),
            },
            attach: None,
        };
        agent.note_place();
        for result in &loaded.made_up {
            agent.dialogue.transcript.answer(result, None);
        }
        agent
    }
}
