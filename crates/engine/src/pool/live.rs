//! The current tools of a session: servers connect late, disconnect, and change what they offer.
//!
//! A pool itself never changes; the next turn gets a new one. A turn uses the pool it started with
//! until it ends. New tools are sorted and added after the existing ones, so that the definitions
//! sent so far stay a prefix of those sent next.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::join_all;
use haft_contract::{DeferredTools, DynTool, Services, ToolSpec};

use super::{
    DefinitionError, Pool, PoolTool, ToolFilters,
    deferral::is_finder,
    filter::is_denied,
    registry::{check, own_names},
};

/// Selects the tools of a session that a main agent of some kind has.
pub type PoolView = Arc<dyn Fn(&Pool) -> Pool + Send + Sync>;

/// The exchangeable pool of a session.
pub(crate) struct LivePool {
    state: Mutex<PoolState>,
    /// The filters, which also apply to tools that are added later.
    filters: ToolFilters,
    /// The deferred tools, shared with the tool that finds them.
    deferred: Arc<DeferredTools>,
}

struct PoolState {
    /// All tools of the session.
    all: Arc<Pool>,
    /// The tools that the agent has.
    now: Arc<Pool>,
    /// Derives the agent's tools from all tools; `None`: it has all of them.
    view: Option<PoolView>,
}

impl PoolState {
    fn set(&mut self, all: Pool, deferred: &DeferredTools) {
        self.all = Arc::new(all);
        self.now = match &self.view {
            Some(view) => Arc::new(view(&self.all)),
            None => Arc::clone(&self.all),
        };
        deferred.set(self.now.deferred());
    }
}

impl LivePool {
    pub(crate) fn new(pool: Pool, filters: ToolFilters) -> Self {
        let deferred = Arc::new(DeferredTools::new(pool.deferred()));
        let all = Arc::new(pool);
        Self {
            state: Mutex::new(PoolState {
                now: Arc::clone(&all),
                all,
                view: None,
            }),
            filters,
            deferred,
        }
    }

    /// Returns the current pool of the agent.
    pub(crate) fn get(&self) -> Arc<Pool> {
        Arc::clone(&self.lock().now)
    }

    /// Returns the pool of the session, including tools that the agent does not have.
    pub(crate) fn all(&self) -> Arc<Pool> {
        Arc::clone(&self.lock().all)
    }

    /// Sets the view that selects the agent's tools; `None`: all of them.
    pub(crate) fn set_view(&self, view: Option<PoolView>, services: &Services) {
        let mut state = self.lock();
        let mut all = Pool::clone(&state.all);
        let findable = match &view {
            Some(view) => view(&all).deferred(),
            None => all.deferred(),
        };
        // Done only when the view changes, so that the definition of the tool that finds others
        // stays the same when tools are added and removed.
        all.set_finder_targets(findable, services);
        state.view = view;
        state.set(all, &self.deferred);
    }

    /// Returns the service through which deferred tools are found.
    pub(crate) fn deferred(&self) -> Arc<DeferredTools> {
        Arc::clone(&self.deferred)
    }

    /// Returns the filters.
    pub(crate) fn filters(&self) -> &ToolFilters {
        &self.filters
    }

    /// Adds tools after the existing ones.
    pub(crate) async fn add(&self, tools: Vec<Arc<dyn DynTool>>) -> Vec<DefinitionError> {
        self.change(None, tools).await
    }

    /// Replaces the tools of a server.
    pub(crate) async fn replace_server(
        &self,
        server: &str,
        tools: Vec<Arc<dyn DynTool>>,
    ) -> Vec<DefinitionError> {
        self.change(Some(server), tools).await
    }

    async fn change(
        &self,
        server: Option<&str>,
        tools: Vec<Arc<dyn DynTool>>,
    ) -> Vec<DefinitionError> {
        let enabled = join_all(tools.iter().map(|tool| tool.is_enabled())).await;
        let tools = tools.into_iter().zip(enabled);
        let mut tools: Vec<Arc<dyn DynTool>> = tools
            .filter(|(tool, enabled)| *enabled && !is_denied(tool.spec(), &self.filters))
            .map(|(tool, _)| tool)
            .collect();
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        let mut state = self.lock();
        let (pool, problems) = changed(&state.all, &self.filters, server, tools);
        state.set(pool, &self.deferred);
        problems
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the pool with these tools, which replace all tools of the server. A tool that exists
/// already keeps its position.
fn changed(
    pool: &Pool,
    filters: &ToolFilters,
    server: Option<&str>,
    tools: Vec<Arc<dyn DynTool>>,
) -> (Pool, Vec<DefinitionError>) {
    let of_server = |spec: &ToolSpec| server.is_some() && spec.profile.origin.server() == server;
    let mut new: BTreeMap<String, Arc<dyn DynTool>> = BTreeMap::new();
    let mut problems = Vec::new();
    for tool in tools {
        let others = pool.iter().filter(|other| !of_server(other.spec()));
        let others = others.map(|other| other.tool()).chain(new.values());
        match check(tool.spec(), others) {
            Ok(()) => {
                new.insert(tool.spec().name.clone(), tool);
            }
            Err(problem) => problems.push(problem),
        }
    }
    let mut kept: Vec<Arc<PoolTool>> = Vec::new();
    let mut withdrawn = pool.withdrawn.clone();
    for old in pool.iter() {
        let spec = old.spec();
        if !of_server(spec) {
            kept.push(Arc::clone(old));
        } else if let Some(tool) = new.remove(&spec.name) {
            kept.push(Arc::new(PoolTool::new(tool)));
        } else {
            withdrawn.insert(spec.name.clone(), server.unwrap_or_default().to_owned());
        }
    }
    kept.extend(new.into_values().map(|tool| Arc::new(PoolTool::new(tool))));
    for tool in &kept {
        for name in own_names(tool.spec()) {
            withdrawn.remove(name);
        }
    }
    let mut changed = Pool {
        named: pool.named.clone(),
        withdrawn,
        ..Pool::from_tools(kept, pool.forbidden.clone())
    };
    // The tool that finds others is offered as soon as there are deferred tools.
    let before = pool.iter().map(|tool| tool.spec());
    let before = before.filter(|spec| !is_finder(spec));
    let before = before.map(|spec| (spec.name.clone(), pool.is_deferred(&spec.name)));
    changed.decide_deferral(filters, &before.collect());
    (changed, problems)
}
