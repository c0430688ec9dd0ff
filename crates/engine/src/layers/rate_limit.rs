//! A rate limit: calls that exceed it wait.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use haft_contract::{BoxFuture, CallContext, CallRate, ToolError};
use tokio::time::{Instant, sleep_until};

use super::{Layer, LayerChain, LayerResult, LayerSettings};
use crate::pipeline::AdmittedCall;

/// Delays calls that exceed the rate. A burst of `calls` calls runs immediately; after that, one
/// per interval of `per / calls`.
#[derive(Debug)]
pub struct RateLimitLayer {
    settings: Arc<LayerSettings>,
    /// For each tool, the time at which its whole allowance is available again.
    booked: Mutex<HashMap<String, Instant>>,
}

impl RateLimitLayer {
    /// Creates a rate limit with these settings.
    pub fn new(settings: Arc<LayerSettings>) -> Self {
        Self {
            settings,
            booked: Mutex::default(),
        }
    }

    /// Reserves the next free time.
    fn reserve(&self, tool: &str, rate: CallRate) -> Instant {
        let calls = rate.calls.max(1);
        let share = rate.per / calls;
        let ahead = share * (calls - 1);
        let now = Instant::now();
        let mut booked = self.booked.lock().unwrap_or_else(PoisonError::into_inner);
        let until = booked.entry(tool.to_owned()).or_insert(now);
        let start = (*until).max(now);
        *until = start + share;
        // A burst within the allowance starts immediately; only calls beyond it wait.
        start
            .checked_sub(ahead)
            .map_or(now, |moment| moment.max(now))
    }
}

impl Layer for RateLimitLayer {
    fn call<'a>(
        &'a self,
        call: &'a AdmittedCall,
        cx: &'a CallContext,
        next: LayerChain<'a>,
    ) -> BoxFuture<'a, LayerResult> {
        let spec = call.call().spec();
        let Some(rate) = self.settings.tool(spec).rate else {
            return next.run(cx);
        };
        Box::pin(async move {
            let moment = self.reserve(&spec.name, rate);
            if moment > Instant::now() + Duration::from_millis(1) {
                tokio::select! {
                    () = sleep_until(moment) => {}
                    () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
                }
            }
            next.run(cx).await
        })
    }
}
