//! Layers around the execution of a call.
//!
//! A layer receives the call and the rest of the chain ([`LayerChain`]). It may wait, answer the call
//! itself, cut it short, or log what happened. The order is trace, rate limit, cache, timeout,
//! tool. A cached result is traced, but has no timeout. A layer is left out for calls on which it
//! would have no effect.

pub mod cache;
pub mod rate_limit;
pub mod timeout;
pub mod trace;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use haft_contract::{BoxFuture, CallContext, CallRate, ToolError, ToolOutput, ToolSpec};

use crate::pipeline::AdmittedCall;

/// The result of a call.
pub type LayerResult = Result<ToolOutput, ToolError>;

/// A wrapper around the execution of every call.
pub trait Layer: Send + Sync {
    /// Runs the call with `next`, or answers it without running it.
    fn call<'a>(
        &'a self,
        call: &'a AdmittedCall,
        cx: &'a CallContext,
        next: LayerChain<'a>,
    ) -> BoxFuture<'a, LayerResult>;
}

/// The rest of the chain up to the tool.
#[derive(Clone, Copy)]
pub struct LayerChain<'a> {
    call: &'a AdmittedCall,
    rest: &'a [Arc<dyn Layer>],
}

impl<'a> LayerChain<'a> {
    pub(crate) fn new(call: &'a AdmittedCall, layers: &'a [Arc<dyn Layer>]) -> Self {
        Self { call, rest: layers }
    }

    /// Runs the rest of the chain with this context.
    pub fn run(self, cx: &'a CallContext) -> BoxFuture<'a, LayerResult> {
        match self.rest.split_first() {
            Some((layer, rest)) => layer.call(self.call, cx, LayerChain { rest, ..self }),
            None => self.call.call().run(cx),
        }
    }
}

/// The layer settings of the session, which override the profiles of the tools.
#[derive(Debug, Clone, Default)]
pub struct LayerSettings {
    /// The timeout of calls for which neither the tool nor `tools` sets one; `None`: no timeout.
    pub timeout: Option<Duration>,
    /// Settings by tool name.
    pub tools: HashMap<String, ToolSettings>,
}

/// The layer settings of one tool, where they differ from its profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// The timeout of a call.
    pub timeout: Option<Duration>,
    /// The time for which a read-only result may be reused.
    pub cache: Option<Duration>,
    /// The rate limit.
    pub rate: Option<CallRate>,
}

impl LayerSettings {
    fn tool(&self, spec: &ToolSpec) -> ToolSettings {
        let set = self.tools.get(&spec.name).copied().unwrap_or_default();
        ToolSettings {
            timeout: set.timeout.or(spec.profile.timeout).or(self.timeout),
            cache: set.cache.or(spec.profile.cache),
            rate: set.rate.or(spec.profile.rate),
        }
    }
}

/// The layers of a session, shared by its agents: four standard ones, and those of the embedder.
pub(crate) struct LayerStack {
    settings: Arc<LayerSettings>,
    trace: Arc<dyn Layer>,
    rate_limit: Arc<dyn Layer>,
    cache: Arc<dyn Layer>,
    timeout: Arc<dyn Layer>,
    more: Vec<Arc<dyn Layer>>,
    /// Whether at least one tool of the session uses the cache, so that every call that changes
    /// anything must empty it.
    keeps_answers: AtomicBool,
}

impl LayerStack {
    pub(crate) fn new(settings: LayerSettings, more: Vec<Arc<dyn Layer>>) -> Self {
        let settings = Arc::new(settings);
        let keeps_answers = settings.tools.values().any(|tool| tool.cache.is_some());
        Self {
            trace: Arc::new(trace::TraceLayer),
            rate_limit: Arc::new(rate_limit::RateLimitLayer::new(Arc::clone(&settings))),
            cache: Arc::new(cache::CacheLayer::new(Arc::clone(&settings))),
            timeout: Arc::new(timeout::TimeoutLayer::new(Arc::clone(&settings))),
            settings,
            more,
            keeps_answers: AtomicBool::new(keeps_answers),
        }
    }

    /// Registers tools that may be called from now on.
    pub(crate) fn register_tools<'a>(&self, tools: impl IntoIterator<Item = &'a ToolSpec>) {
        if tools.into_iter().any(|spec| spec.profile.cache.is_some()) {
            self.keeps_answers.store(true, Ordering::SeqCst);
        }
    }

    /// Returns the layers that have an effect on calls of this tool, in order.
    pub(crate) fn layers_for(&self, spec: &ToolSpec) -> Vec<Arc<dyn Layer>> {
        let is_traced = tracing::enabled!(target: trace::TARGET, tracing::Level::DEBUG);
        let is_limited = self.settings.tool(spec).rate.is_some();
        let keeps_answers = self.keeps_answers.load(Ordering::SeqCst);
        let standard = [
            is_traced.then_some(&self.trace),
            is_limited.then_some(&self.rate_limit),
            keeps_answers.then_some(&self.cache),
            Some(&self.timeout),
        ];
        standard
            .into_iter()
            .flatten()
            .chain(&self.more)
            .cloned()
            .collect()
    }
}
