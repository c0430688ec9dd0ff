//! What the subagents of one session share.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use haft_contract::{BackgroundTasks, BoxFuture, CancellationToken, DynTool, Services, Subagents};
use haft_engine::hooks::Handler;
use haft_extensions::AgentDefinition;
use haft_models::Model;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::{handle::Member, record, spawner::Spawner};
use crate::{Denial, Sink};

/// At most this many that are done are remembered; others can still be taken up by their transcripts.
const REMEMBERED: usize = 200;

/// How far subagents may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentLimits {
    /// How deep subagents may launch subagents.
    pub depth: u32,
    /// How many at once.
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

/// The subagents of one session. Cheap to clone; every clone means the same.
#[derive(Clone)]
pub struct SubagentPool {
    pub(crate) main: Arc<Spawner>,
}

/// Sets a [`SubagentPool`] up.
pub struct SubagentPoolBuilder {
    kinds: Vec<Arc<AgentDefinition>>,
    limits: SubagentLimits,
    sink: Option<Arc<dyn Sink>>,
    fork: Arc<Fork>,
    resolve: Arc<Resolve>,
    model: Option<Arc<dyn Model>>,
    name: Option<String>,
    append: Option<String>,
    allowed: Option<Vec<String>>,
    own: Arc<OwnOf>,
    own_tools: Arc<OwnToolsOf>,
    mirror: Option<Arc<record::Mirror>>,
}

/// What a kind of subagent brings beside its definition, found out when one is launched.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// Hooks that hold while it works.
    pub handlers: Vec<Handler>,
    /// What stands behind its system prompt, such as what it remembers.
    pub prompt: Option<String>,
}

/// Tools of servers that a kind of subagent names.
#[derive(Default)]
pub struct OwnTools {
    /// By server: these and no others.
    pub servers: Vec<(String, Vec<Arc<dyn DynTool>>)>,
    /// What it cannot have, and why; the subagent reads it.
    pub missing: Vec<String>,
    /// Waited for when the subagent is done.
    pub end: Option<BoxFuture<'static, ()>>,
}

/// Finds those tools; `None`: the kind names no server.
type OwnToolsOf = dyn Fn(&AgentDefinition) -> Option<BoxFuture<'static, OwnTools>> + Send + Sync;
type OwnOf = dyn Fn(&AgentDefinition) -> Own + Send + Sync;
type Fork = dyn Fn(&Services) -> Services + Send + Sync;
type Resolve = dyn Fn(String) -> BoxFuture<'static, Option<String>> + Send + Sync;

/// What all levels share.
pub(super) struct Shared {
    pub(super) kinds: Mutex<Vec<Arc<AgentDefinition>>>,
    pub(super) limits: SubagentLimits,
    pub(super) sink: Option<Arc<dyn Sink>>,
    /// The services of a subagent, out of those of its launcher.
    pub(super) fork: Arc<Fork>,
    /// The id of a model, out of what people call it, if it is known.
    pub(super) resolve: Arc<Resolve>,
    /// Who is asked, if not whom the main agent asks.
    pub(super) model: Option<Arc<dyn Model>>,
    /// The name of the model that all subagents are asked of.
    pub(super) model_name: Option<String>,
    /// Behind every system prompt.
    pub(super) append: Option<String>,
    /// What a kind brings.
    pub(super) own: Arc<OwnOf>,
    /// Tools of servers that a kind names.
    pub(super) own_tools: Arc<OwnToolsOf>,
    /// Gets the lines of their transcripts.
    pub(super) mirror: Option<Arc<record::Mirror>>,
    /// Where their events go.
    pub(super) notices: OnceLock<Arc<BackgroundTasks>>,
    /// One permit for each that may work.
    pub(super) places: Arc<Semaphore>,
    pub(super) tasks: TaskTracker,
    /// Ends those that no one waits for.
    pub(super) cancel: CancellationToken,
    members: Mutex<Vec<Arc<Member>>>,
    denials: Mutex<Vec<Denial>>,
}

impl SubagentPool {
    /// From now on these are the kinds that can be launched. What the model read of kinds when the
    /// session began stays as it was.
    pub fn set_kinds(&self, kinds: impl IntoIterator<Item = AgentDefinition>) {
        let kinds = kinds.into_iter().map(Arc::new).collect();
        *self.main.shared.kinds() = kinds;
    }

    /// Sets one up with these kinds of subagents.
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
            own: Arc::new(|_| Own::default()),
            own_tools: Arc::new(|_| None),
            mirror: None,
        }
    }

    /// The service that the tools ask; it works once an agent was built with the pool.
    pub fn service(&self) -> Arc<Subagents> {
        Arc::new(Subagents(Arc::clone(&self.main) as _))
    }

    /// Lets calls that wait for a subagent go on without it: the call that the provider names so, or all. How
    /// many there were.
    pub fn move_to_background(&self, tool_use_id: Option<&str>) -> usize {
        let running = self.main.shared.running().into_iter();
        let meant =
            running.filter(|member| tool_use_id.is_none_or(|id| *member.tag.tool_use_id == *id));
        meant.filter(|member| member.wish_for_background()).count()
    }

    /// Ends all that work, and waits until they have.
    pub async fn close(&self) {
        let shared = &self.main.shared;
        shared.cancel.cancel();
        for member in shared.members().iter() {
            member.cancel.cancel();
        }
        shared.tasks.close();
        shared.tasks.wait().await;
    }

    /// How many are at work.
    pub fn at_work(&self) -> usize {
        self.main.shared.tasks.len()
    }

    /// Calls of subagents that were not permitted, since this was last asked.
    pub(crate) fn take_denials(&self) -> Vec<Denial> {
        std::mem::take(&mut *self.main.shared.denials())
    }

    /// What is known of subagents that were at work when the session was last killed; for the model.
    pub(crate) fn cut_off(&self, folder: &Path) -> Option<String> {
        record::cut_off(folder)
    }
}

impl SubagentPoolBuilder {
    /// How far they may go.
    #[must_use]
    pub fn limits(mut self, limits: SubagentLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Who gets their events while they work, whatever run of the main agent goes on meanwhile.
    #[must_use]
    pub fn sink(mut self, sink: Arc<dyn Sink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Makes the services of a subagent out of those of its launcher. Default: the same.
    #[must_use]
    pub fn services(
        mut self,
        fork: impl Fn(&Services) -> Services + Send + Sync + 'static,
    ) -> Self {
        self.fork = Arc::new(fork);
        self
    }

    /// Makes the id of a model out of what calls and definitions name; `None`: that of the launcher. Default:
    /// it is the id.
    #[must_use]
    pub fn model_names(
        mut self,
        resolve: impl Fn(String) -> BoxFuture<'static, Option<String>> + Send + Sync + 'static,
    ) -> Self {
        self.resolve = Arc::new(resolve);
        self
    }

    /// Who is asked. Default: whom the main agent asks.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// The name of the model that all of them are asked of, whatever calls and definitions say.
    #[must_use]
    pub fn model_name(mut self, name: Option<String>) -> Self {
        self.name = name.filter(|name| name != "inherit");
        self
    }

    /// Behind every system prompt of theirs.
    #[must_use]
    pub fn append_system_prompt(mut self, text: Option<String>) -> Self {
        self.append = text;
        self
    }

    /// Says what a kind brings beside its definition. Default: nothing.
    #[must_use]
    pub fn own(mut self, own: impl Fn(&AgentDefinition) -> Own + Send + Sync + 'static) -> Self {
        self.own = Arc::new(own);
        self
    }

    /// Connects the servers that a kind names, when one of its subagents begins to work. Default: none.
    #[must_use]
    pub fn own_tools(
        mut self,
        own: impl Fn(&AgentDefinition) -> Option<BoxFuture<'static, OwnTools>> + Send + Sync + 'static,
    ) -> Self {
        self.own_tools = Arc::new(own);
        self
    }

    /// Who gets each line of their transcripts as it is written, with the file it stands in.
    #[must_use]
    pub fn mirror(mut self, mirror: impl Fn(&Path, &str) + Send + Sync + 'static) -> Self {
        self.mirror = Some(Arc::new(mirror));
        self
    }

    /// The main agent may launch only these kinds.
    #[must_use]
    pub fn only(mut self, kinds: Option<Vec<String>>) -> Self {
        self.allowed = kinds;
        self
    }

    /// The pool.
    pub fn build(self) -> SubagentPool {
        let shared = Shared {
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
            main: Arc::new(Spawner::first(Arc::new(shared), self.allowed)),
        }
    }
}

impl Shared {
    pub(super) fn kinds(&self) -> MutexGuard<'_, Vec<Arc<AgentDefinition>>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one in, in place of an earlier one of its id.
    pub(super) fn add(&self, member: &Arc<Member>) {
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

    /// The one of this id, or the newest of this name.
    pub(super) fn find(&self, name: &str) -> Option<Arc<Member>> {
        let members = self.members();
        let by_id = members.iter().find(|member| member.tag.id == name);
        let by_name = || {
            let mut newest = members.iter().rev();
            newest.find(|member| member.tag.name.as_deref() == Some(name))
        };
        by_id.or_else(by_name).cloned()
    }

    pub(super) fn running(&self) -> Vec<Arc<Member>> {
        let members = self.members();
        let running = members.iter().filter(|member| !member.is_done());
        running.cloned().collect()
    }

    pub(super) fn denied(&self, denials: Vec<Denial>) {
        self.denials().extend(denials);
    }

    fn members(&self) -> MutexGuard<'_, Vec<Arc<Member>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn denials(&self) -> MutexGuard<'_, Vec<Denial>> {
        self.denials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
