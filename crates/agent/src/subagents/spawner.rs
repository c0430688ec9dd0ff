//! Launches subagents for the calls of one agent.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use haft_contract::{
    AgentKind, AgentMessage, AgentStatus, AgentWorktree, BackgroundHandle, BackgroundTask,
    BackgroundTasks, BoxFuture, CallContext, Content, LaunchOutcome, LaunchRequest,
    MessageDelivery, PermissionMode, SubagentSpawner, TaskKind, TaskStatus, ToolError, Worktrees,
};
use haft_engine::{ContextView, Engine, Pool, SessionContext};
use haft_extensions::{AgentDefinition, ExtensionOrigin};
use haft_models::{Model, Prices};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    event_forwarder::SubagentInfo,
    handle::SubagentHandle,
    subagent_pool::SubagentShared,
    task::{self, SubagentTask},
    tools::{self, SubagentToolOptions},
    transcript_record,
};
use crate::{
    ModelSettings, OpenTranscript, RunLimits, clock, cost::SharedUsage, prompt::InstructionSources,
    transcript::FileStore,
};

/// The agent kind of calls that name none.
const GENERAL: &str = "general-purpose";

/// Launches subagents for the calls of one agent.
pub(crate) struct SubagentLauncher {
    pub(super) shared: Arc<SubagentShared>,
    /// The depth of the agent: 0 for the main agent.
    depth: u32,
    /// The kinds that this agent may launch; `None` for all.
    allowed: Mutex<Option<Vec<String>>>,
    host: OnceLock<ParentAgent>,
}

/// The parent agent, whose calls launch subagents.
pub(crate) struct ParentAgent {
    /// The engine of the parent. Weak, because its services contain the launcher.
    pub(crate) engine: Weak<Engine>,
    pub(crate) context: ContextView,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) settings: Mutex<ModelSettings>,
    pub(crate) prices: Prices,
    pub(crate) usage: SharedUsage,
    pub(crate) limits: RunLimits,
    pub(crate) version: String,
    pub(crate) memory: bool,
    pub(crate) instruction_sources: InstructionSources,
}

/// A checked launch.
pub(super) struct LaunchPlan {
    pub(super) kind: Arc<AgentDefinition>,
    pub(super) engine: Arc<Engine>,
    pub(super) pool: Pool,
    pub(super) settings: ModelSettings,
    pub(super) in_background: bool,
    /// Whether the subagent works in a worktree.
    isolated: bool,
}

/// The settings of a launch that override those of the kind. The model is an id.
#[derive(Clone, Copy, Default)]
struct LaunchOverrides<'a> {
    model: Option<&'a str>,
    effort: Option<&'a str>,
    isolated: Option<bool>,
}

impl SubagentLauncher {
    pub(super) fn root(shared: Arc<SubagentShared>, allowed: Option<Vec<String>>) -> Self {
        Self {
            shared,
            depth: 0,
            allowed: Mutex::new(allowed),
            host: OnceLock::new(),
        }
    }

    /// Returns the launcher for the calls of a subagent of this agent.
    pub(super) fn child_level(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            depth: self.depth + 1,
            allowed: Mutex::default(),
            host: OnceLock::new(),
        }
    }

    /// Sets the parent agent. Before that, no subagents can be launched.
    pub(crate) fn bind(&self, host: ParentAgent) {
        if self.depth == 0
            && let Some(engine) = host.engine.upgrade()
            && let Ok(notices) = engine.services().get::<BackgroundTasks>()
        {
            let _ = self.shared.notices.set(notices);
        }
        let _ = self.host.set(host);
    }

    /// Applies changed model settings of the parent, which subagents inherit.
    pub(crate) fn set_model_settings(&self, settings: &ModelSettings) {
        if let Some(host) = self.host.get() {
            host.settings().clone_from(settings);
        }
    }

    /// Sets the kinds that may be launched; `None` for all.
    pub(crate) fn set_allowed_kinds(&self, kinds: Option<Vec<String>>) {
        *self.allowed() = kinds;
    }

    fn allowed(&self) -> MutexGuard<'_, Option<Vec<String>>> {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn host(&self) -> Result<&ParentAgent, ToolError> {
        let missing = ToolError::Unavailable("launching subagents");
        self.host.get().ok_or(missing)
    }

    fn launchable_kinds(&self) -> Vec<Arc<AgentDefinition>> {
        let allowed = self.allowed();
        let is_allowed = |kind: &&Arc<AgentDefinition>| {
            let names = allowed.as_ref();
            names.is_none_or(|names| names.contains(&kind.name))
        };
        let kinds = self.shared.kinds();
        kinds.iter().filter(is_allowed).cloned().collect()
    }

    fn kind(&self, name: Option<&str>) -> Result<Arc<AgentDefinition>, ToolError> {
        let name = name.filter(|name| !name.is_empty());
        let wanted = name.unwrap_or(GENERAL);
        let kinds = self.launchable_kinds();
        if let Some(kind) = kinds.iter().find(|kind| kind.name == wanted) {
            return Ok(Arc::clone(kind));
        }
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        let names = names.join(", ");
        Err(ToolError::Refused(match name {
            Some(name) => format!("No agent has the type {name:?}. Available: {names}"),
            None => format!("`subagent_type` is missing. Available: {names}"),
        }))
    }

    fn plan(
        &self,
        kind: Arc<AgentDefinition>,
        in_background: bool,
        wish: LaunchOverrides<'_>,
    ) -> Result<LaunchPlan, ToolError> {
        let host = self.host()?;
        let gone = || ToolError::Failed("the session has ended".to_owned());
        let engine = host.engine.upgrade().ok_or_else(gone)?;
        let most = self.shared.limits.depth;
        if self.depth >= most {
            return Err(ToolError::Refused(format!(
                "Subagents may launch subagents only {most} deep. Do this part of the work yourself."
            )));
        }
        if let Some(isolation) = kind.isolation.as_deref().filter(|one| *one != "worktree") {
            return Err(ToolError::Refused(format!(
                "The agent {} requires isolation {isolation:?}, which is not available here.",
                kind.name
            )));
        }
        let isolated = wish.isolated.unwrap_or(kind.isolation.is_some());
        if isolated && engine.services().get::<Worktrees>().is_err() {
            return Err(ToolError::Refused(
                "isolation \"worktree\" is not available here: this session cannot create worktrees. Leave it out."
                    .to_owned(),
            ));
        }
        let plans = |context: SessionContext| context.mode == PermissionMode::Plan;
        if isolated && host.context.get().is_some_and(plans) {
            return Err(ToolError::Refused(
                "Worktrees cannot be created in plan mode. Leave `isolation` out.".to_owned(),
            ));
        }
        let how = SubagentToolOptions {
            in_background,
            may_delegate: self.depth + 1 < most,
        };
        let pool = tools::for_subagent(&engine.pool(), &kind, how)
            .map_err(|why| ToolError::Refused(format!("Not launched: {why}.")))?;
        let mut settings = host.settings().clone();
        if let Some(id) = wish.model {
            id.clone_into(&mut settings.name);
            settings.plan_name = None;
        }
        if let Some(effort) = wish.effort.or(kind.effort.as_deref()) {
            settings.effort = Some(effort.to_owned());
        }
        Ok(LaunchPlan {
            kind,
            engine,
            pool,
            settings,
            in_background,
            isolated,
        })
    }

    /// Checks a launch. `model` is the id of the model, if it differs from the parent's.
    fn plan_for(
        &self,
        launch: &LaunchRequest,
        model: Option<&str>,
    ) -> Result<LaunchPlan, ToolError> {
        let kind = self.kind(launch.kind.as_deref())?;
        let in_background = launch.background.unwrap_or(kind.background);
        let wish = LaunchOverrides {
            model,
            effort: launch.effort.as_deref(),
            isolated: launch.worktree,
        };
        self.plan(kind, in_background, wish)
    }

    /// Returns the id of the model that a call or definition names; `None` for the parent's model.
    async fn resolve_model(&self, kind: Option<&str>, asked: Option<&str>) -> Option<String> {
        let kind = self.kind(kind).ok();
        let of_kind = kind.as_ref().and_then(|kind| kind.model.as_deref());
        let named = [self.shared.model_name.as_deref(), asked, of_kind];
        let mut named = named.into_iter().flatten().filter(|name| !name.is_empty());
        let name = named.next().filter(|name| *name != "inherit")?;
        (self.shared.resolve)(name.to_owned()).await
    }

    fn acquire_slot(&self) -> Result<OwnedSemaphorePermit, ToolError> {
        let places = Arc::clone(&self.shared.places);
        // Never wait: a subagent that waits for a permit while it has one could deadlock.
        places.try_acquire_owned().map_err(|_| {
            let most = self.shared.limits.at_once;
            ToolError::Failed(format!(
                "{most} subagents are already running, which is the maximum. Wait until one is done."
            ))
        })
    }

    /// Starts a subagent, in a worktree if it is isolated.
    async fn start_subagent(
        &self,
        plan: LaunchPlan,
        tag: SubagentInfo,
        prompt: String,
        cx: &CallContext,
        session: impl FnOnce(&std::path::Path) -> Result<OpenTranscript, ToolError>,
    ) -> Result<Arc<SubagentHandle>, ToolError> {
        let worktree = match plan.isolated {
            true => {
                let maker = plan.engine.services().get::<Worktrees>()?;
                let name = format!("agent-{}", tag.id);
                Some(maker.0.for_agent(&name, cx).await?)
            }
            false => None,
        };
        let begun = self.start_in_worktree(plan, tag, prompt, worktree.clone(), session);
        if let (Err(_), Some(worktree)) = (&begun, worktree) {
            worktree.finish().await;
        }
        begun
    }

    fn start_in_worktree(
        &self,
        plan: LaunchPlan,
        tag: SubagentInfo,
        prompt: String,
        worktree: Option<Arc<dyn AgentWorktree>>,
        session: impl FnOnce(&std::path::Path) -> Result<OpenTranscript, ToolError>,
    ) -> Result<Arc<SubagentHandle>, ToolError> {
        let permit = self.acquire_slot()?;
        // Not the token of the call: the subagent may outlive the call if it is moved to the
        // background.
        let cancel = self.shared.cancel.child_token();
        let output_file = plan
            .engine
            .folder()
            .join("tool-results")
            .join(format!("agent_{}.txt", tag.id));
        let member = Arc::new(SubagentHandle::new(
            tag,
            Arc::clone(&plan.kind),
            plan.settings.name.clone(),
            cancel,
            plan.in_background,
            output_file,
            worktree,
        ));
        let path =
            transcript_record::transcript_path(&plan.engine.conversation_folder(), &member.tag.id);
        let mut session = session(&path)?;
        let is_new = session.loaded().lines == 0;
        let mirror = self.shared.mirror.as_ref();
        if is_new {
            let parent = plan.engine.agent().id;
            let parent = parent.as_deref();
            transcript_record::write_sidecar(
                &path,
                &member.tag,
                parent,
                mirror.map(|mirror| &**mirror),
            );
        }
        if let Some(mirror) = mirror.cloned() {
            session = session
                .with_line_callback(move |line| mirror(&path, line))
                .map_err(record_error)?;
        }
        let (agent, tools) = self.build_subagent(plan, &member, session)?;
        if is_new {
            let isolated = member.worktree.is_some();
            transcript_record::write_start(
                agent.transcript(),
                &member.tag,
                &member.model,
                isolated,
            );
        }
        self.shared.add(&member);
        let notices = self.shared.notices.get().cloned();
        if let Some(notices) = &notices {
            notices.begin(BackgroundTask {
                id: member.tag.id.clone(),
                kind: TaskKind::Agent,
                description: member.tag.description.clone(),
                prompt: prompt.clone(),
                agent_type: Some(member.tag.kind.clone()),
                tool_use_id: Some(Arc::clone(&member.tag.tool_use_id)).filter(|id| !id.is_empty()),
                in_background: member.is_in_background(),
                stop: member.cancel.clone(),
            });
        }
        let work = SubagentTask {
            shared: Arc::clone(&self.shared),
            member: Arc::clone(&member),
            notices,
            permit,
            tools,
        };
        self.shared
            .tasks
            .spawn(work.run_catching_panics(agent, prompt.into()));
        Ok(member)
    }

    async fn run(
        &self,
        launch: LaunchRequest,
        cx: &CallContext,
    ) -> Result<LaunchOutcome, ToolError> {
        let model = self.resolve_model(launch.kind.as_deref(), launch.model.as_deref());
        let model = model.await;
        let plan = self.plan_for(&launch, model.as_deref())?;
        let tag = SubagentInfo {
            id: new_id(),
            kind: plan.kind.name.clone(),
            name: launch.name.filter(|name| !name.is_empty()),
            description: launch.description,
            tool_use_id: Arc::clone(&cx.tool_use_id),
        };
        let id = plan.engine.session();
        let new = |path: &std::path::Path| {
            let store = FileStore::create(path).map_err(record_error)?;
            Ok(OpenTranscript::new(id, Arc::new(store)))
        };
        let member = self
            .start_subagent(plan, tag, launch.prompt, cx, new)
            .await?;
        if member.is_in_background() {
            return Ok(LaunchOutcome::InBackground(background_handle(&member)));
        }
        // If this future is dropped while it waits, the subagent ends.
        let guard = member.cancel.clone().drop_guard();
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = member.done() => break outcome,
                () = cx.cancel.cancelled() => {
                    member.cancel.cancel();
                    break member.done().await;
                }
                () = member.background_requested() => {
                    if member.move_to_background() {
                        guard.disarm();
                        if let Some(notices) = self.shared.notices.get() {
                            notices.move_to_background(&member.tag.id);
                        }
                        return Ok(LaunchOutcome::InBackground(background_handle(&member)));
                    }
                }
            }
        };
        guard.disarm();
        let outcome = outcome.ok_or(ToolError::Cancelled)?;
        if outcome.status == TaskStatus::Killed && cx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        Ok(LaunchOutcome::Done(Box::new(outcome.report.clone())))
    }

    async fn deliver_message(
        &self,
        letter: AgentMessage,
        cx: &CallContext,
    ) -> Result<MessageDelivery, ToolError> {
        let member = self.shared.find(&letter.to);
        if let Some(member) = &member {
            if member.send_message(vec![Content::text(&letter.message)]) {
                let agent = member.tag.id.clone();
                return Ok(MessageDelivery::Delivered { agent });
            }
            member.done().await;
        }
        let (tag, kind, model, isolated) = match &member {
            Some(member) => {
                let (tag, kind) = (SubagentInfo::clone(&member.tag), Arc::clone(&member.kind));
                (tag, kind, member.model.clone(), member.worktree.is_some())
            }
            None => self.find_by_transcript(&letter.to)?,
        };
        let model = self.resolve_model(Some(&kind.name), Some(&model)).await;
        let wish = LaunchOverrides {
            model: model.as_deref(),
            effort: None,
            isolated: Some(isolated),
        };
        let plan = self.plan(kind, true, wish)?;
        let tag = SubagentInfo {
            tool_use_id: Arc::clone(&cx.tool_use_id),
            ..tag
        };
        let id = plan.engine.session();
        let again = |path: &std::path::Path| {
            let store = FileStore::open(path).map_err(record_error)?;
            let session = OpenTranscript::resume(id, Arc::new(store), None);
            session.map_err(|error| ToolError::Failed(format!("it cannot be resumed: {error}")))
        };
        let member = self
            .start_subagent(plan, tag, letter.message, cx, again)
            .await?;
        Ok(MessageDelivery::Resumed(background_handle(&member)))
    }

    /// Returns a subagent that an earlier process launched, from its transcript.
    fn find_by_transcript(
        &self,
        id: &str,
    ) -> Result<(SubagentInfo, Arc<AgentDefinition>, String, bool), ToolError> {
        let host = self.host()?;
        let engine = host.engine.upgrade();
        let record =
            engine.and_then(|engine| transcript_record::find(&engine.conversation_folder(), id));
        let record = record.ok_or_else(|| ToolError::Refused(self.unknown(id)))?;
        let kind = self.kind(Some(&record.agent_type))?;
        let tag = SubagentInfo {
            id: record.agent_id,
            kind: record.agent_type,
            name: record.name,
            description: record.description,
            tool_use_id: record.tool_use_id.into(),
        };
        Ok((tag, kind, record.model, record.worktree))
    }

    fn unknown(&self, name: &str) -> String {
        let running: Vec<String> = self
            .shared
            .running()
            .iter()
            .map(|member| format!("\n{}: {}", member.tag.id, member.tag.description))
            .collect();
        match running.is_empty() {
            true => format!("No agent is called {name:?}, and none is running."),
            false => format!(
                "No agent is called {name:?}. Running agents:{}",
                running.concat()
            ),
        }
    }
}

impl ParentAgent {
    fn settings(&self) -> MutexGuard<'_, ModelSettings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SubagentSpawner for SubagentLauncher {
    fn kinds(&self) -> Vec<AgentKind> {
        self.launchable_kinds()
            .iter()
            .map(|kind| AgentKind {
                name: kind.name.clone(),
                description: kind.description.clone(),
                tools: describe_kind(kind),
            })
            .collect()
    }

    fn check(&self, launch: &LaunchRequest) -> Result<(), ToolError> {
        self.plan_for(launch, None).map(drop)
    }

    fn launch<'a>(
        &'a self,
        launch: LaunchRequest,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<LaunchOutcome, ToolError>> {
        Box::pin(self.run(launch, cx))
    }

    fn send<'a>(
        &'a self,
        letter: AgentMessage,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<MessageDelivery, ToolError>> {
        Box::pin(self.deliver_message(letter, cx))
    }

    fn status(&self, name: &str) -> Option<AgentStatus> {
        let member = self.shared.find(name)?;
        Some(task::status(&member))
    }

    fn wait<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(member) = self.shared.find(name) {
                member.done().await;
            }
        })
    }

    fn stop(&self, name: &str) {
        if let Some(member) = self.shared.find(name) {
            member.cancel.cancel();
        }
    }
}

fn background_handle(member: &SubagentHandle) -> BackgroundHandle {
    BackgroundHandle {
        agent: member.tag.id.clone(),
        description: member.tag.description.clone(),
        output_file: member.output_file.clone(),
        model: member.model.clone(),
    }
}

fn record_error(error: impl std::fmt::Display) -> ToolError {
    ToolError::Failed(format!("its transcript cannot be written: {error}"))
}

/// Returns a random id. The id is short, because the model has to repeat it.
fn new_id() -> String {
    let random = clock::random_id().simple().to_string();
    format!("a{}", &random[..12])
}

fn describe_kind(kind: &AgentDefinition) -> String {
    let but = kind.disallowed_tools.join(", ");
    match (&kind.tools, but.is_empty()) {
        (Some(tools), _) => tools.join(", "),
        (None, true) => String::new(),
        // The description of built-in kinds explains their tools.
        (None, false) if kind.origin == ExtensionOrigin::BuiltIn => String::new(),
        (None, false) => format!("all but {but}"),
    }
}
