//! What stands around the execution of a call.
//!
//! A layer gets the call and the rest of the way ([`Next`]) and decides what to do with it: wait,
//! answer by itself, cut it short, or write down what happened. The order is trace, rate limit,
//! cache, timeout, tool: what the cache answers is traced, but neither waits nor times out.

pub mod cache;
pub mod rate_limit;
pub mod timeout;
pub mod trace;

use std::{collections::HashMap, sync::Arc, time::Duration};

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

/// The four layers of every engine, in their order.
pub fn standard(settings: &Arc<LayerSettings>) -> Vec<Arc<dyn Layer>> {
    vec![
        Arc::new(trace::Trace),
        Arc::new(rate_limit::RateLimit::new(Arc::clone(settings))),
        Arc::new(cache::Cache::new(Arc::clone(settings))),
        Arc::new(timeout::Timeout::new(Arc::clone(settings))),
    ]
}
