//! What stands around the execution of a call.
//!
//! A layer gets the call and the rest of the way ([`Next`]) and decides what to do with it: wait,
//! answer by itself, cut it short, or write down what happened. The order is trace, rate limit,
//! cache, timeout, tool: what the cache answers is traced, but neither waits nor times out. A layer stands
//! around a call only where it has something to do.

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

use haft_contract::{BoxFuture, CallContext, Rate, ToolError, ToolOutput, ToolSpec};

use crate::pipeline::Admitted;

/// What a call comes to.
pub type LayerResult = Result<ToolOutput, ToolError>;

/// Something around the execution of every call.
pub trait Layer: Send + Sync {
    /// Runs the call by `next`, or does not.
    fn call<'a>(
        &'a self,
        call: &'a Admitted,
        cx: &'a CallContext,
        next: Next<'a>,
    ) -> BoxFuture<'a, LayerResult>;
}

/// The rest of the way to the tool.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    call: &'a Admitted,
    rest: &'a [Arc<dyn Layer>],
}

impl<'a> Next<'a> {
    pub(crate) fn new(call: &'a Admitted, layers: &'a [Arc<dyn Layer>]) -> Self {
        Self { call, rest: layers }
    }

    /// Goes on, with this context.
    pub fn run(self, cx: &'a CallContext) -> BoxFuture<'a, LayerResult> {
        match self.rest.split_first() {
            Some((layer, rest)) => layer.call(self.call, cx, Next { rest, ..self }),
            None => self.call.call().run(cx),
        }
    }
}

/// How the layers treat each tool: what is set here, else what the tool's profile says.
#[derive(Debug, Clone, Default)]
pub struct LayerSettings {
    /// How long a call may run where neither its tool nor `tools` says; `None`: as long as it takes.
    pub timeout: Option<Duration>,
    /// By tool name.
    pub tools: HashMap<String, ToolSettings>,
}

/// How the layers treat one tool, where it differs from the tool's own profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// How long a call may run.
    pub timeout: Option<Duration>,
    /// How long a read-only answer may be served again.
    pub cache: Option<Duration>,
    /// How often it may be called.
    pub rate: Option<Rate>,
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
pub(crate) struct Layers {
    settings: Arc<LayerSettings>,
    trace: Arc<dyn Layer>,
    rate_limit: Arc<dyn Layer>,
    cache: Arc<dyn Layer>,
    timeout: Arc<dyn Layer>,
    more: Vec<Arc<dyn Layer>>,
    /// Some tool of the session wants answers kept: every call that changes anything must be noticed.
    keeps_answers: AtomicBool,
}

impl Layers {
    pub(crate) fn new(settings: LayerSettings, more: Vec<Arc<dyn Layer>>) -> Self {
        let settings = Arc::new(settings);
        let keeps_answers = settings.tools.values().any(|tool| tool.cache.is_some());
        Self {
            trace: Arc::new(trace::Trace),
            rate_limit: Arc::new(rate_limit::RateLimit::new(Arc::clone(&settings))),
            cache: Arc::new(cache::Cache::new(Arc::clone(&settings))),
            timeout: Arc::new(timeout::Timeout::new(Arc::clone(&settings))),
            settings,
            more,
            keeps_answers: AtomicBool::new(keeps_answers),
        }
    }

    /// These tools may be called from now on.
    pub(crate) fn expect<'a>(&self, tools: impl IntoIterator<Item = &'a ToolSpec>) {
        if tools.into_iter().any(|spec| spec.profile.cache.is_some()) {
            self.keeps_answers.store(true, Ordering::SeqCst);
        }
    }

    /// Those that have something to do with a call of this tool, in their order.
    pub(crate) fn around(&self, spec: &ToolSpec) -> Vec<Arc<dyn Layer>> {
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
