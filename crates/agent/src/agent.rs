//! Building an agent.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use haft_contract::{BoxFuture, ContextPatch, NestedCalls, PendingInput, SessionId, SessionState};
use haft_engine::{Scheduler, SessionContext};
use haft_models::{Conversation, Model, Prices, ThinkingMode};

use crate::{
    AgentHandle, OpenTranscript, Prompt, SubagentPool, UsageLedger,
    client::ModelClient,
    compaction::CompactionRunner,
    cost::SharedUsage,
    hooks::{HookRunner, RunContext},
    instructions::InstructionSender,
    plan_mode::PlanReminder,
    prompt::{InstructionSources, PromptEnvironment, SystemPrompt},
    recorded_conversation::RecordedConversation,
    subagents::{ParentAgent, SubagentLauncher},
    transcript::{SessionOrigin, TouchedFiles, Transcript, TranscriptPosition},
};

/// The settings of model requests.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelSettings {
    /// The model, under its provider's name.
    pub name: String,
    /// The model to use in plan mode, if it differs.
    pub plan_name: Option<String>,
    /// The maximum number of tokens in a reply.
    pub max_tokens: u32,
    /// Whether and how the model thinks before it answers.
    pub thinking: ThinkingMode,
    /// The effort level.
    pub effort: Option<String>,
    /// The context window in tokens.
    pub window: u64,
    /// The settings of automatic compaction.
    pub auto_compact: AutoCompact,
}

/// The settings of automatic compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AutoCompact {
    /// Disables automatic compaction. The provider then rejects a conversation that is too long.
    pub is_off: bool,
    /// The maximum context window to use, in tokens.
    pub window: Option<u64>,
}

impl AutoCompact {
    /// Returns the effective context window of a model with `window` tokens.
    pub fn window_of(self, window: u64) -> u64 {
        self.window.map_or(window, |max| max.min(window))
    }
}

impl ModelSettings {
    /// Creates settings with default values for everything else.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            plan_name: None,
            max_tokens: 32_000,
            thinking: ThinkingMode::Off,
            effort: None,
            window: 200_000,
            auto_compact: AutoCompact::default(),
        }
    }

    /// Sets the maximum number of tokens in a reply.
    #[must_use]
    pub fn max_tokens(mut self, max_tokens: u32) -> Self {
        self.max_tokens = max_tokens;
        self
    }

    /// Sets whether and how the model thinks before it answers.
    #[must_use]
    pub fn thinking(mut self, thinking: ThinkingMode) -> Self {
        self.thinking = thinking;
        self
    }

    /// Sets the effort level.
    #[must_use]
    pub fn effort(mut self, effort: impl Into<String>) -> Self {
        self.effort = Some(effort.into());
        self
    }

    /// Sets the context window in tokens.
    #[must_use]
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = tokens;
        self
    }
}

/// The limits at which a run ends early.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunLimits {
    /// The maximum number of turns with tool calls.
    pub max_turns: Option<u32>,
    /// The maximum cost of all runs of this agent together, in USD.
    pub max_budget_usd: Option<f64>,
    /// The number of consecutive turns without progress after which the model gets a reminder.
    pub warn_after_repeats: u32,
    /// The number of consecutive turns without progress after which the run ends.
    pub stop_after_repeats: u32,
}

impl RunLimits {
    /// Sets the maximum number of turns with tool calls.
    #[must_use]
    pub fn max_turns(mut self, max_turns: u32) -> Self {
        self.max_turns = Some(max_turns);
        self
    }

    /// Sets the maximum cost of all runs of the agent together, in USD.
    #[must_use]
    pub fn max_budget_usd(mut self, max_usd: f64) -> Self {
        self.max_budget_usd = Some(max_usd);
        self
    }

    /// Sets the numbers of consecutive turns without progress after which the model gets a reminder
    /// and the run ends.
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

/// A model with tools in one session, and the loop over these parts.
pub struct Agent {
    /// Runs the tool calls and has the session's context.
    pub(crate) scheduler: Scheduler,
    /// Sends requests to the model.
    pub(crate) client: ModelClient,
    /// The conversation and its transcript.
    pub(crate) conversation: RecordedConversation,
    /// The memory files and skills that the model reads.
    pub(crate) instructions: InstructionSender,
    pub(crate) plan_reminder: PlanReminder,
    pub(crate) hooks: HookRunner,
    pub(crate) control: AgentHandle,
    pub(crate) limits: RunLimits,
    /// Launches subagents for its calls.
    pub(crate) spawner: Option<Arc<SubagentLauncher>>,
    /// The subagents of the session, if this is the main agent.
    pub(crate) subagents: Option<SubagentPool>,
    pub(crate) session: SessionProgress,
    /// Expands the mentions in a message that arrives during a run.
    pub(crate) mention_expander: Option<Box<MentionExpander>>,
}

/// A function that adds the files and folders that a prompt mentions to the prompt. Its arguments are
/// the prompt, the tool calls that read the files, and the directory of relative paths.
pub type MentionExpander =
    dyn Fn(Prompt, NestedCalls, Arc<Path>) -> BoxFuture<'static, Prompt> + Send + Sync;

/// The session and its progress.
pub(crate) struct SessionProgress {
    pub(crate) id: SessionId,
    pub(crate) origin: SessionOrigin,
    /// The context before the grants of an earlier run were applied.
    pub(crate) start: SessionContext,
    /// Whether a run has begun.
    pub(crate) has_begun: bool,
    /// The reason why hooks block the start of the session.
    pub(crate) start_blocked: Option<String>,
    /// Whether a run was dropped in the middle, so that the conversation in memory is older than
    /// the transcript.
    pub(crate) needs_reload: bool,
    /// The changes that apply to the next run.
    pub(crate) next_run_patches: Vec<ContextPatch>,
    /// Working directories that were not reported to hooks yet.
    pub(crate) unreported_directories: Vec<PathBuf>,
}

/// Builds an agent.
pub struct AgentBuilder {
    scheduler: Scheduler,
    model: Arc<dyn Model>,
    settings: ModelSettings,
    limits: RunLimits,
    prices: Prices,
    session: Option<OpenTranscript>,
    system: Option<SystemPrompt>,
    control: AgentHandle,
    version: String,
    memory: bool,
    instruction_sources: Option<InstructionSources>,
    usage: SharedUsage,
    spawner: Option<Arc<SubagentLauncher>>,
    subagents: Option<SubagentPool>,
    start: Option<SessionContext>,
}

impl Agent {
    /// Returns a builder of an agent that sends requests to this model and runs calls with this
    /// scheduler.
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
            control: AgentHandle::default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            memory: true,
            instruction_sources: None,
            usage: SharedUsage::default(),
            spawner: None,
            subagents: None,
            start: None,
        }
    }

    /// Returns the handle that interrupts, steers and changes the running agent.
    pub fn control(&self) -> AgentHandle {
        self.control.clone()
    }

    /// Sets the function that expands mentions in messages that arrive during a run.
    pub fn set_mention_expander(&mut self, expander: Box<MentionExpander>) {
        self.mention_expander = Some(expander);
    }

    /// Returns the id of the session.
    pub fn session(&self) -> SessionId {
        self.session.id
    }

    /// Returns the conversation so far.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation.conversation
    }

    /// Returns the transcript of the session.
    pub fn transcript(&self) -> &Arc<Transcript> {
        &self.conversation.transcript
    }

    /// Returns the files that the session has read and changed.
    pub fn files(&self) -> TouchedFiles {
        self.conversation.transcript.files()
    }

    /// Returns the usage so far, including that of its subagents.
    pub fn ledger(&self) -> UsageLedger {
        self.client.ledger()
    }

    /// Like [`ledger`](Self::ledger), but returns the live counter.
    pub fn spending(&self) -> SharedUsage {
        self.client.usage()
    }

    /// Returns the current context of the session.
    pub fn context(&self) -> SessionContext {
        self.scheduler.context()
    }

    /// Returns the settings of model requests.
    pub fn settings(&self) -> &ModelSettings {
        &self.client.settings
    }

    /// Returns the approximate number of tokens in the conversation, and the context window.
    pub fn context_usage(&self) -> (u64, u64) {
        (
            self.conversation.window.tokens(),
            self.client.settings.window,
        )
    }

    /// Returns the approximate number of tokens in the system prompt and in each tool definition,
    /// by name.
    pub fn prefix_sizes(&self) -> (u64, Vec<(String, u64)>) {
        self.client.prefix_sizes()
    }

    /// Applies the changes that were requested through the handle.
    pub(crate) fn take_changes(&mut self) {
        let changes = self.control.take_changes();
        if let Some(change) = &changes.main_agent {
            self.change_main_agent(change);
        }
        self.client.apply_changes(&changes);
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
            self.session.unreported_directories.push(path.clone());
            self.scheduler.apply(&ContextPatch::AddDirectory { path });
        }
        if let Some(spawner) = &self.spawner {
            spawner.set_model_settings(&self.client.settings);
        }
    }

    /// Returns the compaction of this agent's conversation.
    pub(crate) fn compaction<'a>(&'a mut self, cx: RunContext<'a>) -> CompactionRunner<'a> {
        CompactionRunner {
            scheduler: &self.scheduler,
            client: &mut self.client,
            conversation: &mut self.conversation,
            instructions: &mut self.instructions,
            plan: &mut self.plan_reminder,
            hooks: &self.hooks,
            cx,
        }
    }
}

impl AgentBuilder {
    /// Sets the limits at which a run ends early.
    #[must_use]
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the prices of tokens.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Sets the session. Default: a new one with the engine's id, which exists only in memory.
    #[must_use]
    pub fn session(mut self, session: OpenTranscript) -> Self {
        self.session = Some(session);
        self
    }

    /// Sets the system prompt. Default: our own prompt with a description of the environment.
    #[must_use]
    pub fn system_prompt(mut self, system: SystemPrompt) -> Self {
        self.system = Some(system);
        self
    }

    /// Sets an existing handle.
    #[must_use]
    pub fn control(mut self, control: AgentHandle) -> Self {
        self.control = control;
        self
    }

    /// Sets the version that transcripts contain.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets the sources of instructions. Default: the memory files of the project.
    #[must_use]
    pub fn instruction_sources(mut self, sources: InstructionSources) -> Self {
        self.instruction_sources = Some(sources);
        self
    }

    /// Disables memory files: they are not sent to the model.
    #[must_use]
    pub fn without_memory(mut self) -> Self {
        self.memory = false;
        self
    }

    /// Sets the subagents that calls may launch. The engine must have [`SubagentPool::service`]
    /// among its services.
    #[must_use]
    pub fn subagents(mut self, pool: SubagentPool) -> Self {
        self.spawner = Some(Arc::clone(&pool.main));
        self.subagents = Some(pool);
        self
    }

    /// Sets the counter of usage.
    pub(crate) fn shared_usage(mut self, usage: SharedUsage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the spawner that launches subagents for calls.
    pub(crate) fn spawner(mut self, spawner: Arc<SubagentLauncher>) -> Self {
        self.spawner = Some(spawner);
        self
    }

    /// Sets the context before the grants of an earlier run
    /// ([`LoadedTranscript::terms`](crate::transcript::LoadedTranscript::terms)) were applied. Default:
    /// the current context.
    #[must_use]
    pub fn start_context(mut self, context: SessionContext) -> Self {
        self.start = Some(context);
        self
    }

    /// Builds the agent.
    pub fn build(self) -> Agent {
        let context = self.scheduler.context();
        let start = self.start.unwrap_or_else(|| context.clone());
        let session = self
            .session
            .unwrap_or_else(|| OpenTranscript::in_memory(self.scheduler.engine().session()));
        let system = self
            .system
            .unwrap_or_else(|| SystemPrompt::new(PromptEnvironment::detect(&context)));
        let engine = self.scheduler.engine();
        let knowledge = self
            .instruction_sources
            .unwrap_or_else(|| InstructionSources::for_project(&context.cwd));
        if let Some(level) = &self.spawner {
            level.bind(ParentAgent {
                engine: Arc::downgrade(engine),
                context: self.scheduler.view(),
                model: Arc::clone(&self.model),
                settings: Mutex::new(self.settings.clone()),
                prices: self.prices.clone(),
                usage: self.usage.clone(),
                limits: self.limits.clone(),
                version: self.version.clone(),
                memory: self.memory,
                instruction_sources: knowledge.for_subagent(knowledge.offers_skills),
            });
        }
        let resumed = self
            .subagents
            .as_ref()
            .filter(|_| session.origin != SessionOrigin::New);
        let cut_off =
            resumed.and_then(|crew| crew.interrupted_report(&engine.conversation_folder()));
        let loaded = session.loaded;
        let services = self.scheduler.engine().services();
        let remembered = services.get::<SessionState>().ok();
        if let Some(remembered) = &remembered {
            remembered.restore(loaded.state_entries);
        }
        if let Ok(attention) = services.get::<PendingInput>() {
            self.control.set_pending_input(attention);
        }
        let agent_id = engine.agent().id;
        let transcript = Arc::new(Transcript::new(
            session.store,
            session.id,
            self.version,
            agent_id,
            TranscriptPosition {
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
            (self.prices, self.usage),
            system.blocks(),
            &self.scheduler,
        );
        let agent = Agent {
            scheduler: self.scheduler,
            client,
            conversation: RecordedConversation::new(loaded.conversation, transcript),
            instructions: InstructionSender::new(
                knowledge,
                self.memory,
                cut_off.into_iter().collect(),
            ),
            plan_reminder: PlanReminder::default(),
            hooks,
            control: self.control,
            limits: self.limits,
            spawner: self.spawner,
            subagents: self.subagents,
            session: SessionProgress {
                id: session.id,
                origin: session.origin,
                start,
                has_begun: false,
                start_blocked: None,
                needs_reload: false,
                next_run_patches: Vec::new(),
                unreported_directories: Vec::new(),
            },
            mention_expander: None,
        };
        agent.record_cwd();
        for result in &loaded.synthesized_results {
            agent.conversation.transcript.write_result(result, None);
        }
        agent
    }
}
