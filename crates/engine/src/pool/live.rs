//! The tools of a session as they are now: servers come late, go, and change what they offer.
//!
//! A pool never changes. What changes is which one the next turn takes: the one who holds one keeps it, so that a
//! turn ends with the tools it began with. What is new goes behind what was there, sorted among itself, so that
//! definitions that were sent stay a prefix of those that are sent next.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::join_all;
use haft_contract::{DeferredTools, DynTool, Services, ToolSpec};

use super::{
    DefinitionError, Filters, Pool, PoolTool,
    deferral::is_finder,
    filter::is_denied,
    registry::{check, own_names},
};

/// What a main agent of some kind has of the tools of its session.
pub type PoolView = Arc<dyn Fn(&Pool) -> Pool + Send + Sync>;

/// The pool of a session, which can be exchanged.
pub(crate) struct LivePool {
    state: Mutex<PoolState>,
    /// What keeps tools out, those that come late too.
    filters: Filters,
    /// The same tools, for those that look for deferred ones.
    deferred: Arc<DeferredTools>,
}

struct PoolState {
    /// Every tool of the session.
    all: Arc<Pool>,
    /// Those of them that the agent has.
    now: Arc<Pool>,
    /// What makes the second of the first; `None`: they are the same.
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
    pub(crate) fn new(pool: Pool, filters: Filters) -> Self {
        let deferred = Arc::new(DeferredTools::of(pool.deferred()));
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

    /// The pool as it is now.
    pub(crate) fn get(&self) -> Arc<Pool> {
        Arc::clone(&self.lock().now)
    }

    /// The same with those that the agent does not have.
    pub(crate) fn all(&self) -> Arc<Pool> {
        Arc::clone(&self.lock().all)
    }

    /// From now on the agent has what this leaves of the tools; `None`: all of them.
    pub(crate) fn set_view(&self, view: Option<PoolView>, services: &Services) {
        let mut state = self.lock();
        let mut all = Pool::clone(&state.all);
        let findable = match &view {
            Some(view) => view(&all).deferred(),
            None => all.deferred(),
        };
        // Once: what the model is sent of it stays the same when tools come and go.
        all.fit_finder(findable, services);
        state.view = view;
        state.set(all, &self.deferred);
    }

    /// The service by which deferred tools are found.
    pub(crate) fn deferred(&self) -> Arc<DeferredTools> {
        Arc::clone(&self.deferred)
    }

    /// The filters it was made with.
    pub(crate) fn filters(&self) -> &Filters {
        &self.filters
    }

    /// Puts tools behind those that are there.
    pub(crate) async fn add(&self, tools: Vec<Arc<dyn DynTool>>) -> Vec<DefinitionError> {
        self.change(None, tools).await
    }

    /// From now on a server has these tools and no others.
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

/// The pool with these tools too, in place of all that the server had. One that is there already keeps its
/// place.
fn changed(
    pool: &Pool,
    filters: &Filters,
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
        ..Pool::of(kept, pool.forbidden.clone())
    };
    // The tool that finds others is offered as soon as there is something to find.
    let before = pool.iter().map(|tool| tool.spec());
    let before = before.filter(|spec| !is_finder(spec));
    let before = before.map(|spec| (spec.name.clone(), pool.is_deferred(&spec.name)));
    changed.decide_deferral(filters, &before.collect());
    (changed, problems)
}
