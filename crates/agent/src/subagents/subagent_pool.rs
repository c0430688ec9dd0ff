//! The state that all subagents of a session share.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use haft_contract::{BackgroundTasks, BoxFuture, CancellationToken, DynTool, Services, Subagents};
use haft_engine::hooks::HookHandler;
use haft_extensions::AgentDefinition;
use haft_models::Model;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::{handle::SubagentHandle, spawner::SubagentLauncher, transcript_record};
use crate::{AgentEventSink, BlockedCall};

/// The maximum number of finished subagents in memory. Others can be resumed from their
/// transcripts.
const REMEMBERED: usize = 200;

/// The limits of subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentLimits {
    /// The maximum depth of nested subagents.
    pub depth: u32,
    /// The maximum number of subagents that run concurrently.
    pub at_once: usize,
}

impl Default for SubagentLimits {
    fn default() -> Self {
        Self {
            depth: 3,
            at_once: 20,
        }
    }
}

/// The subagents of one session. Cheap to clone; all clones share the state.
#[derive(Clone)]
pub struct SubagentPool {
    pub(crate) main: Arc<SubagentLauncher>,
}

/// Builds a [`SubagentPool`].
pub struct SubagentPoolBuilder {
    kinds: Vec<Arc<AgentDefinition>>,
    limits: SubagentLimits,
    sink: Option<Arc<dyn AgentEventSink>>,
    fork: Arc<ForkServices>,
    resolve: Arc<ResolveModelName>,
    model: Option<Arc<dyn Model>>,
    name: Option<String>,
    append: Option<String>,
    allowed: Option<Vec<String>>,
    own: Arc<LoadKindExtras>,
    own_tools: Arc<ConnectAgentServers>,
    mirror: Option<Arc<transcript_record::TranscriptLineSink>>,
}

/// Additions to an agent kind's definition, which are loaded when a subagent is launched.
#[derive(Debug, Clone, Default)]
pub struct AgentKindExtras {
    /// Hooks that are active while the subagent runs.
    pub handlers: Vec<HookHandler>,
    /// Text to append to the system prompt, such as the agent's memory.
    pub prompt: Option<String>,
}

/// The tools of the MCP servers that an agent kind defines.
#[derive(Default)]
pub struct AgentServerTools {
    /// The tools by server.
    pub servers: Vec<(String, Vec<Arc<dyn DynTool>>)>,
    /// Errors of servers that did not connect, for the subagent.
    pub missing: Vec<String>,
    /// Disconnects the servers; awaited when the subagent is done.
    pub end: Option<BoxFuture<'static, ()>>,
}

/// Connects the MCP servers that an agent kind defines; `None` if it defines none.
type ConnectAgentServers =
    dyn Fn(&AgentDefinition) -> Option<BoxFuture<'static, AgentServerTools>> + Send + Sync;
type LoadKindExtras = dyn Fn(&AgentDefinition) -> AgentKindExtras + Send + Sync;
type ForkServices = dyn Fn(&Services) -> Services + Send + Sync;
type ResolveModelName = dyn Fn(String) -> BoxFuture<'static, Option<String>> + Send + Sync;

/// The state that subagents of all depths share.
pub(super) struct SubagentShared {
    pub(super) kinds: Mutex<Vec<Arc<AgentDefinition>>>,
    pub(super) limits: SubagentLimits,
    pub(super) sink: Option<Arc<dyn AgentEventSink>>,
    /// Creates the services of a subagent from those of its parent.
    pub(super) fork: Arc<ForkServices>,
    /// Returns the id of a model from its name or alias, if it is known.
    pub(super) resolve: Arc<ResolveModelName>,
    /// The model provider of subagents, if it differs from the main agent's.
    pub(super) model: Option<Arc<dyn Model>>,
    /// The name of the model that all subagents use, if it is set.
    pub(super) model_name: Option<String>,
    /// Text to append to every system prompt.
    pub(super) append: Option<String>,
    /// Loads the additions of an agent kind.
    pub(super) own: Arc<LoadKindExtras>,
    /// Connects the MCP servers of an agent kind.
    pub(super) own_tools: Arc<ConnectAgentServers>,
    /// Receives the lines of subagents' transcripts.
    pub(super) mirror: Option<Arc<transcript_record::TranscriptLineSink>>,
    /// The main agent's background tasks, which are notified of subagents.
    pub(super) notices: OnceLock<Arc<BackgroundTasks>>,
    /// Limits the number of running subagents: one permit each.
    pub(super) places: Arc<Semaphore>,
    pub(super) tasks: TaskTracker,
    /// Ends all subagents.
    pub(super) cancel: CancellationToken,
    members: Mutex<Vec<Arc<SubagentHandle>>>,
    denials: Mutex<Vec<BlockedCall>>,
}

impl SubagentPool {
    /// Replaces the kinds that can be launched. The list of kinds that the model received at the
    /// start of the session does not change.
    pub fn set_kinds(&self, kinds: impl IntoIterator<Item = AgentDefinition>) {
        let kinds = kinds.into_iter().map(Arc::new).collect();
        *self.main.shared.kinds() = kinds;
    }

    /// Returns a builder of a pool with these agent kinds.
    pub fn builder(kinds: impl IntoIterator<Item = AgentDefinition>) -> SubagentPoolBuilder {
        SubagentPoolBuilder {
            kinds: kinds.into_iter().map(Arc::new).collect(),
            limits: SubagentLimits::default(),
            sink: None,
            fork: Arc::new(Services::clone),
            resolve: Arc::new(|name| Box::pin(std::future::ready(Some(name)))),
            model: None,
            name: None,
            append: None,
            allowed: None,
            own: Arc::new(|_| AgentKindExtras::default()),
            own_tools: Arc::new(|_| None),
            mirror: None,
        }
    }

    /// Returns the service for the tools. It works once an agent was built with this pool.
    pub fn service(&self) -> Arc<Subagents> {
        Arc::new(Subagents(Arc::clone(&self.main) as _))
    }

    /// Moves subagents to the background, so that their calls no longer wait: the call with this
    /// provider's id, or all calls. Returns their number.
    pub fn move_to_background(&self, tool_use_id: Option<&str>) -> usize {
        let running = self.main.shared.running().into_iter();
        let meant =
            running.filter(|member| tool_use_id.is_none_or(|id| *member.tag.tool_use_id == *id));
        meant.filter(|member| member.request_background()).count()
    }

    /// Stops all subagents and waits until they have ended.
    pub async fn close(&self) {
        let shared = &self.main.shared;
        shared.cancel.cancel();
        for member in shared.members().iter() {
            member.cancel.cancel();
        }
        shared.tasks.close();
        shared.tasks.wait().await;
    }

    /// Returns the number of running subagents.
    pub fn running_count(&self) -> usize {
        self.main.shared.tasks.len()
    }

    /// Returns the denied calls of subagents since the last call of this function.
    pub(crate) fn take_denials(&self) -> Vec<BlockedCall> {
        std::mem::take(&mut *self.main.shared.denials())
    }

    /// Describes the subagents that were running when the session was killed, for the model.
    pub(crate) fn interrupted_report(&self, folder: &Path) -> Option<String> {
        transcript_record::interrupted_report(folder)
    }
}

impl SubagentPoolBuilder {
    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: SubagentLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the sink for the events of subagents. It is independent of the main agent's runs.
    #[must_use]
    pub fn sink(mut self, sink: Arc<dyn AgentEventSink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Sets the function that creates a subagent's services from those of its parent. Default: a
    /// copy.
    #[must_use]
    pub fn services(
        mut self,
        fork: impl Fn(&Services) -> Services + Send + Sync + 'static,
    ) -> Self {
        self.fork = Arc::new(fork);
        self
    }

    /// Sets the function that returns the id of a model from the name in a call or definition, or
    /// `None` for the parent's model. Default: the name is the id.
    #[must_use]
    pub fn model_names(
        mut self,
        resolve: impl Fn(String) -> BoxFuture<'static, Option<String>> + Send + Sync + 'static,
    ) -> Self {
        self.resolve = Arc::new(resolve);
        self
    }

    /// Sets the model provider. Default: the main agent's.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// Sets the model that all subagents use, regardless of calls and definitions.
    #[must_use]
    pub fn model_name(mut self, name: Option<String>) -> Self {
        self.name = name.filter(|name| name != "inherit");
        self
    }

    /// Sets a text that is appended to every system prompt.
    #[must_use]
    pub fn append_system_prompt(mut self, text: Option<String>) -> Self {
        self.append = text;
        self
    }

    /// Sets the function that loads the additions of an agent kind. Default: none.
    #[must_use]
    pub fn own(
        mut self,
        own: impl Fn(&AgentDefinition) -> AgentKindExtras + Send + Sync + 'static,
    ) -> Self {
        self.own = Arc::new(own);
        self
    }

    /// Sets the function that connects an agent kind's MCP servers when a subagent starts. Default:
    /// none.
    #[must_use]
    pub fn own_tools(
        mut self,
        own: impl Fn(&AgentDefinition) -> Option<BoxFuture<'static, AgentServerTools>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.own_tools = Arc::new(own);
        self
    }

    /// Sets the function that receives each line of subagents' transcripts with its file.
    #[must_use]
    pub fn mirror(mut self, mirror: impl Fn(&Path, &str) + Send + Sync + 'static) -> Self {
        self.mirror = Some(Arc::new(mirror));
        self
    }

    /// Restricts the kinds that the main agent may launch.
    #[must_use]
    pub fn only(mut self, kinds: Option<Vec<String>>) -> Self {
        self.allowed = kinds;
        self
    }

    /// Builds the pool.
    pub fn build(self) -> SubagentPool {
        let shared = SubagentShared {
            places: Arc::new(Semaphore::new(self.limits.at_once)),
            kinds: Mutex::new(self.kinds),
            limits: self.limits,
            sink: self.sink,
            fork: self.fork,
            resolve: self.resolve,
            model: self.model,
            model_name: self.name,
            append: self.append,
            own: self.own,
            own_tools: self.own_tools,
            mirror: self.mirror,
            notices: OnceLock::new(),
            tasks: TaskTracker::new(),
            cancel: CancellationToken::new(),
            members: Mutex::default(),
            denials: Mutex::default(),
        };
        SubagentPool {
            main: Arc::new(SubagentLauncher::root(Arc::new(shared), self.allowed)),
        }
    }
}

impl SubagentShared {
    pub(super) fn kinds(&self) -> MutexGuard<'_, Vec<Arc<AgentDefinition>>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a subagent, replacing an earlier one with the same id.
    pub(super) fn add(&self, member: &Arc<SubagentHandle>) {
        let mut members = self.members();
        members.retain(|known| known.tag.id != member.tag.id);
        members.push(Arc::clone(member));
        while members.len() > REMEMBERED {
            let Some(oldest) = members.iter().position(|member| member.is_done()) else {
                return;
            };
            members.remove(oldest);
        }
    }

    /// Returns the subagent with this id, or the newest one with this name.
    pub(super) fn find(&self, name: &str) -> Option<Arc<SubagentHandle>> {
        let members = self.members();
        let by_id = members.iter().find(|member| member.tag.id == name);
        let by_name = || {
            let mut newest = members.iter().rev();
            newest.find(|member| member.tag.name.as_deref() == Some(name))
        };
        by_id.or_else(by_name).cloned()
    }

    pub(super) fn running(&self) -> Vec<Arc<SubagentHandle>> {
        let members = self.members();
        let running = members.iter().filter(|member| !member.is_done());
        running.cloned().collect()
    }

    pub(super) fn denied(&self, denials: Vec<BlockedCall>) {
        self.denials().extend(denials);
    }

    fn members(&self) -> MutexGuard<'_, Vec<Arc<SubagentHandle>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn denials(&self) -> MutexGuard<'_, Vec<BlockedCall>> {
        self.denials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
